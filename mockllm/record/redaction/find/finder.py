"""Finds secrets in texts, whatever encoding they have and wherever they are cut."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mockllm.core.patterns import TimedPattern
from mockllm.record.redaction.find.kept_places import KNOWN, KeptPlaces
from mockllm.record.redaction.find.patterns import (
    EMAIL,
    PASSWORD,
    Detector,
    is_named_key,
    may_name_secret,
)
from mockllm.record.redaction.find.personal import is_address
from mockllm.record.redaction.find.secret_names import NAMES, field_is_secret, looks_generated
from mockllm.record.redaction.find.spans import (
    MIN_MATCH,
    Base64Run,
    Found,
    KnownSecrets,
    Spans,
    View,
    adjacent,
    base64_runs,
    decode_percent,
    in_original,
    is_sound,
    split,
    unescape_json,
    whole_escapes,
)
from mockllm.record.redaction.placeholders import (
    Placeholders,
    edited_view,
    edits,
    is_placeholder,
    is_placeholder_of_others,
    placeholder_spans,
)
from mockllm.record.redaction.rules import Keep, run_search
from mockllm.record.redaction.walk.documents import (
    Channel,
    Document,
    document,
    longer_than,
    may_be_document,
    union,
)
from mockllm.record.redaction.walk.json_strings import Field, StringValue


class Finder:
    """Finds secrets.

    Args:
        patterns: of further secrets; the first group of each, if it has one.
        paths: paths in JSON, as `compiled_paths` gives them.
        known: secrets that are found wherever they are, and parts of them too, in an order that
            does not change from run to run.
        detector: finds secrets by what they look like; None for the kinds that are on by default.
        keep: what stays although it is found; None for nothing.
        names: of accounts, which are found as whole words.
    """

    def __init__(
        self,
        patterns: Sequence[TimedPattern] = (),
        paths: re.Pattern[str] | None = None,
        known: Iterable[str] = (),
        detector: Detector | None = None,
        keep: Keep | None = None,
        names: Iterable[str] = (),
    ) -> None:
        self._detector = detector or Detector()
        self._keep = keep or Keep()
        self._patterns = patterns
        self._paths = paths
        self._places = KeptPlaces(self._keep, self._inner) if self._keep.places else None
        self._names = frozenset(filter(self._is_known, names))
        self._known = KnownSecrets(filter(self._is_known, known), self._names)
        self._memo: dict[str, tuple[Found, ...]] = {}
        self._documents: dict[str, Document | None] = {}
        self._short: dict[str, _Searched] = {}
        self._long: dict[str, _Searched] = {}
        self._every = bool(patterns) or paths is not None
        self._shortest = 1 if self._every else _SHORTEST

    def knowing(self, known: Iterable[str]) -> Finder:
        """The same for the same texts, with other secrets known."""
        return self._with(known, self._names, self._documents, self._long)

    def for_texts(self, known: Iterable[str], names: Iterable[str] = ()) -> Finder:
        """The same for other texts, with other secrets and names of accounts known."""
        return self._with(known, names, {}, {})

    def _with(
        self,
        known: Iterable[str],
        names: Iterable[str],
        documents: dict[str, Document | None],
        long: dict[str, _Searched],
    ) -> Finder:
        finder = Finder(self._patterns, self._paths, known, self._detector, self._keep, names)
        finder._short, finder._long, finder._documents = self._short, long, documents
        return finder

    def _inner(self, text: str) -> Document | None:
        return self._read(text, _DEEPEST)

    def find(self, text: str, depth: int = 0) -> tuple[Found, ...]:
        """The secrets in a text, which may be a document. Where some overlap, the first counts."""
        found = self._memo.get(text)
        if found is None and self._harmless(text):
            self._memo[text] = found = ()
        if found is None:
            read = self._read(text, depth) if depth < _DEEPEST and may_be_document(text) else None
            found = tuple(
                self._in_text(text, depth) if read is None else self.in_document(read, depth)
            )
            self._memo[text] = found
        return found

    def _is_kept(self, secret: str) -> bool:
        """Whether a pattern of the user keeps a secret."""
        return any(run_search(pattern.is_whole, secret) for pattern in self._keep.patterns)

    def _is_known(self, secret: str) -> bool:
        """Whether a secret from elsewhere is one: a user may keep it, or all of its kind."""
        if is_placeholder(secret) or is_placeholder_of_others(secret) or self._is_kept(secret):
            return False
        return not (self._detector.is_off(EMAIL) and is_address(secret))

    def _harmless(self, text: str) -> bool:
        """Whether a text is too short for a secret, or no text at all."""
        if len(text) >= MIN_MATCH:
            return not self._every and is_sound(text)
        short = len(text) < self._shortest
        return short or (text.isalnum() and not self._every and not self._known.short)

    def _read(self, text: str, depth: int) -> Document | None:
        if text not in self._documents:
            read = document(text, every=self._every)
            if read is not None and any(self.find(name, depth + 1) for name in read.names):
                read = document(text, every=True)
            self._documents[text] = read
        return self._documents[text]

    def in_document(self, read: Document, depth: int = 0) -> Iterator[Found]:
        """The secrets in a document."""
        in_channels, cut, stay = self._in_channels(read.channels, depth)
        yield from in_channels
        whole = (channel.values for channel in read.channels if channel.whole)
        covered = {id(value) for values in whole for value in values}
        private = {
            value.field.path[:-1]
            for value in (read.values if "kty" in read.names else ())
            if value.field.name == "kty" and value.field.kind == "string"
        }
        for value in read.values:
            if value.field.path[:-1] in private and value.field.name in _OF_PRIVATE_KEY:
                span = value.span(0, len(value.text))
                yield from _unless_placeholder("private key", value.text, span)
            if self._paths is not None:
                yield from self._at_path(value, self._paths)
            elif not self._memo.get(value.text, True) and not _may_be_secret(value.field):
                continue
            if id(value) not in covered:
                # A part of a placeholder may look like something that it is not.
                found = adjacent(self._value(value, depth), cut)
                yield from self._not_kept(value, found, stay) if depth == 0 else found

    def _in_channels(
        self, channels: Iterable[Channel], depth: int
    ) -> tuple[list[Found], list[Found], list[Found]]:
        """The secrets in the joined strings of channels, the placeholders that are cut there, and
        the secrets that the user keeps there."""
        certain: list[Found] = []
        cut: list[Found] = []
        stay: list[Found] = []
        all_found: list[Found] = []
        for channel in channels:  # the exact ones first
            text = "".join([value.text for value in channel.values])
            several = channel.whole or len(channel.values) > 1
            inside = self._inside(channel.values[0].field, text, depth) if several else []
            found: Iterable[Found] = union(channel.values, inside)
            if depth == 0 and self._places is not None:
                found, kept = split(found, self._places.are_kept(channel.values, inside))
                certain += kept
                stay += kept
            if channel.exact:
                spans = [Found("", "", (span,)) for span in placeholder_spans(text)]
                named = union(channel.values, spans)
                certain += [*found, *named]
                cut += [secret for secret in named if len(secret.parts) > 1]
            elif inside:
                found = list(found)
                longer = longer_than(certain, found, channel)
                all_found = [*adjacent(all_found, longer), *longer]
                found = adjacent(found, [*certain, *longer])
            all_found += found
        return all_found, cut, stay

    def _not_kept(
        self, value: StringValue, found: Iterable[Found], stay: Sequence[Found]
    ) -> Iterable[Found]:
        """Those in a value that the user does not keep there, nor in a channel with it."""
        if self._places is None:
            return found
        found = list(found)
        rest, _ = split(found, self._places.are_kept((value,), found))
        return adjacent(rest, stay)

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
            if text != "0" and any(run_search(pattern.spans, text) for pattern in self._patterns):
                yield Found("pattern", "", (value.span(0, len(text)),), fixed="0")
            return
        if field.kind == "string" and (
            self._is_secret_field(field.name, text) or not _SETTINGS.isdisjoint(field.path)
        ):
            span = value.span(0, len(text))
            yield from _unless_placeholder(f"field {field.name!r}", text, span)
        for secret in self._inside(field, text, depth):
            yield secret.map_parts(value.span)

    def _inside(self, field: Field, text: str, depth: int) -> list[Found]:
        return [
            secret
            for secret in self.find(text, depth + 1)
            if secret.kind != KNOWN or not _is_word_of_api(field, secret.secret)
        ]

    def _is_secret_field(self, name: str, text: str) -> bool:
        if not (field_is_secret(name, text) or is_named_key(name, text)):
            return False
        if is_placeholder_of_others(text) or self._is_kept(text):
            return False
        return not self._detector.is_off(PASSWORD)

    def _in_text(self, text: str, depth: int) -> list[Found]:
        """The secrets in a text that is no document, the earliest and then the longest first."""
        if not text.isascii() and _NO_TEXT.search(text):
            runs = [View(run[0], range(run.start(), run.end() + 1)) for run in _TEXT.finditer(text)]
            return [
                found for run in runs for found in in_original(self._in_plain(run.text, depth), run)
            ]
        return self._in_plain(text, depth)

    def _in_plain(self, text: str, depth: int) -> list[Found]:
        searched = self._search(text)
        direct = self._direct(text, searched.found)
        new = direct
        while new:
            new = self._find_uncovered(text, direct)
            direct = [*direct, *new]
        deep: list[Found] = []
        if searched.is_encoded and depth < _DEEPEST:
            for view in searched.views:
                deep += in_original(self.find(view.text, depth + 1), view)
            direct += self._in_base64(searched.runs, depth)
            if searched.escapes is not None:
                direct = whole_escapes(direct, searched.escapes)
        # An encoded `&` does not end a value that begins in the text itself.
        ends = {secret.parts[0][0]: secret.parts[-1][1] for secret in direct}
        deep = [
            secret
            for secret in deep
            if not text.startswith("%26", secret.parts[-1][1])
            or ends.get(secret.parts[0][0], 0) <= secret.parts[-1][1]
        ]
        # A match that begins with the letter of an escape is longer than the secret.
        found = [*deep, *adjacent(direct, deep)]
        return sorted(found, key=lambda secret: (secret.parts[0][0], -secret.parts[-1][1]))

    def _direct(self, text: str, found: Iterable[Found]) -> list[Found]:
        """The secrets that a text shows by itself and the known ones in it, without its
        placeholders."""
        known = [Found(KNOWN, secret, (span,)) for secret, span in self._known.find(text)]
        direct = [*found, *known]
        spans = placeholder_spans(text) if direct else []
        return [secret for secret in direct if _outside(secret, spans)] if spans else direct

    def _find_uncovered(self, text: str, direct: Sequence[Found]) -> list[Found]:
        """The secrets that show only once others are replaced: an address may end where a key
        begins, and be none as long as the key follows."""
        view = edited_view(text, edits(direct, Placeholders()))
        known = Spans(direct)
        found = in_original(self._direct(view.text, self._find_by_pattern(view.text)), view)
        return [secret for secret in found if not known.overlap(secret)]

    def _search(self, text: str) -> _Searched:
        searched = self._short.get(text) or self._long.get(text)
        if searched is None:
            searched = _Searched(
                tuple(self._find_by_pattern(text)),
                unescape_json(text) if "\\" in text else None,
                decode_percent(text) if "%" in text else None,
                tuple(base64_runs(text)),
            )
            if len(text) > _LONGEST_REPEATED or searched.is_encoded:
                self._long[text] = searched
            else:
                if len(self._short) >= _MOST_REPEATED:
                    self._short.clear()
                self._short[text] = searched
        return searched

    def _find_by_pattern(self, text: str) -> list[Found]:
        """The texts that look like a secret by themselves."""
        found: list[Found] = []
        for pattern in self._patterns:
            for span in run_search(pattern.spans, text):
                found += _unless_placeholder("pattern", text[slice(*span)], span)
        for kind, span in self._detector.find(text):
            if not is_placeholder_of_others(text[slice(*span)]):
                found += _unless_placeholder(kind, text[slice(*span)], span)
        return [secret for secret in found if not self._is_kept(secret.secret)]

    def _in_base64(self, runs: Iterable[Base64Run], depth: int) -> Iterator[Found]:
        for run in runs:
            inner = self.find(run.text, depth + 1)
            if inner:
                yield Found(inner[0].kind, "", ((run.start, run.end),), inner=(run, inner))


@dataclass(frozen=True, slots=True)
class _Searched:
    """The secrets that a text shows by itself, whatever else is known.

    Args:
        escapes, percent: the text without the escapes of JSON, and of URLs; None without any.
        runs: of base64.
    """

    found: tuple[Found, ...]
    escapes: View | None
    percent: View | None
    runs: tuple[Base64Run, ...]

    @property
    def is_encoded(self) -> bool:
        """Whether there is another text in it."""
        return bool(self.runs or self.escapes or self.percent)

    @property
    def views(self) -> list[View]:
        """The texts in it that begin where it begins."""
        return [view for view in (self.escapes, self.percent) if view is not None]


def _may_be_secret(field: Field) -> bool:
    """Whether a value could be secret because of the names of its fields."""
    return may_name_secret(field.name) or not _SETTINGS.isdisjoint(field.path)


def _is_word_of_api(field: Field, secret: str) -> bool:
    """Whether a secret that is known from elsewhere is none here: a model's name never is, and the
    name of a field only if it looks like a key itself."""
    if field.kind == "name":
        return not looks_generated(secret)
    return field.name.lower().replace("_", "") in _MODELS


_MODELS = frozenset(("model", "modelid", "modelversion"))
_OF_PRIVATE_KEY = frozenset(("d", "p", "q", "dp", "dq", "qi", "k"))
"""Fields of a JSON Web Key that are secret (RFC 7518, section 6)."""

_SETTINGS = frozenset(NAMES["settings of services"])
"""Fields with addresses and names from within a service, which it shows by accident: xAI's sessions
have them."""

_SHORTEST = 6
_LONGEST_REPEATED, _MOST_REPEATED = 4096, 20_000
"""Texts of up to this length, and so many, are kept with what they hold: the same ids, models,
prompts and schemas of tools are in one exchange after the other."""
_DEEPEST = 8
"""How many encodings inside each other are read."""


_NO_TEXT = re.compile(r"[\udc80-\udcff]")
"""A byte that is no UTF-8. Where there is one, only what is between such bytes and control
characters is text: pictures and sound would take many times as long."""
_TEXT = re.compile(r"[^\x00-\x08\x0e-\x1f\udc80-\udcff]{8,}")


def _steps(value: StringValue) -> str:
    return "".join(f"\x1f{step}" for step in value.field.path)


def _unless_placeholder(kind: str, secret: str, span: tuple[int, int]) -> list[Found]:
    return [] if is_placeholder(secret) else [Found(kind, secret, (span,))]


def _outside(found: Found, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a secret is more than placeholders, in their order, and what happens to be beside
    them."""
    ((start, end),) = found.parts
    inside, index = 0, bisect_right(spans, start, key=lambda span: span[1])
    begins_inside = index < len(spans) and spans[index][0] <= start
    while index < len(spans) and spans[index][0] < end:
        first, last = spans[index]
        inside += min(end, last) - max(start, first)
        index += 1
    if inside == 0:
        return True
    return not begins_inside and found.kind != EMAIL and end - start - inside >= _SHORTEST
