"""Lists over shared state read what they show, however many other requests the journal has."""

from __future__ import annotations

import asyncio

from mockllm.play.replay.sessions.shared_session import FindAnswer, unpack
from mockllm.serve.server.state.journal_writer import JournalWriter
from mockllm.serve.server.state.shared_state import store_of
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
