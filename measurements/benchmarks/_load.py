"""What the benchmarks share: a closed-loop client on raw sockets, and server processes.

The client sends prepared requests on a number of connections that stay open and counts bytes,
so that it costs far less than any server. Server and client are pinned to different cores.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, CLIENT_CORE = CORES[0], CORES[-1]


def request_bytes(path: str, body: bytes, headers: Sequence[str] = ()) -> bytes:
    """A POST request as an SDK would send it, less the headers nobody looks at."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Accept: application/json",
        "Content-Type: application/json",
        "Authorization: Bearer mock-key",
        "User-Agent: OpenAI/Python 3",
        "X-Goog-Api-Key: mock-key",
        "Anthropic-Version: 2023-06-01",
        *headers,
        f"Content-Length: {len(body)}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


ASYNCIO = ("-m", "mockllm", "--config", str(Path(__file__).with_name("asyncio.toml")))
"""The words of mockllm whose servers run on asyncio's event loop, also where uvloop is there."""


@contextlib.contextmanager
def server(command: Sequence[str], *, pinned: bool = True) -> Iterator[tuple[int, int]]:
    """Runs a server on its core; gives its port (the last number of its first line) and pid.

    Args:
        pinned: to its core; a server with processes of its own may need all cores.
    """
    cores = {SERVER_CORE} if pinned else set(CORES)
    process = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        if not line:
            raise SystemExit(f"{' '.join(command)} did not start")
        yield int(line.strip().rsplit(":", 1)[1]), process.pid
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@dataclass
class _Connection:
    sock: socket.socket
    requests: Iterator[tuple[bytes, int]]
    left: int = 0

    def send(self) -> None:
        request, self.left = next(self.requests)
        self.sock.sendall(request)


def _cycle(items: Sequence[tuple[bytes, int]], start: int) -> Iterator[tuple[bytes, int]]:
    while True:
        for index in range(len(items)):
            yield items[(start + index) % len(items)]


def drive(
    port: int,
    requests: Sequence[tuple[bytes, int]],
    *,
    connections: int,
    seconds: float = 0.0,
    count: int = 0,
    core: int | None = CLIENT_CORE,
) -> float:
    """Requests a second over a time, or for a count of requests.

    Args:
        requests: each with the size of its answer; sent in turn.
        core: that the client has; None: all.
    """
    os.sched_setaffinity(0, CORES if core is None else {core})
    selector = selectors.DefaultSelector()
    open_connections = []
    for number in range(connections):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = number * len(requests) // connections
        connection = _Connection(sock, _cycle(requests, start))
        selector.register(sock, selectors.EVENT_READ, connection)
        open_connections.append(connection)
    began = time.perf_counter()
    deadline = began + seconds if seconds else float("inf")
    done = 0
    for connection in open_connections:
        connection.send()
    ended = 0.0
    busy = len(open_connections)
    while busy:
        for key, _ in selector.select(1):
            connection = key.data
            data = connection.sock.recv(1 << 20)
            if not data:
                raise SystemExit("the server closed a connection")
            connection.left -= len(data)
            if connection.left < 0:
                raise SystemExit("the server sent more than the expected answer")
            if connection.left:
                continue
            done += not ended
            if not ended and (time.perf_counter() >= deadline or (count and done >= count)):
                ended = time.perf_counter()
            if ended:
                busy -= 1  # what is under way is waited for, but not counted
            else:
                connection.send()
    for connection in open_connections:
        connection.sock.close()
    os.sched_setaffinity(0, set(CORES))
    return done / (ended - began)


def memory(pid: int) -> float:
    """Resident memory of a process, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"no memory figure for process {pid}")


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Median, with the least and the most."""
    middle = statistics.median(values)
    return f"{middle:,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


async def serve(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> None:
    """Answers every connection in this process, and prints where it listens."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(f"listening on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


def cpu(pid: int) -> float:
    """The CPU time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
