"""Writes the journal behind the answers: in batches, in order, and again when the store is back."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.shared_session import Turn, pack
from mockllm.serve.server.state.store import Batch, StateStore, StoreError, Totals, mark_name


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a store keeps.

    Args:
        sessions: beyond this number, the least recently used session is evicted.
        session_bytes: of a session's journal; the oldest entries are forgotten.
        all_bytes: of all sessions; the largest one forgets its oldest entries. If it has only its
            last ones, the least recently used session is evicted.
    """

    sessions: int = 1000
    session_bytes: int = 48 * 1024 * 1024
    all_bytes: int = 256 * 1024 * 1024

    def hold(self, totals: Totals) -> bool:
        return (
            totals.sessions <= self.sessions
            and totals.session_bytes <= self.session_bytes
            and totals.all_bytes <= self.all_bytes
        )


BOUNDS = Bounds()
"""As large as those of a process that keeps its state itself."""


async def hold_bounds(store: StateStore, bounds: Bounds) -> None:
    """Gives up what is too much.

    Where several processes do that at the same moment, a little more than needed is given up.
    """
    sizes = await store.sizes()
    for name in list(sizes)[: max(0, len(sizes) - bounds.sessions)]:
        await store.evict(name)
        del sizes[name]
    for name in sizes:
        while sizes[name] > bounds.session_bytes and (freed := await store.forget_oldest(name)):
            sizes[name] -= freed
    while sum(sizes.values()) > bounds.all_bytes:
        largest = max(sizes, key=sizes.__getitem__)
        if freed := await store.forget_oldest(largest):
            sizes[largest] -= freed
        elif len(sizes) == 1:
            return
        else:
            oldest = next(iter(sizes))
            await store.evict(oldest)
            del sizes[oldest]


_DELAY = 0.05
"""For so many seconds entries are collected: one by one they cost as much as the answers."""
_BATCH = 500
"""The most entries that are packed at a time."""
_MOST_BYTES = 64 * 1024 * 1024
_PAUSES = (0.1, 0.2, 0.5, 1.0)
"""Seconds between tries while the store is away."""


@dataclass(slots=True, eq=False)
class SessionMark:
    """A mark in the store: this process has requests of a session that are not written.

    Requests of a session share one while there are any, so that a busy session costs one more
    write for each batch.

    Args:
        stored: the write that puts it there.
        holders: requests whose entries are not written as they will stay.
    """

    session: str
    name: str
    stored: asyncio.Task[None]
    holders: int = 0


@dataclass(slots=True)
class _Waiting:
    """An entry that this process has accepted.

    Args:
        over: whether it will not change any more.
    """

    session: str
    exchange: Exchange
    number: int
    played: tuple[Turn, ...]
    size: int
    has_answer: bool
    mark: SessionMark
    queued: bool = False
    over: bool = False

    @property
    def made_job(self) -> bool:
        """Whether its answer is looked up, and no answer of a model: a batch, a file, a job."""
        return self.has_answer and self.exchange.played.model is None


