"""Plain values as canonical YAML text: block style, readable, exact; and what a scalar means.

The text is exactly that of PyYAML's emitter in Python with the settings of
`tests/scenario/pyyaml_text.py`, and takes a tenth of its time, because values need no events, no
nodes and no state machine. The faster emitter in C writes other text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Self

from yaml import SafeDumper


class TextFile(str):
    """A text that has a file of its own beside the YAML: `{file: NAME}`."""

    __slots__ = ("file",)
    file: str

    def __new__(cls, text: str, file: str) -> Self:
        self = super().__new__(cls, text)
        self.file = file
        return self

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # str has one
        return str(self), self.file


_BREAKS = frozenset("\n\r\x85\u2028\u2029")
_LINE_ENDS = _BREAKS - {"\r"}
_LINE = 70
_FLOW = 160
_INDENT = 2
_LONGEST_KEY = 122
"""A longer key gets a `?`: PyYAML counts 128 characters with `!!str`."""
_MOST_CACHED = 64
_SHORT = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\x85": "\\N",
    "\u2028": "\\L",
    "\u2029": "\\P",
}
_ESCAPED = re.compile(
    '["\\\\\\x85\u2028\u2029\ufeff]|[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010fffe]'
)
_UNPRINTABLE = re.compile(
    "[^\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010fffe]"
)
_NOT_PLAIN = re.compile(
    r"""
    \A(?: [ #,\[\]{}&*!|>'"%@`] | [?-](?:[ ]|\Z) | --- | [.][.][.] )
    | :(?:[ ]|\Z) | [ ]\# | [ ]\Z
    """,
    re.VERBOSE,
)
_NOT_PLAIN_IN_FLOW = re.compile(r"[,?\[\]{}:]")
_RESOLVERS: dict[str, list[tuple[str, re.Pattern[str]]]] = SafeDumper.yaml_implicit_resolvers

_Write = Callable[[str], None]


class Flow(list[Any]):
    """A list to be written on one line."""


class FlowMap(dict[str, Any]):
    """A mapping to be written on one line, if it is short."""

    longest = _FLOW


class MessageMap(FlowMap):
    """One of many messages, which are easier to read in one line each."""

    longest = 400


def write(value: Any) -> str:
    """The YAML text of a JSON value; keys stay in their order.

    Raises:
        TypeError: something in it is no JSON value.
    """
    out: list[str] = []
    if _is_block_collection(value):
        _block(value, 0, out.append)
    else:
        text = _leaf(value, _INDENT)
        # A plain scalar alone could go on in the next line, so the document's end is marked.
        plain = isinstance(value, (int, float)) or value is None or text == value
        out.append(f"{text}\n...\n" if plain else f"{text}\n")
    return "".join(out)


# Collections


def _is_block_collection(value: Any) -> bool:
    """Whether a value is written over several lines, an entry in each."""
    kind = type(value)
    if kind is dict:
        return bool(value)
    if issubclass(kind, FlowMap):
        return bool(value) and len(str(value)) > kind.longest
    if kind is list:
        return bool(value) and not _is_short(value)
    return kind is tuple and bool(value)


def _is_short(items: list[Any]) -> bool:
    length = 0
    for item in items:
        if isinstance(item, str):
            length += len(item) + 4
        else:
            length += _LINE if isinstance(item, (list, dict)) else 8
    return length < _LINE


def _block(value: Any, indent: int, write: _Write) -> None:
    """Writes a collection, the first entry where the line is already indented."""
    margin = ""
    later = " " * indent
    if isinstance(value, dict):
        for key, item in value.items():
            write(margin)
            _entry(key, item, indent, write)
            margin = later
    else:
        for item in value:
            write(f"{margin}-")
            _inner(item, indent, write)
            margin = later


def _entry(key: Any, item: Any, indent: int, write: _Write) -> None:
    _check_key(key)
    if _is_simple(key):
        write(f"{_strings(key)[0]}:")
    else:
        write("?")
        _inner(key, indent, write)
        write(f"{' ' * indent}:")
        _inner(item, indent, write)
        return
    if _is_block_collection(item):
        deeper = indent + _INDENT
        write(f"\n{' ' * deeper}")
        _block(item, deeper, write)
    else:
        write(f" {_leaf(item, indent + _INDENT)}\n")


def _inner(item: Any, indent: int, write: _Write) -> None:
    """Writes what stands on the same line as its indicator, such as `-`."""
    if _is_block_collection(item):
        write(" ")
        _block(item, indent + _INDENT, write)
    else:
        write(f" {_leaf(item, indent + _INDENT)}\n")


def _leaf(value: Any, indent: int) -> str:
    """A scalar or a collection on one line; further lines of it have the `indent`."""
    if type(value) is str:
        literal = _literal(value, indent)
        return _strings(value)[0] if literal is None else literal
    return _inline(value)


def _inline(value: Any) -> str:
    """A value inside of brackets, or the brackets."""
    kind = type(value)
    if kind is str:
        return _strings(value)[1]
    if kind is TextFile:
        return f"{{{_pairs({'file': value.file})}}}"
    if issubclass(kind, dict):
        return f"{{{_pairs(value)}}}"
    if kind is list or kind is Flow or kind is tuple:
        return f"[{', '.join([_inline(item) for item in value])}]"
    return _plain_value(value)


def _pairs(mapping: dict[Any, Any]) -> str:
    pairs = []
    for key, item in mapping.items():
        _check_key(key)
        text = _inline(key)
        text = f"{text}:" if _is_simple(key) else f"? {text} :"
        pairs.append(f"{text} {_inline(item)}")
    return ", ".join(pairs)


def _check_key(key: Any) -> None:
    if type(key) is not str:
        raise TypeError(f"a key must be a string, got {key!r}")


def _is_simple(key: str) -> bool:
    """Whether a key needs no `?`."""
    return 0 < len(key) <= _LONGEST_KEY and _LINE_ENDS.isdisjoint(key)


# Scalars


def _plain_value(value: Any) -> str:
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    if type(value) is float:
        return _number(value)
    raise TypeError(f"{value!r} is no JSON value")


def _number(value: float) -> str:
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    text = repr(value)
    return text.replace("e", ".0e", 1) if "." not in text else text  # YAML 1.1 demands a point


def _literal(text: str, indent: int) -> str | None:
    """The text as a literal block; None where it has another form."""
    if "\n" not in text or not _is_block(text) or _UNPRINTABLE.search(text):
        return None
    margin = " " * indent
    lines = [margin + line if line else "" for line in text.split("\n")]
    if text[-1] == "\n":
        return "|\n" + "\n".join(lines[:-1])
    return "|-\n" + "\n".join(lines)


def _strings(text: str) -> tuple[str, str]:
    """The text as a scalar in a block, and inside of brackets; not as a literal block."""
    return _cached(text) if len(text) <= _MOST_CACHED else _scalars(text)


def _scalars(text: str) -> tuple[str, str]:
    if not _BREAKS.isdisjoint(text) or _UNPRINTABLE.search(text):
        quoted = f'"{_ESCAPED.sub(_escape, text)}"'
        return quoted, quoted
    single = "'" + text.replace("'", "''") + "'"
    if _NOT_PLAIN.search(text) or _is_no_text(text):
        return single, single
    return text, single if _NOT_PLAIN_IN_FLOW.search(text) else text


_cached = lru_cache(maxsize=4096)(_scalars)
"""Keys, names and fragments come again and again."""


_NUMERIC = frozenset("-+.0123456789~tTfFnN")
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?\d{1,4000}\Z", re.ASCII)
_BASED = re.compile(r"0(?:o[0-7]{1,4000}|x[0-9a-fA-F]{1,3000})\Z")
_FLOAT = re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?\Z", re.ASCII)
_NOT_FINITE = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")


def plain_scalar(text: str) -> str | int | float | bool | None:
    """The value of a text without quotes by YAML 1.2's core schema (section 10.3), in which `yes`,
    `no` and dates are text. A float that is too large is infinite."""
    if text and text[0] not in _NUMERIC:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if _NOT_FINITE.match(text):
        return float(text.replace(".", ""))
    return int(text, 0) if _BASED.match(text) else text


def _is_no_text(text: str) -> bool:
    """Whether a text without quotes is read as another type, by YAML 1.1 or by 1.2."""
    if not isinstance(plain_scalar(text), str):
        return True
    return any(pattern.match(text) for _, pattern in _RESOLVERS.get(text[:1], ()))


def _is_block(text: str) -> bool:
    """Whether a literal block has exactly this text, even after an editor trims line ends."""
    lines = text.split("\n")
    return (
        not text[0].isspace()
        and not text.endswith("\n\n")
        and all(line == line.rstrip() and _BREAKS.isdisjoint(line) for line in lines)
    )


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
