"""The journal entries that a session dropped, in the form that a verdict needs.

A journal is bounded, and a verdict covers the whole session. So an entry that leaves the journal
is kept without its headers and with a packed body, until a second bound is reached.
"""

from __future__ import annotations

import zlib
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mockllm.replay.exchange import Exchange
from mockllm.replay.shortening import shortened_body

__all__ = ["Dropped"]

_ENTRY = 768
"""An estimate of the memory of an entry besides its body, in bytes."""

_SMALL = 2048
"""Smaller bodies, in bytes, are not compressed: that takes longer than it saves."""

_MOST_SHARED = 1024


@dataclass(frozen=True, slots=True)
class _Entry:
    exchange: Exchange
    body: bytes
    compressed: bool
    size: int


class Dropped:
    """Dropped entries, the oldest first.

    Args:
        max_bytes: beyond this the oldest entries are forgotten.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: deque[_Entry] = deque()
        self._shared: dict[bytes, bytes] = {}
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
        compressed = len(body) >= _SMALL
        packed = zlib.compress(body, 1) if compressed else body
        # Clients repeat requests, in retries and load tests: equal bodies are kept once.
        shared = self._shared.get(packed)
        if shared is None:
            if len(self._shared) >= _MOST_SHARED:
                self._shared.clear()
            shared = self._shared[packed] = packed
            size = _ENTRY + len(packed)
        else:
            size = _ENTRY
        exchange.drop()
        self._entries.append(_Entry(exchange, shared, compressed, size))
        self.size += size
        while self.size > self._max_bytes and len(self._entries) > 1:
            self.forget()

    def add_forgotten(self, outcomes: Mapping[str, int]) -> None:
        """Counts entries of which only the outcome is known."""
        self._forgotten.update(outcomes)

    def forget(self) -> bool:
        """Forgets the oldest entry; returns whether there was one."""
        if not self._entries:
            return False
        entry = self._entries.popleft()
        self.size -= entry.size
        self._forgotten[entry.exchange.outcome] += 1
        if not self._entries:
            self._shared.clear()
        return True

    def exchanges(self) -> Iterator[Exchange]:
        """The entries, with their bodies."""
        for entry in tuple(self._entries):
            body = zlib.decompress(entry.body) if entry.compressed else entry.body
            yield replace(entry.exchange, body=body)

    def outcomes(self) -> Counter[str]:
        """How many entries have each outcome, those that were forgotten included."""
        return self._forgotten + Counter(entry.exchange.outcome for entry in self._entries)
