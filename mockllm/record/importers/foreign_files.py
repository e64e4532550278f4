"""Reads files that other tools wrote, within bounds of size, nesting and the expansion of aliases.

No Python objects are constructed but strings, bytes, numbers, lists and mappings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from mockllm.core.errors import UsageError
from mockllm.core.text import join_pairs

MAX_FILE = 256 * 1024 * 1024
"""The largest file, in bytes."""

MAX_VALUES = 5_000_000
"""How many values a YAML file may have with its aliases expanded."""

_MAX_DEPTH = 200

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_DIGITS = frozenset("-0123456789")
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+(?:[eE][-+][0-9]+)?").fullmatch
_RESOLVERS = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        # JSON bodies have no dates; the other two are keys that mean something in a mapping.
        if tag.removeprefix(_TAG) not in ("timestamp", "merge", "value")
    ]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


@lru_cache(4096)
def _tag_of(text: str) -> str | None:
    """The tag of a plain scalar; None for a string. The same names are in each exchange."""
    resolvers = _RESOLVERS.get(text[:1], ())
    return next((tag for tag, pattern in resolvers if pattern.match(text)), None)


def _file_content(fields: dict[Any, Any]) -> bytes:
    """The content of a body that was sent from a file: the first value of its state."""
    state = fields.get("state")
    return _join_chunks(state[:1] if isinstance(state, list) else [])


def _body_of_iterator(fields: dict[Any, Any]) -> bytes:
    """The bytes of a body that was sent from an iterator: its only argument is a list of them."""
    arguments = fields.get("args")
    chunks = arguments[0] if isinstance(arguments, list) and arguments else []
    return _join_chunks(chunks if isinstance(chunks, list) else [])


def _join_chunks(chunks: list[Any]) -> bytes:
    return b"".join(chunk if isinstance(chunk, bytes) else str(chunk).encode() for chunk in chunks)


def _name(arguments: list[Any]) -> str:
    """The name of a header, whose only argument is its text."""
    return str(arguments[0]) if arguments else ""


def _headers(arguments: list[Any]) -> dict[str, list[Any]]:
    """Headers, whose only argument is a list of pairs: the values of each name."""
    fields: dict[str, list[Any]] = {}
    for pair in arguments[0] if arguments and isinstance(arguments[0], list) else ():
        match pair:
            case [str(name), value]:
                fields.setdefault(name, []).append(value)
    return fields


# Among them what vcrpy itself writes with a tag of Python (vcr/serializers/yamlserializer.py, 9.4),
# and the headers of aiohttp that it does not turn into plain ones (multidict): read as the text,
# list, mapping or bytes that it holds; nothing is called or built.
_TEXTS = ("!", f"{_TAG}str", f"{_TAG}python/str", f"{_TAG}python/unicode")
_MULTIDICT = ("multidict", "multidict._multidict", "multidict._multidict_py", "multidict._istr")
_APPLIED = {"istr": _name, "MultiDict": _headers, "CIMultiDict": _headers}
_SEQUENCES: dict[str | None, Callable[[list[Any]], Any]] = {
    **dict.fromkeys((None, "!", f"{_TAG}seq", f"{_TAG}python/tuple"), lambda items: items),
    **{
        f"{_TAG}python/object/apply:{module}.{name}": read
        for module in _MULTIDICT
        for name, read in _APPLIED.items()
    },
}
_MAPPINGS: dict[str | None, Callable[[dict[Any, Any]], Any]] = {
    None: lambda fields: fields,
    "!": lambda fields: fields,
    f"{_TAG}map": lambda fields: fields,
    f"{_TAG}python/object/new:_io.BytesIO": _file_content,
    f"{_TAG}python/object/apply:builtins.iter": _body_of_iterator,
}


def contents(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        UsageError: it cannot be read, or is larger than `MAX_FILE`.
    """
    try:
        size = path.stat().st_size
        if size > MAX_FILE:
            raise UsageError(f"{path} has {size:,} bytes; at most {MAX_FILE:,} are read. Split it.")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


def json_value(data: bytes, path: Path) -> Any:
    """The JSON value of a file; a byte order mark before it is skipped.

    Raises:
        UsageError: it is not JSON, with line and column.
    """
    try:
        return json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}:{error.colno}"
        raise UsageError(f"{where}: is not JSON: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8") from error
    except RecursionError:
        raise UsageError(f"{path}: is nested too deeply") from None


def yaml_value(data: bytes, path: Path) -> Any:
    """The value of a YAML file's only document.

    Raises:
        UsageError: it is not YAML, has tags that name Python objects, or expands to too much.
    """
    try:
        return _document(data, path)
    except yaml.constructor.ConstructorError as error:
        raise UsageError(_tag_problem(path, error)) from error
    except yaml.MarkedYAMLError as error:
        problem = error.problem or error.context or "it cannot be read"
        raise UsageError(f"{path}{_at(error.problem_mark)}: is not YAML: {problem}") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise UsageError(f"{path}: is not YAML: {error}") from error


