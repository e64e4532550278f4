"""Reads files that other tools wrote, within bounds of size, nesting and the expansion of aliases.

No Python objects are constructed but strings, bytes, numbers, lists and mappings.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
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
_GZIP = b"\x1f\x8b\x08"
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*\{)")

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


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part of a YAML file that has a tag which is not read: an entry of the file, or all of it.

    Args:
        where: its line and column.
    """

    where: str
    problem: str


def _headers(arguments: list[Any]) -> dict[str, list[Any]]:
    """Headers, whose only argument is a list of pairs: the values of each name."""
    fields: dict[str, list[Any]] = {}
    for pair in arguments[0] if arguments and isinstance(arguments[0], list) else ():
        match pair:
            case [str(name), value]:
                fields.setdefault(name, []).append(value)
    return fields


# A tag whose content is one text is that text: of Python (the names of multidict's headers, methods
# that are members of an enumeration), of Ruby's Psych (subclasses of String, symbols), or local.
# Besides, what vcrpy writes with tags of Python (vcr/serializers/yamlserializer.py, 9.4) and the
# headers of aiohttp (multidict) are read as the list, mapping or bytes that they hold, and so are
# the subclasses of Hash and Array that Psych writes. Nothing is called or built.
_TEXT = f"{_TAG}str"
_LOCAL = ("!", f"{_TAG}python/")
_MULTIDICT = ("multidict", "multidict._multidict", "multidict._multidict_py")
_SEQUENCES: dict[str | None, Callable[[list[Any]], Any]] = {
    **dict.fromkeys((None, "!", f"{_TAG}seq", f"{_TAG}python/tuple"), lambda items: items),
    **{
        f"{_TAG}python/object/{call}:{module}.{name}": _headers
        for call in ("apply", "new")
        for module in _MULTIDICT
        for name in ("MultiDict", "CIMultiDict")
    },
}
_MAPPINGS: dict[str | None, Callable[[dict[Any, Any]], Any]] = {
    **dict.fromkeys((None, "!", f"{_TAG}map"), lambda fields: fields),
    f"{_TAG}python/object/new:_io.BytesIO": _file_content,
    f"{_TAG}python/object/apply:builtins.iter": _body_of_iterator,
}

_ENTRIES = 2
"""The depth of the list of entries: one that cannot be read does not cost the others."""


class ForeignFile:
    """A file, with its bytes and the value that they hold, each read once.

    Args:
        path: of the file.

    Raises:
        UsageError: by each property: the file cannot be read, or not as this.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def data(self) -> bytes:
        """The bytes; of a file that gzip has compressed, those that it stands for."""
        try:
            size = self.path.stat().st_size
            if size > MAX_FILE:
                raise self._too_large(size)
            data = self.path.read_bytes()
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror or error}") from error
        return self._unpack(data) if data.startswith(_GZIP) else data

    @cached_property
    def value(self) -> Any:
        """The value of a JSON or YAML file."""
        if self.is_json:
            return json_value(self.data, self.path)
        return yaml_value(self.data, self.path)

    @property
    def is_json(self) -> bool:
        """Whether it begins like a JSON object, or like a JSON list of objects."""
        return _JSON.match(self.data) is not None

    def _unpack(self, data: bytes) -> bytes:
        packed = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            plain = packed.decompress(data, MAX_FILE + 1)
        except zlib.error as error:
            raise UsageError(f"{self.path}: is not gzip as it says: {error}") from error
        if len(plain) > MAX_FILE:
            raise self._too_large(len(plain))
        if not packed.eof:
            raise UsageError(f"{self.path}: is cut off: its gzip data have no end")
        return plain

    def _too_large(self, size: int) -> UsageError:
        return UsageError(
            f"{self.path} has {size:,} bytes; at most {MAX_FILE:,} are read. Split it."
        )


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
        if isinstance(value, Unreadable):
            raise UsageError(f"{self._path}:{value.where}: {value.problem}")
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
        if tag is None or tag == _TEXT:
            return join_pairs(text)
        if tag == "!binary":  # as Ruby writes `!!binary`
            tag = f"{_TAG}binary"
        elif tag.startswith(_LOCAL):
            return join_pairs(text) if text or tag == "!" else _unreadable(event)
        node = yaml.ScalarNode(tag, text, event.start_mark, event.end_mark)
        try:
            return self._loader.construct_object(node)
        except (yaml.constructor.ConstructorError, ValueError, OverflowError) as error:
            problem = getattr(error, "problem", error)
            return Unreadable(_position(event), f"is not plain YAML: {problem}")

    def _sequence(self, event: Any, depth: int) -> Any:
        items = []
        while (inner := self._next()).__class__ is not yaml.SequenceEndEvent:
            items.append(self._node(inner, depth + 1))
        if depth != _ENTRIES and (unreadable := _first_unreadable(items)) is not None:
            return unreadable
        if event.tag in _SEQUENCES:
            return _SEQUENCES[event.tag](items)
        match items:
            case [str(text)]:
                return text
        return items if event.tag.startswith("!ruby/array") else _unreadable(event)

    def _mapping(self, event: Any, depth: int) -> Any:
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
        if depth != _ENTRIES and (unreadable := _first_unreadable([*fields, *fields.values()])):
            return unreadable
        if event.tag in _MAPPINGS:
            return _MAPPINGS[event.tag](fields)
        match fields:
            case {"str": str(text)} if event.tag.startswith(("!ruby/string", "!str")):
                return text
        return fields if event.tag.startswith("!ruby/hash") else _unreadable(event)


def _first_unreadable(values: list[Any]) -> Unreadable | None:
    return next((value for value in values if value.__class__ is Unreadable), None)


def _unreadable(event: Any) -> Unreadable:
    tag = event.tag
    if not tag.startswith(f"{_TAG}python/"):
        return Unreadable(_position(event), f"has the tag {tag}, which is not plain YAML")
    return Unreadable(
        _position(event),
        f"has the tag !!{tag.removeprefix(_TAG)}, which names a Python object, and none is ever "
        "built. Record it again with a current vcrpy, or take the tags out.",
    )


def _problem(text: str, event: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, text, event.start_mark)


def _position(event: Any) -> str:
    return f"{event.start_mark.line + 1}:{event.start_mark.column + 1}"


def _at(mark: Any) -> str:
    return f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
