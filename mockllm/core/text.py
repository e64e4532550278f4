"""Texts and values as messages quote them: on one line, and not at any length."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

_DISPLAYED = 80
_LONGEST_NAME = 200
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
"""Characters that JSON allows unescaped. YAML 1.2 (5.1, 5.4) forbids them, or reads them as the end
of a line."""


def json_as_yaml(value: Any) -> str:
    """A value as JSON text in lines, in which YAML reads all strings as JSON does."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


NOT_VISIBLE = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e"
    "\u2060-\u2069\ufeff\ufff9-\uffff\ud800-\udfff"
)
"""The characters, in a class of a pattern, that are not seen, or change what is seen: controls of a
terminal, marks for the direction of text."""

_NOT_VISIBLE = re.compile(f"[{NOT_VISIBLE}]")
_NOT_VISIBLE_IN_LINES = re.compile(rf"(?!\t|\r?\n)[{NOT_VISIBLE}]")


def printable(text: str) -> str:
    """One line of text, or of JSON, for a terminal: what is not visible in it is escaped."""
    return _NOT_VISIBLE.sub(_escape, text)


def printable_lines(text: str) -> str:
    """Lines of text, or of JSON, for a terminal: what is not visible in them is escaped, but for
    tabs and line ends."""
    return _NOT_VISIBLE_IN_LINES.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


HALF_PAIR = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: JSON and YAML have escapes for it, and UTF-8 cannot hold it."""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def join_pairs(text: str) -> str:
    """The text with the character of each surrogate pair, as JSON reads two escapes; half of a pair
    stays."""
    if text.isascii() or _PAIR.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def readable_header(value: bytes) -> str:
    """The value of a header, as a person reads it: bytes that are no UTF-8 are read as Latin-1."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def quantity(number: int, noun: str) -> str:
    """A number of things: `1 turn`, `2 turns`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def similar_names(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The known names that are most similar to a mistyped one, as far as there are any."""
    # Imported here: only mistakes need it, and starting a server does not.
    from difflib import get_close_matches

    return get_close_matches(name, known, most) if len(name) <= _LONGEST_NAME else []


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "", *, most: int = 1) -> str:
    """`did you mean 'split'?`; `otherwise` where no known name is similar to a mistyped one."""
    near = similar_names(name, known, most)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else otherwise


def common_length(left: str, right: str) -> int:
    """The number of characters with which two texts begin alike."""
    alike, end = 0, min(len(left), len(right))
    while alike < end:  # bisected: a prompt may have a million characters
        middle = (alike + end + 1) // 2
        if left[alike:middle] == right[alike:middle]:
            alike = middle
        else:
            end = middle - 1
    return alike


def shorten(
    text: str, limit: int, *, keep: int | None = None, tail: int = 0, mark: str = "…"
) -> str:
    """The text if it has at most `limit` characters, else its beginning, a mark and its end.

    Args:
        limit: in characters.
        keep: how many characters of the beginning are kept; default: `limit`.
        tail: how many characters of the end are kept.
        mark: what stands for the characters that are left out.
    """
    if len(text) <= limit:
        return text
    return f"{text[: limit if keep is None else keep]}{mark}{text[len(text) - tail :]}"


def display(value: object) -> str:
    """The `repr` of a value, with its length where it is shortened."""
    try:
        text = repr(value)
    except RecursionError:  # a body may be nested as deeply as it can be read
        return _too_deep(value)
    return shorten(text, _DISPLAYED, mark=f"… ({len(text)} characters)")


def display_json(value: object) -> str:
    """The JSON text of a JSON value that is no text; a text as it is."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return _too_deep(value)


def _too_deep(value: object) -> str:
    return f"a {type(value).__name__} that is nested too deeply to be shown"
