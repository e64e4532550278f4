"""A server works on so many requests for answers at the same time; others wait, or are refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from aiohttp.test_utils import make_mocked_request

from mockllm.serve.server.limits.capacity import Capacity, Slot, Slots
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.play.faults.playing import (
    Received,
    ask,
    connect,
    journal,
    receive,
    request_bytes,
    served,
)
from tests.timeouts import GIVE_UP

HELD = """
scenario: held
match: {user: Hello}
turns:
  - reply: [{text: one}, {pause: 1440m}, {text: two}]
    repeat: true
"""
STATUSES = {"anthropic": 529}


def slots(concurrent: int, queue: int = 0) -> Slots:
    return Slots(Capacity(concurrent, queue), set())


def run(coroutine: Any) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(GIVE_UP):
            return await coroutine

    return asyncio.run(bounded())


async def waiting(slot: Slot | None) -> asyncio.Task[str]:
    """A task that waits for a slot already."""
    assert slot is not None
    task = asyncio.create_task(slot.wait(make_mocked_request("POST", "/")))
    await asyncio.sleep(0)
    return task


def test_places_are_handed_on_in_order() -> None:
    """Whoever waits longest is next; what is left when nobody waits is free again."""

    async def play() -> None:
        bounded = slots(1, queue=2)
        first, second, third = bounded.enter(), bounded.enter(), bounded.enter()
        assert bounded.enter() is None
        assert first is not None
        assert second is not None
        assert third is not None
        tasks = [await waiting(second), await waiting(third)]
        assert (first.taken, second.taken, bounded.waiting) == (True, False, 2)
        first.leave()
        assert await tasks[0] == ""
        assert (second.taken, third.taken, bounded.waiting) == (True, False, 1)
        assert second.since > 0
        first.leave()  # once is enough
        assert not third.taken
        second.leave()
        assert await tasks[1] == ""
        third.leave()
        again = bounded.enter()
        assert again is not None
        assert again.taken

    run(play())


def test_who_leaves_the_queue_takes_no_place() -> None:
    """Neither before the slot is free nor at that very moment."""

    async def play() -> None:
        bounded = slots(1, queue=3)
        first, *others = [bounded.enter() for _ in range(4)]
        assert first is not None
        tasks = [await waiting(slot) for slot in others]
        for task, slot in zip(tasks[:2], others[:2], strict=True):
            task.cancel()
            if slot is others[0]:
                with pytest.raises(asyncio.CancelledError):
                    await task
                slot.leave()  # type: ignore[union-attr]
        assert bounded.waiting == 2
        first.leave()  # the second task is cancelled, and does not know it yet
        assert await tasks[2] == ""
        assert bounded.waiting == 0

    run(play())


def test_a_place_that_comes_too_late_goes_on() -> None:
    """A request that was cancelled just when it got its slot gives it to the next one."""

    async def play() -> None:
        bounded = slots(1, queue=2)
        first, second, third = (bounded.enter() for _ in range(3))
        assert first is not None
        assert second is not None
        tasks = [await waiting(second), await waiting(third)]
        first.leave()
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        second.leave()
        assert await tasks[1] == ""

    run(play())


@contextmanager
def held(thread: ServerThread, api: str = "chat") -> Iterator[Any]:
    """A request that holds a slot until the block ends: its first event is there."""
    with connect(thread) as sock:
        sock.sendall(request_bytes(api))
        while b"one" not in sock.recv(65536):
            pass
        yield sock


def until(thread: ServerThread, count: int) -> None:
    """Goes on when so many requests wait."""
    limit = time.monotonic() + GIVE_UP
    while f"mockllm_waiting_requests {count}.0\n" not in httpx.get(f"{thread.url}/metrics").text:
        assert time.monotonic() < limit


@for_all("api", sorted(PROTOCOLS.over_http))
def test_a_full_server_refuses(api: str) -> None:
    """In the form of each service, with the time after which to try again; the journal has it."""
    with served(HELD, capacity=Capacity(1)) as thread, held(thread):
        refused = ask(thread, api)
        assert refused.status == STATUSES.get(api, 503)
        if api == "gemini":  # says it in its body alone
            assert b'"retryDelay":"1s"' in refused.body
        else:
            assert float(refused.headers["retry-after"]) == 1
        entry = journal(thread)[-1]
        assert (entry.outcome, entry.status, entry.retry_after) == ("error", refused.status, 1)
        assert entry.played.cause == "capacity"
        assert entry.problems == (
            "the server works on 1 answer at the same time (--max-concurrent)",
        )
        assert entry.played.api == api


def test_what_calls_no_model_is_no_request_for_an_answer() -> None:
    """Control routes and look-ups need no slot."""
    with served(HELD, capacity=Capacity(1)) as thread, held(thread), connect(thread) as sock:
        for path in ("/_mockllm/health", "/v1/models"):
            sock.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            assert receive(sock).status == 200


def queued(thread: ServerThread) -> Any:
    """A connection whose request waits."""
    sock = connect(thread)
    sock.sendall(request_bytes("chat"))
    until(thread, 1)
    return sock


def first_event(sock: Any) -> None:
    data = b""
    while b"one" not in data:
        data += sock.recv(65536)


def test_a_request_waits_for_its_place() -> None:
    """It is answered when another answer is over; one more is refused meanwhile."""
    with served(HELD, capacity=Capacity(1, queue=1)) as thread:
        with held(thread):
            sock = queued(thread)
            assert ask(thread, "chat").status == 503
        with sock:
            first_event(sock)
            until(thread, 0)


def test_who_waits_too_long_is_refused() -> None:
    """With the error of a full server."""
    with served(HELD, capacity=Capacity(1, queue=1, longest_wait=1_000)) as thread, held(thread):
        assert ask(thread, "chat").status == 503
        assert journal(thread)[-1].problems == (
            "the server works on 1 answer at the same time, and 1 request may wait "
            "(--max-concurrent), each for at most 1ms (queue-timeout)",
        )
        until(thread, 0)


def test_a_client_that_leaves_the_queue() -> None:
    """Its slot in the queue is free, and the journal says what became of the request."""
    with served(HELD, capacity=Capacity(1, queue=1)) as thread, held(thread):
        queued(thread).close()
        until(thread, 0)
        limit = time.monotonic() + GIVE_UP
        while len(journal(thread)) < 2:
            assert time.monotonic() < limit
        entry = journal(thread)[-1]
        assert (entry.outcome, entry.status, entry.broken_off) == ("error", 0, True)
        assert entry.played.cause == "capacity"
        assert entry.problems == (
            "the client left while the request waited for its slot (--queue)",
        )
        queued(thread).close()


def test_refused_requests_are_counted() -> None:
    """As errors, beside what was played."""
    with served(HELD, capacity=Capacity(1)) as thread, held(thread):
        ask(thread, "chat")
        with connect(thread) as sock:
            sock.sendall(b"GET /_mockllm/metrics HTTP/1.1\r\nhost: x\r\n\r\n")
            text = receive(sock).body.decode()
    assert 'mockllm_requests_total{api="chat",scenario="(none)",outcome="error"} 1.0' in text


def test_times_begin_when_the_place_is_there() -> None:
    """The wait comes before the first pause: nothing that is timed is late by it."""
    text = HELD + (
        "---\nscenario: timed\nmatch: {user: Bye}\nturns:\n"
        "  - reply: {text: Bye.}\n    timing: {ttft: 20ms}\n"
    )
    with served(text, capacity=Capacity(1, queue=1)) as thread:
        with held(thread):
            body = request_bytes("chat").replace(b'"Hello"', b'"Bye"  ')
            sock = connect(thread)
            sock.sendall(body)
            until(thread, 1)
            given = time.monotonic()
        with sock:
            answer: Received = receive(sock)
            assert answer.status == 200
            assert time.monotonic() - given >= 0.02
