"""Names of recorded scenarios: from the first text of the user, with a number where taken."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

_MAX_LENGTH = 48
_WORD = re.compile(r"[a-z0-9]+")


def slug(text: str, otherwise: str) -> str:
    """The beginning of a text as a scenario's name; accents are dropped, whole words kept.

    Args:
        otherwise: the name of a text without a letter or digit of the Latin alphabet.
    """
    plain = unicodedata.normalize("NFKD", text[: 8 * _MAX_LENGTH])
    plain = "".join(char for char in plain if not unicodedata.combining(char)).lower()
    name = ""
    for word in _WORD.findall(plain.replace("'", "")):
        longer = f"{name}-{word}" if name else word[:_MAX_LENGTH]
        if len(longer) > _MAX_LENGTH:
            break
        name = longer
    return name or otherwise


_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{device}{number}" for device in ("com", "lpt") for number in "0123456789¹²³"]
)
"""File names that Windows reserves, whatever their ending is."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.,()+=@ \[\]-]+")
_MAX_STEM = 120


def file_stem(name: str) -> str:
    """A name as the beginning of file names on any system.

    Characters that some system refuses become `_`. Names that Windows reserves get one in front.
    """
    stem = _UNSAFE.sub("_", name).strip(". ")[:_MAX_STEM].rstrip(". ") or "recorded"
    return f"_{stem}" if stem.partition(".")[0].strip().lower() in _RESERVED else stem


def free_name(name: str, taken: Callable[[str], bool], *, first: int = 2) -> str:
    """The name itself, or `NAME-2`, `NAME-3`, ... where it is taken."""
    if not taken(name):
        return name
    number = first
    while taken(f"{name}-{number}"):
        number += 1
    return f"{name}-{number}"
