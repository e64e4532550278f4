"""The marks of sessions in a store: there while an entry is not, whatever fails meanwhile."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from mockllm.play.replay.sessions.shared_session import unpack
from mockllm.serve.server.state.journal_writer import JournalWriter
from mockllm.serve.server.state.store import Batch, StoreError, Totals
from tests.entries import journal_entry

_SESSIONS = ("a", "b", "c")
_REQUESTS = 40


class Store:
    """A store that is slow, and fails at random: before it has done something, or after it.

    Args:
        failing: the share of the operations that fail.
    """

    clock_offset = 0.0

    def __init__(self, rng: random.Random, failing: float) -> None:
        self._rng, self.failing = rng, failing
        self.marks: set[tuple[str, str]] = set()
        self.whole: set[tuple[str, int]] = set()
        """The requests of sessions, by their bodies, whose entries will not change any more."""

    async def _wait(self) -> None:
        for _ in range(self._rng.randrange(4)):
            await asyncio.sleep(0)

    def _fail(self) -> None:
        if self._rng.random() < self.failing / 2:
            raise StoreError("away")

    async def mark(self, session: str, mark: str) -> None:
        await self._wait()
        self._fail()
        self.marks.add((session, mark))
        await self._wait()
        self._fail()

    async def append(self, batches: Sequence[Batch]) -> Totals:
        await self._wait()
        self._fail()
        for batch in batches:
            for _, exchange in unpack(batch.entries) if batch.entries else ():
                if not exchange.in_use:
                    self.whole.add((batch.session, int(exchange.body)))
            self.marks -= {(batch.session, mark) for mark in batch.cleared}
        await self._wait()
        self._fail()
        return Totals(1, 1, 1)

    def has_mark(self, session: str) -> bool:
        return any(name == session for name, _ in self.marks)


async def _request(
    writer: JournalWriter, store: Store, rng: random.Random, number: int, unwritten: set
) -> None:
    """A request as the server handles it."""
    for _ in range(rng.randrange(200)):
        await asyncio.sleep(0)
    session = rng.choice(_SESSIONS)
    mark = await writer.hold(session)
    marked = (session, mark.name) in store.marks
    request = session, number
    if marked:
        unwritten.add(request)
    for _ in range(rng.randrange(6)):
        await asyncio.sleep(0)
    if rng.random() < 0.2:  # its client has left
        unwritten.discard(request)
        writer.release(mark)
        return
    body = str(number).encode()
    exchange = journal_entry("POST", "/", {}, body, outcome="played", in_use=True)
    writer.add(session, exchange, (), has_answer=False, mark=mark)
    for _ in range(rng.randrange(12)):
        await asyncio.sleep(0)
    exchange.settle()
    writer.end(exchange)


@pytest.mark.parametrize("failing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(30))
def test_a_session_is_marked_until_all_of_it_is_written(seed: int, failing: float) -> None:
    """At every moment a session with an entry that is not written whole has a mark; when all are
    written, none is left."""

    async def run() -> None:
        rng = random.Random(seed)
        store = Store(rng, failing)
        writer = JournalWriter(store, "p", lambda _: None)  # type: ignore[arg-type]
        unwritten: set[tuple[str, int]] = set()
        requests = [
            asyncio.create_task(_request(writer, store, rng, number, unwritten))
            for number in range(_REQUESTS)
        ]
        while not all(task.done() for task in requests):
            for _ in range(rng.randrange(8)):
                await asyncio.sleep(0)
                for session, number in unwritten - store.whole:
                    assert store.has_mark(session), (session, number)
            try:
                await writer.flush()
            except StoreError:
                continue
        store.failing = 0.0
        await asyncio.gather(*requests)
        await writer.close()
        assert store.marks == set()

    asyncio.run(run())


def test_requests_of_a_session_share_a_mark() -> None:
    """A busy session costs one more write for each batch, not for each request."""

    async def run() -> None:
        store = Store(random.Random(0), 0.0)
        writer = JournalWriter(store, "p", lambda _: None)  # type: ignore[arg-type]
        marks = [await writer.hold("a") for _ in range(5)]
        assert len(set(map(id, marks))) == len(store.marks) == 1
        for mark in marks:
            writer.release(mark)
        await writer.flush()
        again = await writer.hold("a")
        assert again.name != marks[0].name
        writer.release(again)
        await writer.close()

    asyncio.run(run())
