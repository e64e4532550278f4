"""The scheduler that writes timed answers."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Coroutine
from typing import Any

import httpx
import pytest
from aiohttp.test_utils import make_mocked_request

from mockllm import loads
from mockllm.core.http import TimedBytes
from mockllm.play.replay.compilation.http_answer import HttpAnswer, bytes_answer
from mockllm.play.replay.sessions.exchange import Sent
from mockllm.serve.server.app import MockServer
from mockllm.serve.server.http.delivery import deliver
from mockllm.serve.server.http.pacing import Paced, Pacer, age
from mockllm.serve.server.http.sending import WATER
from tests.cases import for_all
from tests.serve.server.recording.recorded_server import PATH
from tests.timeouts import GIVE_UP

HOUR = 3_600_000_000


class Transport(asyncio.Transport):
    """A connection that keeps what is written to it, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.times: list[float] = []
        self.closing = False
        self.waiting = 0

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))
        self.times.append(time.monotonic())

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def is_closing(self) -> bool:
        return self.closing


def sent() -> Sent:
    return Sent(time.perf_counter())


def answer(*times: int, data: bytes = b"data: x\n\n", segmented: bool = False) -> HttpAnswer:
    parts = [TimedBytes(at, data) for at in times]
    return bytes_answer(200, [], parts, streamed=True, segmented=segmented)


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(GIVE_UP):
            return await coroutine

    return asyncio.run(bounded())


async def delivered(one: HttpAnswer, to: Transport, entry: Sent, pacer: Pacer) -> None:
    await deliver(make_mocked_request("POST", PATH, transport=to), one, entry, pacer=pacer)


def paced(one: HttpAnswer, *, separate: bool = False) -> Paced:
    return Paced(one.encoded, one.ends, one.times, one.data, separate=separate)


async def late(one: Paced, to: Transport, entry: Sent, pacer: Pacer, by: float) -> None:
    """Plays an answer whose request came some seconds ago."""
    request = make_mocked_request("POST", PATH, transport=to)
    await pacer.play(request, one, entry, time.monotonic() - by)


def test_no_part_is_written_before_its_time() -> None:
    """Each part has a write of its own, when it is due and not before; the last one has the end of
    the body with it."""
    to, entry, one = Transport(), sent(), answer(0, 5_000, 10_000, 10_000)
    began = time.monotonic()
    run(delivered(one, to, entry, Pacer()))
    assert b"".join(to.writes) == one.encoded
    ends = [len(b"".join(to.writes[:n])) for n in range(1, len(to.writes) + 1)]
    for end, at, due in zip(one.ends[:3], (0, 1, 2), (0, 0.005, 0.010), strict=True):
        first = next(n for n, written in enumerate(ends) if written >= end)
        assert to.times[first] - began >= due, at
    assert entry.bytes == one.size
    assert entry.ended is not None
    assert entry.ended >= 0.010


def test_what_is_due_at_once_is_one_write() -> None:
    """An answer that is late catches up with one write, whatever was due meanwhile."""
    to, entry, one = Transport(), sent(), answer(0, 1_000, 2_000, HOUR)

    async def play() -> None:
        pacer = Pacer()
        await late(paced(one), to, entry, pacer, by=HOUR / 1_000_000)

    run(play())
    assert to.writes == [one.encoded[: one.ends[-1]]]
    assert entry.bytes == one.size


def test_separate_parts_are_separate_writes() -> None:
    """Segments are never put together, also where they are late."""
    to, one = Transport(), answer(0, 1_000, 2_000, segmented=True)
    run(late(paced(one, separate=True), to, sent(), Pacer(), by=1))
    assert len(to.writes) == 3
    to = Transport()
    run(delivered(one, to, sent(), Pacer()))
    assert len(to.writes) == 1 + 3 + 1  # with the head and the last chunk
    assert b"".join(to.writes) == one.encoded


def test_a_late_answer_is_written_in_bounded_parts() -> None:
    """What a client did not read yet takes bounded memory, however late its answer is."""
    to, one = Transport(), answer(*range(1, 41), data=b"x" * 10_000)
    run(late(paced(one), to, sent(), Pacer(), by=1))
    assert len(to.writes) > 4
    assert max(map(len, to.writes)) <= WATER
    assert b"".join(to.writes) == one.encoded[: one.ends[-1]]


def test_many_answers_at_once_are_all_whole() -> None:
    """The answers of one scheduler do not mix, and each is complete."""
    ones = [answer(*(n * 100 + at for at in (0, 2_000, 4_000))) for n in range(50)]
    targets = [Transport() for _ in ones]

    async def play() -> None:
        pacer = Pacer()
        playing = zip(ones, targets, strict=True)
        await asyncio.gather(*(delivered(one, to, sent(), pacer) for one, to in playing))

    run(play())
    for one, to in zip(ones, targets, strict=True):
        assert b"".join(to.writes) == one.encoded


def test_a_client_that_left_ends_its_answer_only() -> None:
    """Its task gets the error, the exchange reports it, and the others go on."""
    gone, stays, entry, one = Transport(), Transport(), sent(), answer(0, 5_000)

    async def play() -> Any:
        pacer = Pacer()
        first = asyncio.create_task(delivered(one, gone, entry, pacer))
        await asyncio.sleep(0)
        gone.closing = True
        second = delivered(one, stays, sent(), pacer)
        return await asyncio.gather(first, second, return_exceptions=True)

    left, other = run(play())
    assert isinstance(left, ConnectionResetError)
    assert other is None
    assert entry.client_gone
    assert entry.bytes == len(one.data[0])
    assert entry.ended is None
    assert b"".join(stays.writes) == one.encoded


