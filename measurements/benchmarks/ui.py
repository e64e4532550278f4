"""The live page and instant replay: no page, one that is open, ten of them, and `--no-ui`.

    python measurements/benchmarks/ui.py [--rounds 5] [--seconds 2]

One server is loaded as fast as it answers, in turn with no page, with one and with ten that read
the events; another one runs with `--no-ui`. What counts is the CPU time of the server for each
request, and its ratio to that of the server without the page.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import _load
from instant import SCENARIO, fetch, request_of

HEAD = b"GET /_mockllm/ui/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@contextmanager
def pages(port: int, count: int) -> Iterator[list[int]]:
    """So many pages that read the events; gives the bytes that each has read."""
    read = [0] * count
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]

    def follow(number: int) -> None:
        with suppress(OSError):
            while data := sockets[number].recv(1 << 16):
                read[number] += len(data)

    threads = [threading.Thread(target=follow, args=(n,), daemon=True) for n in range(count)]
    for sock, thread in zip(sockets, threads, strict=True):
        sock.sendall(HEAD)
        thread.start()
    try:
        yield read
    finally:
        for sock in sockets:
            sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for sock in sockets:
            sock.close()


def used(port: int, pid: int, request: tuple[bytes, int], count: int, seconds: float) -> float:
    """Microseconds of the server's CPU time for each request, with so many pages."""
    with pages(port, count):
        _load.drive(port, [request], connections=32, seconds=0.3)
        before = _load.cpu(pid)
        rate = _load.drive(port, [request], connections=32, seconds=seconds)
        return (_load.cpu(pid) - before) / (rate * seconds) * 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    sent = request_of("chat")
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bench.yaml").write_text(SCENARIO)
        words = ["-m", "mockllm", "serve", folder, "--port", "0", "--quiet"]
        with _load.server([*words, "--no-ui"]) as bare, _load.server(words) as shown:
            request = sent, len(fetch(bare[0], sent))
            for _ in range(options.rounds):
                for name, server, count in (
                    ("--no-ui", bare, 0),
                    ("no page open", shown, 0),
                    ("one page open", shown, 1),
                    ("ten pages open", shown, 10),
                ):
                    figure = used(*server, request, count, options.seconds)
                    found.setdefault(name, []).append(figure)
    base = found["--no-ui"]
    for name, figures in found.items():
        ratios = [one / other for one, other in zip(figures, base, strict=True)]
        print(
            f"{name:15} {statistics.median(figures):6.1f} µs of CPU for each request, "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) of --no-ui"
        )


if __name__ == "__main__":
    main()
