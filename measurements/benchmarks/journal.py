"""The memory of a server whose journals are full, at rest and while they are read.

python measurements/benchmarks/journal.py [--sessions 17] [--body 900000] [--many 100000]

Each session gets as many requests as its journal holds, until all journals together are at their
bound. Then the whole journal is read, and after it page by page. Last, another server gets one
request in each of many sessions. The peak is that of the server process (VmHWM), counted anew for
each step.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import string
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path

import _load

SCENARIO = """\
scenario: bench
turns:
  - reply: {text: short}
    repeat: true
"""
MIB = 1024
EACH = 17  # requests of a session, which fill its journal


def memory(pid: int, name: str) -> float:
    """A figure of a process in MiB: VmRSS is now, VmHWM the most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / MIB
    raise LookupError(name)


def forget_peak(pid: int) -> None:
    """Makes VmHWM count from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def body(pool: str, size: int, rng: random.Random) -> bytes:
    """A request of that size, in messages of 30 KB that do not compress well and need escapes."""
    start = rng.randrange(len(pool) - size)
    text = pool[start : start + size]
    parts = [text[at : at + 30_000] for at in range(0, size, 30_000)]
    messages = [{"role": "user", "content": part} for part in parts]
    return json.dumps({"model": "mock/bench", "messages": messages}).encode()


def fill(port: int, sessions: int, size: int) -> int:
    """Sends requests to each session; the bytes that were sent."""
    rng = random.Random(7)
    letters = string.ascii_letters + string.digits + '"\n é'
    pool = "".join(rng.choices(letters, k=2 * size))
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    total = 0
    for number in range(sessions):
        for _ in range(EACH):
            data = body(pool, size, rng)
            total += len(data)
            connection.request("POST", f"/s/bench-{number}/v1/chat/completions", data)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
    connection.close()
    return total


def read(port: int, path: str) -> int:
    """Reads an answer without keeping it; its size in bytes."""
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", path)
    answer = connection.getresponse()
    size = 0
    while part := answer.read(65536):
        size += len(part)
    connection.close()
    return size


def measured(pid: int, what: str, port: int, paths: list[str]) -> None:
    """Reads some answers and prints how much more memory the server needed for it."""
    forget_peak(pid)
    before = memory(pid, "VmRSS")
    began = time.perf_counter()
    size = sum(read(port, path) for path in paths)
    took = time.perf_counter() - began
    more = memory(pid, "VmHWM") - before
    print(
        f"{what}: {size / 1024**2:7.0f} MiB read in {took:5.1f} s; at rest {before:5.0f} MiB, "
        f"at most {more:5.0f} MiB more"
    )


def full(arguments: argparse.Namespace, folder: Path) -> None:
    """A server with full journals."""
    with _load.server(["-m", "mockllm", "serve", str(folder), "--port", "0", "--quiet"]) as (
        port,
        pid,
    ):
        fresh = memory(pid, "VmRSS")
        sent = fill(port, arguments.sessions, arguments.body)
        print(f"a fresh server: {fresh:.0f} MiB; {sent / 1024**2:.0f} MiB of requests were sent")
        measured(pid, "whole journal", port, ["/_mockllm/journal"])
        pages = [
            f"/_mockllm/journal?session=bench-{number}&after={after}&limit=5"
            for number in range(arguments.sessions)
            for after in range(0, EACH, 5)
        ]
        measured(pid, "pages of 5   ", port, pages)


def many(arguments: argparse.Namespace, folder: Path) -> None:
    """A server with more sessions than it keeps."""
    data = json.dumps(
        {"model": "mock/bench", "messages": [{"role": "user", "content": "hello"}]}
    ).encode()
    with _load.server(["-m", "mockllm", "serve", str(folder), "--port", "0", "--quiet"]) as (
        port,
        pid,
    ):
        fresh = memory(pid, "VmRSS")
        with socket.create_connection(("127.0.0.1", port)) as sock:
            for number in range(arguments.many):
                path = f"/s/session-{number}/v1/chat/completions"
                sock.sendall(_load.request_bytes(path, data))
                sock.recv(65536)
        now = memory(pid, "VmRSS")
        print(f"{arguments.many} sessions: {now:.0f} MiB, a fresh server {fresh:.0f} MiB")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=17)
    parser.add_argument("--body", type=int, default=900_000)
    parser.add_argument("--many", type=int, default=100_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bench.yaml").write_text(SCENARIO)
        if arguments.sessions:
            full(arguments, folder)
        if arguments.many:
            many(arguments, folder)


if __name__ == "__main__":
    main()