def test_an_answer_that_is_cancelled_is_not_written() -> None:
    """Nothing more is written for a task that was cancelled, and nothing holds its answer."""
    to, one = Transport(), answer(0, 3_000, 6_000)

    async def play() -> None:
        pacer = Pacer()
        task = asyncio.create_task(delivered(one, to, sent(), pacer))
        await asyncio.sleep(0)
        written = len(to.writes)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await delivered(answer(8_000), Transport(), sent(), pacer)
        assert len(to.writes) == written

    run(play())


def test_an_error_of_one_connection_is_that_of_its_task() -> None:
    """A transport that fails does not stop the scheduler."""

    class Broken(Transport):
        def write(self, data: Any) -> None:
            raise RuntimeError("closed")

    to, one = Transport(), answer(1_000, 2_000)
    broken = bytes_answer(200, [], [TimedBytes(1_000, b"{}")], streamed=False)

    async def play() -> Any:
        pacer = Pacer()
        return await asyncio.gather(
            delivered(broken, Broken(), sent(), pacer),
            delivered(one, to, sent(), pacer),
            return_exceptions=True,
        )

    failed, other = run(play())
    assert isinstance(failed, RuntimeError)
    assert other is None
    assert b"".join(to.writes) == one.encoded


def test_the_lateness_of_each_part_is_reported() -> None:
    """With the seconds after its own time, also where several are one write."""
    found: list[float] = []
    pacer = Pacer(found.append)
    run(late(paced(answer(0, 1_000_000)), Transport(), sent(), pacer, by=2))
    first, second = found
    assert first >= 2
    assert first - second == pytest.approx(1)


def test_a_scheduler_serves_one_loop_after_the_other() -> None:
    """What was planned in a loop that ended does not disturb the next one."""
    pacer, to, one = Pacer(), Transport(), answer(0, 2_000)

    async def leave() -> None:
        task = asyncio.create_task(delivered(answer(0, HOUR), Transport(), sent(), pacer))
        await asyncio.sleep(0)
        task.cancel()

    run(leave())
    run(delivered(one, to, sent(), pacer))
    assert b"".join(to.writes) == one.encoded


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says when bytes came")
def test_the_time_of_arrival_is_known_later() -> None:
    """Bytes that nobody has read have an age, which grows; fresh ones have none."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        client.sendall(b"x")
        served, _ = server.accept()
        with served:
            transport = asyncio.BaseTransport({"socket": served})
            began = time.monotonic()
            while not age(transport) and time.monotonic() < began + GIVE_UP:
                pass
            assert age(transport) > 0
    assert age(asyncio.BaseTransport({"socket": served})) == 0  # closed
    with socket.socket(socket.AF_UNIX) as unix:
        assert age(asyncio.BaseTransport({"socket": unix})) == 0
    assert age(asyncio.BaseTransport()) == 0


def test_an_answer_does_not_start_before_the_one_before_it_is_over() -> None:
    """The second of two pipelined requests came long before its answer may begin."""

    async def play() -> None:
        pacer, to = Pacer(), Transport()
        await delivered(answer(0, 2_000), to, sent(), pacer)
        over = time.monotonic()
        request = make_mocked_request("POST", PATH, transport=to)
        assert pacer.start_of(request) >= to.times[-1]
        assert pacer.start_of(request) >= over

    run(play())


SLOW_READER = """\
scenario: long
match: {user: long}
turns:
  - reply: {text: "TEXT", split: 50000}
    timing: {every: 1ms}
---
scenario: short
match: {user: short}
turns:
  - reply: {text: a b c, split: words}
    timing: {every: 2ms}
"""


def test_a_client_that_does_not_read_holds_up_no_other(serve: Any) -> None:
    """Its stream waits, the others end, and it gets everything when it reads."""
    served = serve(SLOW_READER.replace("TEXT", "x" * 8_000_000))

    def body(user: str) -> dict[str, Any]:
        return {"model": "m", "stream": True, "messages": [{"role": "user", "content": user}]}

    with (
        httpx.Client(timeout=GIVE_UP) as client,
        client.stream("POST", served.url + PATH, json=body("long")) as stalled,
    ):
        whole = client.post(served.url + PATH, json=body("short")).text
        assert whole.endswith("data: [DONE]\n\n")
        (entry, _) = served.journal()
        assert entry["ended"] is None
        rest = b"".join(stalled.iter_raw())
    assert rest.endswith(b"data: [DONE]\n\n")
    assert rest.count(b"x" * 50_000) == 160


@for_all(
    ("turn", "expected"),
    [
        ("reply: {text: a}", False),
        ("reply: {text: a}\n    timing: {every: 0, ttft: 0}", False),
        ("reply: {text: a}\n    timing: {ttft: 1ms}", True),
        ("reply: {text: a}\n    timing: {at: [5ms]}", True),
        ("reply: {text: a, every: 1ms}", True),
        ("reply: [{text: a}, {pause: 1ms}]", True),
        ("reply: {parallel: [{tool: f, every: 1ms}, {tool: g}]}", True),
        ("reply: {text: a}\n    attempts: [{reply: {text: b, every: 1ms}}]", True),
        ("reply: {text: a}\n    attempts: [{http: 429}]", False),
        ("reply: {text: a}\n    when: [{api: chat, reply: {text: b, every: 1ms}}]", True),
    ],
)
def test_pauses_are_found(turn: str, expected: bool) -> None:
    """By them `serve` chooses the event loop."""
    server = MockServer(loads(f"scenario: one\nturns:\n  - {turn}\n"))
    assert server.has_pauses is expected


def test_defaults_are_pauses() -> None:
    """Those of a scenario count for all its turns."""
    head = "scenario: one\ndefaults: {every: 20ms}\n"
    assert MockServer(loads(head + "turns: [{reply: {text: a}}]\n")).has_pauses
