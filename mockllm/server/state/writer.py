"""Writes the journal behind the answers: in batches, in order, and again when the store is back."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mockllm.replay.sessions.entry_packing import pack
from mockllm.replay.sessions.session import Exchange
from mockllm.replay.sessions.shared_session import Turn
from mockllm.server.state.store import Batch, StateStore, StoreError

__all__ = ["JournalWriter"]

_DELAY = 0.05
_BATCH = 500
_AGAIN = (0.1, 0.2, 0.5, 1.0)
"""Seconds between tries while the store is away."""


@dataclass(slots=True)
class _Entry:
    session: str
    exchange: Exchange
    number: int
    played: tuple[Turn, ...]
    size: int
    kept: bool
    queued: bool = False


class JournalWriter:
    """Takes journal entries, and writes them to a store.

    While the store is away the entries wait, up to `max_bytes`; beyond that the oldest are given
    up, and the store is given their number when it is back.

    Args:
        process: the name of this process.
        report: called with a text when the store goes away and when it is back.
    """

    def __init__(
        self,
        store: StateStore,
        process: str,
        report: Callable[[str], None],
        *,
        max_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        self._store, self._process, self._report = store, process, report
        self._max_bytes = max_bytes
        self._waiting: deque[_Entry] = deque()
        self._size = 0
        self._open: dict[int, _Entry] = {}
        self._lost: dict[str, Counter[str]] = {}
        self._number = 0
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self.away = ""
        """Why the last write failed; "" if it did not."""
        self.errors = 0
        """How many writes failed."""

    @property
    def waiting(self) -> int:
        """How many entries are not written yet."""
        return len(self._waiting)

    def add(
        self, session: str, exchange: Exchange, played: tuple[Turn, ...], *, kept: bool
    ) -> None:
        """Takes an entry; it is written soon, and again when `end` was called for it.

        Args:
            played: the turns that were played.
            kept: whether its answer can be looked up by its id.
        """
        self._number += 1
        self._store.taken(self._number)
        entry = _Entry(session, exchange, self._number, played, exchange.size, kept)
        self._open[id(exchange)] = entry
        self._push(entry)

    def end(self, exchange: Exchange) -> None:
        """The answer is over: its entry will not change any more."""
        entry = self._open.pop(id(exchange), None)
        if entry is not None and not entry.queued:
            self._push(entry)

    def _push(self, entry: _Entry) -> None:
        self._waiting.append(entry)
        entry.queued = True
        self._size += entry.size
        while self._size > self._max_bytes and len(self._waiting) > 1:
            given_up = self._waiting.popleft()
            self._size -= given_up.size
            counts = self._lost.setdefault(given_up.session, Counter())
            counts[given_up.exchange.outcome] += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_soon())

    async def _write_soon(self) -> None:
        tries = 0
        await asyncio.sleep(_DELAY)
        while self._waiting or self._lost:
            try:
                await self.flush()
                tries = 0
            except StoreError:
                await asyncio.sleep(_AGAIN[min(tries, len(_AGAIN) - 1)])
                tries += 1

    async def flush(self) -> None:
        """Writes everything that was taken before.

        Raises:
            StoreError: the store is away; what is not written is kept.
        """
        async with self._lock:
            while self._waiting or self._lost:
                await self._write()

    async def _write(self) -> None:
        taken = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
        lost, self._lost = self._lost, {}
        self._size -= sum(entry.size for entry in taken)
        by_session: dict[str, list[_Entry]] = {}
        for entry in taken:
            entry.queued = False
            by_session.setdefault(entry.session, []).append(entry)
        batches = [self._batch(name, entries) for name, entries in by_session.items()]
        written = max((entry.number for entry in taken), default=0)
        try:
            await self._store.append(batches, lost, written)
        except BaseException as error:
            self._take_back(taken, lost)
            if isinstance(error, StoreError):
                self._note_failure(str(error))
            raise
        if self.away:
            self.away = ""
            self._report("the state store is back; what waited is written")

    def _take_back(self, taken: list[_Entry], lost: Mapping[str, Counter[str]]) -> None:
        """Lets entries that could not be written wait again, before the others."""
        again = [entry for entry in taken if not entry.queued]
        for entry in again:
            entry.queued = True
        self._waiting.extendleft(reversed(again))
        self._size += sum(entry.size for entry in again)
        for session, counts in lost.items():
            self._lost.setdefault(session, Counter()).update(counts)

    def _batch(self, session: str, entries: list[_Entry]) -> Batch:
        ahead = self._store.ahead
        played: dict[Turn, None] = {}
        outcomes: Counter[str] = Counter()
        answers: dict[str, bytes] = {}
        for entry in entries:
            exchange = entry.exchange
            played.update(dict.fromkeys(entry.played))
            if not exchange.in_use:
                outcomes[exchange.outcome] += 1
            if entry.kept and exchange.answer_id is not None:
                answers[exchange.answer_id] = pack([(entry.number, exchange)], self._process, ahead)
        return Batch(
            session,
            pack([(entry.number, entry.exchange) for entry in entries], self._process, ahead),
            outcomes,
            max(entry.exchange.at for entry in entries) + ahead,
            tuple(played),
            answers,
        )

    def _note_failure(self, why: str) -> None:
        self.errors += 1
        if not self.away:
            self._report(
                f"the state store cannot be reached ({why}); what needs no state is answered, "
                "journal entries wait"
            )
        self.away = why

    async def close(self) -> None:
        """Writes what is left.

        Raises:
            StoreError: the store is away; the rest is lost.
        """
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self.flush()
