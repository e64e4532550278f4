r"""A regular expression of Python's `re`, written so that `regex` reads the same in it.

`regex` reads more than `re` does: `(a){i}` allows an insertion, `[[:alpha:]]` is a class. Its `\w`
has combining marks and lacks digits such as "²", and its `\s` lacks four control characters.
"""

from __future__ import annotations

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import sys
import warnings
from collections.abc import Iterable
from typing import Any

__all__ = ["for_regex"]

_FLAGS = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"))
_MARKS = {op.MAX_REPEAT: "", op.MIN_REPEAT: "?", op.POSSESSIVE_REPEAT: "+"}
_PLACES = {
    op.AT_BEGINNING: "^",
    op.AT_BEGINNING_STRING: r"\A",
    op.AT_END: "$",
    op.AT_END_STRING: r"\Z",
}
_ANY = r"[\s\S]"
_CLASSES = {"WORD": r"\p{L}\p{N}_", "SPACE": r"\s\x1c-\x1f", "DIGIT": r"\p{Nd}"}
_ASCII = {"WORD": "a-zA-Z0-9_", "SPACE": r" \t-\r", "DIGIT": "0-9"}


def for_regex(pattern: str) -> str:
    """The text to compile with `regex`, in its VERSION0. Groups keep their numbers, not their
    names.

    Raises:
        re.error, OverflowError, RecursionError: it is no regular expression of Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = parser.parse(pattern)
    flags = parsed.state.flags
    ascii_only = bool(flags & re.ASCII)
    begin = _letters(flags) + ("a" if ascii_only else "")
    return (f"(?{begin})" if begin else "") + _sequence(parsed, ascii_only)


def _letters(flags: int) -> str:
    return "".join(letter for flag, letter in _FLAGS if flags & flag)


def _sequence(nodes: Iterable[Any], ascii_only: bool) -> str:
    return "".join(_node(kind, value, ascii_only) for kind, value in nodes)


def _node(kind: Any, value: Any, ascii_only: bool) -> str:
    if kind is op.LITERAL:
        return _character(value)
    if kind is op.NOT_LITERAL:
        return f"[^{_character(value)}]"
    if kind is op.ANY:
        return "."
    if kind is op.IN:
        return _class(value, ascii_only)
    if kind is op.AT:
        return _PLACES.get(value) or _boundary(value, ascii_only)
    if kind in _MARKS:
        least, most, body = value
        last = "" if most is op.MAXREPEAT else int(most)
        return f"(?:{_sequence(body, ascii_only)}){{{int(least)},{last}}}{_MARKS[kind]}"
    return _group(kind, value, ascii_only)


def _group(kind: Any, value: Any, ascii_only: bool) -> str:
    if kind is op.SUBPATTERN:
        number, added, removed, body = value
        inner = _sequence(body, bool(added & re.ASCII or (ascii_only and not added & re.UNICODE)))
        if number is not None:
            return f"({inner})"
        less = _letters(removed)
        return f"(?{_letters(added)}{'-' if less else ''}{less}:{inner})"
    if kind is op.BRANCH:
        return f"(?:{'|'.join(_sequence(one, ascii_only) for one in value[1])})"
    if kind is op.ATOMIC_GROUP:
        return f"(?>{_sequence(value, ascii_only)})"
    if kind in (op.ASSERT, op.ASSERT_NOT):
        sign = ("<" if value[0] < 0 else "") + ("=" if kind is op.ASSERT else "!")
        return f"(?{sign}{_sequence(value[1], ascii_only)})"
    if kind is op.GROUPREF:
        return rf"(?:\g<{value}>)"
    if kind is op.GROUPREF_EXISTS:
        number, yes, no = value
        return f"(?({number}){_sequence(yes, ascii_only)}|{_sequence(no or [], ascii_only)})"
    if kind is op.FAILURE:
        return "(?!)"
    raise re.error(f"{kind} is not known here")


def _character(code: int) -> str:
    return chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\U{code:08x}"


def _class(items: list[Any], ascii_only: bool) -> str:
    negated = items[0][0] is op.NEGATE
    simple, others = "", []
    for kind, value in items[negated:]:
        if kind is op.LITERAL:
            simple += _character(value)
        elif kind is op.RANGE:
            simple += f"{_character(value[0])}-{_character(value[1])}"
        else:
            name = str(value).removeprefix("CATEGORY_")
            known = (_ASCII if ascii_only else _CLASSES)[name.removeprefix("NOT_")]
            if name.startswith("NOT_"):
                others.append(f"[^{known}]")
            else:
                simple += known
    if not others:
        return f"[{'^' if negated else ''}{simple}]"
    options = "|".join([*([f"[{simple}]"] if simple else []), *others])
    return f"(?:(?!{options}){_ANY})" if negated else f"(?:{options})"


def _boundary(place: Any, ascii_only: bool) -> str:
    word = f"[{(_ASCII if ascii_only else _CLASSES)['WORD']}]"
    if place is op.AT_BOUNDARY:
        return f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
    inside = f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"
    # Before Python 3.14 an empty text has no `\B`.
    return inside if sys.version_info >= (3, 14) else f"(?:{inside}(?:(?<={_ANY})|(?={_ANY})))"
