"""The journal entries that a session dropped, in the form that a verdict needs.

A journal is bounded, and a verdict covers the whole session. So an entry that leaves the journal
is kept without its headers and with a packed body, until a second bound is reached.
"""

from __future__ import annotations

import zlib
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mockllm.replay.sessions.exchange import Exchange
from mockllm.replay.sessions.shortened_bodies import shortened_body

_ENTRY = 768
"""An estimate of the memory of an entry besides its body, in bytes."""

_SMALL = 2048
"""Smaller bodies, in bytes, are not compressed: that takes longer than it saves."""

_MOST_SHARED = 1024


@dataclass(slots=True)
class _Body:
    """A body, which several entries may share; `size` is that of the whole."""

    data: bytes
    size: int
    packed: bool = False

    def pack(self) -> int:
        """Compresses it; how many bytes that saved."""
        if self.packed or self.size < _SMALL:
            return 0
        self.data, self.packed = zlib.compress(self.data, 1), True
        return self.size - len(self.data)

    def whole(self) -> bytes:
        """The body as it was."""
        return zlib.decompress(self.data) if self.packed else self.data


_Kept = tuple[Any, ...]
"""A body; whether this entry was the first with it; and the entry, or its values once its answer
is over. All stand in one flat tuple: there are tens of thousands."""


class Dropped:
    """Dropped entries, the oldest first.

    Args:
        max_bytes: beyond this the oldest entries are forgotten.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: deque[_Kept] = deque()
        self._shared: dict[bytes, _Body] = {}
        self._packed = 0
        """How many of the oldest entries were packed, where that saved something."""
        self._forgotten: Counter[str] = Counter()
        self.size = 0
        """The memory of all entries, in bytes, as an estimate."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def forgotten(self) -> int:
        """The number of entries of which nothing is left."""
        return self._forgotten.total()

    def add(self, exchange: Exchange) -> None:
        """Keeps an entry that leaves the journal; it gives up its headers and its body."""
        body = shortened_body(exchange.body)
        # Clients repeat requests, in retries and load tests: equal bodies are kept once.
        shared, is_first = self._shared.get(body), False
        if shared is None:
            if len(self._shared) >= _MOST_SHARED:
                self._shared.clear()
            shared, is_first = _Body(body, len(body)), True
            self._shared[body] = shared
        exchange.drop()
        entry: _Kept = (
            (shared, is_first, exchange)
            if exchange.in_use
            else (shared, is_first, *exchange.values())
        )
        self._entries.append(entry)
        self.size += _ENTRY + (len(shared.data) if is_first else 0)
        while self.size > self._max_bytes and len(self._entries) > 1:
            self._make_room()

    def _make_room(self) -> None:
        """Packs entries, or forgets the oldest. Packing takes longer than the rest of a request,
        so it waits until there is no room; and it ends with the first entry that is forgotten,
        from where on no verdict can be good."""
        entries = self._entries
        if self._forgotten or self._packed >= len(entries):
            self.forget()
            return
        body, is_first = entries[self._packed][:2]
        self._packed += 1
        self._share_no_more(body)
        saved = body.pack()
        if is_first:
            self.size -= saved

    def _share_no_more(self, body: _Body) -> None:
        """Lets later entries keep an equal body themselves: this one is about to go."""
        if not body.packed and self._shared.get(body.data) is body:
            del self._shared[body.data]

    def add_forgotten(self, outcomes: Mapping[str, int]) -> None:
        """Counts entries of which only the outcome is known."""
        self._forgotten.update(outcomes)

    def forget(self) -> bool:
        """Forgets the oldest entry; returns whether there was one."""
        if not self._entries:
            return False
        entry = self._entries.popleft()
        self._packed = max(0, self._packed - 1)
        self._share_no_more(entry[0])
        self.size -= _size_of(entry)
        self._forgotten[_exchange_of(entry).outcome] += 1
        return True

    def exchanges(self) -> Iterator[Exchange]:
        """The entries, with their bodies."""
        for entry in tuple(self._entries):
            yield _exchange_of(entry).copy(entry[0].whole())

    def outcomes(self) -> Counter[str]:
        """How many entries have each outcome, those that were forgotten included."""
        return self._forgotten + Counter(_exchange_of(entry).outcome for entry in self._entries)


def _size_of(entry: _Kept) -> int:
    """The memory of an entry, in bytes, as an estimate; equal bodies count once."""
    body, is_first = entry[:2]
    return _ENTRY + (len(body.data) if is_first else 0)


def _exchange_of(entry: _Kept) -> Exchange:
    kept = entry[2]
    return kept if isinstance(kept, Exchange) else Exchange.from_values(entry[2:])
