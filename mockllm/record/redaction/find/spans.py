"""Where secrets are in a text, also in a text inside it: escapes of JSON and of URLs, base64; and
secrets that are known from elsewhere.

A `View` is the decoded text, with the position in the original that each character comes from.
"""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mockllm.core.record import record
from mockllm.record.redaction.find.bodies import Body, Edit, TextBody, binary_body


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


def unescape_json(text: str) -> View | None:
    """A text without JSON's escapes; None where it has none."""
    return _view(text, _ESCAPE, _character)


def decode_percent(text: str) -> View | None:
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


_RUN_LENGTH = 16


def run_shape(characters: str) -> bytes:
    """A table for `has_run`."""
    return bytes(ord("x" if chr(code) in characters else " ") for code in range(256))


def has_run(text: str, shape: bytes) -> bool:
    """Whether a text has a run of 16 of some characters, in a tenth of the time of `re`."""
    if len(text) < _RUN_LENGTH:
        return False
    return b"x" * _RUN_LENGTH in text.encode("ascii", "replace").translate(shape)


_BASE64_SHAPE = run_shape(_ALPHABET)


@record
class Base64Run:
    """A part of a text that is another text, or an event stream of AWS, in base64."""

    start: int
    end: int
    body: Body
    url_safe: bool
    padded: bool

    @property
    def text(self) -> str:
        """The other text."""
        return self.body.text

    def edit(self, changes: Sequence[Edit]) -> str:
        """The other text with edits made, in the same variant of base64."""
        encode = base64.urlsafe_b64encode if self.url_safe else base64.b64encode
        written = encode(self.body.edit(changes)[0]).decode("ascii")
        return written if self.padded else written.rstrip("=")


def base64_runs(text: str) -> Iterator[Base64Run]:
    """The parts of a text that are text in base64, of either alphabet, padded or not."""
    if not has_run(text, _BASE64_SHAPE):
        return
    for found in _RUN.finditer(text):
        run = found[0].rstrip("=")
        url_safe = "-" in run or "_" in run
        # Pictures are long; their first bytes show already that they are no text.
        if len(run) > _PROBE and _decode_run(run[:_PROBE], url_safe, cut=True) is None:
            continue
        inner = _decode_run(run, url_safe)
        if inner is not None:
            yield Base64Run(found.start(), found.end(), inner, url_safe, len(found[0]) % 4 == 0)


_LONG = 2048
_ENCODED = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def is_sound(text: str) -> bool:
    """Whether a text is nothing but long base64 of bytes that are no text, as sound and pictures
    are. A voice session has megabytes of it each minute, and what looks like a key is none."""
    if len(text) < _LONG or _ENCODED.fullmatch(text) is None:
        return False
    begin = base64.b64decode(text[:_LONG])
    return b"\0" in begin or _decode_run(text[:_LONG], url_safe=False, cut=True) is None


