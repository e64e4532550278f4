"""What the recording proxy adds to each chunk, and how well a recorded rhythm is replayed.

    python measurements/benchmarks/recording.py [--rounds 5] [--chunks 200] [--streams 16]

A service writes the time into each chunk that it sends; the client looks at the clock when the
chunk is there. The same client asks the service directly and through `mockllm record`, in turn,
round by round; the figure that counts is the difference. Clocks are those of one machine.

For the rhythm a stream of a chunk each 20 ms is recorded, and replayed by `mockllm serve`; told
is how far each chunk is from where the tape has it, counted from the first chunk.

How much later answers end because they are recorded is measured beside a bare aiohttp proxy
(`measurements/benchmarks/endings.py`), and how many conversations a second are recorded beside
aimock (`measurements/benchmarks/conversations.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import _load
import conversations
import endings

PATH = "/v1/chat/completions"
PAUSES = {"every 20 ms": 0.02, "every 2 ms": 0.002, "at once": 0.0}


def event(number: int) -> bytes:
    """A chunk of Chat Completions with the time in it, as an SSE event."""
    choice = {"index": 0, "delta": {"content": f"word{number} "}, "finish_reason": None}
    told = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    text = json.dumps({"sent": time.monotonic_ns(), **told, "choices": [choice]})
    return f"data: {text}\n\n".encode()


# The service


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            asked = json.loads(await reader.readexactly(size))
            await stream(writer, asked["chunks"], asked["pause"])
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def stream(writer: asyncio.StreamWriter, chunks: int, pause: float) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    writer.write(head + b"\r\n")
    loop = asyncio.get_running_loop()
    due = loop.time()
    for number in range(chunks):
        due += pause
        await asyncio.sleep(max(0.0, due - loop.time()))
        data = event(number)
        writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await writer.drain()
    data = b"data: [DONE]\n\n"
    writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data))
    await writer.drain()


# The client


@dataclass(frozen=True, slots=True)
class Seen:
    """A chunk: when it was sent, and when it was there, in nanoseconds."""

    sent: int
    arrived: int


async def ask(port: int, text: str, chunks: int, pause: float) -> list[Seen]:
    """One stream, chunk by chunk."""
    messages = [{"role": "user", "content": text}]
    asked = {"model": "m", "stream": True, "messages": messages, "chunks": chunks, "pause": pause}
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_load.request_bytes(PATH, json.dumps(asked).encode()))
    await reader.readuntil(b"\r\n\r\n")
    seen = []
    while size := int(await reader.readline(), 16):
        data = await reader.readexactly(size + 2)
        now = time.monotonic_ns()
        if b'"sent":' in data:
            seen.append(Seen(json.loads(data[6:])["sent"], now))
    await reader.readline()
    writer.close()
    return seen


def delays(seen: list[Seen]) -> list[float]:
    """How long each chunk was on its way, in milliseconds."""
    return [(one.arrived - one.sent) / 1e6 for one in seen]


async def many(port: int, streams: int, chunks: int, pause: float, name: str) -> list[float]:
    asked = [ask(port, f"{name} {number}", chunks, pause) for number in range(streams)]
    return [delay for seen in await asyncio.gather(*asked) for delay in delays(seen)]


def row(values: list[float]) -> str:
    ordered = sorted(values)
    p99 = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return f"median {statistics.median(ordered):7.3f} ms   99 % {p99:7.3f} ms"


def added(direct: int, through: int, given: argparse.Namespace) -> None:
    """What the way through the recorder takes longer than the direct one."""
    print(f"a chunk on its way, {given.rounds} rounds of {given.chunks} chunks:")
    for name, pause in PAUSES.items():
        for streams in (1, given.streams):
            found: dict[int, list[float]] = {direct: [], through: []}
            for number in range(given.rounds):
                for port in (direct, through):
                    told = f"{name} {streams} {number}"
                    found[port] += asyncio.run(many(port, streams, given.chunks, pause, told))
            medians = [statistics.median(found[port]) for port in (direct, through)]
            print(f"  {name}, {streams} at once: adds {medians[1] - medians[0]:.3f} ms (median)")
            print(f"    directly  {row(found[direct])}")
            print(f"    recorded  {row(found[through])}")


# The rhythm


def taped(folder: Path) -> list[float]:
    """When the chunks of the only recording came, in milliseconds after the first."""
    (file,) = folder.glob("*.1.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()[1:]]
    times = [at / 1000 for at, data in lines if '"sent":' in data]
    return [at - times[0] for at in times]


def deviations(folder: Path, rounds: int) -> Iterator[float]:
    """How far each replayed chunk is from where the tape has it, in milliseconds."""
    expected = taped(folder)
    with _load.server(["-m", "mockllm", "serve", str(folder), "--port", "0", "--quiet"]) as (
        port,
        _,
    ):
        for _ in range(rounds):
            seen = asyncio.run(ask(port, "rhythm", 0, 0))
            first = seen[0].arrived
            for one, due in zip(seen, expected, strict=True):
                yield abs((one.arrived - first) / 1e6 - due)


def rhythm(service: int, rounds: int, chunks: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with recorder(service, Path(folder)) as (port, _):
            asyncio.run(ask(port, "rhythm", chunks, 0.02))
        found = sorted(deviations(Path(folder), rounds))
    print(f"a recorded rhythm of 20 ms, replayed {rounds} times, {chunks} chunks each:")
    print(f"  off by {row(found)}   most {found[-1]:.3f} ms")
    print("  (goal: 2 ms at the median, 5 ms at 99 %)")


def recorder(service: int, folder: Path):
    """`mockllm record` in front of the service."""
    told = ["record", "--quiet", "--port", "0", "-o", str(folder)]
    return _load.server(["-m", "mockllm", *told, "--upstream", f"http://127.0.0.1:{service}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--megabytes", type=int, default=100, help="of the largest answer")
    parser.add_argument("--seconds", type=float, default=20.0, help="for the conversations")
    parser.add_argument("--serve", action="store_true", help="be the service")
    given = parser.parse_args()
    if given.serve:
        asyncio.run(_load.serve(answer))
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        _load.server([__file__, "--serve"]) as (direct, _),
        recorder(direct, Path(folder)) as (through, _),
    ):
        added(direct, through, given)
        rhythm(direct, given.rounds, given.chunks)
    endings.measure(given.rounds, given.megabytes)
    for turns in (1, 3):
        conversations.measure(given.seconds, given.streams, turns, events=20)


if __name__ == "__main__":
    sys.exit(main())
