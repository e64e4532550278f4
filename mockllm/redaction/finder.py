"""Finds secrets in texts, whatever encoding they have and wherever they are cut."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mockllm.redaction.document_strings import Channel, Document, document
from mockllm.redaction.encodings import Base64Run, View, base64_runs, percent_decoded, unescaped
from mockllm.redaction.json_strings import StringValue
from mockllm.redaction.known_secrets import MIN_MATCH, KnownSecrets
from mockllm.redaction.patterns import credentials_in, emails, part_at_end
from mockllm.redaction.placeholders import is_placeholder, placeholder_spans
from mockllm.redaction.secret_names import field_is_secret, field_strength

__all__ = ["Finder", "Found", "overlap"]


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


class Finder:
    """Finds secrets.

    Args:
        patterns: of further secrets; the first group of each, if it has one.
        paths: paths in JSON, as `json_paths.compiled` gives them.
        known: secrets that are found wherever they are, and parts of them too, in an order that
            does not change from run to run.
    """

    def __init__(
        self,
        patterns: Sequence[re.Pattern[str]] = (),
        paths: re.Pattern[str] | None = None,
        known: Iterable[str] = (),
    ) -> None:
        self._patterns = patterns
        self._paths = paths
        self._known = KnownSecrets(one for one in known if not is_placeholder(one))
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
        if len(text) < self._shortest or (len(text) < MIN_MATCH and self._harmless(text)):
            return ()
        found = self._memo.get(text)
        if found is None:
            read = self._read(text, depth) if depth < _DEEPEST else None
            found = tuple(self._plain(text, depth) if read is None else self.search(read, depth))
            self._memo[text] = found
        return found

    def _harmless(self, text: str) -> bool:
        """Whether a word is too short for a secret."""
        return text.isalnum() and not self._every and not self._known.short

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
            text = "".join([value.text for value in channel.values])
            found: Iterable[Found] = self._channel(channel, text, depth)
            if channel.exact:
                spans = [Found("", "", (span,)) for span in placeholder_spans(text)]
                named = _over_all(channel.values, spans)
                certain += [*found, *named]
                cut += [one for one in named if len(one.parts) > 1]
            else:
                found = _beside(found, certain)
            if channel.whole:
                covered.update(map(id, channel.values))
            yield from found
        for value in read.values:
            if self._paths is not None:
                yield from self._at_path(value, self._paths)
            elif not self._memo.get(value.text, True) and not field_strength(value.field.name):
                continue
            if id(value) not in covered:
                # A part of a placeholder may look like something that it is not.
                yield from _beside(self._value(value, depth), cut)

    def _channel(self, channel: Channel, text: str, depth: int) -> list[Found]:
        if len(channel.values) == 1 and not channel.whole:
            return []
        return _over_all(channel.values, self.find(text, depth + 1))

    def _at_path(self, value: StringValue, paths: re.Pattern[str]) -> list[Found]:
        if not value.field.path or value.field.kind == "name" or not paths.search(_steps(value)):
            return []
        span = value.span(0, len(value.text))
        if value.field.kind == "number":
            return [Found("JSON path", "", (span,), fixed="0")] if value.text != "0" else []
        return _unless_placeholder("JSON path", value.text, span) if value.text else []

    def _value(self, value: StringValue, depth: int) -> Iterator[Found]:
        text, field = value.text, value.field
        if field.kind == "number":
            if text != "0" and any(pattern.search(text) for pattern in self._patterns):
                yield Found("pattern", "", (value.span(0, len(text)),), fixed="0")
            return
        if field.kind == "string" and field_is_secret(field.name, text):
            span = value.span(0, len(text))
            yield from _unless_placeholder(f"field {field.name!r}", text, span)
        for one in self.find(text, depth + 1):
            yield replace(one, parts=tuple(value.span(*part) for part in one.parts))

    def _plain(self, text: str, depth: int) -> list[Found]:
        """What is in a text that is no document, the earliest and then the longest first."""
        deep: list[Found] = []
        deeper = depth < _DEEPEST
        plain = unescaped(text) if deeper and "\\" in text else None
        if plain is not None:
            deep += _in_original(self.find(plain.text, depth + 1), plain)
        percent = percent_decoded(text) if deeper and "%" in text else None
        if percent is not None:
            deep += _in_original(self.find(percent.text, depth + 1), percent)
        direct = self._direct(text)
        if deeper:
            direct += self._in_base64(text, depth)
        if plain is not None:
            direct = _whole_escapes(direct, plain)
        # A match that begins with the letter of an escape is longer than the secret.
        found = deep + [one for one in direct if not any(overlap(one, other) for other in deep)]
        return sorted(found, key=lambda one: (one.parts[0][0], -one.parts[-1][1]))

    def _direct(self, text: str) -> list[Found]:
        found: list[Found] = []
        for pattern in self._patterns:
            group = 1 if pattern.groups else 0
            for match in pattern.finditer(text):
                if match[group]:
                    found += _unless_placeholder("pattern", match[group], match.span(group))
        for kind, span in credentials_in(text):
            found += _unless_placeholder(kind, text[slice(*span)], span)
        for span in emails(text):
            found += _unless_placeholder(_EMAIL, text[slice(*span)], span)
        part = part_at_end(text)
        if part is not None:
            found += _unless_placeholder("part of a key", text[slice(*part)], part)
        found += [Found("known secret", secret, (span,)) for secret, span in self._known.find(text)]
        spans = placeholder_spans(text) if found else []
        return [one for one in found if _outside(one, spans)] if spans else found

    def _in_base64(self, text: str, depth: int) -> list[Found]:
        found = []
        for run in base64_runs(text):
            inner = self.find(run.text, depth + 1)
            if inner:
                span = (run.start, run.end)
                found.append(Found(inner[0].kind, "", (span,), inner=(run, inner)))
        return found


_SHORTEST = 6
_EMAIL = "e-mail address"
_DEEPEST = 8


def _steps(value: StringValue) -> str:
    return "".join(f"\x1f{step}" for step in value.field.path)


def _unless_placeholder(kind: str, secret: str, span: tuple[int, int]) -> list[Found]:
    return [] if is_placeholder(secret) else [Found(kind, secret, (span,))]


def _outside(found: Found, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a secret is more than placeholders and what happens to be beside them."""
    ((start, end),) = found.parts
    inside = [max(0, min(end, last) - max(start, first)) for first, last in spans]
    if sum(inside) == 0:
        return True
    begins_inside = any(first <= start < last for first, last in spans)
    return not begins_inside and found.kind != _EMAIL and end - start - sum(inside) >= _SHORTEST


def _over_all(values: Sequence[StringValue], found: Iterable[Found]) -> list[Found]:
    """What was found in joined strings, at its positions in the document."""
    found = list(found)
    if not found:
        return []
    ends = list(accumulate(len(value.text) for value in values))
    return [replace(one, parts=tuple(_over(values, ends, one.parts))) for one in found]


def _over(
    values: Sequence[StringValue], ends: Sequence[int], parts: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Spans in joined strings as spans in the document."""
    for start, end in parts:
        index = bisect_right(ends, start)
        while start < end:
            base = ends[index] - len(values[index].text)
            stop = min(end, ends[index])
            if stop > start:
                yield values[index].span(start - base, stop - base)
            start, index = stop, index + 1


def _in_original(found: Iterable[Found], view: View) -> list[Found]:
    """What was found in a decoded text, at its positions in the original."""
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
    """Whether two overlap."""
    return any(s < end and start < e for s, e in one.parts for start, end in other.parts)
