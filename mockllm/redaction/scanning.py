"""Searches a text for secrets as it arrives, so that little is left to do at its end.

The result is that of `Finder.find` for the whole text, however it is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mockllm.redaction.channels import Channel, channel_key, is_fragment, loose_key
from mockllm.redaction.encodings import base64_runs
from mockllm.redaction.event_reader import EventReader, has_data_line
from mockllm.redaction.finder import DEEPEST, Finder, Found, InChannel
from mockllm.redaction.json_strings import StringValue
from mockllm.redaction.known_secrets import needles
from mockllm.redaction.long_strings import LongStrings
from mockllm.redaction.placeholders import placeholder_spans
from mockllm.redaction.secret_names import field_strength
from mockllm.redaction.windows import LONGEST_WHOLE, WindowedSearch

__all__ = ["FinderChange", "TextScan"]

_BATCH = 4096
"""Characters that wait for others: a search in few is slower than one in many."""
_SPACE = " \t\r\n"
_DATA = "\ndata:"


class FinderChange:
    """A finder that knows secrets which another one did not know.

    Args:
        before: the one that did not know them.
    """

    def __init__(self, before: Finder, finder: Finder) -> None:
        self.finder = finder
        known = frozenset(before.known)
        self._needles = needles(one for one in finder.known if one not in known)

    def may_be_in(self, text: str) -> bool:
        """Whether the other finder may find something else in a text."""
        if any(needle in text for needle in self._needles):
            return True
        return "\\" in text or "%" in text or any(base64_runs(text))


class TextScan:
    """The secrets of a text that arrives in parts.

    Args:
        finder: finds them.
        depth: of the text, in encodings inside each other.
    """

    def __init__(self, finder: Finder, depth: int = 0) -> None:
        self._finder = finder
        self._depth = depth
        self._parts: list[str] = []
        self._size = 0
        self._waiting: list[str] = []
        self._waiting_size = 0
        self._is_json: bool | None = None if depth < DEEPEST else False
        self._windows: WindowedSearch | None = WindowedSearch(
            partial(finder.in_window, depth=depth)
        )
        self._events: _EventScan | None = None
        self._strings: LongStrings | None = None
        self._result: tuple[Found, ...] | None = None
        self._tail = ""

    @property
    def is_long(self) -> bool:
        """Whether it is longer than what is searched at once."""
        return self._size > LONGEST_WHOLE

    @property
    def text(self) -> str:
        """All of the text so far."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def add(self, text: str) -> None:
        """Adds text, and searches it as far as it is whole."""
        self._parts.append(text)
        self._size += len(text)
        self._waiting.append(text)
        self._waiting_size += len(text)
        if self._waiting_size >= _BATCH:
            self._advance()

    def finish(self) -> tuple[Found, ...]:
        """The secrets in the text, which is whole now. Where some overlap, the first counts."""
        if self._result is None:
            self._result = self._finished()
        return self._result

    def _finished(self) -> tuple[Found, ...]:
        if self._size <= _BATCH:
            return self._whole(self._finder)
        self._advance()
        if self._is_events():
            assert self._events is not None
            return tuple(self._events.finish())
        if self._is_json is False and self._windows is not None and self._size > LONGEST_WHOLE:
            return tuple(self._windows.finish())
        return self._whole(self._finder)

    def found_by(self, finder: Finder) -> tuple[Found, ...]:
        """The secrets in the text, after `finish`, for the same finder or for one that knows more
        (`Finder.knowing`)."""
        if finder is self._finder:
            return self.finish()
        return self.again(FinderChange(self._finder, finder))

    def again(self, change: FinderChange) -> tuple[Found, ...]:
        """The secrets in the text that another finder finds, after `finish`."""
        if self._size > _BATCH:
            if self._is_events():
                assert self._events is not None
                if self._events.has_seen(change):
                    return self._whole(change.finder)
                return tuple(self._events.again(change))
            if self._is_json is False and self._windows is not None and self._size > LONGEST_WHOLE:
                search = partial(change.finder.in_window, depth=self._depth)
                return tuple(self._windows.again(self.text, search, change.may_be_in))
        return self._whole(change.finder)

    def _whole(self, finder: Finder) -> tuple[Found, ...]:
        find = finder.find_whole if self.is_long else finder.find
        return find(self.text, self._depth)

    def _is_events(self) -> bool:
        """Whether the text is an event stream whose names hold no secrets."""
        return self._events is not None and self._events.is_document

    def _advance(self) -> None:
        text = "".join(self._waiting)
        if self._is_json is None:
            first = (text[1:] if text[:1] == "\ufeff" else text).lstrip(_SPACE)[:1]
            if not first:
                return
            self._is_json = first in "{["
            if self._is_json:
                self._strings = LongStrings(
                    self._finder, partial(TextScan, self._finder, self._depth + 1)
                )
        self._waiting, self._waiting_size = [], 0
        if self._strings is not None:
            self._strings.add(text)
            return
        if self._events is not None:
            self._events.add(text)
        elif self._depth < DEEPEST and has_data_line(self._tail + text):
            self._events = _EventScan(self._finder, self._depth)
            self._events.add(self.text)
        self._tail = text[-len(_DATA) :]
        if self._windows is not None:
            if self._events is not None and self._events.some:
                self._windows = None
            else:
                self._windows.add(text)


