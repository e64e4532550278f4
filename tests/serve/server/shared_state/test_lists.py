"""Lists over shared state read what they show, however many other requests the journal has."""

from __future__ import annotations

import asyncio
from typing import Any

from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.shared_session import FindAnswer, Stored, restore, unpack
from mockllm.serve.server.metrics.figures import Figures
from mockllm.serve.server.sessions.session_setup import SessionSetups
from mockllm.serve.server.state.journal_writer import JournalWriter
from mockllm.serve.server.state.shared_sessions import SharedSessions
from mockllm.serve.server.state.shared_state import SharedState, store_of
from tests.entries import journal_entry


async def _nothing() -> str:
    return "done"


async def _read(state: str, session: str, others: int) -> int:
    """The bytes that a store gives for a batch that was made among other requests."""
    store = store_of(state)
    await store.open("p", {"flush": _nothing, "figures": _nothing})
    try:
        writer = JournalWriter(store, "p", print)
        for number in range(others):
            body = b"x" * 1000 + str(number).encode()
            other = journal_entry("POST", "/v1/chat/completions", {}, body, outcome="played")
            writer.add(session, other, (), has_answer=False)
            writer.end(other)
            if number == others // 2:
                made = journal_entry(
                    "POST", "/v1/batches", {}, b"made", outcome="played", answer_id="batch_1"
                )
                writer.add(session, made, (), has_answer=True)
                writer.end(made)
        await writer.close()
        found = await store.perform(session, FindAnswer("batch_1"))
        assert [exchange.body for _, exchange in unpack(found)] == [b"made"]
        return len(found)
    finally:
        await store.close()


def test_a_job_is_read_without_the_requests_beside_it(state: str) -> None:
    """The bytes are the same for four times as many."""

    async def run() -> None:
        assert await _read(state, "few", 20) == await _read(state, "many", 80)

    asyncio.run(run())


class Counting:
    """A store that counts the packed entries which it gives for lists of sessions."""

    def __init__(self, state: str) -> None:
        self.store = store_of(state)
        self.given = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def load(self, session: str, after: int = 0) -> Stored | None:
        stored = await self.store.load(session, after)
        self.given += 0 if stored is None else sum(map(len, stored.entries))
        return stored


def _add(writer: JournalWriter, session: str, numbers: range) -> None:
    for number in numbers:
        other = journal_entry(
            "POST", "/v1/chat/completions", {}, b"x" * 1000, outcome="played", at=float(number)
        )
        writer.add(session, other, (), has_answer=False)
        writer.end(other)


def test_a_list_reads_what_is_new(state: str) -> None:
    """However long the journals are; and the sessions are those that are read as a whole."""

    async def run() -> None:
        counting = Counting(state)
        await counting.store.open("p", {"flush": _nothing, "figures": _nothing})
        shared = SharedState(counting, print, Figures, lambda: None)
        sessions = SharedSessions(shared, SessionSetups(lambda *_: Player(())), lambda: Player(()))
        try:
            read = []
            for size in (20, 80):
                writer = JournalWriter(counting.store, f"p{size}", print)
                _add(writer, f"s{size}", range(size))
                await writer.flush()
                await sessions.load()
                before = counting.given
                _add(writer, f"s{size}", range(size, size + 2))
                await writer.close()
                (found,) = [each for each in await sessions.load() if each.name == f"s{size}"]
                read.append(counting.given - before)
                stored = await counting.store.load(f"s{size}")
                assert stored is not None
                whole = restore(f"s{size}", stored)
                assert (found.count, found.outcomes()) == (whole.count, whole.outcomes())
                assert found.count == size + 2
            assert read[0] == read[1]
        finally:
            await counting.store.close()

    asyncio.run(run())
