"""Instant replay against bare aiohttp: the same bytes, in the same run.

    python measurements/benchmarks/instant.py [--api chat bedrock] [--rounds 5] [--seconds 2]
                                 [--requests 100000]

The bare server is an `aiohttp.web.Application` with one handler that reads the request and
writes the whole answer, already framed in HTTP chunks, in one write. The figures that count
are the ratios; the machine's speed drifts, so both servers run in turn, round by round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import _load

from mockllm.play.replay.client_requests import first_body
from mockllm.wire.protocols import PROTOCOLS

WORDS = " ".join(f"word{n}" for n in range(200))
SCENARIO = f"""\
scenario: bench
match: {{user: benchmark}}
turns:
  - reply: {{text: "{WORDS}", split: words}}
"""
QUESTION = "This is a benchmark, please answer at length."


def request_of(api: str) -> bytes:
    """A request for the scenario, as a client of the API sends it."""
    body = first_body(PROTOCOLS[api], "m", QUESTION)
    return _load.request_bytes(PROTOCOLS[api].client.path_of("m"), json.dumps(body).encode())


def bare(path: str) -> None:
    """The bare server: answers every POST with the bytes in a file."""
    import asyncio

    from aiohttp import web

    head, framed = Path(path).read_bytes().split(b"\r\n\r\n", 1)
    headers = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n")[1:])

    async def handle(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        assert request.transport is not None
        request.transport.write(framed)
        response._eof_sent = True  # noqa: SLF001 - the framed bytes hold the end already
        return response

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(f"bare http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())


def fetch(port: int, request: bytes) -> bytes:
    """The whole answer to one request, headers and framing included."""
    import socket

    data = b""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(request)
        while not data.endswith(b"0\r\n\r\n"):
            data += sock.recv(1 << 20)
    return data


def compare(
    folder: Path, api: str, connections: int, rounds: int, seconds: float
) -> tuple[list[float], list[float]]:
    """Requests a second of ours and of the bare server, round by round."""
    request = request_of(api)
    ours = [*_load.ASYNCIO, "serve", str(folder), "--port", "0", "--quiet"]
    mine: list[float] = []
    theirs: list[float] = []
    with _load.server(ours) as (port, _):
        data = fetch(port, request)
        file = folder / f"{api}.http"
        file.write_bytes(data)
        with _load.server([__file__, "--bare", str(file)]) as (bare_port, _):
            bare_size = len(fetch(bare_port, request))
            for target, size in ((port, len(data)), (bare_port, bare_size)):
                _load.drive(target, [(request, size)], connections=connections, seconds=0.5)
            for _ in range(rounds):
                mine.append(
                    _load.drive(
                        port, [(request, len(data))], connections=connections, seconds=seconds
                    )
                )
                theirs.append(
                    _load.drive(
                        bare_port, [(request, bare_size)], connections=connections, seconds=seconds
                    )
                )
        file.unlink()
    return mine, theirs


def flat(folder: Path, count: int) -> None:
    """Memory before and after many requests."""
    request = request_of("chat")
    ours = [*_load.ASYNCIO, "serve", str(folder), "--port", "0", "--quiet"]
    with _load.server(ours) as (port, pid):
        size = len(fetch(port, request))
        _load.drive(port, [(request, size)], connections=32, count=5_000)
        before = _load.memory(pid)
        _load.drive(port, [(request, size)], connections=32, count=count)
        print(f"memory: {before:.1f} MiB before, {_load.memory(pid):.1f} MiB after {count:,}")


def start_up(folder: Path, rounds: int) -> None:
    """From the start of the process to the first line, against importing aiohttp.web."""
    ours: list[float] = []
    imports: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        with _load.server(["-m", "mockllm", "serve", str(folder), "--port", "0"]):
            ours.append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import aiohttp.web"], check=True)
        imports.append((time.perf_counter() - began) * 1000)
    goal = 1.3 * statistics.median(imports) + 50
    print(
        f"start to listening: {_load.spread(ours)} ms; import aiohttp.web: "
        f"{_load.spread(imports)} ms; goal at most {goal:,.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--api", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--bare", metavar="FILE", help="be the bare server")
    options = parser.parse_args()
    if options.bare:
        bare(options.bare)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bench.yaml").write_text(SCENARIO)
        rates: dict[str, float] = {}
        for api in options.api:
            for connections in (32, 1) if api in ("chat", "responses") else (32,):
                mine, theirs = compare(folder, api, connections, options.rounds, options.seconds)
                ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
                print(
                    f"{api}, {connections} connection(s): {_load.spread(mine)} requests/s; bare "
                    f"aiohttp {_load.spread(theirs)}; ratio {_load.spread(ratios, 2)}",
                    flush=True,
                )
                if connections == 32:
                    rates[api] = statistics.median(mine)
        against = ", ".join(
            f"{api} {rate / rates[options.api[0]]:.2f}" for api, rate in rates.items()
        )
        print(f"rate of each protocol against the first one's: {against}")
        flat(folder, options.requests)
        start_up(folder, options.rounds)


if __name__ == "__main__":
    main()
