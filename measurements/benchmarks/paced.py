"""Timed streams: how late events arrive, beside a bare program that writes the same bytes.

    python measurements/benchmarks/paced.py [--streams 500 1000 2000 4000]
        [--rounds 3] [--events 200]
                               [--interval 20] [--api chat bedrock] [--workers 2] [--aimock]

The bare program is one asyncio loop with one scheduler, no parsing and no state: what Python can do
at most. It sends the frames that mockllm sends. Each server has the first core, the client another;
servers run in turn, and the ratio of a round counts. The client is `paced_client.c`, compiled with
`cc`; where there is no compiler, one in Python does the same for fewer streams.

With `--workers`, mockllm in so many processes has all cores, and the client is niced beside it.
aimock sends chunks of its own after a fixed latency each; it is measured if it is installed in
`tests/upstreams/aimock`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import _load

from mockllm.play.replay.client_requests import first_body
from mockllm.wire.protocols import PROTOCOLS

CLIENT = Path(__file__).with_name("paced_client.c")
AIMOCK = _load.ROOT / "tests/upstreams/aimock/node_modules/.bin/llmock"
MARKS = {"chat": "data: ", "bedrock": ":event-type"}
"""What stands once in each event of an API: SSE, and frames of an AWS event stream."""
PROMPT = "paced streams"
TICKS = 1000  # a second

Figures = dict[str, float]


def scenario(events: int, interval: float) -> str:
    """A scenario whose stream has about so many events, nearly all alone in their interval."""
    words = " ".join(f"{n:04}{'x' * 260}" for n in range(events - 4))
    return (
        f"scenario: paced\nmatch: {{user: {PROMPT}}}\nturns:\n"
        f'  - reply: {{text: "{words}", split: words, every: {interval}ms}}\n'
    )


def times_of(served: Path, api: str) -> list[int]:
    """When each event of the scenario is due, in microseconds."""
    command = [sys.executable, "-m", "mockllm", "show", "paced", "--scenarios", str(served)]
    done = subprocess.run(
        [*command, "--api", api, "--timing"], capture_output=True, text=True, check=True
    )
    found = re.findall(r"^\+([0-9.]+)s", done.stdout, re.MULTILINE)
    return [round(float(at) * 1_000_000) for at in found]


# The bare program


def bare(path: str) -> None:
    """Answers each request with the HTTP chunks of a file, each at its time."""
    times, encoded = json.loads(Path(path).read_text())
    head, *pieces = (piece.encode("latin-1") for piece in encoded)
    loop = asyncio.new_event_loop()
    due: defaultdict[int, list[_BareStream]] = defaultdict(list)

    def run(tick: int) -> None:
        for stream in due.pop(tick, ()):
            stream.sent += 1
            if not stream.transport.is_closing():
                stream.transport.write(pieces[stream.sent])
                plan(stream)

    def plan(stream: _BareStream) -> None:
        if stream.sent + 1 < len(pieces):
            tick = int((stream.start + times[stream.sent + 1] / 1_000_000) * TICKS) + 1
            if tick not in due:
                loop.call_at(tick / TICKS, run, tick)
            due[tick].append(stream)

    class _BareStream(asyncio.Protocol):
        transport: asyncio.Transport
        start = 0.0
        sent = 0
        received = b""

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            self.received += data
            if self.received.endswith(b"}"):
                self.received, self.start, self.sent = b"", loop.time(), 0
                self.transport.write(head + pieces[0])
                plan(self)

    server = loop.run_until_complete(loop.create_server(_BareStream, "127.0.0.1", 0, backlog=4096))
    print(f"bare http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    loop.run_forever()


def answer_of(port: int, request: bytes) -> bytes:
    """A whole answer with its HTTP head."""
    data = b""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(request)
        while not data.endswith(b"\r\n0\r\n\r\n"):
            data += sock.recv(1 << 20)
    return data


def pieces_of(answer: bytes, mark: str, times: list[int]) -> tuple[list[int], list[str]]:
    """What the bare program sends: when each HTTP chunk is due, and the head and the chunks (the
    last one with the end of the body), as Latin-1."""
    head, _, body = answer.decode("latin-1").partition("\r\n\r\n")
    chunks, due, seen = [], [], 0
    while body:
        size = int(body[: body.index("\r\n")], 16)
        end = body.index("\r\n") + 2 + size + 2
        if count := body[:end].count(mark):
            chunks.append(body[:end])
            due.append(times[seen])
            seen += count
        else:
            chunks[-1] += body[:end]
        body = body[end:]
    if seen != len(times):
        raise SystemExit(f"the answer has {seen} events in place of {len(times)}")
    return due, [head + "\r\n\r\n", *chunks]


# The client


def compiled(folder: Path) -> list[str]:
    """The command of the client."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        print("no C compiler: the client is in Python, good for some 500 streams", flush=True)
        return [sys.executable, __file__, "--client"]
    program = folder / "paced_client"
    subprocess.run([compiler, "-O2", "-o", str(program), str(CLIENT)], check=True)
    return [str(program)]


async def client(port: int, streams: int, file: str, due: str, mark: bytes) -> Figures:
    """What `paced_client.c` does, in Python."""
    request, late = Path(file).read_bytes(), []
    times = [float(at) / 1_000_000 for at in Path(due).read_text().split()]

    async def one() -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        began, seen, tail = time.monotonic(), 0, b""
        while data := await reader.read(1 << 16):
            count = (tail + data).count(mark)
            passed = time.monotonic() - began
            late.extend(passed - at for at in times[seen : seen + count])
            seen, tail = seen + count, (tail + data)[1 - len(mark) :]
            if tail.endswith(b"0\r\n\r\n"):
                break
        writer.close()
        return seen == len(times)

    began = time.monotonic()
    found = await asyncio.gather(*(one() for _ in range(streams)), return_exceptions=True)
    whole = sum(one is True for one in found)
    figures = {"whole": whole, "errors": streams - whole, "wall": time.monotonic() - began}
    late.sort()
    for name, share in (("p50", 0.5), ("p99", 0.99), ("most", 1.0)):
        figures[name] = late[int((len(late) - 1) * share)] * 1000 if late else 0.0
    return figures