@dataclass(slots=True)
class _ChannelScan:
    """Strings that a client joins, searched as they arrive."""

    finder: Finder
    depth: int
    whole: bool
    exact: bool
    values: list[StringValue] = field(default_factory=list)
    scan: TextScan | None = None

    def add(self, value: StringValue) -> None:
        self.values.append(value)
        if self.scan is not None:
            self.scan.add(value.text)
        elif self.whole or len(self.values) > 1:
            self.scan = TextScan(self.finder, self.depth)
            for one in self.values:
                self.scan.add(one.text)

    def finish(self) -> InChannel:
        """What was found."""
        return self._result(() if self.scan is None else self.scan.finish())

    def again(self, change: FinderChange) -> InChannel:
        """What the other finder finds."""
        return self._result(() if self.scan is None else self.scan.again(change))

    def _result(self, found: tuple[Found, ...]) -> InChannel:
        channel = Channel(tuple(self.values), self.exact, self.whole)
        spans: list[tuple[int, int]] = []
        if self.exact:
            text = self.values[0].text if self.scan is None else self.scan.text
            if "REDACTED-" in text or "hidden-" in text:
                spans = placeholder_spans(text)
        return InChannel(channel, found, spans)


class _EventScan:
    """The secrets of an event stream."""

    def __init__(self, finder: Finder, depth: int) -> None:
        self._finder = finder
        self._depth = depth
        self._seen: set[str] = set()
        """Harmless strings that repeat; only the first of each is kept."""
        self._reader = EventReader(every=finder.every, seen=self._seen)
        self._exact: dict[Any, _ChannelScan] = {}
        self._groups: dict[Any, list[_ChannelScan]] = {}
        self._loose: dict[Any, _ChannelScan] = {}
        self._rough: dict[Any, Any] = {}
        self._by_text: dict[str, list[StringValue]] = {}
        self._named: list[StringValue] = []
        self._all: list[StringValue] = []
        self._finished = False

    @property
    def some(self) -> bool:
        """Whether a payload was JSON."""
        return self._reader.some

    @property
    def is_document(self) -> bool:
        """Whether this can be read as a document, and its names hold no secrets. Ends the text."""
        self._finish()
        finder, depth = self._finder, self._depth + 1
        return self.some and not any(finder.find(name, depth) for name in self._reader.names)

    def add(self, text: str) -> None:
        """Adds text."""
        self._keep(self._reader.add(text))

    def finish(self) -> Iterator[Found]:
        """The secrets in the stream."""
        return self._finder.in_document(
            [one.finish() for one in self._channels()], self._candidates(self._finder), self._depth
        )

    def has_seen(self, change: FinderChange) -> bool:
        """Whether the other finder finds something in a string of which only the first is kept."""
        depth = self._depth + 1
        return any(
            change.may_be_in(text) and change.finder.find(text, depth) for text in self._seen
        )

    def again(self, change: FinderChange) -> Iterator[Found]:
        """The secrets that the other finder finds."""
        return change.finder.in_document(
            [one.again(change) for one in self._channels()],
            self._candidates(change.finder, change),
            self._depth,
        )

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            self._keep(self._reader.finish())

    def _keep(self, values: Iterable[StringValue]) -> None:
        for value in values:
            if self._finder.every:
                self._all.append(value)
            key = channel_key(value)
            if key is not None:
                self._join(value, key)
                if is_fragment(value):
                    continue
            named = bool(field_strength(value.field.name))
            if named:
                self._named.append(value)
            known = self._by_text.get(value.text)
            if known is None:
                self._by_text[value.text] = [value]
                found = self._finder.find(value.text, self._depth + 1)
                if key is None and not found and value.field.kind == "string" and not named:
                    self._seen.add(value.text)
            else:
                known.append(value)

    def _join(self, value: StringValue, key: Any) -> None:
        channel = self._exact.get(key)
        if channel is None:
            channel = self._new(key, value)
        channel.add(value)
        rough = self._rough.get(key)
        if rough is None:
            return
        loose = self._loose.get(rough)
        if loose is not None:
            loose.add(value)
        elif len(self._groups[rough]) > 1:
            loose = self._loose[rough] = self._channel(whole=False, exact=False)
            before = [one for group in self._groups[rough] for one in group.values]
            for one in sorted(before, key=lambda one: one.start):
                loose.add(one)

    def _new(self, key: Any, value: StringValue) -> _ChannelScan:
        channel = self._channel(whole=is_fragment(value), exact=True)
        self._exact[key] = channel
        rough = loose_key(key, value.field.name)
        if rough is not None:
            self._rough[key] = rough
            self._groups.setdefault(rough, []).append(channel)
        return channel

    def _channel(self, *, whole: bool, exact: bool) -> _ChannelScan:
        return _ChannelScan(self._finder, self._depth + 1, whole, exact)

    def _channels(self) -> Iterator[_ChannelScan]:
        yield from self._exact.values()
        for rough in self._groups:
            if rough in self._loose:
                yield self._loose[rough]

    def _candidates(self, finder: Finder, change: FinderChange | None = None) -> list[StringValue]:
        """The strings that may hold secrets by themselves, in their order."""
        if finder.every:
            return self._all
        found = {id(value): value for value in self._named}
        for text, values in self._by_text.items():
            holds = bool(self._finder.find(text, self._depth + 1))
            if holds or (change is not None and change.may_be_in(text)):
                found |= {id(value): value for value in values}
        return sorted(found.values(), key=lambda value: value.start)
