"""How much later an answer ends because it is recorded.

    python measurements/benchmarks/endings.py [--rounds 3] [--megabytes 100]

A client asks a service through `mockllm record` and through a bare aiohttp proxy, in turn. The time
from the last data of an answer to its end is measured, and the whole time of streams beside a long
one. `measurements/benchmarks/recording.py` prints the same figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import _load
from aiohttp import ClientSession, web

PATH = "/v1/chat/completions"
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: close\r\n\r\n"
)
EVENTS = 5_000
MANY_EVENTS = 10_000
OTHERS = 5
WORD = "and then it went on "


# The service


def event(text: str) -> bytes:
    """A chunk of Chat Completions, as an SSE event."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    fields = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps({**fields, 'choices': [choice]})}\n\n".encode()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One answer: `events` of them, `size` characters each, `pause` seconds between two."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    request = json.loads(await reader.readexactly(length))
    writer.write(HEAD)
    for number in range(request["events"]):
        text = f"{number} {WORD}"
        if request["size"]:
            text = (text * (request["size"] // len(text) + 1))[: request["size"]]
        data = event(text)
        writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await writer.drain()
        await asyncio.sleep(request["pause"])
    data = b"data: [DONE]\n\n"
    writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data))
    await writer.drain()
    writer.close()


async def forward(service: int) -> None:
    """A proxy of aiohttp that records nothing."""

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        url = f"http://127.0.0.1:{service}{request.path}"
        async with session.post(url, data=body, auto_decompress=False) as answer:
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            response.enable_chunked_encoding()
            await response.prepare(request)
            async for data, _ in answer.content.iter_chunks():
                await response.write(data)
            await response.write_eof()
            return response

    async with ClientSession() as session:
        app = web.Application()
        app.router.add_post(PATH, handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(f"listening on 127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()


# The client


@dataclass(frozen=True, slots=True)
class Ending:
    """An answer: its whole time, and the time from its last data to its end, in milliseconds."""

    whole: float
    end: float


async def ask(port: int, text: str, events: int, *, size: int = 0, pause: float = 0.0) -> Ending:
    messages = [{"role": "user", "content": text}]
    fields = {"model": "m", "stream": True, "messages": messages}
    request = json.dumps({**fields, "events": events, "size": size, "pause": pause}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    began = time.perf_counter()
    writer.write(_load.request_bytes(PATH, request))
    await reader.readuntil(b"\r\n\r\n")
    last = began
    tail = b""
    while not tail.endswith(b"0\r\n\r\n"):
        data = await reader.read(1 << 20)
        if not data:
            raise SystemExit(f"the answer to {text!r} broke off")
        if data != b"0\r\n\r\n":
            last = time.perf_counter()
        tail = (tail + data)[-5:]
    ended = time.perf_counter()
    writer.close()
    return Ending((ended - began) * 1000, (ended - last) * 1000)


async def long_one(port: int, name: str) -> float:
    return (await ask(port, f"long {name}", EVENTS)).end


async def beside(port: int, name: str) -> float:
    """The median of the whole times of short streams that run while a long one ends."""
    long = asyncio.create_task(ask(port, f"very long {name}", MANY_EVENTS))
    times: list[float] = []
    number = 0
    while not long.done() or number == 0:
        group = [ask(port, f"beside {name} {number} {one}", 20) for one in range(OTHERS)]
        times += [ending.whole for ending in await asyncio.gather(*group)]
        number += 1
    group = [ask(port, f"after {name} {one}", 20) for one in range(OTHERS)]
    times += [ending.whole for ending in await asyncio.gather(*group)]
    await long
    return statistics.median(times)


async def after(port: int, name: str) -> float:
    """The median of the whole times of short streams that begin when a long one ends."""
    await ask(port, f"very long too {name}", MANY_EVENTS)
    group = [ask(port, f"after that {name} {one}", 20) for one in range(OTHERS)]
    return statistics.median(ending.whole for ending in await asyncio.gather(*group))


def endings(ports: dict[str, int], rounds: int, megabytes: int) -> None:
    """Prints the figures of each way to the service, and the difference to the bare proxy."""
    events = max(1, megabytes * 1_000_000 // 100_000)

    async def large(port: int, name: str) -> float:
        return (await ask(port, f"large {name}", events, size=100_000)).end

    async def large_whole(port: int, name: str) -> float:
        return (await ask(port, f"whole {name}", events, size=100_000)).whole

    measures: dict[str, tuple[Callable, int]] = {
        f"end of an answer of {EVENTS:,} events": (long_one, rounds),
        f"five streams beside one of {MANY_EVENTS:,} events": (beside, rounds),
        f"five streams after one of {MANY_EVENTS:,} events": (after, rounds),
        f"end of an answer of {megabytes} MB": (large, 1),
        f"an answer of {megabytes} MB as a whole": (large_whole, 1),
    }
    for title, (measure, times) in measures.items():
        found: dict[str, list[float]] = {name: [] for name in ports}
        for number in range(times):
            for name, port in ports.items():
                found[name].append(asyncio.run(measure(port, f"{title} {number}")))
        print(f"{title}:", flush=True)
        middle = {name: statistics.median(values) for name, values in found.items()}
        for name, value in middle.items():
            print(f"  {name:12} {value:10.1f} ms", flush=True)
        difference = middle["recorded"] - middle["bare proxy"]
        ratio = middle["recorded"] / max(0.001, middle["bare proxy"])
        print(f"  difference   {difference:10.1f} ms   ratio {ratio:.2f}", flush=True)


def measure(rounds: int, megabytes: int) -> None:
    """Starts a service, a bare proxy and a recorder, and prints the figures."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _load.server([__file__, "--serve"], pinned=False) as (service, _),
        _load.server([__file__, "--forward", str(service)], pinned=False) as (bare, _),
        recorder(service, Path(folder)) as (recorded, _),
    ):
        endings({"bare proxy": bare, "recorded": recorded}, rounds, megabytes)


def recorder(service: int, folder: Path):
    """`mockllm record` in front of the service."""
    options = ["record", "--quiet", "--port", "0", "-o", str(folder)]
    service_url = f"http://127.0.0.1:{service}"
    return _load.server(["-m", "mockllm", *options, "--upstream", service_url], pinned=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--serve", action="store_true", help="be the service")
    parser.add_argument("--forward", type=int, default=0, help="be a bare proxy for this port")
    given = parser.parse_args()
    if given.serve:
        asyncio.run(_load.serve(answer))
    elif given.forward:
        asyncio.run(forward(given.forward))
    else:
        measure(given.rounds, given.megabytes)


if __name__ == "__main__":
    sys.exit(main())
