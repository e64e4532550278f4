"""Encodings of a text inside another: escapes of JSON and of URLs, base64.

A `View` is the decoded text, with the position in the original that each character comes from.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence

from mockllm.core.record import record


@record
class View:
    """A decoded text.

    Args:
        starts: for each character of `text`, and for its end, the position in the original.
    """

    text: str
    starts: Sequence[int]


_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u[0-9a-fA-F]{4}|\\[bfnrt\"\\/]"
)
_PERCENT = re.compile(r"%[0-7][0-9a-fA-F]")


def unescaped(text: str) -> View | None:
    """A text without JSON's escapes; None where it has none."""
    return _view(text, _ESCAPE, _character)


def percent_decoded(text: str) -> View | None:
    """A text without the escapes of URLs that stand for ASCII; None where it has none."""
    return _view(text, _PERCENT, lambda escape: chr(int(escape[1:], 16)))


def _character(escape: str) -> str:
    if escape[1] != "u":
        return _LETTERS.get(escape[1], escape[1])
    if len(escape) == 6:
        return chr(int(escape[2:6], 16))
    high, low = int(escape[2:6], 16), int(escape[8:], 16)
    return chr(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF))


def _view(text: str, pattern: re.Pattern[str], character: Callable[[str], str]) -> View | None:
    parts: list[str] = []
    starts: list[int] = []
    last = 0
    for found in pattern.finditer(text):
        parts += [text[last : found.start()], character(found[0])]
        starts += range(last, found.start() + 1)
        last = found.end()
    if not parts:
        return None
    starts += range(last, len(text) + 1)
    return View("".join([*parts, text[last:]]), starts)


_RUN = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_PROBE = 64
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"


_SHAPE = bytes(ord("x" if chr(code) in _ALPHABET else " ") for code in range(256))
_SHORTEST_RUN = b"x" * 16


def _has_run(text: str) -> bool:
    """Whether `_RUN` is in a text; this takes a tenth of the time of the expression."""
    return _SHORTEST_RUN in text.encode("ascii", "replace").translate(_SHAPE)


@record
class Base64Run:
    """A part of a text that is another text in base64."""

    start: int
    end: int
    text: str
    url_safe: bool
    padded: bool

    def encode(self, text: str) -> str:
        """Another text in the same variant of base64."""
        encode = base64.urlsafe_b64encode if self.url_safe else base64.b64encode
        written = encode(text.encode("utf-8", "surrogateescape")).decode("ascii")
        return written if self.padded else written.rstrip("=")


def base64_runs(text: str) -> Iterator[Base64Run]:
    """The parts of a text that are text in base64, of either alphabet, padded or not."""
    if not _has_run(text):
        return
    for found in _RUN.finditer(text):
        run = found[0].rstrip("=")
        url_safe = "-" in run or "_" in run
        # Pictures are long; their first bytes show already that they are no text.
        if len(run) > _PROBE and _decoded(run[:_PROBE], url_safe, cut=True) is None:
            continue
        inner = _decoded(run, url_safe)
        if inner is not None:
            yield Base64Run(found.start(), found.end(), inner, url_safe, len(found[0]) % 4 == 0)


_BEFORE = 32
_STANDARD = re.compile(r"[+/]")
_URL_SAFE = re.compile(r"[-_]")
_RANDOM = tuple(
    re.compile(one) for one in (r"(?:[A-Z][^A-Z]*){4}", r"(?:[a-z][^a-z]*){4}", r"[0-9]")
)


def is_inside_base64(text: str, start: int, end: int) -> bool:
    """Whether a part of a text, which looks like a key, is only a part of longer base64: what is
    right before it is random too, and the same alphabet goes on in it.

    Signatures and embeddings hold `-sk-` and the like by accident. Standard base64 has no hyphen,
    so that a key with one in its prefix is a key there (`/v1/sk-...`).
    """
    before = text[max(0, start - _BEFORE) : start]
    if len(before) < _BEFORE or before.strip(_ALPHABET):
        return False
    run = before + text[start:end]
    if _STANDARD.search(run) and _URL_SAFE.search(run):
        return False
    return all(pattern.search(before) for pattern in _RANDOM)


def _decoded(run: str, url_safe: bool, *, cut: bool = False) -> str | None:
    padded = run + "=" * (-len(run) % 4)
    try:
        data = base64.b64decode(padded, altchars=b"-_" if url_safe else b"+/", validate=True)
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        # A run that was cut may end inside a character.
        return "" if cut and error.start >= len(data) - 3 else None
    except binascii.Error:
        return None
