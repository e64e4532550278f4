"""Tapes are read in threads: while one is read, the server goes on.

A tape is a named pipe here. Its reader waits until the test writes, and each written byte goes to
one reader only.
"""

import asyncio
import contextlib
import gc
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import httpx
import pytest

from mockllm import ServerOptions, ServerThread
from mockllm.core.http import NO_TARGET, TimedBytes
from mockllm.core.later import NotDoneError, deferring
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.loading import load, loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import dump_tape
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Recorded
from mockllm.serve.server.answers import DeferredWork
from mockllm.wire.protocols import PROTOCOLS
from tests.play.tapes.making import Sent, taped
from tests.play.tapes.turns import turn_of
from tests.timeouts import GIVE_UP

YAML = "scenario: greeting\nmatch: {user: hello}\nturns: [{reply: {text: Hi!}}]\n"
OTHER = "scenario: other\nmatch: {user: other}\nturns: [{reply: {text: At once.}}]\n"
DATA = b": A comment.\r\n\r\ndata: {}\r\n\r\ndata: [DONE]\r\n\r\n"
PATH = "/v1/chat/completions"


def request(text, **more):
    return {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": text}],
        **more,
    }


class Piped:
    """A folder with a recorded scenario, whose tape is a named pipe, and one without."""

    def __init__(self, folder, sent=None):
        (scenario,) = loads(YAML)
        headers = (("content-type", "text/event-stream"),)
        body = json.dumps(sent or request("hello")).encode()
        recorded_request = Sent("POST", f"http://odd{PATH}", (), body)
        tape = taped("chat", True, 200, headers, (TimedBytes(0, DATA),), request=recorded_request)
        self.content = dump_tape(tape)
        self.pipe = folder / "greeting.1.jsonl"
        self.pipe.write_bytes(self.content)
        recorded = replace(
            scenario, turns=(replace(turn_of(tape), recorded=Recorded(self.pipe.name)),)
        )
        (folder / "greeting.yaml").write_text(dump(recorded))
        (folder / "other.yaml").write_text(OTHER)
        self.scenarios = load([folder])
        self.renew()  # not before: the loader wants a regular file

    def renew(self):
        """Replaces the file with a new pipe; who has the old one open keeps it."""
        self.pipe.unlink()
        os.mkfifo(self.pipe)

    def write(self, content=None):
        """Writes the tape as soon as it is opened for reading."""
        with self.opened() as pipe:
            pipe.write(self.content if content is None else content)

    def opened(self):
        """The pipe, open for writing, as soon as it is opened for reading."""
        return self.pipe.open("wb")

    def release(self):
        """Releases a reader that still waits, with nothing to read."""
        os.close(os.open(self.pipe, os.O_RDWR))


@pytest.fixture
def piped(tmp_path):
    """A recorded scenario whose tape is a named pipe."""
    tape = Piped(tmp_path)
    yield tape
    tape.release()


def post(url, body):
    return httpx.post(f"{url}{PATH}", json=body, timeout=GIVE_UP)


def test_other_requests_are_answered_while_a_tape_is_read(piped):
    """A request without a tape is answered in the meantime; the first one gets its tape's bytes
    when they can be read."""
    with ServerThread(piped.scenarios) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(post, server.url, request("hello"))
        with piped.opened() as pipe:
            assert b"At" in post(server.url, request("other")).content
            assert not first.done()
            pipe.write(piped.content)
        assert first.result().content == DATA
        # The tape is cached: nothing is written to the pipe any more.
        assert post(server.url, request("hello", temperature=0)).content == DATA


def test_the_recorded_request_is_read_in_a_thread_too(tmp_path):
    """The recorded request is on the tape. It decides whether a request that the API refuses is
    answered."""
    odd = request("hello", tools=[])
    piped = Piped(tmp_path, odd)
    with ServerThread(piped.scenarios) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(post, server.url, odd)
        with piped.opened() as pipe:
            piped.renew()
            assert b"At" in post(server.url, request("other")).content
            pipe.write(piped.content)
        piped.write()  # once for the request, once for the answer
        assert first.result().content == DATA


