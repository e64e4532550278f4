"""A secret in a text, where it is in the document around the text, and whether the user keeps it
there; and secrets that are known from elsewhere."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mockllm.redaction.find.patterns import kind_name
from mockllm.redaction.rules import Keep
from mockllm.redaction.walk.documents import Channel, Document
from mockllm.redaction.walk.encodings import Base64Run, View
from mockllm.redaction.walk.json_strings import JsonPath, StringValue, api_fields


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

    def placed(self, span: Callable[[int, int], tuple[int, int]]) -> Found:
        """The same elsewhere.

        Args:
            span: where a part of the text is in what is around it.
        """
        return replace(self, parts=tuple(span(*part) for part in self.parts))


def union(values: Sequence[StringValue], found: Iterable[Found]) -> list[Found]:
    """What was found in joined strings, at its positions in the document."""
    found = list(found)
    if not found:
        return []
    ends = list(accumulate(len(value.text) for value in values))
    return [replace(secret, parts=tuple(_over(values, ends, secret.parts))) for secret in found]


def _over(
    values: Sequence[StringValue], ends: Sequence[int], parts: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    for start, end in parts:
        index = bisect_right(ends, start)
        while start < end:
            base = ends[index] - len(values[index].text)
            stop = min(end, ends[index])
            if stop > start:
                yield values[index].span(start - base, stop - base)
            start, index = stop, index + 1


def in_original(found: Iterable[Found], view: View) -> list[Found]:
    """What was found in a decoded text, at its positions in the original."""
    starts = view.starts
    return [secret.placed(lambda start, end: (starts[start], starts[end])) for secret in found]


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


def joins(found: Found, certain: Iterable[Found], channel: Channel) -> bool:
    """Whether a secret goes on where the channel of its first fragment, which alone names the
    item, ends: then it is more than what that channel shows of it."""
    nameless = [value for value in channel.values if len(value.ids) == 1]
    return any(
        found.parts[: len(secret.parts)] == secret.parts
        and len(found.parts) > len(secret.parts)
        and found.secret.startswith(secret.secret)
        and all(
            any(value.start <= start and end <= value.end for value in nameless)
            for start, end in found.parts[len(secret.parts) :]
        )
        for secret in certain
        if secret.kind and nameless
    )


def split(found: Iterable[Found], kept: Iterable[bool]) -> tuple[list[Found], list[Found]]:
    """Those that are not kept, and those that are."""
    parts: tuple[list[Found], list[Found]] = ([], [])
    for secret, is_kept in zip(found, kept, strict=True):
        parts[is_kept].append(secret)
    return parts


MIN_MATCH = 12
"""So many characters of a secret are not in a text by accident."""

_WINDOW = MIN_MATCH // 2
_SHORTEST = 8


class KnownSecrets:
    """Finds secrets of at least 12 characters by any 12 of them, shorter ones as whole words.

    Args:
        secrets: in an order that does not change from run to run: what several of them have in
            common counts as a part of the first. Those that could be words are passed over.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._windows: dict[str, list[tuple[str, str, int]]] = {}
        self._pieces: list[str] = []
        short = []
        for secret in secrets:
            source = _searched(secret)
            if len(source) >= MIN_MATCH:
                ends = range(0, len(source) - _WINDOW + 1, _WINDOW)
                self._pieces += [source[at : at + _WINDOW] for at in ends]
                for at in range(len(source) - _WINDOW + 1):
                    window = source[at : at + _WINDOW]
                    self._windows.setdefault(window, []).append((secret, source, at))
            elif len(source) >= _SHORTEST and re.search(r"[0-9@ ]", source):
                short.append(source)
        words = "|".join(map(re.escape, sorted(short, key=len, reverse=True)))
        self._short = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if short else None

    @property
    def short(self) -> bool:
        """Whether some of them have less than 12 characters."""
        return self._short is not None

    def find(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        """The secrets that are in the text, whole or in part, and where."""
        if self._windows:
            yield from self._long(text)
        for found in self._short.finditer(text) if self._short else ():
            yield found[0], found.span()

    def _long(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        # Any 12 characters hold a window of 6 that begins at a multiple of 6: of the secret, and of
        # the text.
        if len(self._pieces) * _WINDOW < len(text) and not any(
            map(text.__contains__, self._pieces)
        ):
            return
        past = 0
        for at in range(0, len(text) - _WINDOW + 1, _WINDOW):
            near = self._windows.get(text[at : at + _WINDOW])
            if near is None or at < past:
                continue
            secret, (start, end) = max(
                ((secret, _extended(text, at, source, offset)) for secret, source, offset in near),
                key=lambda one: one[1][1] - one[1][0],
            )
            if end - start >= MIN_MATCH:
                yield secret, (start, end)
                past = end


def _searched(secret: str) -> str:
    """What is looked for: of an e-mail address not the domain, which many share."""
    local, at, domain = secret.rpartition("@")
    return f"{local}@" if at and "@" not in local and "." in domain else secret


def _extended(text: str, at: int, source: str, offset: int) -> tuple[int, int]:
    """The longest part of `source` in the text around a window that is in both."""
    start, end = at, at + _WINDOW
    left, right = offset, offset + _WINDOW
    while start and left and text[start - 1] == source[left - 1]:
        start, left = start - 1, left - 1
    while end < len(text) and right < len(source) and text[end] == source[right]:
        end, right = end + 1, right + 1
    return start, end


# What the user keeps in some places

_ARGUMENTS = "arguments"
# Some APIs have arguments in an `input`. At the root `input` is what a request asks.
_INPUT = "input"
_DELTA = "delta"
_DEEPEST = 3
_KNOWN = "known secret"


class KeptPlaces:
    """Decides for the secrets of a document which are kept where they are.

    Args:
        read: reads a text as a document; None where it is none.
    """

    def __init__(self, keep: Keep, read: Callable[[str], Document | None]) -> None:
        self._places = keep.places
        self._read = read

    def __bool__(self) -> bool:
        return bool(self._places)

    def kept(self, values: Sequence[StringValue], found: Sequence[Found]) -> list[bool]:
        """For each secret in the joined text of values whether it is kept."""
        text, path = "".join([value.text for value in values]), _path_to(values[0])
        kept = [self._is_kept(secret, text, path) for secret in found]
        spans = Spans(secret for secret, is_kept in zip(found, kept, strict=True) if is_kept)
        # A secret is known from where it is not kept too.
        return [
            is_kept or (one.kind == _KNOWN and spans.overlap(one))
            for one, is_kept in zip(found, kept, strict=True)
        ]

    def _is_kept(self, found: Found, text: str, path: JsonPath) -> bool:
        for secret in found.secrets():
            paths = list(self._paths(secret, text, path, 0))
            if not paths or not all(self._allows(found.kind, one) for one in paths):
                return False
        return any(found.secrets())

    def _allows(self, kind: str, path: JsonPath) -> bool:
        written = _written(path)
        return any(
            name in ("", kind_name(kind)) and any(place.search(one) for one in written)
            for name, place in self._places
        )

    def _paths(self, secret: str, text: str, path: JsonPath, depth: int) -> Iterator[JsonPath]:
        inner = self._read(text) if depth < _DEEPEST and text[:1] in ("{", "[") else None
        if inner is None:
            yield path
            return
        for value in inner.values:
            if secret in value.text:
                yield from self._paths(secret, value.text, path + value.field.path, depth + 1)


def _path_to(value: StringValue) -> JsonPath:
    """The path to a value; fragments of arguments that events call `delta` are in `arguments`."""
    path = value.field.path
    if value.field.name == _DELTA and path:
        kind = value.ids[0].lower()
        if "arg" in kind or "tool_call" in kind:
            return (*path[:-1], _ARGUMENTS)
    return path


def _written(path: JsonPath) -> Iterable[str]:
    """A path as `compiled_paths` reads it: with the names of the service, and with `arguments` for
    the arguments of a call."""
    plain = "".join(f"\x1f{step}" for step in path)
    names = api_fields().arguments
    steps = (
        _ARGUMENTS if step in names or (step == _INPUT and index) else step
        for index, step in enumerate(path)
    )
    return dict.fromkeys((plain, "".join(f"\x1f{step}" for step in steps)))
