"""Finds secrets in texts, whatever encoding they have and wherever they are cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from mockllm.redaction.addresses import is_address
from mockllm.redaction.channels import Channel
from mockllm.redaction.detector import EMAIL, PASSWORD, Detector
from mockllm.redaction.document_strings import Document, document
from mockllm.redaction.encodings import base64_runs, percent_decoded, unescaped
from mockllm.redaction.found import (
    Found,
    beside,
    continues,
    divided,
    in_original,
    moved,
    over_all,
    overlap,
    whole_escapes,
)
from mockllm.redaction.json_strings import StringValue
from mockllm.redaction.keep import Keep
from mockllm.redaction.known_secrets import MIN_MATCH, KnownSecrets
from mockllm.redaction.placeholders import is_placeholder, placeholder_spans
from mockllm.redaction.places import Places
from mockllm.redaction.secret_names import field_is_secret, field_strength
from mockllm.redaction.user_patterns import UserPattern
from mockllm.redaction.windows import LONGEST_WHOLE, WindowedSearch

__all__ = ["DEEPEST", "Finder", "Found", "InChannel", "Scanned", "overlap"]


@dataclass(frozen=True, slots=True)
class InChannel:
    """What the joined strings of a channel hold; positions are those in the joined text."""

    channel: Channel
    found: Sequence[Found]
    placeholders: Sequence[tuple[int, int]]


class Scanned(Protocol):
    """A text that was searched while it arrived."""

    def found_by(self, finder: Finder) -> tuple[Found, ...]:
        """The secrets in it, for the finder that searched it or one that was made from that."""


class Finder:
    """Finds secrets.

    Args:
        patterns: of further secrets; the first group of each, if it has one.
        paths: paths in JSON, as `json_paths.compiled` gives them.
        known: secrets that are found wherever they are, and parts of them too, in an order that
            does not change from run to run.
        detector: finds secrets by what they look like; None for the kinds that are on by default.
        keep: what stays although it is found; None for nothing.
    """

    def __init__(
        self,
        patterns: Sequence[UserPattern] = (),
        paths: re.Pattern[str] | None = None,
        known: Iterable[str] = (),
        detector: Detector | None = None,
        keep: Keep | None = None,
    ) -> None:
        self._detector = detector or Detector()
        self._keep = keep or Keep()
        self._patterns = patterns
        self._paths = paths
        self._places = Places(self._keep, lambda text: self._read(text, DEEPEST))
        self._given = tuple(known)
        self._known = KnownSecrets(one for one in self._given if self._is_known(one))
        self._memo: dict[str, tuple[Found, ...]] = {}
        self._documents: dict[str, Document | None] = {}
        self._by_pattern: dict[str, tuple[Found, ...]] = {}
        self._scanned: dict[str, Scanned] = {}
        self._every = bool(patterns) or paths is not None
        self._shortest = 1 if self._every else _SHORTEST

    def knowing(self, known: Iterable[str]) -> Finder:
        """The same with other secrets known."""
        finder = Finder(self._patterns, self._paths, known, self._detector, self._keep)
        finder._documents = self._documents
        finder._by_pattern = self._by_pattern
        finder._scanned = self._scanned
        return finder

    def add_scanned(self, text: str, scanned: Scanned) -> None:
        """Keeps what was found in a long text while it arrived."""
        self._scanned[text] = scanned

    @property
    def known(self) -> tuple[str, ...]:
        """The secrets that it was given."""
        return self._given

    def find(self, text: str, depth: int = 0) -> tuple[Found, ...]:
        """The secrets in a text, which may be a document. Where some overlap, the first counts."""
        if len(text) < self._shortest or (len(text) < MIN_MATCH and self._harmless(text)):
            return ()
        found = self._memo.get(text)
        if found is None and text in self._scanned:
            return self._scanned[text].found_by(self)
        return self.find_whole(text, depth) if found is None else found

    def find_whole(self, text: str, depth: int = 0) -> tuple[Found, ...]:
        """The same for a text that is not short, also for one that was searched before."""
        read = self._read(text, depth) if depth < DEEPEST else None
        found = tuple(self._plain(text, depth) if read is None else self.search(read, depth))
        if depth == 0 or len(text) <= _KEPT:
            self._memo[text] = found
        return found

    def _is_known(self, secret: str) -> bool:
        """Whether a secret from elsewhere is one: a user may keep it, or all of its kind."""
        if is_placeholder(secret) or self._keep.matches(secret):
            return False
        return not (self._detector.is_off(EMAIL) and is_address(secret))

    @property
    def every(self) -> bool:
        """Whether names and numbers may be secrets too."""
        return self._every

    @property
    def has_paths(self) -> bool:
        """Whether paths decide what is secret."""
        return self._paths is not None

    def _harmless(self, text: str) -> bool:
        """Whether a word is too short for a secret."""
        return text.isalnum() and not self._every and not self._known.short

    def _read(self, text: str, depth: int) -> Document | None:
        if text not in self._documents:
            read = document(text, every=self._every)
            if read is not None and any(self.find(name, depth + 1) for name in read.names):
                read = document(text, every=True)
            if read is None and len(text) > _KEPT:
                return None
            self._documents[text] = read
        return self._documents[text]

    def search(self, read: Document, depth: int = 0) -> Iterator[Found]:
        """The secrets in a document that has been read."""
        channels = (self._in_channel(channel, depth) for channel in read.channels)
        return self.in_document(channels, read.values, depth)

    def in_document(
        self, channels: Iterable[InChannel], values: Iterable[StringValue], depth: int = 0
    ) -> Iterator[Found]:
        """The secrets in a document whose channels have been searched.

        Args:
            values: the strings that may hold secrets by themselves, in their order.
        """
        covered: set[int] = set()
        certain: list[Found] = []
        cut: list[Found] = []
        stay: list[Found] = []
        in_channels: list[Found] = []
        for one in channels:
            channel = one.channel
            found: Iterable[Found] = over_all(channel.values, one.found)
            if depth == 0 and self._places:
                found, kept = divided(found, self._places.in_channel(channel, one.found))
                certain += kept
                stay += kept
            if channel.exact:
                spans = [Found("", "", (span,)) for span in one.placeholders]
                named = over_all(channel.values, spans)
                certain += [*found, *named]
                cut += [one for one in named if len(one.parts) > 1]
            else:
                longer = [one for one in found if continues(one, certain, channel)]
                in_channels = [*beside(in_channels, longer), *longer]
                found = beside(found, [*certain, *longer])
            if channel.whole:
                covered.update(map(id, channel.values))
            in_channels += found
        yield from in_channels
        for value in values:
            if self._paths is not None:
                yield from self._at_path(value, self._paths)
            elif not self._memo.get(value.text, True) and not field_strength(value.field.name):
                continue
            if id(value) not in covered:
                # A part of a placeholder may look like something that it is not.
                found = beside(self._value(value, depth), cut)
                yield from self._not_kept(value, found, stay) if depth == 0 else found

    def _not_kept(
        self, value: StringValue, found: Iterable[Found], stay: Sequence[Found]
    ) -> Iterable[Found]:
        """Those in a value that the user does not keep there, nor in a channel with it."""
        if not self._places:
            return found
        found = list(found)
        rest, _ = divided(found, self._places.in_value(value, found))
        return beside(rest, stay)

    def _in_channel(self, channel: Channel, depth: int) -> InChannel:
        text = "".join([value.text for value in channel.values])
        alone = len(channel.values) == 1 and not channel.whole
        return InChannel(
            channel,
            () if alone else self.find(text, depth + 1),
            tuple(placeholder_spans(text)) if channel.exact else (),
        )

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
            if text != "0" and any(pattern.finds(text) for pattern in self._patterns):
                yield Found("pattern", "", (value.span(0, len(text)),), fixed="0")
            return
        if field.kind == "string" and self._is_secret_field(field.name, text):
            span = value.span(0, len(text))
            yield from _unless_placeholder(f"field {field.name!r}", text, span)
        for one in self.find(text, depth + 1):
            yield replace(one, parts=tuple(value.span(*part) for part in one.parts))

    def _is_secret_field(self, name: str, text: str) -> bool:
        if not field_is_secret(name, text) or self._keep.matches(text):
            return False
        return not self._detector.is_off(PASSWORD)

    def _plain(self, text: str, depth: int) -> list[Found]:
        """What is in a text that is no document, the earliest and then the longest first."""
        if len(text) <= LONGEST_WHOLE:
            return self.in_window(text, depth)
        search = WindowedSearch(partial(self.in_window, depth=depth))
        search.add(text)
        return search.finish()

    def in_window(self, text: str, depth: int = 0) -> list[Found]:
        """What is in a text that is no document and not long, or in a part of a long one."""
        if not text.isascii() and _NO_TEXT.search(text):
            return [
                moved(one, run.start())
                for run in _TEXT.finditer(text)
                for one in self._in_text(run[0], depth)
            ]
        return self._in_text(text, depth)

    def _in_text(self, text: str, depth: int) -> list[Found]:
        deep: list[Found] = []
        deeper = depth < DEEPEST
        plain = unescaped(text) if deeper and "\\" in text else None
        if plain is not None:
            deep += in_original(self.find(plain.text, depth + 1), plain)
        percent = percent_decoded(text) if deeper and "%" in text else None
        if percent is not None:
            deep += in_original(self.find(percent.text, depth + 1), percent)
        direct = self._direct(text)
        if deeper:
            direct += self._in_base64(text, depth)
        if plain is not None:
            direct = whole_escapes(direct, plain)
        # A match that begins with the letter of an escape is longer than the secret.
        found = deep + [one for one in direct if not any(overlap(one, other) for other in deep)]
        return sorted(found, key=lambda one: (one.parts[0][0], -one.parts[-1][1]))

    def _direct(self, text: str) -> list[Found]:
        patterned = self._by_pattern.get(text)
        if patterned is None:
            patterned = tuple(self._patterned(text))
            if len(text) <= _KEPT:
                self._by_pattern[text] = patterned
        found = [*patterned]
        found += [Found("known secret", secret, (span,)) for secret, span in self._known.find(text)]
        spans = placeholder_spans(text) if found else []
        return [one for one in found if _outside(one, spans)] if spans else found

    def _patterned(self, text: str) -> list[Found]:
        """What looks like a secret by itself."""
        found: list[Found] = []
        for pattern in self._patterns:
            for span in pattern.spans(text):
                found += _unless_placeholder("pattern", text[slice(*span)], span)
        own = [one.parts[0] for one in found]
        for kind, span in self._detector.find(text):
            found += _unless_placeholder(kind, text[slice(*span)], span)
        if own:  # an address may end where a secret of the user begins
            known = [one.parts[0] for one in found]
            for kind, span in self._detector.find(_blanked(text, own)):
                if not any(span[0] < end and start < span[1] for start, end in known):
                    found += _unless_placeholder(kind, text[slice(*span)], span)
        return [one for one in found if not self._keep.matches(one.secret)]

    def _in_base64(self, text: str, depth: int) -> list[Found]:
        found = []
        for run in base64_runs(text):
            inner = self.find(run.text, depth + 1)
            if inner:
                span = (run.start, run.end)
                found.append(Found(inner[0].kind, "", (span,), inner=(run, inner)))
        return found


_SHORTEST = 6
_KEPT = LONGEST_WHOLE
"""Results for longer texts are not kept: they come once."""
DEEPEST = 8
"""How many encodings inside each other are read."""


_NO_TEXT = re.compile(r"[\udc80-\udcff]")
"""A byte that is no UTF-8. Where there is one, only what is between such bytes and control
characters is text: pictures and sound would take many times as long."""
_TEXT = re.compile(r"[^\x00-\x08\x0e-\x1f\udc80-\udcff]{8,}")


def _steps(value: StringValue) -> str:
    return "".join(f"\x1f{step}" for step in value.field.path)


def _unless_placeholder(kind: str, secret: str, span: tuple[int, int]) -> list[Found]:
    return [] if is_placeholder(secret) else [Found(kind, secret, (span,))]


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with line ends in place of some of its parts."""
    for start, end in spans:
        text = text[:start] + "\n" * (end - start) + text[end:]
    return text


def _outside(found: Found, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a secret is more than placeholders and what happens to be beside them."""
    ((start, end),) = found.parts
    inside = [max(0, min(end, last) - max(start, first)) for first, last in spans]
    if sum(inside) == 0:
        return True
    begins_inside = any(first <= start < last for first, last in spans)
    return not begins_inside and found.kind != EMAIL and end - start - sum(inside) >= _SHORTEST