def test_a_tape_that_cannot_be_read(piped):
    """The reply is played instead, and the journal gives the reason."""
    with ServerThread(piped.scenarios) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(post, server.url, request("hello"))
        piped.write(b"{}\n")
        assert b"A comment" not in first.result().content
        journal = httpx.get(f"{server.url}/_mockllm/journal", timeout=GIVE_UP).json()
    (exchange,) = journal["exchanges"]
    assert (exchange["recorded"], exchange["outcome"]) == ("unreadable", "played")
    assert piped.pipe.name in exchange["problems"][0]


def test_a_server_that_stops_answers_requests_that_wait_for_tapes(piped):
    """A request that waits for its tape is answered within the grace, as an open stream is."""
    options = ServerOptions(grace=GIVE_UP)
    with ThreadPoolExecutor(2) as pool, ServerThread(piped.scenarios, options) as server:
        first = pool.submit(post, server.url, request("hello"))
        with piped.opened() as pipe:
            assert len(server.server._parts.streaming) == 1
            stopping = pool.submit(server.wait, server.server.stop)
            # It does not listen any more, and closes the connections that it has.
            with contextlib.suppress(httpx.NetworkError, httpx.RemoteProtocolError):
                while not stopping.done():
                    httpx.get(f"{server.url}/_mockllm/health", timeout=GIVE_UP)
            pipe.write(piped.content)
        assert first.result().content == DATA
        stopping.result()


# Several requests for one tape


class Waiting:
    """Requests that are played as the server does."""

    def __init__(self, piped):
        self.player = Player(piped.scenarios)
        self.deferred = DeferredWork(set())
        self.session = Session("s")

    async def play(self, body):
        sent = json.dumps(body).encode()
        call = ApiCall(PROTOCOLS["chat"], NO_TARGET, {}, sent, self.session)
        with pytest.raises(NotDoneError), deferring({}):
            self.player.play(call)
        play = partial(self.player.play, call)
        answered = await self.deferred.play(self.player, self.session, play)
        return answered.answer, answered.played


def run(piped, test):
    """Runs a test; fails if it hangs."""

    async def bounded():
        try:
            async with asyncio.timeout(GIVE_UP):
                await test()
        finally:
            piped.release()

    asyncio.run(bounded())


async def begun(*coroutines):
    """Tasks that have run until they wait."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    await asyncio.sleep(0)
    return tasks


def test_concurrent_requests_share_one_reading(piped):
    """Requests that need a tape while it is read wait for the same reading."""

    async def play():
        waiting = Waiting(piped)
        bodies = [request("hello", temperature=n) for n in range(3)]
        tasks = await begun(*map(waiting.play, bodies))
        await asyncio.to_thread(piped.write)
        for answer, exchange in await asyncio.gather(*tasks):
            assert (answer.data, exchange.recorded) == ((DATA,), "exact")

    run(piped, play)


def test_a_cancelled_request_does_not_end_the_reading(piped):
    """The reading goes on for the other requests that wait for it."""

    async def play():
        waiting = Waiting(piped)
        gone, stays = await begun(
            waiting.play(request("hello")), waiting.play(request("hello", temperature=0))
        )
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone
        await asyncio.to_thread(piped.write)
        answer, exchange = await stays
        assert (answer.data, exchange.recorded) == ((DATA,), "exact")

    run(piped, play)


def test_a_broken_tape_without_a_client_is_no_error_of_the_loop(piped):
    """Every client has left before the tape turns out to be broken; the loop reports nothing."""

    async def play():
        problems = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        waiting = Waiting(piped)
        (gone,) = await begun(waiting.play(request("hello")))
        readings = list(waiting.deferred._running.values())
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone
        await asyncio.to_thread(piped.write, b"{}\n")
        await asyncio.wait(readings)
        await begun()
        assert not waiting.deferred._running
        readings.clear()
        gc.collect()  # the loop reports exceptions that were never retrieved
        assert problems == []

    run(piped, play)
