"""The journal entries that a session dropped, in the form that a verdict needs.

A journal is bounded, and a verdict covers the whole session. So an entry that leaves the journal
is kept without its headers, until a second bound is reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from struct import Struct
from typing import Any

from mockllm.play.replay.sessions.exchange import Exchange, Played, Received, Sent
from mockllm.play.replay.sessions.shortened_bodies import shortened_body

_ENTRY = 768
"""An estimate of the memory of an entry besides its body, in bytes."""

_MOST_SHARED = 1024


_OWN = Struct("<dddQQII")
"""What an entry has for itself: see `Dropped.add`."""


@dataclass(slots=True)
class _Body:
    """A body, which entries may share that have more in common."""

    data: bytes
    commons: int = 0


@dataclass(slots=True)
class _Common:
    """The common part of the entries of equal requests: clients repeat them, in retries and load
    tests. Of `received` it is all that does not differ from request to request."""

    key: int
    body: _Body
    received: Received
    played: Played
    session: str
    entries: int = 0


class Dropped:
    """Dropped entries, the oldest first.

    There are tens of thousands, and nearly all are plain: these stand in one array of bytes, where
    the memory allocator and the garbage collector do not look at each.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries = bytearray()
        self._commons: dict[int, _Common] = {}
        self._not_plain: dict[int, Exchange] = {}
        """The entries that have more for themselves, by how many were added before each."""
        self._first = 0
        """How many entries were added before the oldest one that is kept."""
        self._shared: dict[bytes, _Body] = {}
        self._latest: dict[int, _Common] = {}
        """By the identity of what was played: decisions are kept, and so are their `Played`."""
        self._keys = count()
        self._forgotten: Counter[str] = Counter()
        self.size = 0
        """The memory of all entries, in bytes, as an estimate."""

    def __len__(self) -> int:
        return len(self._entries) // _OWN.size

    @property
    def forgotten(self) -> int:
        """The number of entries of which nothing is left."""
        return self._forgotten.total()

    def add(self, exchange: Exchange) -> None:
        """Keeps an entry that leaves the journal: of a plain one only what it has for itself, of
        any other all but its headers and its body."""
        received, sent = exchange.received, exchange.sent
        common = self._common(exchange)
        if exchange.body_size is not None or not exchange.is_plain:
            self._not_plain[self._first + len(self)] = exchange
            exchange.drop()
        self._entries += _OWN.pack(
            received.at,
            received.clock,
            sent.duration,
            sent.bytes,
            exchange.number,
            received.connection,
            common.key,
        )
        self.size += _ENTRY
        while self.size > self._max_bytes and len(self) > 1:
            self.forget()

    def _common(self, exchange: Exchange) -> _Common:
        body, received, played = self._body(exchange), exchange.received, exchange.played
        common = self._latest.get(id(played))
        if common is None or common.body is not body or common.received.path != received.path:
            if len(self._latest) >= _MOST_SHARED:
                self._latest.clear()
            received = received._replace(headers={}, body=b"")
            common = _Common(next(self._keys), body, received, played, exchange.session)
            self._latest[id(played)] = self._commons[common.key] = common
            body.commons += 1
        common.entries += 1
        return common

    def _body(self, exchange: Exchange) -> _Body:
        data = shortened_body(exchange.body)
        body = self._shared.get(data)
        if body is None:
            if len(self._shared) >= _MOST_SHARED:
                self._shared.clear()
            body = self._shared[data] = _Body(data)
            self.size += len(data)
        return body

    def add_forgotten(self, outcomes: Mapping[str, int]) -> None:
        """Counts entries of which only the outcome is known."""
        self._forgotten.update(outcomes)

    def forget(self) -> bool:
        """Forgets the oldest entry; returns whether there was one."""
        if not self._entries:
            return False
        common = self._commons[_OWN.unpack_from(self._entries)[-1]]
        other = self._not_plain.pop(self._first, None)
        del self._entries[: _OWN.size]
        self._first += 1
        self._forgotten[_outcome(common, other)] += 1
        self.size -= _ENTRY
        common.entries -= 1
        if not common.entries:
            self._forget_common(common)
        return True

    def _forget_common(self, common: _Common) -> None:
        del self._commons[common.key]
        if self._latest.get(id(common.played)) is common:
            del self._latest[id(common.played)]
        common.body.commons -= 1
        if not common.body.commons:
            if self._shared.get(common.body.data) is common.body:
                del self._shared[common.body.data]
            self.size -= len(common.body.data)

    def exchanges(self) -> Iterator[Exchange]:
        """The entries, with their bodies."""
        for common, other, (at, clock, duration, sent, number, connection, _) in self._read():
            body = common.body.data
            if other is not None:
                yield other.copy(body)
                continue
            received = common.received._replace(
                body=body, at=at, clock=clock, connection=connection
            )
            yield Exchange(
                received,
                common.played,
                Sent(clock, bytes=sent, ended=0.0, duration=duration),
                session=common.session,
                number=number,
            )

    def _read(self) -> Iterator[tuple[_Common, Exchange | None, tuple[Any, ...]]]:
        """Of each entry what it has in common with others, itself if it is not plain, and what it
        has for itself."""
        for place, own in enumerate(_OWN.iter_unpack(bytes(self._entries)), self._first):
            yield self._commons[own[-1]], self._not_plain.get(place), own

    def outcomes(self) -> Counter[str]:
        """The number of entries with each outcome, those that were forgotten included."""
        kept = Counter(_outcome(common, other) for common, other, _ in self._read())
        return self._forgotten + kept


def _outcome(common: _Common, other: Exchange | None) -> str:
    return common.played.outcome if other is None else other.outcome
