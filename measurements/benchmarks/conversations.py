"""How many different conversations a second are recorded, beside aimock recording the same.

    python measurements/benchmarks/conversations.py [--seconds 20] [--connections 16]
        [--turns 1] [--events 20]

Clients, service and recorder share the machine, with all its cores. Each conversation has a first
message of its own; each answer is a stream. Counted is what the clients have read to its end, and
how long the recorder takes afterwards for what it has not written yet. With `--turns` conversations
go on. aimock is taken from `tests/upstreams/aimock`, if it is installed there.
`measurements/benchmarks/recording.py` prints the same figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import _load

PATH = "/v1/chat/completions"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
AIMOCK = _load.ROOT / "tests/upstreams/aimock/node_modules/.bin/llmock"


# The service


def event(choices: list[object], **fields: object) -> bytes:
    """A chunk of Chat Completions, as an SSE event in an HTTP chunk."""
    known = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    data = f"data: {json.dumps({**known, 'choices': choices, **fields})}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def delta(delta: dict[str, str], finish: str | None = None) -> bytes:
    return event([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])


def body(text: str, events: int) -> bytes:
    """An answer that quotes a text."""
    words = [*text.split(), *(f"word{number}" for number in range(events))][:events]
    parts = [delta({"role": "assistant", "content": ""})]
    parts += [delta({"content": f"{word} "}) for word in words]
    parts += [delta({}, "stop"), b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"]
    return b"".join(parts)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            request = json.loads(await reader.readexactly(size))
            text = request["messages"][-1]["content"]
            writer.write(HEAD + body(text, request["max_tokens"]))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


# The clients


@dataclass(slots=True)
class Load:
    """What clients send, and what they have counted."""

    port: int
    seconds: float
    turns: int
    events: int
    begun: int = 0
    done: int = 0


async def client(load: Load, until: float) -> None:
    """Conversations one after the other on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", load.port, limit=1 << 22)
    while time.perf_counter() < until:
        load.begun += 1
        messages: list[dict[str, str]] = []
        for turn in range(load.turns):
            text = f"Conversation {load.begun}, question {turn}: what comes next?"
            messages.append({"role": "user", "content": text})
            fields = {"model": "m", "stream": True, "max_tokens": load.events}
            request = json.dumps({**fields, "messages": messages}).encode()
            writer.write(_load.request_bytes(PATH, request))
            answer = await reader.readuntil(b"\r\n0\r\n\r\n")
            messages.append({"role": "assistant", "content": answered(answer)})
        load.done += 1
    writer.close()


def answered(answer: bytes) -> str:
    """The text of an answer."""
    head, _, chunks = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise SystemExit(f"not 200: {answer[:300]!r}")
    lines = [line[6:] for line in chunks.split(b"\n") if line.startswith(b'data: {"')]
    choices = [json.loads(line)["choices"] for line in lines]
    return "".join(choice[0]["delta"].get("content", "") for choice in choices if choice)


async def driven(load: Load, connections: int) -> float:
    """Conversations a second."""
    began = time.perf_counter()
    until = began + load.seconds
    await asyncio.gather(*(client(load, until) for _ in range(connections)))
    return load.done / (time.perf_counter() - began)


# The recorders


@contextmanager
def mockllm(service: int, folder: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """`mockllm record` in front of the service."""
    options = ["--quiet", "--port", "0", "-o", str(folder)]
    command = [sys.executable, "-m", "mockllm", "record", *options]
    with started([*command, "--upstream", f"http://127.0.0.1:{service}"]) as found:
        yield found


@contextmanager
def aimock(service: int, folder: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """aimock's recorder in front of the service."""
    (folder / "fixtures.json").write_text('{"fixtures": []}')
    upstream = f"http://127.0.0.1:{service}"
    options = ["--port", "0", "--fixtures", str(folder), "--record", "--provider-openai", upstream]
    with started([str(AIMOCK), *options]) as found:
        yield found


@contextmanager
def started(command: list[str]) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A server that prints its address; its port and its process."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=_load.ROOT
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            _, found, rest = line.decode().partition("http://127.0.0.1:")
            if found and b"istening" in line:
                yield int(re.split(r"\D", rest)[0]), process
                return
        raise SystemExit(f"{' '.join(command)} did not start")
    finally:
        process.kill()
        process.wait()


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """Waits for the end of a process; the time on cores that it and its own processes took."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def measure(seconds: float, connections: int, turns: int, events: int) -> None:
    """Records with each recorder, one after the other, and prints the figures."""
    recorders = {"mockllm": mockllm}
    if shutil.which("node") and AIMOCK.exists():
        recorders["aimock"] = aimock
    kind = f"{turns} turn{'s' * (turns > 1)} each, {events} events an answer"
    print(f"conversations, {kind}, {connections} connections, {seconds:g} s:", flush=True)
    with _load.server([__file__, "--serve"], pinned=False) as (service, _):
        for name, recorder in recorders.items():
            with tempfile.TemporaryDirectory() as folder, recorder(service, Path(folder)) as found:
                port, process = found
                load = Load(port, seconds, turns, events)
                rate = asyncio.run(driven(load, connections))
                began = time.perf_counter()
                process.send_signal(signal.SIGTERM)
                used = cpu_seconds(process)
                rest = time.perf_counter() - began
                written = len([*Path(folder).rglob("*.yaml"), *Path(folder).rglob("*.json")])
            whole = load.done / (load.done / rate + rest)
            print(
                f"  {name:8} {rate:6.1f} a second, {whole:6.1f} with the end of the recorder, "
                f"which takes {rest:.1f} s; {used / load.done * 1000:.1f} ms of CPU each; "
                f"{written:,} files for {load.done:,}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--events", type=int, default=20)
    parser.add_argument("--serve", action="store_true", help="be the service")
    given = parser.parse_args()
    if given.serve:
        asyncio.run(_load.serve(answer))
    else:
        measure(given.seconds, given.connections, given.turns, given.events)


if __name__ == "__main__":
    main()
