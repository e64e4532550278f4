"""Eight bits of each value that a recording hides, which tell recorded requests apart. Pure.

A hidden value has a place: `?name` is a parameter of the query, `{redacted}`, `{redacted2}`, ...
are segments of the path of a route, and a JSON pointer (RFC 6901) is a string of the body, or a
file. Where a body is neither JSON nor a form, `""` is all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeVar
from urllib.parse import parse_qsl

HIDDEN_SEGMENT = "redacted"
"""The name of the first hidden segment of a path; others have a number after it."""

_Turn = TypeVar("_Turn")

_KEY = b"mockllm: hidden value"
_LOCAL = r"[^\s@<>\"'(),;:]"
# Possessive, and from the beginning of a word: a body of megabytes may have no space.
_EMAIL = re.compile(rf"(?<!{_LOCAL}){_LOCAL}++@[\w-]++(?:\.[\w-]++)+")
MAIL_DOMAIN = "@mail.example"
REDACTED_WORD = r"REDACTED-\d+x*"
HIDDEN_ADDRESS = rf"hidden-\d+x*{re.escape(MAIL_DOMAIN)}"
"""Expressions for the placeholders of hidden values: of an address, and of any other."""

_PLACEHOLDER = re.compile(f"(?:{REDACTED_WORD}|{HIDDEN_ADDRESS})+")
_NUMBER = re.compile(r"\+?\d[\d ./()-]{6,}\d")


def hidden_tag(text: str) -> str:
    """Eight bits of a text, two hexadecimal digits.

    One value in 256 has the same, so that several recorded ones are told apart, and nobody can
    find out whether a guess is right. Of a text with addresses or numbers of persons, which can be
    guessed, only these count: the texts around one address add no bits.
    """
    personal = _EMAIL.findall(text) + [re.sub(r"\D", "", found) for found in _NUMBER.findall(text)]
    value = "\0".join(personal).lower() if personal else text
    return blake2b(value.encode("utf-8", "surrogatepass"), digest_size=1, key=_KEY).hexdigest()


def hidden_parameters(places: Iterable[str]) -> frozenset[str]:
    """The names of the parameters among some places."""
    return frozenset(place[1:] for place in places if place.startswith("?"))


def hidden_pointers(places: Iterable[str]) -> list[str]:
    """The JSON pointers among some places."""
    return [place for place in places if place[:1] in ("", "/")]


def hidden_tags(places: Iterable[str], value_at: Callable[[str], str | None]) -> str:
    """The tags of the values at some places, one after the other; `--` for none.

    Args:
        value_at: the value at a place; None where a request has none there.
    """
    values = map(value_at, places)
    return "".join("--" if value is None else hidden_tag(value) for value in values)


def of_same_values(turns: Sequence[_Turn], has_values: Callable[[_Turn], bool]) -> Sequence[_Turn]:
    """Of turns that were recorded from one request but for what is hidden, those whose hidden
    values a request has; all of them where it has those of none: keys differ from machine to
    machine."""
    return [turn for turn in turns if has_values(turn)] or turns


def is_hidden_value(tag: str, text: str) -> bool:
    """Whether a text has a tag, or is a placeholder: the recorded request itself is found, too."""
    return hidden_tag(text) == tag or _PLACEHOLDER.search(text) is not None


def values_of_parameters(query: str) -> dict[str, str]:
    """The values of a query by the places of its parameters, several of one name together."""
    values: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        values.setdefault(f"?{name}", []).append(value)
    return {place: "\0".join(of_name) for place, of_name in values.items()}


def body_text(body: bytes) -> str:
    """A body of any kind as a text."""
    return body.decode("utf-8", "surrogateescape")


def is_file(value: Any) -> bool:
    """Whether a value of a form is a file (`mockllm.play.matching.fingerprint.form_fields`)."""
    return isinstance(value, Mapping) and value.keys() == {
        "filename",
        "content_type",
        "size",
        "sha256",
    }


def string_at(value: Any, pointer: str) -> str | None:
    """The string that a JSON pointer leads to, of a file the digest of its content; None where
    there is none."""
    for key in pointer_keys(pointer):
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    if is_file(value):
        value = value["sha256"]
    return value if isinstance(value, str) else None


def pointer_keys(pointer: str) -> list[str]:
    """The keys of a JSON pointer (RFC 6901)."""
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]


def meets_hidden(recorded: str, sent: str) -> bool:
    """Whether a text is a recorded one, but for what is hidden of that."""
    if _PLACEHOLDER.search(recorded) is None:
        return False
    parts = (re.escape(part) for part in _PLACEHOLDER.split(recorded))
    return re.fullmatch("(?s:.+?)".join(parts), sent) is not None