_BEFORE = 32
_STANDARD = re.compile(r"[+/]")
_URL_SAFE = re.compile(r"[-_]")
_RANDOM = tuple(
    re.compile(pattern) for pattern in (r"(?:[A-Z][^A-Z]*){4}", r"(?:[a-z][^a-z]*){4}", r"[0-9]")
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


def _decode_run(run: str, url_safe: bool, *, cut: bool = False) -> Body | None:
    padded = run + "=" * (-len(run) % 4)
    try:
        data = base64.b64decode(padded, altchars=b"-_" if url_safe else b"+/", validate=True)
        return binary_body(data)
    except UnicodeDecodeError as error:
        # A run that was cut may end inside a character.
        return TextBody("") if cut and error.start >= len(data) - 3 else None
    except binascii.Error:
        return None


@dataclass(frozen=True, slots=True)
class Found:
    """A secret in a text.

    Args:
        kind: for reports.
        secret: without escapes.
        parts: where it is; several spans where it is cut.
        fixed: what replaces it whatever it is; "" for its placeholder.
        inner: where it is in base64, the secrets in there.
    """

    kind: str
    secret: str
    parts: tuple[tuple[int, int], ...]
    fixed: str = ""
    inner: tuple[Base64Run, tuple[Found, ...]] | None = None

    def secrets(self) -> Iterator[str]:
        """The secret, or those inside."""
        if self.inner is not None:
            for found in self.inner[1]:
                yield from found.secrets()
        elif self.secret:
            yield self.secret

    def map_parts(self, span: Callable[[int, int], tuple[int, int]]) -> Found:
        """The same elsewhere.

        Args:
            span: where a part of the text is in what is around it.
        """
        return replace(self, parts=tuple(span(*part) for part in self.parts))


def in_original(found: Iterable[Found], view: View) -> list[Found]:
    """The spans of a decoded text, at its positions in the original."""
    starts = view.starts
    return [secret.map_parts(lambda start, end: (starts[start], starts[end])) for secret in found]


def whole_escapes(found: Iterable[Found], view: View) -> list[Found]:
    """The same, but made longer where they begin or end inside an escape."""
    whole = []
    for secret in found:
        ((start, end),) = secret.parts
        start = view.starts[bisect_right(view.starts, start) - 1]
        end = view.starts[bisect_left(view.starts, end)]
        whole.append(replace(secret, parts=((start, end),)))
    return whole


class Spans:
    """Where some secrets are in a text, however many, to ask whether another one overlaps them."""

    def __init__(self, found: Iterable[Found]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(part for secret in found for part in secret.parts):
            if self._ends and start < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def overlap(self, found: Found) -> bool:
        """Whether a secret overlaps one of them."""
        return any(self._overlap(start, end) for start, end in found.parts)

    def _overlap(self, start: int, end: int) -> bool:
        index = bisect_right(self._ends, start)
        return index < len(self._ends) and self._starts[index] < end


def adjacent(found: Iterable[Found], others: Sequence[Found]) -> Iterable[Found]:
    """Those that are not where others are."""
    if not others:
        return found
    spans = Spans(others)
    return [secret for secret in found if not spans.overlap(secret)]


def split(found: Iterable[Found], kept: Iterable[bool]) -> tuple[list[Found], list[Found]]:
    """Those that are not kept, and those that are."""
    parts: tuple[list[Found], list[Found]] = ([], [])
    for secret, is_kept in zip(found, kept, strict=True):
        parts[is_kept].append(secret)
    return parts


# Secrets that are known from elsewhere

MIN_MATCH = 12
"""So many characters of a secret are not in a text by accident."""

_TIMED_UUID = re.compile(
    r"[\da-fA-F]{8}-[\da-fA-F]{4}-[167][\da-fA-F]{3}-[\da-fA-F]{4}-[\da-fA-F]{12}"
)
"""Versions of UUIDs that begin with the time (RFC 9562), so that others of that moment do too."""

_TIME = 18
"""So many characters of it, with the version and the counter behind it."""

_WINDOW = MIN_MATCH // 2
_SHORTEST_WORD = 8
_FEW = 64
"""Up to so many beginnings, to ask for each is quicker than to go through the words of a text."""


class KnownSecrets:
    """Finds secrets of at least 12 characters by any 12 of them, three of which differ; shorter
    ones, and names, as whole words.

    Args:
        secrets: in an order that does not change from run to run: what several of them have in
            common counts as a part of the first. Short ones that could be words are passed over.
        names: of accounts: parts of them are words of other names too.
    """

    def __init__(self, secrets: Iterable[str], names: Iterable[str] = ()) -> None:
        self._parts: dict[str, tuple[str, str, int]] = {}
        self._shared: set[str] = set()
        self._words = {name for name in names if len(name) >= _SHORTEST_WORD}
        for secret in secrets:
            source = _searched_part(secret)
            if len(source) >= MIN_MATCH:
                self._add_parts(secret, source)
            elif len(source) >= _SHORTEST_WORD and re.search(r"[0-9@ ]", source):
                self._words.add(source)
        # Any 12 characters have 6 that begin at a multiple of 6 of the text.
        self._windows = frozenset(
            part[at : at + _WINDOW] for part in self._parts for at in range(_WINDOW + 1)
        )
        self._lengths: dict[str, set[int]] = {}
        for word in self._words:
            self._lengths.setdefault(word[:_SHORTEST_WORD], set()).add(len(word))

    def _add_parts(self, secret: str, source: str) -> None:
        first = _TIME - MIN_MATCH + 1 if _TIMED_UUID.fullmatch(source) else 0
        for at in range(first, len(source) - MIN_MATCH + 1):
            part = source[at : at + MIN_MATCH]
            # Zeros and padding are in other texts too.
            if (
                len(set(part)) > 2
                and self._parts.setdefault(part, (secret, source, at))[0] != secret
            ):
                self._shared.add(part)

    @property
    def short(self) -> bool:
        """Whether some of them have less than 12 characters."""
        return any(len(word) < MIN_MATCH for word in self._words)

    def find(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        """The secrets that are in the text, whole or in part, and where."""
        if self._parts:
            yield from self._in_parts(text)
        if self._words:
            yield from self._whole_words(text)

    def _in_parts(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        past = 0
        for window in range(0, len(text) - _WINDOW + 1, _WINDOW):
            if text[window : window + _WINDOW] in self._windows:
                for at in range(max(past, window - _WINDOW), window + 1):
                    if text[at : at + MIN_MATCH] in self._parts:
                        secret, (start, past) = self._longest(text, at, past)
                        yield secret, (start, past)
                        break

    def _longest(self, text: str, at: int, past: int) -> tuple[str, tuple[int, int]]:
        """The secret whose part begins at `at`, and where it is as far as its parts follow each
        other. Keys share their beginnings: a part of one secret alone decides which it is."""
        secret, source, left = self._parts[text[at : at + MIN_MATCH]]
        start, end, sure = at, at, False
        while found := self._parts.get(text[end : end + MIN_MATCH]):
            if not sure and text[end : end + MIN_MATCH] not in self._shared:
                secret, sure = found[0], True
            last, right = found[1], found[2] + MIN_MATCH
            end += 1
        end += MIN_MATCH - 1
        # A repeated character before or after them is no part, but belongs to the secret.
        while start > past and left and text[start - 1] == source[left - 1]:
            start, left = start - 1, left - 1
        while end < len(text) and right < len(last) and text[end] == last[right]:
            end, right = end + 1, right + 1
        return secret, (start, end)

    def _whole_words(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        past = 0
        if len(self._lengths) <= _FEW and not any(map(text.__contains__, self._lengths)):
            return
        for begin in _BEGIN.finditer(text):
            at = begin.start()
            lengths = self._lengths.get(text[at : at + _SHORTEST_WORD]) if at >= past else None
            for length in sorted(lengths or (), reverse=True):
                word = text[at : at + length]
                if word in self._words and not _INSIDE.match(text, at + length):
                    past = at + length
                    yield word, (at, past)
                    break


_BEGIN = re.compile(r"(?<!\w)\S")
_INSIDE = re.compile(r"\w")


def _searched_part(secret: str) -> str:
    """The text that is looked for: of an e-mail address not the domain, which many share."""
    local, at, domain = secret.rpartition("@")
    return f"{local}@" if at and "@" not in local and "." in domain else secret
