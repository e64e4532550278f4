"""Finds secrets in texts, however they are spelled and wherever they are cut."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mockllm.redaction.document_strings import Channel, Document, document
from mockllm.redaction.encodings import Encoded, View, encoded, percent_decoded, unescaped
from mockllm.redaction.json_strings import Leaf
from mockllm.redaction.known_secrets import LEAST, Pieces
from mockllm.redaction.patterns import (
    assigned,
    emails,
    field_is_secret,
    hinted,
    part_at_end,
    telling,
)
from mockllm.redaction.placeholders import is_placeholder, placeholders

__all__ = ["Finder", "Found", "overlap"]


@dataclass(frozen=True, slots=True)
class Found:
    """A secret in a text.

    Args:
        what: its kind, in words.
        secret: as it is when nothing is escaped.
        parts: where it is; several places where it is cut.
        fixed: what is to stand there whatever the secret; "" for its placeholder.
        inner: where it is in base64, what was found in there.
    """

    what: str
    secret: str
    parts: tuple[tuple[int, int], ...]
    fixed: str = ""
    inner: tuple[Encoded, tuple[Found, ...]] | None = None

    def secrets(self) -> Iterator[str]:
        """The secret, or those inside."""
        if self.inner is not None:
            for found in self.inner[1]:
                yield from found.secrets()
        elif self.secret:
            yield self.secret


class Finder:
    """Finds secrets.

    Args:
        patterns: what is a secret besides; the first group of each, if it has one.
        paths: paths in JSON, as `json_paths.compiled` gives them.
        known: secrets that are found wherever they are, and pieces of them too.
    """

    def __init__(
        self,
        patterns: Sequence[re.Pattern[str]] = (),
        paths: re.Pattern[str] | None = None,
        known: Iterable[str] = (),
    ) -> None:
        self._patterns = patterns
        self._paths = paths
        self._pieces = Pieces(one for one in known if not is_placeholder(one))
        self._memo: dict[str, tuple[Found, ...]] = {}
        self._documents: dict[str, Document | None] = {}
        self._every = bool(patterns) or paths is not None
        self._shortest = 1 if self._every else _SHORTEST

    def knowing(self, known: Iterable[str]) -> Finder:
        """The same with other secrets known."""
        finder = Finder(self._patterns, self._paths, known)
        finder._documents = self._documents
        return finder

    def find(self, text: str, depth: int = 0) -> tuple[Found, ...]:
        """The secrets in a text, which may be a document. Where some overlap, the first counts."""
        if len(text) < self._shortest or (len(text) < LEAST and self._harmless(text)):
            return ()
        found = self._memo.get(text)
        if found is None:
            read = self._read(text, depth) if depth < _DEEPEST else None
            found = tuple(self._plain(text, depth) if read is None else self.search(read, depth))
            self._memo[text] = found
        return found

    def _harmless(self, text: str) -> bool:
        """Whether a word is too short for a secret."""
        return text.isalnum() and not self._every and not self._pieces.short

    def _read(self, text: str, depth: int) -> Document | None:
        if text not in self._documents:
            read = document(text, every=self._every)
            if read is not None and any(self.find(name, depth + 1) for name in read.names):
                read = document(text, every=True)
            self._documents[text] = read
        return self._documents[text]

    def search(self, read: Document, depth: int = 0) -> Iterator[Found]:
        """The secrets in a document that has been read."""
        covered: set[int] = set()
        certain: list[Found] = []
        cut: list[Found] = []
        for channel in read.channels:
            text = "".join([leaf.text for leaf in channel.leaves])
            found: Iterable[Found] = self._channel(channel, text, depth)
            if channel.exact:
                named = _over_all(channel.leaves, [Found("", "", (p,)) for p in placeholders(text)])
                certain += [*found, *named]
                cut += [one for one in named if len(one.parts) > 1]
            else:
                found = _beside(found, certain)
            if channel.whole:
                covered.update(map(id, channel.leaves))
            yield from found
        for leaf in read.leaves:
            if self._paths is not None:
                yield from self._at_path(leaf, self._paths)
            elif not self._memo.get(leaf.text, True) and not telling(leaf.entry.name):
                continue
            if id(leaf) not in covered:
                # A part of a placeholder may look like something that it is not.
                yield from _beside(self._leaf(leaf, depth), cut)

    def _channel(self, channel: Channel, text: str, depth: int) -> list[Found]:
        if len(channel.leaves) == 1 and not channel.whole:
            return []
        return _over_all(channel.leaves, self.find(text, depth + 1))

    def _at_path(self, leaf: Leaf, paths: re.Pattern[str]) -> list[Found]:
        if not leaf.entry.path or leaf.entry.kind == "name" or not paths.search(_steps(leaf)):
            return []
        place = leaf.place(0, len(leaf.text))
        if leaf.entry.kind == "number":
            return [Found("JSON path", "", (place,), fixed="0")] if leaf.text != "0" else []
        return _unless_placeholder("JSON path", leaf.text, place) if leaf.text else []

    def _leaf(self, leaf: Leaf, depth: int) -> Iterator[Found]:
        text, entry = leaf.text, leaf.entry
        if entry.kind == "number":
            if text != "0" and any(pattern.search(text) for pattern in self._patterns):
                yield Found("pattern", "", (leaf.place(0, len(text)),), fixed="0")
            return
        if entry.kind == "string" and field_is_secret(entry.name, text):
            place = leaf.place(0, len(text))
            yield from _unless_placeholder(f"field {entry.name!r}", text, place)
        for one in self.find(text, depth + 1):
            yield replace(one, parts=tuple(leaf.place(*part) for part in one.parts))

    def _plain(self, text: str, depth: int) -> list[Found]:
        """What is in a text that is no document, the earliest and then the longest first."""
        deep: list[Found] = []
        spoken = unescaped(text) if depth < _DEEPEST else None
        if spoken is not None:
            deep += _seen(self.find(spoken.text, depth + 1), spoken)
        percent = percent_decoded(text) if depth < _DEEPEST else None
        if percent is not None:
            deep += _seen(self.find(percent.text, depth + 1), percent)
        direct = self._direct(text)
        if depth < _DEEPEST:
            direct += self._encoded(text, depth)
        if spoken is not None:
            direct = _whole_escapes(direct, spoken)
        # What begins with the letter of an escape is not as long as it looks.
        found = deep + [one for one in direct if not any(overlap(one, other) for other in deep)]
        return sorted(found, key=lambda one: (one.parts[0][0], -one.parts[-1][1]))

    def _direct(self, text: str) -> list[Found]:
        found: list[Found] = []
        for pattern in self._patterns:
            group = 1 if pattern.groups else 0
            for match in pattern.finditer(text):
                if match[group]:
                    found += _unless_placeholder("pattern", match[group], match.span(group))
        for shape in hinted(text):
            group = shape.group
            for match in shape.pattern.finditer(text):
                if shape.holds is None or shape.holds(match[group]):
                    found += _unless_placeholder(shape.what, match[group], match.span(group))
        for span in assigned(text):
            found += _unless_placeholder("password or key", text[slice(*span)], span)
        for span in emails(text):
            found += _unless_placeholder(_EMAIL, text[slice(*span)], span)
        part = part_at_end(text)
        if part is not None:
            found += _unless_placeholder("part of a key", text[slice(*part)], part)
        found += [
            Found("known secret", secret, (span,)) for secret, span in self._pieces.find(text)
        ]
        places = placeholders(text) if found else []
        return [one for one in found if _outside(one, places)] if places else found

    def _encoded(self, text: str, depth: int) -> list[Found]:
        found = []
        for run in encoded(text):
            inner = self.find(run.text, depth + 1)
            if inner:
                place = ((run.start, run.end),)
                found.append(Found(inner[0].what, "", place, inner=(run, inner)))
        return found


_SHORTEST = 6
_EMAIL = "e-mail address"
_DEEPEST = 8


def _steps(leaf: Leaf) -> str:
    return "".join(f"\x1f{step}" for step in leaf.entry.path)


def _unless_placeholder(what: str, secret: str, span: tuple[int, int]) -> list[Found]:
    return [] if is_placeholder(secret) else [Found(what, secret, (span,))]


def _outside(found: Found, places: Sequence[tuple[int, int]]) -> bool:
    """Whether a secret is more than placeholders and what happens to stand beside them."""
    ((start, end),) = found.parts
    inside = [max(0, min(end, last) - max(start, first)) for first, last in places]
    if sum(inside) == 0:
        return True
    led = any(first <= start < last for first, last in places)
    return not led and found.what != _EMAIL and end - start - sum(inside) >= _SHORTEST


def _over_all(leaves: Sequence[Leaf], found: Iterable[Found]) -> list[Found]:
    """What was found in joined strings, at its places in the document."""
    found = list(found)
    if not found:
        return []
    ends = list(accumulate(len(leaf.text) for leaf in leaves))
    return [replace(one, parts=tuple(_over(leaves, ends, one.parts))) for one in found]


def _over(
    leaves: Sequence[Leaf], ends: Sequence[int], parts: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Places in joined strings as places in the document."""
    for start, end in parts:
        index = bisect_right(ends, start)
        while start < end:
            base = ends[index] - len(leaves[index].text)
            stop = min(end, ends[index])
            if stop > start:
                yield leaves[index].place(start - base, stop - base)
            start, index = stop, index + 1


def _seen(found: Iterable[Found], view: View) -> list[Found]:
    return [
        replace(one, parts=tuple((view.starts[s], view.starts[e]) for s, e in one.parts))
        for one in found
    ]


def _whole_escapes(found: Iterable[Found], view: View) -> list[Found]:
    """The same, but made longer where they begin or end inside an escape."""
    whole = []
    for one in found:
        ((start, end),) = one.parts
        start = view.starts[bisect_right(view.starts, start) - 1]
        end = view.starts[bisect_left(view.starts, end)]
        whole.append(replace(one, parts=((start, end),)))
    return whole


def _beside(found: Iterable[Found], others: Sequence[Found]) -> Iterable[Found]:
    """Those that are not where others are."""
    if not others:
        return found
    return [one for one in found if not any(overlap(one, other) for other in others)]


def overlap(one: Found, other: Found) -> bool:
    """Whether two are in the same place, be it in part."""
    return any(s < end and start < e for s, e in one.parts for start, end in other.parts)