def _document(data: bytes, path: Path) -> Any:
    try:
        return _Document(_Loader(data), path).value()
    except yaml.scanner.ScannerError as error:
        # libyaml refuses halves of surrogate pairs; the parser in Python, which writes them, does
        # not, and takes ten times as long.
        if "invalid Unicode character escape" not in (error.problem or ""):
            raise
        return _Document(yaml.SafeLoader(data), path).value()


class _Document:
    """Makes the value of a document of its parser's events, in one pass: bounds come before any
    recursion. libyaml's own composer would end the process for some ten thousand `- `."""

    def __init__(self, loader: Any, path: Path) -> None:
        self._loader = loader
        self._next = loader.get_event
        self._path = path
        self._count = 0
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        """The value of each and how many values it has; None inside of it."""

    def value(self) -> Any:
        """The value; None for an empty file."""
        self._next()
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        value = self._node(self._next(), 1)
        self._next()
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            problem = "it has more than one document"
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        return value

    def _node(self, event: Any, depth: int) -> Any:
        self._count += 1
        if event.__class__ is yaml.ScalarEvent and event.anchor is None:
            return self._scalar(event)
        if event.__class__ is yaml.AliasEvent:
            return self._alias(event)
        before = self._count
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if event.__class__ is yaml.ScalarEvent:
            value = self._scalar(event)
        elif depth > _MAX_DEPTH:
            raise UsageError(f"{self._path}{_at(event.start_mark)}: is nested too deeply")
        elif event.__class__ is yaml.SequenceStartEvent:
            value = self._sequence(event, depth)
        else:
            value = self._mapping(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._count - before + 1
        return value

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            problem = f"there is no anchor for the alias {event.anchor!r}"
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        known = self._anchors[event.anchor]
        if known is None:
            raise UsageError(f"{self._path}: an alias contains itself")
        self._count += known[1] - 1
        if self._count > MAX_VALUES:
            raise UsageError(f"{self._path}: its aliases expand to more than {MAX_VALUES:,} values")
        return known[0]

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        tag = event.tag
        if tag is None and event.implicit[0]:
            if text[:1] in _DIGITS and _DECIMAL(text):  # of which embeddings have thousands
                return float(text)
            tag = _tag_of(text)
        if tag is None or tag in _TEXTS:
            return join_pairs(text)
        if tag == "!binary":  # as Ruby writes `!!binary`
            tag = f"{_TAG}binary"
        node = yaml.ScalarNode(tag, text, event.start_mark, event.end_mark)
        return self._loader.construct_object(node)

    def _sequence(self, event: Any, depth: int) -> Any:
        if event.tag not in _SEQUENCES:
            raise _unknown_tag(event)
        items = []
        while (inner := self._next()).__class__ is not yaml.SequenceEndEvent:
            items.append(self._node(inner, depth + 1))
        return _SEQUENCES[event.tag](items)

    def _mapping(self, event: Any, depth: int) -> Any:
        if event.tag not in _MAPPINGS:
            raise _unknown_tag(event)
        fields: dict[Any, Any] = {}
        merged: list[Any] = []
        while (inner := self._next()).__class__ is not yaml.MappingEndEvent:
            key, value = self._node(inner, depth + 1), self._node(self._next(), depth + 1)
            if isinstance(key, (list, dict)):
                raise _problem("a key is a list or a mapping", inner)
            if key == "<<" and inner.__class__ is yaml.ScalarEvent and inner.implicit[0]:
                merged += value if isinstance(value, list) else [value]
            else:
                fields[key] = value
        for base in merged:
            if not isinstance(base, dict):
                raise _problem("'<<' merges what is no mapping", event)
            fields = {**base, **fields}
        return _MAPPINGS[event.tag](fields)


def _unknown_tag(event: Any) -> yaml.constructor.ConstructorError:
    return _problem(f"could not determine a constructor for the tag {event.tag!r}", event)


def _problem(text: str, event: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, text, event.start_mark)


def _at(mark: Any) -> str:
    return f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""


def _tag_problem(path: Path, error: yaml.constructor.ConstructorError) -> str:
    problem = error.problem or ""
    _, _, tag = problem.partition("'tag:yaml.org,2002:")
    where = f"{path}{_at(error.problem_mark)}"
    if tag.startswith("python/"):
        return (
            f"{where}: has the tag !!{tag.rstrip(chr(39))}, which names a Python object, and none "
            "is ever built. Record it again with a current vcrpy, or take the tags out."
        )
    return f"{where}: is not plain YAML: {problem}"