def measure(
    command: list[str], port: int, streams: int, files: tuple[Path | str, ...], beside: bool
) -> Figures:
    """One run of the client: on its core, or niced beside a server that has all cores.

    Args:
        files: with the request and the times, and the mark of an event; and options.
    """

    def place() -> None:
        os.sched_setaffinity(0, set(_load.CORES) if beside else {_load.CLIENT_CORE})
        if beside:
            os.nice(5)

    words = [port, streams, *files]
    done = subprocess.run(
        [*command, *map(str, words)], stdout=subprocess.PIPE, check=True, preexec_fn=place
    )
    figures: Figures = json.loads(done.stdout)
    return figures


# The servers


@contextmanager
def aimock(folder: Path, events: int, interval: float) -> Iterator[int]:
    """aimock with a text of about as many chunks of 20 characters; its port."""
    text = "x" * 20 * (events - 3)
    match = {"match": {"userMessage": PROMPT}, "response": {"content": text}}
    (folder / "fixtures.json").write_text(json.dumps({"fixtures": [match]}))
    words = [str(AIMOCK), "--port", "0", "--fixtures", str(folder / "fixtures.json")]
    process = subprocess.Popen(
        [*words, "--latency", f"{interval:g}", "--chunk-size", "20"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: os.sched_setaffinity(0, {_load.SERVER_CORE}),
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            found = re.search(rb"http://127\.0\.0\.1:(\d+)", line)
            if found:
                yield int(found[1])
                return
        raise SystemExit("aimock did not start")
    finally:
        process.kill()
        process.wait()


def row(streams: int, name: str, found: list[Figures], against: list[Figures]) -> str:
    """A line of the table."""
    ratios = [a["p99"] / max(b["p99"], 1) for a, b in zip(found, against, strict=True)]
    return (
        f"{streams:7,} {name:8} p50 {_load.spread([one['p50'] for one in found], 1):>26} ms  "
        f"p99 {_load.spread([one['p99'] for one in found], 1):>28} ms  "
        f"ratio {_load.spread(ratios, 2)}  wall {statistics.median(o['wall'] for o in found):.2f} "
        f"s  errors {sum(int(one['errors']) for one in found)}"
    )


def compare(folder: Path, api: str, options: argparse.Namespace) -> None:
    """Runs all servers over one API, and prints the table."""
    served, request, due = folder / "served", folder / "request", folder / "times"
    served.mkdir()
    (served / "paced.yaml").write_text(scenario(options.events, options.interval))
    protocol, mark = PROTOCOLS[api], MARKS[api]
    body = first_body(protocol, "m", PROMPT)
    request.write_bytes(
        _load.request_bytes(protocol.client.path_of("m"), json.dumps(body).encode())
    )
    times = times_of(served, api)
    due.write_text("\n".join(map(str, times)))
    command = compiled(folder)
    ours = ["-m", "mockllm", "serve", str(served), "--port", "0", "--quiet"]
    files = request, due, mark
    with ExitStack() as running:
        port, _ = running.enter_context(_load.server(ours))
        bare_answer = folder / "answer.json"
        answer = answer_of(port, request.read_bytes())
        bare_answer.write_text(json.dumps(pieces_of(answer, mark, times)))
        bare_port, _ = running.enter_context(_load.server([__file__, "--bare", str(bare_answer)]))
        servers = {"bare": (bare_port, files, False), "mockllm": (port, files, False)}
        if options.workers:
            words = [*ours, "--workers", str(options.workers)]
            several, _ = running.enter_context(_load.server(words, pinned=False))
            servers[f"{options.workers} workers"] = several, files, True
        if options.aimock and api == "chat" and AIMOCK.exists() and shutil.which("node"):
            other = running.enter_context(aimock(folder, options.events, options.interval))
            own = folder / "times of aimock"
            count = answer_of(other, request.read_bytes()).count(mark.encode())
            own.write_text("\n".join(str(n * options.interval * 1000) for n in range(count)))
            servers["aimock"] = other, (request, own, mark), False
        for streams in options.streams:
            found: dict[str, list[Figures]] = {name: [] for name in servers}
            for _ in range(options.rounds):
                for name, (at, at_files, beside) in servers.items():
                    found[name].append(measure(command, at, streams, at_files, beside))
            for name, figures in found.items():
                print(f"{api:8}{row(streams, name, figures, found['bare'])}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[500, 1000, 2000, 4000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--interval", type=float, default=20, help="in milliseconds")
    parser.add_argument("--api", nargs="+", choices=MARKS, default=list(MARKS))
    parser.add_argument("--workers", type=int, default=0, help="measure so many processes, too")
    parser.add_argument("--aimock", action="store_true", help="measure aimock, too")
    parser.add_argument("--bare", metavar="FILE", help="be the bare server")
    parser.add_argument("--client", nargs=5, help="be the client")
    options = parser.parse_args()
    if options.bare:
        bare(options.bare)
    elif options.client:
        port, streams, file, due, mark = options.client
        running = client(int(port), int(streams), file, due, mark.encode())
        print(json.dumps(asyncio.run(running)))
    else:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        for api in options.api:
            with tempfile.TemporaryDirectory() as name:
                compare(Path(name), api, options)


if __name__ == "__main__":
    main()
