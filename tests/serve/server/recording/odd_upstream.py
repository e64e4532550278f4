"""An upstream for tests: it writes to its connections exactly what a test's script writes."""

import asyncio
import contextlib
import json
import socket
import struct
import threading
from dataclasses import dataclass, field

from tests.timeouts import GIVE_UP

CHUNKED = "Transfer-Encoding: chunked"
EVENTS = "Content-Type: text/event-stream"


@dataclass
class Request:
    """A request as the upstream received it."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name):
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class OddUpstream:
    """Listens in a thread of its own while the `with` block lasts.

    `script` is a coroutine function of the request and a `Wire`. The connection stays open after
    it, unless the script ends it. `requests` are those that were received.
    """

    script: object = None
    requests: list[Request] = field(default_factory=list)

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._thread.start()
        assert self._ready.wait(GIVE_UP)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self):
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self):
        self._stop = asyncio.Event()
        self._tasks = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=2**20)
        host, port = server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while not writer.is_closing():
                    request = await _request(reader)
                    self.requests.append(request)
                    await self.script(request, Wire(reader, writer))
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def _request(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = [tuple(part.strip() for part in line.split(":", 1)) for line in lines]
    lower = {name.lower(): value for name, value in headers}
    if lower.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(lower.get("content-length", "0")))
    return Request(method, target, headers, body)


@dataclass
class Wire:
    """The connection that a script writes to."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def head(self, *headers, status="200 OK"):
        await self.raw(
            f"HTTP/1.1 {status}\r\n{''.join(h + chr(13) + chr(10) for h in headers)}\r\n"
        )

    async def raw(self, data):
        self.writer.write(data.encode() if isinstance(data, str) else data)
        await self.writer.drain()

    async def chunk(self, data, extension=""):
        data = data.encode() if isinstance(data, str) else data
        await self.raw(b"%x%b\r\n%b\r\n" % (len(data), extension.encode(), data))

    async def end(self, *trailers):
        await self.raw(f"0\r\n{''.join(t + chr(13) + chr(10) for t in trailers)}\r\n")

    async def body(self, data, *headers, status="200 OK"):
        """Writes a whole answer of known length."""
        data = data.encode() if isinstance(data, str) else data
        await self.head(*headers, f"Content-Length: {len(data)}", status=status)
        await self.raw(data)

    async def events(self, *chunks, headers=()):
        """Writes a whole event stream, an HTTP chunk for each argument."""
        await self.head(EVENTS, CHUNKED, *headers)
        for chunk in chunks:
            await self.chunk(chunk)
        await self.end()

    def reset(self):
        """Ends the connection with a TCP reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def closed_by_peer(self):
        """Waits until the other side has closed."""
        with contextlib.suppress(ConnectionError):
            await self.reader.read()
        self.writer.close()


def delta(index, **fields):
    """A chunk of Chat Completions, as JSON text."""
    choice = {"index": 0, "delta": fields, "finish_reason": None}
    return json.dumps(
        {
            "id": "chatcmpl-odd",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "odd-1",
            "choices": [choice],
            "n": index,
        }
    )


def finish(reason="stop"):
    choice = {"index": 0, "delta": {}, "finish_reason": reason}
    return json.dumps(
        {
            "id": "chatcmpl-odd",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "odd-1",
            "choices": [choice],
        }
    )


def text_events(*words):
    """The events of an answer with a delta for each word, `[DONE]` included."""
    texts = [delta(n, content=word) for n, word in enumerate(words)] + [finish(), "[DONE]"]
    return [f"data: {text}\n\n".encode() for text in texts]


def message_events(text):
    """A stream of the Messages API."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    opened = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x"}
    opened |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    block = {"type": "text", "text": ""}
    events = (
        {"type": "message_start", "message": opened},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": text},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    )
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def call(index, arguments=None, **opening):
    """A fragment of a tool call."""
    fragment = {"index": index, "function": {"arguments": arguments or ""}}
    if opening:
        fragment |= {"id": opening["id"], "type": "function"}
        fragment["function"]["name"] = opening["name"]
    return delta(0, tool_calls=[fragment])


def script(*chunks, headers=()):
    """A script that answers each request with these chunks."""

    async def play(request, wire):
        await wire.events(*chunks, headers=headers)

    return play
