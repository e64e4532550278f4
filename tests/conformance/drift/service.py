"""A live service of a few routes, in a thread, and folders of recordings of it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured
from mockllm.record.recording.drafting.matches import MatchRule
from mockllm.record.recording.store.ended import EndedExchanges
from mockllm.record.redaction.rules import Rules
from mockllm.serve.server.recording.writer import Writer, WriterSetup

Answer = Callable[[dict[str, Any]], tuple[int, str, str]]
"""Status, content type and body, from the body of a request."""


@contextmanager
def live(answer: Answer) -> Iterator[tuple[str, list[web.Request]]]:
    """A service that answers every POST so; its URL, and the requests that came."""
    requests: list[web.Request] = []
    started, ended = threading.Event(), threading.Event()
    url: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        body = await request.read()
        requests.append(request)
        status, kind, text = answer(json.loads(body) if body else {})
        return web.Response(status=status, text=text, headers={"content-type": kind})

    async def serve() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url.append(f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}")
        started.set()
        await asyncio.to_thread(ended.wait)
        await runner.cleanup()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    started.wait()
    try:
        yield url[0], requests
    finally:
        ended.set()
        thread.join()


def exchange(
    url: str,
    request: Any,
    answer: tuple[int, str, str],
    *,
    at: float = 1_790_000_000.0,
    **more: Any,
) -> Captured:
    """A recorded exchange, whose answer came at once."""
    status, kind, text = answer
    return Captured(
        "POST",
        url,
        (("content-type", "application/json"), ("authorization", "Bearer sk-test-key-1234567890")),
        json.dumps(request).encode(),
        status,
        (("content-type", kind),),
        (TimedBytes(0, text.encode()),),
        at=at,
        **more,
    )


def record(folder: Path, *exchanges: Captured) -> None:
    """Writes exchanges as a recorder does."""
    folder.mkdir()
    ended = EndedExchanges(folder)
    setup = WriterSetup(folder, ended.path, Rules(), MatchRule(), False, frozenset())
    writer = Writer(setup)
    result = writer.write(list(enumerate(exchanges, 1)))
    writer.close()
    ended.close()
    assert result.handled == len(exchanges)
    assert not [line for line in result.lines if line.outcome == "skipped"]


def sse(*values: Any, named: bool = True) -> str:
    """Events, with the names of their types."""
    lines = []
    for value in values:
        if not isinstance(value, str):
            name = f"event: {value['type']}\n" if named and "type" in value else ""
            lines.append(f"{name}data: {json.dumps(value)}\n\n")
        else:
            lines.append(f"data: {value}\n\n")
    return "".join(lines)
