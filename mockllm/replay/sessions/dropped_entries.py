"""The journal entries that a session dropped, in the form that a verdict needs.

A journal is bounded, and a verdict covers the whole session. So an entry that leaves the journal
is kept without its headers and with a packed body, until a second bound is reached.
"""

from __future__ import annotations

import zlib
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from struct import Struct

from mockllm.core.record import record
from mockllm.replay.sessions.exchange import Exchange, Played, Received, Sent
from mockllm.replay.sessions.shortened_bodies import shortened_body

_ENTRY = 768
"""An estimate of the memory of an entry besides its body, in bytes."""

_SMALL = 2048
"""Smaller bodies, in bytes, are not compressed: that takes longer than it saves."""

_MOST_SHARED = 1024


_OWN = Struct("<dddQQI")
"""What a plain entry has for itself: see `_packed`."""


@dataclass(slots=True)
class _Body:
    """A body, which several entries may share; `size` is that of the whole."""

    data: bytes
    size: int
    entries: int = 0
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


@record
class _Common:
    """What the entries of equal requests have in common: clients repeat them, in retries and load
    tests. Of `received` it is all that does not differ from request to request."""

    body: _Body
    received: Received
    played: Played
    session: str

    def exchange(self, own: bytes) -> Exchange:
        """A plain entry, with its body."""
        at, clock, duration, sent, number, connection = _OWN.unpack(own)
        received = self.received._replace(
            body=self.body.whole(), at=at, clock=clock, connection=connection
        )
        return Exchange(
            received,
            self.played,
            Sent(clock, bytes=sent, ended=0.0, duration=duration),
            session=self.session,
            number=number,
        )


def _packed(exchange: Exchange) -> bytes:
    """What a plain entry has for itself. Bytes, since there are tens of thousands, and the garbage
    collector does not look at them."""
    received, sent = exchange.received, exchange.sent
    return _OWN.pack(
        received.at,
        received.clock,
        sent.duration,
        sent.bytes,
        exchange.number,
        received.connection,
    )


class Dropped:
    """Dropped entries, the oldest first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        # Two queues, side by side: a tuple for each entry would be half as large as the entry.
        self._commons: deque[_Common] = deque()
        self._entries: deque[bytes | Exchange] = deque()
        self._shared: dict[bytes, _Body] = {}
        self._latest: dict[int, _Common] = {}
        """By the identity of what was played: decisions are kept, and so are their `Played`."""
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
        common = self._common(exchange)
        exchange.drop()
        is_plain = exchange.body_size is None and exchange.is_plain
        self._entries.append(_packed(exchange) if is_plain else exchange)
        self._commons.append(common)
        self.size += _ENTRY
        while self.size > self._max_bytes and len(self._entries) > 1:
            self._make_room()

    def _common(self, exchange: Exchange) -> _Common:
        body, received, played = self._body(exchange), exchange.received, exchange.played
        body.entries += 1
        common = self._latest.get(id(played))
        if common is None or common.body is not body or common.received.path != received.path:
            if len(self._latest) >= _MOST_SHARED:
                self._latest.clear()
            received = received._replace(headers={}, body=b"")
            common = self._latest[id(played)] = _Common(body, received, played, exchange.session)
        return common

    def _body(self, exchange: Exchange) -> _Body:
        data = shortened_body(exchange.body)
        body = self._shared.get(data)
        if body is None:
            if len(self._shared) >= _MOST_SHARED:
                self._shared.clear()
            body = self._shared[data] = _Body(data, len(data))
            self.size += len(data)
        return body

    def _make_room(self) -> None:
        """Packs entries, or forgets the oldest. Packing takes longer than the rest of a request,
        so it waits until there is no room; and it ends with the first entry that is forgotten,
        from where on no verdict can be good."""
        if self._forgotten or self._packed >= len(self._entries):
            self.forget()
            return
        body = self._commons[self._packed].body
        self._packed += 1
        self._share_no_more(body)
        self.size -= body.pack()

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
        entry, common = self._entries.popleft(), self._commons.popleft()
        self._packed = max(0, self._packed - 1)
        self._forgotten[_outcome(common, entry)] += 1
        self.size -= _ENTRY
        common.body.entries -= 1
        if not common.body.entries:
            self._share_no_more(common.body)
            self.size -= len(common.body.data)
        return True

    def exchanges(self) -> Iterator[Exchange]:
        """The entries, with their bodies."""
        for common, entry in zip(tuple(self._commons), tuple(self._entries), strict=True):
            if isinstance(entry, bytes):
                yield common.exchange(entry)
            else:
                yield entry.copy(common.body.whole())

    def outcomes(self) -> Counter[str]:
        """How many entries have each outcome, those that were forgotten included."""
        return self._forgotten + Counter(map(_outcome, self._commons, self._entries))


def _outcome(common: _Common, entry: bytes | Exchange) -> str:
    return common.played.outcome if isinstance(entry, bytes) else entry.outcome
