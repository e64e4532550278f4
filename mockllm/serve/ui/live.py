"""Events of the server, sent to all open pages as server-sent events.

Requests only note that they changed. Rows are made ten times a second, once for all pages, and only
the newest of those that came too fast; how many were left out is sent, too. A page that reads
slowly gets less, and holds up nothing else.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from aiohttp import HttpVersion10, web

from mockllm.core.errors import Problem, RequestError
from mockllm.core.text import shorten
from mockllm.play.replay.compilation.http_answer import bytes_answer, chunk
from mockllm.play.replay.sessions.exchange import Exchange, Sent
from mockllm.serve.server.control.control_routes import base_urls, session_summary
from mockllm.serve.server.control.server_view import KEEPS, ServerView
from mockllm.serve.server.http.delivery import CLOSE, deliver
from mockllm.serve.server.http.sending import send
from mockllm.serve.ui.masking import mask_target
from mockllm.wire.protocols import PROTOCOLS

MOST_ROWS = 20_000
"""So many requests a page gets when it opens: the newest of all sessions."""

_EACH = 0.1
"""Seconds between two lists of rows."""

_POLL, _SHARE = 0.5, 4
"""Shared journals are read again after so many seconds, and after so many times of what that took
the last time."""

_MOST_AT_ONCE = 200
_BATCH = 500
_SESSIONS_EACH = 0.5
_MOST_WAITING = 4 * 1024 * 1024
"""Bytes that may wait for a page that reads slowly."""

_SILENCE = 15.0
"""After so many seconds without an event a comment is sent, so that nothing on the way gives up."""


def event_bytes(name: str, data: Any) -> bytes:
    """A server-sent event."""
    return f"event: {name}\ndata: {dumps(data)}\n\n".encode("ascii")


class _Page:
    """An open page: what waits for it."""

    def __init__(self) -> None:
        self.waiting: list[bytes] = []
        self.size = 0
        self.skipped = 0
        self.behind = False
        """Whether an event is missing that is not counted."""
        self.wake = asyncio.Event()

    def put(self, data: bytes, rows: int = 0) -> None:
        """Adds an event.

        Where the page reads too slowly, rows are counted. Other events cannot be left out: its
        stream ends then, and it gets everything anew when it connects again.

        Args:
            rows: how many rows the event has; 0: it is another one.
        """
        if self.size + len(data) > _MOST_WAITING:
            self.skipped += rows
            self.behind = self.behind or not rows
        else:
            self.waiting.append(data)
            self.size += len(data)
        self.wake.set()

    def take(self) -> bytes:
        data = b"".join(self.waiting)
        if self.skipped and self.size < _MOST_WAITING // 2:
            data += event_bytes("skipped", {"count": self.skipped})
            self.skipped = 0
        self.waiting.clear()
        self.size = 0
        self.wake.clear()
        return data


class Live:
    """Sends events to all pages that are open."""

    def __init__(self, server: ServerView) -> None:
        self._server, self._sources = server, server.sources
        self._away = ""
        """Why exchanges and sessions cannot be read now."""
        self._pages: set[_Page] = set()
        self._changed: dict[tuple[str, int], Exchange] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._later: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._closed = False

    def note_change(self, exchange: Exchange) -> None:
        """Notes a request that came, or whose answer is over."""
        key = key_of(exchange)
        self._changed.pop(key, None)
        self._changed[key] = exchange
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EACH, self._send_rows)

    def publish(self, name: str, data: Any) -> None:
        if self._pages:
            encoded = event_bytes(name, data)
            for page in self._pages:
                page.put(encoded)

    def close(self) -> None:
        self._closed = True
        for page in self._pages:
            page.wake.set()
        for timer in (self._timer, self._later):
            if timer is not None:
                timer.cancel()
        for task in (self._task, self._polling):
            if task is not None:
                task.cancel()

    def _send_rows(self) -> None:
        self._timer = None
        changed = list(self._changed.values())
        self._changed.clear()
        left_out, newest = changed[:-_MOST_AT_ONCE], changed[-_MOST_AT_ONCE:]
        encoded = event_bytes("requests", [row(exchange) for exchange in newest])
        if left_out:
            encoded += event_bytes("skipped", {"count": len(left_out)})
        for page in self._pages:
            page.put(encoded, len(changed))
        if self._later is None and self._pages:
            loop = asyncio.get_running_loop()
            self._later = loop.call_later(_SESSIONS_EACH, self._send_sessions)

    def _send_sessions(self) -> None:
        self._later = None
        self._task = asyncio.create_task(self._publish_sessions())

    async def _publish_sessions(self) -> None:
        try:
            self.publish("sessions", await self._session_list())
        except RequestError as error:
            self._note_away(error.message)

    # What the events have

    def _hello(self, host: str) -> dict[str, Any]:
        recorded = self._sources.recorded
        return {
            "version": _version(),
            "apis": list(PROTOCOLS),
            "urls": base_urls(f"http://{host}"),
            "recording": None if recorded is None else recorded.about(),
            "shared": self._server.sessions.shared,
            # Of several processes any answers, and the requests outlive each of them.
            "began": None if self._server.sessions.shared else self._server.began,
            "keeps": KEEPS,
            "max_rows": MOST_ROWS,
            "problems": self.problems(),
            "scenarios": len(self._sources.player.served.scenarios),
        }

    def announce_reload(self) -> None:
        """Tells all pages that the scenario files were read again, or the problems are others."""
        count = len(self._sources.player.served.scenarios)
        event = {"at": time.time(), "scenarios": count, "problems": self.problems()}
        self.publish("reload", event)

    def problems(self) -> list[dict[str, Any]]:
        """The problems of the files and of the state store."""
        away = [Problem("", 0, 0, "", self._away)] if self._away else []
        return [asdict(problem) for problem in (*away, *self._server.problems)]

    def _note_away(self, why: str) -> None:
        """Tells all pages that the state store is away, or is back."""
        if why != self._away:
            self._away = why
            self.announce_reload()

    async def exchanges(self) -> list[Exchange]:
        """The journals of all sessions."""
        sessions = await self._server.sessions.load()
        return [entry for session in sessions for entry in session.entries]

    async def _session_list(self) -> list[dict[str, Any]]:
        sessions = await self._server.sessions.load()
        setup_of = self._sources.setups.find
        return [session_summary(session, setup_of(session.name)) for session in sessions]

    # Pages

    async def serve(
        self, request: web.BaseRequest, fields: dict[str, str], host: str, sent: Sent
    ) -> web.StreamResponse:
        """Sends events to a page until it is closed, or the server stops."""
        framed = request.version > HttpVersion10
        head = {"content-type": "text/event-stream", "cache-control": "no-store", **fields}
        answer = bytes_answer(200, head.items(), (), streamed=True)
        if request.method == "HEAD":
            return await deliver(request, answer, sent, close=True)
        begin = answer.head(http_1_0=not framed, close=True)
        page = _Page()
        self._pages.add(page)
        if not self._server.sessions.shared:
            self._server.watch = self.note_change
        elif self._polling is None:
            self._polling = asyncio.create_task(self._poll())
        try:
            await send(request, begin, sent)
            async for data in self._events(page, host):
                await send(request, chunk(data) if framed else data, sent)
            if framed:
                await send(request, answer.last_chunk, sent)
        finally:
            self._pages.discard(page)
            if not self._pages:
                self._stop_watching()
        return CLOSE

    def _stop_watching(self) -> None:
        self._server.watch = None
        self._changed.clear()
        if self._polling is not None:
            self._polling.cancel()
            self._polling = None

    async def _poll(self) -> None:
        """Notes what changed in journals that other processes write, too."""
        known: dict[tuple[str, int], tuple[float, bool, float]] | None = None
        while True:
            began = time.monotonic()
            try:
                exchanges = await self.exchanges()
            except RequestError as error:
                self._note_away(error.message)
            else:
                self._note_away("")
                now = {
                    key_of(exchange): (
                        exchange.received.at,
                        exchange.in_use,
                        exchange.sent.duration,
                    )
                    for exchange in exchanges
                }
                for exchange in exchanges:
                    key = key_of(exchange)
                    if known is not None and known.get(key) != now[key]:
                        self.note_change(exchange)
                known = now
            await asyncio.sleep(max(_POLL, _SHARE * (time.monotonic() - began)))

    async def _events(self, page: _Page, host: str) -> AsyncIterator[bytes]:
        yield event_bytes("hello", self._hello(host))
        try:
            exchanges = sorted(await self.exchanges(), key=lambda exchange: exchange.received.at)
            sessions = await self._session_list()
        except RequestError as error:
            self._note_away(error.message)
            exchanges, sessions = [], []
        exchanges = exchanges[-MOST_ROWS:]
        for first in range(0, len(exchanges), _BATCH):
            yield event_bytes(
                "requests", [row(exchange) for exchange in exchanges[first : first + _BATCH]]
            )
            await asyncio.sleep(0)
        yield event_bytes("sessions", sessions)
        yield event_bytes("ready", {})
        while not (self._closed or page.behind):
            try:
                async with asyncio.timeout(_SILENCE):
                    await page.wake.wait()
            except TimeoutError:
                yield b":\n\n"
                continue
            if data := page.take():
                yield data


def _version() -> str:
    try:
        return version("mockllm-harness")
    except PackageNotFoundError:  # a checkout that is not installed
        return ""


dumps = json.JSONEncoder(separators=(",", ":")).encode
"""JSON in ASCII, on one line: half of a surrogate pair is an escape there."""

_LARGEST = 64 * 1024
"""The text of larger bodies is not read for the list, in bytes."""

_LONGEST = 2000
"""Of a name or a path, in characters."""


def key_of(exchange: Exchange) -> tuple[str, int]:
    """Which request a row is about."""
    return exchange.session, exchange.number


def row(exchange: Exchange) -> dict[str, Any]:
    """The row of a request, which may not be over yet."""
    fields = exchange.facts()
    for name in ("model", "path", "scenario", "method"):
        if fields[name] is not None:
            fields[name] = shorten(fields[name], _LONGEST)
    problems = exchange.problems
    shown = {
        **fields,
        "open": exchange.in_use,
        "cut": _why_cut(exchange.sent),
        "problem": shorten(problems[0], 300) if problems else "",
        "problems": len(problems),
        "changes": len(exchange.played.changes),
        "text": user_text(exchange),
    }
    masked: dict[str, Any] = mask_target(shown, exchange)
    return masked


def _why_cut(sent: Sent) -> str:
    """Why an answer did not come to its end; "" where it did, or goes on."""
    if sent.client_gone:
        return "client left"
    if sent.interrupted:
        return "interrupted"
    if sent.stopped:
        return "server stopped"
    if sent.struck is not None:
        return "fault struck"
    return "" if sent.complete else "cut off"


def user_text(exchange: Exchange) -> str:
    """The last text of the user, or what an MCP server is asked, shortened; "" where that cannot be
    read, or not at once."""
    if exchange.played.mcp is not None:
        server, method, tool, *_ = exchange.played.mcp
        return shorten(f"{method} {server}.{tool}" if tool else f"{method} {server}", 200)
    request = None if len(exchange.body) > _LARGEST else exchange.request
    return "" if request is None else shorten(" ".join(request.last_user.text.split()), 200)
