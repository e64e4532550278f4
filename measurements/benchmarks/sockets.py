"""WebSockets: how late messages arrive on many connections, and the memory of idle ones, beside a
bare aiohttp server in the same run.

    python measurements/benchmarks/sockets.py [--connections 1000] [--interval 20]
        [--messages 200] [--rounds 3] [--idle 5000] [--spread 2]

The bare server is an `aiohttp.web.Application` with one handler, which sends the messages of a file
with `send_str`, each at its time. Each server has the first core, the client another
(`paced_client.c`); servers run in turn, and the ratio of a round counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import _load
import paced
from aiohttp import web

from mockllm.wire.framing.websocket import encode_message

MARK = '"sequence_number":'
ASK = {"type": "response.create", "model": "m", "input": paced.PROMPT}
HEAD = (
    b"GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer mock-key\r\n"
    b"User-Agent: AsyncOpenAI/Python 3\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def masked(message: bytes) -> bytes:
    """A frame of a client, with a mask of zeros (RFC 6455, section 5.3)."""
    frame = encode_message(message)
    head = frame[: len(frame) - len(message)]
    return bytes((head[0], head[1] | 0x80)) + head[2:] + bytes(4) + message


def bare(path: str) -> None:
    """Sends the messages of a file, each at its time, to each client that asks."""
    times, messages = json.loads(Path(path).read_text())

    async def serve(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        loop = asyncio.get_running_loop()
        async for _ in ws:
            start = loop.time()
            for at, message in zip(times, messages, strict=True):
                if (due := start + at / 1_000_000 - loop.time()) > 0:
                    await asyncio.sleep(due)
                await ws.send_str(message)
        return ws

    async def run() -> None:
        app = web.Application()
        app.router.add_get("/v1/responses", serve)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=8192)
        await site.start()
        print(f"bare http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


def messages_of(port: int, count: int) -> list[str]:
    """The messages of an answer."""
    data = b""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(HEAD + masked(json.dumps(ASK).encode()))
        while data.count(MARK.encode()) < count or not data.endswith(b"}"):
            data += sock.recv(1 << 20)
    data = data.partition(b"\r\n\r\n")[2]
    messages = []
    while data:
        size, begin = data[1], 2
        if size >= 126:
            begin = 4 if size == 126 else 10
            size = int.from_bytes(data[2:begin])
        messages.append(data[begin : begin + size].decode())
        data = data[begin + size :]
    return messages


@contextmanager
def idle(port: int, count: int) -> Iterator[None]:
    """So many connections on which nothing is said."""
    opened = []
    for _ in range(count):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.sendall(HEAD)
        assert sock.recv(4096).startswith(b"HTTP/1.1 101")
        opened.append(sock)
    try:
        yield
    finally:
        for sock in opened:
            sock.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, nargs="+", default=[1000])
    parser.add_argument("--interval", type=float, default=20, help="in milliseconds")
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle", type=int, default=5000)
    parser.add_argument("--spread", type=float, default=2, help="seconds in which all begin")
    parser.add_argument("--bare", metavar="FILE", help="be the bare server")
    options = parser.parse_args()
    if options.bare:
        bare(options.bare)
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        compare(folder, options, running)


def compare(folder: Path, options: argparse.Namespace, running: ExitStack) -> None:
    """Runs both servers, and prints the table."""
    served, request, due, file = (folder / n for n in ("served", "request", "times", "messages"))
    served.mkdir()
    (served / "paced.yaml").write_text(paced.scenario(options.messages, options.interval))
    request.write_bytes(HEAD + masked(json.dumps(ASK).encode()))
    times = paced.times_of(served, "responses")
    due.write_text("\n".join(map(str, times)))
    client = [*paced.compiled(folder)]
    words = [*_load.ASYNCIO, "serve", str(served), "--port", "0", "--quiet"]
    ours, our_pid = running.enter_context(_load.server(words))
    messages = messages_of(ours, len(times))
    file.write_text(json.dumps([times, messages]))
    theirs, their_pid = running.enter_context(_load.server([__file__, "--bare", str(file)]))
    for name, port, pid in (("bare", theirs, their_pid), ("mockllm", ours, our_pid)):
        before = _load.memory(pid)
        with idle(port, options.idle):
            each = (_load.memory(pid) - before) * 1024 / options.idle
        print(f"{options.idle:7,} {name:8} idle: {each:.1f} KiB each", flush=True)
    files = request, due, MARK, "--until-last", str(options.spread)
    for connections in options.connections:
        found: dict[str, list[paced.Figures]] = {"bare": [], "mockllm": []}
        for _ in range(options.rounds):
            for name, port in (("bare", theirs), ("mockllm", ours)):
                found[name].append(paced.measure(client, port, connections, files, False))
        for name, figures in found.items():
            print(paced.row(connections, name, figures, found["bare"]), flush=True)


if __name__ == "__main__":
    main()
