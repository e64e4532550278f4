"""Reads files that other tools wrote, within bounds of size, nesting and the expansion of aliases.

No Python objects are constructed but strings, bytes, numbers, lists and mappings.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from mockllm.errors import UsageError

MAX_FILE = 256 * 1024 * 1024
"""The largest file, in bytes."""

MAX_VALUES = 5_000_000
"""How many values a YAML file may have with its aliases expanded."""

_MAX_DEPTH = 200

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _PlainLoader(_Loader):  # type: ignore[misc]
    """Reads timestamps as text: JSON bodies have no dates."""


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def _text(loader: Any, node: Any) -> str:
    return str(loader.construct_scalar(node))


def _list(loader: Any, node: Any) -> list[Any]:
    items: list[Any] = loader.construct_sequence(node, deep=True)
    return items


def _file_content(loader: Any, node: Any) -> bytes:
    """The content of a body that was sent from a file: the first value of its state."""
    state = loader.construct_mapping(node, deep=True).get("state")
    return _joined(state[:1] if isinstance(state, list) else [])


def _iterated(loader: Any, node: Any) -> bytes:
    """The bytes of a body that was sent from an iterator: its only argument is a list of them."""
    arguments = loader.construct_mapping(node, deep=True).get("args")
    chunks = arguments[0] if isinstance(arguments, list) and arguments else []
    return _joined(chunks if isinstance(chunks, list) else [])


def _joined(chunks: list[Any]) -> bytes:
    return b"".join(one if isinstance(one, bytes) else str(one).encode() for one in chunks)


# What vcrpy itself writes with a tag of Python (vcr/serializers/yamlserializer.py, 9.4). Each is
# read as the text, list or bytes that it holds; nothing is called or built.
for _tag, _read in {
    "str": _text,
    "unicode": _text,
    "tuple": _list,
    "object/new:_io.BytesIO": _file_content,
    "object/apply:builtins.iter": _iterated,
}.items():
    _PlainLoader.add_constructor(f"tag:yaml.org,2002:python/{_tag}", _read)


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
        if _may_be_deep(data):
            _check_depth(data, path)
        value = yaml.load(data, Loader=_PlainLoader)  # noqa: S506 - a safe loader
    except yaml.constructor.ConstructorError as error:
        raise UsageError(_refused(path, error)) from error
    except yaml.MarkedYAMLError as error:
        problem = error.problem or error.context or "it cannot be read"
        raise UsageError(f"{path}{_at(error.problem_mark)}: is not YAML: {problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{path}: is not YAML: {error}") from error
    except RecursionError:
        raise UsageError(f"{path}: is nested too deeply") from None
    if _ALIAS.search(data):
        _check_size(value, path)
    return value


_ALIAS = re.compile(rb"[\s\[{,:-]\*")
"""Whatever is an alias in YAML looks so. Without one, a value is no larger than its file."""
_INDENT = re.compile(rb"^[ ?:-]*", re.MULTILINE)


def _may_be_deep(data: bytes) -> bool:
    """Whether YAML has enough brackets and indents for deep nesting; most has not, and is parsed
    once only. A sequence may have the indent of the mapping around it."""
    brackets = data.count(b"[") + data.count(b"{")
    if brackets >= _MAX_DEPTH:
        return True
    indent = max(map(len, _INDENT.findall(data)))
    return brackets + 2 * (indent + 1) >= _MAX_DEPTH


def _check_depth(data: bytes, path: Path) -> None:
    """Refuses deep nesting before anything recursive: the composer of libyaml would overflow the
    stack and crash Python."""
    depth = 0
    for event in yaml.parse(data, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise UsageError(f"{path}{_at(event.start_mark)}: is nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _at(mark: Any) -> str:
    return f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""


def _refused(path: Path, error: yaml.constructor.ConstructorError) -> str:
    problem = error.problem or ""
    _, _, tag = problem.partition("'tag:yaml.org,2002:")
    where = f"{path}{_at(error.problem_mark)}"
    if tag.startswith("python/"):
        return (
            f"{where}: has the tag !!{tag.rstrip(chr(39))}, which names a Python object, and none "
            "is ever built. Record it again with a current vcrpy, or take the tags out."
        )
    return f"{where}: is not plain YAML: {problem}"


def _check_size(value: Any, path: Path) -> None:
    """Refuses a value that aliases make huge or endless, before anything walks through it."""
    sizes: dict[int, int] = {}
    open_: set[int] = set()
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        node, seen = stack.pop()
        key = id(node)
        children = _children(node)
        if seen:
            open_.discard(key)
            sizes[key] = 1 + sum(sizes.get(id(child), 1) for child in children)
            if sizes[key] > MAX_VALUES:
                raise UsageError(f"{path}: its aliases expand to more than {MAX_VALUES:,} values")
        elif key in open_:
            raise UsageError(f"{path}: an alias contains itself")
        elif children and key not in sizes:
            open_.add(key)
            stack.append((node, True))
            stack += [(child, False) for child in children]


def _children(node: Any) -> list[Any]:
    match node:
        case dict():
            return list(node.values())
        case list():
            return node
    return []
