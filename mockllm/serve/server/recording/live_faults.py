"""Breaks what passes from a real service to a client; what is recorded stays whole.

The answer of the service is read to its end by itself, also after the client's connection was
broken, and copied as it comes. The client gets it with its faults.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

from aiohttp import HttpVersion10, web

from mockllm.core.errors import UpstreamError
from mockllm.core.http import Ending, TimedBytes
from mockllm.play.faults.live import LiveFault, Step, is_live
from mockllm.play.faults.transmission import Circumstances
from mockllm.play.replay.broken_answer import broken
from mockllm.play.replay.compilation.http_answer import LAST_CHUNK, HttpAnswer, bytes_answer, chunk
from mockllm.play.replay.sessions.exchange import Sent
from mockllm.scenario.fault_model import Fault, faults_text
from mockllm.serve.server.http.delivery import CLOSE, KEEP_ALIVE, deliver
from mockllm.serve.server.http.sending import end_early, send
from mockllm.serve.server.recording.copying import AnswerCopy, cut_of
from mockllm.serve.server.recording.upstream import Upstream

_SILENCE = 300.0
"""For so many seconds a service may send nothing after the client is gone."""


async def pass_broken(
    request: web.BaseRequest,
    upstream: Upstream,
    copy: AnswerCopy,
    sent: Sent,
    faults: tuple[Fault, ...],
    around: Circumstances,
    head: Callable[[bool], bytes],
    passing: set[asyncio.Task[object]],
) -> web.StreamResponse:
    """Passes an answer on with faults.

    The answer of the service is read to its end, and copied, by a task of its own: the handler of a
    request is cancelled when its connection ends.

    Args:
        head: the head of the answer for the client, given whether its body is sent in HTTP chunks.
        passing: the task is in it as long as it reads; whoever cancels it cuts the recording.

    Raises:
        ConnectionResetError: the client is gone.
    """
    sent.break_with(faults_text(faults), upstream.response.status)
    arriving = _Arriving(upstream, copy)
    reading: asyncio.Task[object] = asyncio.create_task(arriving.read())
    passing.add(reading)
    reading.add_done_callback(passing.discard)
    try:
        if upstream.response.headers.get("Content-Length") is None and is_live(faults):
            live = _Live(request, arriving, sent, LiveFault(faults[0], around))
            return await live.pass_on(head)
        parts = await arriving.whole()
        answer = broken(_upstream_answer(upstream, parts, arriving.failure), faults, around)
        if arriving.failure is not None:
            sent.report(str(arriving.failure))
        return await deliver(request, answer, sent)
    finally:
        arriving.leave()


class _Arriving:
    """The answer of a service while it is read and copied."""

    def __init__(self, upstream: Upstream, copy: AnswerCopy) -> None:
        self._upstream, self._copy = upstream, copy
        self._queue: asyncio.Queue[TimedBytes | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._bound: asyncio.Timeout | None = None
        self._is_left = False
        self.failure: UpstreamError | None = None

    async def read(self) -> None:
        """Reads the answer to its end, and gives the copy to the recorder."""
        try:
            async with asyncio.timeout(None) as self._bound:
                try:
                    await self._read()
                finally:
                    self._bound = None
        except TimeoutError:
            pass  # the copy is cut: the client is gone, and nothing comes
        except UpstreamError as error:
            self.failure = error
            self._copy.cut = cut_of(error)
            self._copy.hand_over()
        else:
            self._copy.finish()
        finally:
            self._upstream.close()
            self._copy.hand_over()
            self._queue.put_nowait(None)

    async def _read(self) -> None:
        async for data in self._upstream.chunks():
            self._copy.add(data)
            at = round((self._loop.time() - self._upstream.sent) * 1_000_000)
            if self._is_left:
                self._limit_silence()
            else:
                self._queue.put_nowait(TimedBytes(max(0, at), data))
            self._copy.passed_on()

    def leave(self) -> None:
        """The client gets no more of it."""
        self._is_left = True
        self._queue = asyncio.Queue()
        self._limit_silence()

    def _limit_silence(self) -> None:
        if self._bound is not None:
            self._bound.reschedule(self._loop.time() + _SILENCE)

    async def get(self, until: float | None = None) -> TimedBytes | None:
        """The next bytes; None at the end."""
        async with asyncio.timeout_at(until):
            return await self._queue.get()

    async def whole(self) -> list[TimedBytes]:
        """All of it, once it has come."""
        found: list[TimedBytes] = []
        while (data := await self.get()) is not None:
            found.append(data)
        return found


def _upstream_answer(
    upstream: Upstream, parts: list[TimedBytes], failure: UpstreamError | None
) -> HttpAnswer:
    """An answer that has come whole, or broke off; it is sent at once."""
    headers = tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in upstream.headers
        if name.lower() not in (b"content-length", b"transfer-encoding", b"connection")
    )
    length = upstream.response.headers.get("Content-Length")
    return bytes_answer(
        upstream.response.status,
        headers,
        [TimedBytes(0, part.data) for part in parts],
        streamed=length is None,
        ending="complete" if failure is None else failure.how or "closed",
        length=None if failure is None or length is None else int(length),
    )


@dataclass
class _Live:
    """A stream that is broken while it arrives."""

    request: web.BaseRequest
    arriving: _Arriving
    sent: Sent
    fault: LiveFault

    def __post_init__(self) -> None:
        self.framed = self.request.version > HttpVersion10
        self.begin = asyncio.get_running_loop().time()

    async def pass_on(self, head: Callable[[bool], bytes]) -> web.StreamResponse:
        """Sends the answer until the fault ends it, or to its end."""
        await send(self.request, head(self.framed), self.sent)
        ending: Ending | None = None
        async for steps in self._steps():
            ending = await self._do(steps)
            if ending is not None:
                break
        failure = self.arriving.failure
        if ending is None and failure is not None:
            self.sent.report(str(failure))
            ending = failure.how or "closed"
        if self.fault.missed:
            self.sent.miss(self.fault.missed)
        return await self._end(ending or "complete")

    async def _steps(self) -> AsyncIterator[Iterator[Step]]:
        while True:
            at = self.fault.at
            try:
                data = await self.arriving.get(None if at is None else self.begin + at / 1e6)
            except TimeoutError:
                yield self.fault.strike()
                continue
            if data is None:
                break
            yield self.fault.feed(data.data)
        yield self.fault.close()

    async def _do(self, steps: Iterator[Step]) -> Ending | None:
        for step in steps:
            if isinstance(step, bytes):
                await self._send(step)
                continue
            self.sent.strike(time.perf_counter())
            if step.data:
                await self._send(step.data)
            if step.ending is not None:
                return step.ending
            await asyncio.sleep(step.pause / 1_000_000)
        return None

    async def _send(self, data: bytes) -> None:
        await send(self.request, chunk(data) if self.framed else data, self.sent)
        self.sent.wrote(len(data), time.perf_counter())

    async def _end(self, ending: Ending) -> web.StreamResponse:
        if ending == "open":
            await asyncio.Event().wait()  # the handler is cancelled when the client leaves
        if ending != "complete":
            await end_early(self.request, ending, self.sent, framed=self.framed)
            return CLOSE
        if self.framed:
            await send(self.request, LAST_CHUNK, self.sent)
        self.sent.end_pauses(time.perf_counter())
        stays = self.request.keep_alive and self.framed
        return KEEP_ALIVE if stays else CLOSE