class JournalWriter:
    """Takes journal entries, and writes them to a store.

    While the store is away the entries wait, up to `_MOST_BYTES`; beyond that the oldest are given
    up, and the store is given their number when it is back.
    """

    def __init__(self, store: StateStore, process: str, report: Callable[[str], None]) -> None:
        self._store, self._process, self._report = store, process, report
        self._queue: deque[_Waiting] = deque()
        self._size = 0
        self._open: dict[int, _Waiting] = {}
        self._lost: dict[str, Counter[str]] = {}
        self._marks: dict[str, SessionMark] = {}
        """The marks that the next requests of their sessions share."""
        self._released: Counter[SessionMark] = Counter()
        """Holders that have nothing to write any more."""
        self._numbers = count(1)
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self.away = ""
        """Why the last write failed; "" if it did not."""
        self.errors = 0
        """How many writes failed."""

    @property
    def waiting(self) -> int:
        return len(self._queue)

    async def hold(self, session: str) -> SessionMark:
        """Marks a session, before a request of it is answered; to be given to `add` or `release`.

        While the store is away, nothing waits long for the mark.
        """
        mark = self._hold(session)
        if not mark.stored.done():
            try:
                await asyncio.wait([mark.stored], timeout=_DELAY if self.away else None)
            except asyncio.CancelledError:
                self.release(mark)
                raise
        return mark

    def _hold(self, session: str) -> SessionMark:
        mark = self._marks.get(session)
        if mark is None:
            name = mark_name(self._process, next(self._numbers))
            stored = asyncio.create_task(self._store_mark(session, name))
            mark = self._marks[session] = SessionMark(session, name, stored)
        mark.holders += 1
        return mark

    async def _store_mark(self, session: str, name: str) -> None:
        try:
            await self._store.mark(session, name)
        except StoreError as error:
            del self._marks[session]  # the next request tries again
            self._note_failure(str(error))

    def release(self, mark: SessionMark) -> None:
        """A request came to nothing that stands in a journal."""
        self._released[mark] += 1
        self._start()

    def add(
        self,
        session: str,
        exchange: Exchange,
        played: tuple[Turn, ...],
        *,
        has_answer: bool,
        mark: SessionMark | None = None,
    ) -> None:
        """Takes an entry; it is written soon, and again when `end` was called for it."""
        number, mark = next(self._numbers), mark or self._hold(session)
        entry = _Waiting(session, exchange, number, played, exchange.charged, has_answer, mark)
        self._open[id(exchange)] = entry
        self._push(entry)

    def end(self, exchange: Exchange) -> None:
        """The answer is over: its entry will not change any more."""
        entry = self._open.pop(id(exchange), None)
        if entry is not None:
            entry.over = True
            if not entry.queued:
                self._push(entry)

    def _push(self, entry: _Waiting) -> None:
        self._queue.append(entry)
        entry.queued = True
        self._size += entry.size
        while self._size > _MOST_BYTES and len(self._queue) > 1:
            (given_up,) = self._take(1)
            self._note_lost(given_up.session, {given_up.exchange.outcome: 1})
            if given_up.over:
                self._released[given_up.mark] += 1
        self._start()

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_soon())

    @property
    def _has_work(self) -> bool:
        return bool(self._queue or self._lost or self._released)

    def _take(self, most: int) -> list[_Waiting]:
        entries = [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
        self._size -= sum(entry.size for entry in entries)
        for entry in entries:
            entry.queued = False
        return entries

    def _note_lost(self, session: str, outcomes: Mapping[str, int]) -> None:
        self._lost.setdefault(session, Counter()).update(outcomes)

    async def _write_soon(self) -> None:
        tries = 0
        await asyncio.sleep(_DELAY)
        while self._has_work:
            try:
                await self.flush()
                tries = 0
            except StoreError:
                await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
                tries += 1

    async def flush(self) -> None:
        """Writes everything that was taken before."""
        async with self._lock:
            while self._has_work:
                await self._write()

    async def _write(self) -> None:
        if self._released:  # a mark that comes after it was removed would stay
            await asyncio.wait([mark.stored for mark in self._released])
        entries = self._take(_BATCH)
        lost, self._lost = self._lost, {}
        released, self._released = self._released, Counter()
        over = released + Counter(entry.mark for entry in entries if entry.over)
        late = Counter({mark: n for mark, n in over.items() if not mark.stored.done()})
        over -= late
        cleared = self._clear(over)
        try:
            totals = await self._store.append(self._batches(entries, lost, cleared))
        except BaseException as error:
            self._released += released
            self._put_back(entries, lost)
            if isinstance(error, StoreError):
                self._note_failure(str(error))
            raise
        self._released += late
        for mark, holders in over.items():
            mark.holders -= holders
        if self.away:
            self.away = ""
            self._report("the state store is back; what waited is written")
        if not BOUNDS.hold(totals):
            await hold_bounds(self._store, BOUNDS)

    def _clear(self, over: Mapping[SessionMark, int]) -> list[SessionMark]:
        """The marks without any other holder. The next request of their sessions makes a new one:
        the order in which the store carries out what is sent at the same time is not known."""
        cleared = [mark for mark, holders in over.items() if holders == mark.holders]
        for mark in cleared:
            if self._marks.get(mark.session) is mark:
                del self._marks[mark.session]
        return cleared

    def _put_back(self, entries: Sequence[_Waiting], lost: Mapping[str, Counter[str]]) -> None:
        """Lets entries that could not be written wait again, before the others."""
        waiting = [entry for entry in entries if not entry.queued]
        for entry in waiting:
            entry.queued = True
        self._queue.extendleft(reversed(waiting))
        self._size += sum(entry.size for entry in waiting)
        for session, outcomes in lost.items():
            self._note_lost(session, outcomes)

    def _batches(
        self,
        entries: Sequence[_Waiting],
        lost: Mapping[str, Counter[str]],
        cleared: Sequence[SessionMark],
    ) -> list[Batch]:
        marks: dict[str, list[str]] = {}
        for mark in cleared:
            marks.setdefault(mark.session, []).append(mark.name)
        by_session: dict[str, list[_Waiting]] = {name: [] for name in (*lost, *marks)}
        for entry in entries:
            by_session.setdefault(entry.session, []).append(entry)
        batches = []
        for name, some in by_session.items():
            others = [entry for entry in some if not entry.made_job]
            batches.append(
                self._batch(name, others, lost.get(name, {}), tuple(marks.get(name, ())))
            )
            # Each for itself: lists of jobs read all of them, and nothing of other requests.
            batches += [self._batch(name, [entry], {}, ()) for entry in some if entry.made_job]
        return batches

    def _batch(
        self,
        session: str,
        entries: Sequence[_Waiting],
        lost: Mapping[str, int],
        cleared: tuple[str, ...],
    ) -> Batch:
        offset = self._store.clock_offset
        exchanges = [(entry.number, entry.exchange) for entry in entries]
        ids = (entry.exchange.played.answer_id for entry in entries if entry.has_answer)
        return Batch(
            session,
            max((exchange.received.at for _, exchange in exchanges), default=time.time()) + offset,
            pack(exchanges, self._process, offset) if exchanges else b"",
            Counter(exchange.outcome for _, exchange in exchanges if not exchange.in_use),
            tuple(dict.fromkeys(turn for entry in entries for turn in entry.played)),
            tuple(id for id in ids if id is not None),
            lost,
            cleared,
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
        """Writes what is left."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._marks:
            await asyncio.wait([mark.stored for mark in self._marks.values()])
        await self.flush()
