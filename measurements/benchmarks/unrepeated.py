"""Requests that never repeat against the same request again and again, in the same run.

    python measurements/benchmarks/unrepeated.py [--rounds 5] [--seconds 2]
        [--size 50000] [--messages 20]

Each request has a long history. Those that never repeat differ in a number in their first message
and one in their last. The rate counts, and the CPU time of the server for each request.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import _load

PATH = "/v1/chat/completions"
NUMBER = "000000000000"


def scenario(turns: int) -> str:
    """A conversation of so many turns and one more."""
    replies = "".join(f"  - reply: {{text: answer {n}}}\n" for n in range(turns + 1))
    return f"scenario: long\nmatch: {{user: benchmark}}\nturns:\n{replies}"


def body_of(size: int, messages: int) -> bytes:
    """A request with a history of so many messages, and a question."""
    text = 'Lorem ipsum dolor sit amet,\n\tconsectetur "adipiscing" elit. ' * (size // 60)
    text = text[: size // (messages + 1)]
    history = [
        {"role": "assistant", "content": f"answer {n // 2} {text}"}
        if n % 2
        else {"role": "user", "content": f"{'benchmark ' + NUMBER if not n else 'and'} {text}"}
        for n in range(messages)
    ]
    history.append({"role": "user", "content": f"and {NUMBER} {text}"})
    return json.dumps({"model": "m", "stream": True, "messages": history}).encode()


def numbered(request: bytes) -> Iterator[bytes]:
    """The request with another number each time."""
    first, middle, last = request.split(NUMBER.encode())
    for number in count(1):
        digits = b"%012d" % number
        yield b"".join((first, digits, middle, digits, last))


def drive(port: int, pid: int, requests: Iterator[bytes], seconds: float) -> tuple[float, float]:
    """Requests a second on one connection, and the microseconds of CPU for each."""
    os.sched_setaffinity(0, {_load.CLIENT_CORE})
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        done, used, began = 0, _load.cpu(pid), time.perf_counter()
        while time.perf_counter() < began + seconds:
            sock.sendall(next(requests))
            data = b""
            while not data.endswith(b"0\r\n\r\n"):
                data += sock.recv(1 << 20)
            if not data.startswith(b"HTTP/1.1 200"):
                raise SystemExit(data.decode(errors="replace")[:400])
            done += 1
        took = time.perf_counter() - began
        return done / took, (_load.cpu(pid) - used) / done * 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--size", type=int, default=50_000)
    parser.add_argument("--messages", type=int, default=20)
    options = parser.parse_args()
    request = _load.request_bytes(PATH, body_of(options.size, options.messages))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "long.yaml").write_text(scenario(options.messages // 2))
        ours = [*_load.ASYNCIO, "serve", folder, "--port", "0", "--quiet"]
        with _load.server(ours) as (port, pid):
            never = numbered(request)
            again = iter(lambda: request, None)
            rates: list[float] = []
            figures: dict[str, list[float]] = {"repeated": [], "unrepeated": []}
            for number in range(options.rounds + 1):  # the first one warms up
                repeated, used = drive(port, pid, again, options.seconds)
                unrepeated, more = drive(port, pid, never, options.seconds)
                if number:
                    rates.append(unrepeated / repeated)
                    figures["repeated"].append(used)
                    figures["unrepeated"].append(more)
        for name, found in figures.items():
            print(f"{name}: {_load.spread(found)} µs of CPU a request")
        print(f"rate of requests that never repeat: {_load.spread(rates, 2)} of the others'")
        ratio = statistics.median(figures["repeated"]) / statistics.median(figures["unrepeated"])
        print(f"by CPU: {ratio:.2f}")


if __name__ == "__main__":
    main()
