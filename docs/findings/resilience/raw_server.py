"""A server of a few lines that breaks in one way, to verify findings without mockllm.

python raw_server.py API FAULT -- CLIENT...

API is chat, responses, anthropic or gemini. It starts CLIENT with the variable BASE_URL, and prints
each connection, each request and each end with its time. FAULT is one of:

  orderly      the stream ends in order after some words, without its last events
  orderly-call the same inside the arguments of a tool call; of gemini after the whole call
  whole-call   the same after the whole arguments, before the finish
  call         the whole answer with a tool call, to compare
  close        the connection is closed after some words
  reset        the same with a reset
  error        an event with the service's error, overloaded, follows some words
  stall        nothing comes after some words; the connection stays open
  silent       nothing comes after the request, not even a header
  slow         a word each 0.25 s, without an end
  refuse       the connection is closed without an answer
  empty        status 200 and an empty body
  html         status 200 and a page of HTML
  json         status 200 and the JSON of an error
  wait         status 429 with `retry-after: 3600`
  second       status 429 with `retry-after: 1`, for each request
  date         status 429 with the date of the next second but one
  limit        status 429 for each request
  bad          status 400 for each request
  unprocessed  status 422 for each request
  busy         status 503 for each request
  idle         the first answer is whole; its connection is closed as the next request comes
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import sys
import time
from email.utils import formatdate

_BEGIN = time.monotonic()
PATIENCE = int(os.environ.get("PATIENCE", "20"))
_USAGE = {"input_tokens": 5, "output_tokens": 1}


def say(text: str) -> None:
    print(f"{time.monotonic() - _BEGIN:7.3f} s  {text}", flush=True)


def event(value: dict, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value)}\n\n".encode()


def chat(delta: dict, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return event({**head, "choices": [choice]})


def named(type: str, **more: object) -> bytes:
    return event({"type": type, **more}, type)


def gemini(part: dict, **more: object) -> bytes:
    content = {"role": "model", "parts": [part]}
    return event({"candidates": [{"index": 0, "content": content, **more}]})


_FUNCTION = {"name": "get_weather", "arguments": '{"ci'}
_REST = 'ty":"Paris"}'
_RESPONSE = {
    "id": "r1", "object": "response", "created_at": 1, "model": "m", "status": "in_progress",
    "output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
}  # fmt: skip
_MESSAGE = {
    "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [],
    "stop_reason": None, "stop_sequence": None, "usage": _USAGE,
}  # fmt: skip
_ITEM = {"id": "i1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
_PART = {"type": "output_text", "text": "", "annotations": []}
_AT = {"item_id": "i1", "output_index": 0, "content_index": 0}
_TOOL = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {}}
_FRAGMENT = {"type": "input_json_delta", "partial_json": '{"ci'}

WORDS = {
    "chat": [chat({"role": "assistant", "content": "Half "}), chat({"content": "an "})],
    "anthropic": [
        named("message_start", message=_MESSAGE),
        named("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        named("content_block_delta", index=0, delta={"type": "text_delta", "text": "Half "}),
        named("content_block_delta", index=0, delta={"type": "text_delta", "text": "an "}),
    ],
    "gemini": [gemini({"text": "Half "}), gemini({"text": "an "})],
    "responses": [
        named("response.created", response=_RESPONSE, sequence_number=0),
        named("response.output_item.added", item=_ITEM, output_index=0, sequence_number=1),
        named("response.content_part.added", part=_PART, **_AT, sequence_number=2),
        named("response.output_text.delta", delta="Half an ", logprobs=[], **_AT,
              sequence_number=3),
    ],
}  # fmt: skip
CALL = {
    "chat": [
        chat({"role": "assistant", "tool_calls": [
            {"index": 0, "id": "t1", "type": "function", "function": _FUNCTION}]}),
    ],
    "anthropic": [
        named("message_start", message=_MESSAGE),
        named("content_block_start", index=0, content_block=_TOOL),
        named("content_block_delta", index=0, delta=_FRAGMENT),
    ],
    "gemini": [gemini({"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}})],
    "responses": [
        named("response.created", response=_RESPONSE, sequence_number=0),
        named("response.output_item.added", output_index=0, sequence_number=1, item={
            "id": "f1", "type": "function_call", "status": "in_progress", "call_id": "t1",
            "name": "get_weather", "arguments": ""}),
        named("response.function_call_arguments.delta", item_id="f1", output_index=0,
              delta='{"ci', sequence_number=2),
    ],
}  # fmt: skip
REST = {
    "chat": [chat({"tool_calls": [{"index": 0, "function": {"arguments": _REST}}]})],
    "anthropic": [
        named("content_block_delta", index=0,
              delta={"type": "input_json_delta", "partial_json": _REST}),
        named("content_block_stop", index=0),
    ],
    "gemini": [],
    "responses": [
        named("response.function_call_arguments.delta", item_id="f1", output_index=0,
              delta=_REST, sequence_number=3),
        named("response.function_call_arguments.done", item_id="f1", output_index=0,
              name="get_weather", arguments='{"ci' + _REST, sequence_number=4),
        named("response.output_item.done", output_index=0, sequence_number=5, item={
            "id": "f1", "type": "function_call", "status": "completed", "call_id": "t1",
            "name": "get_weather", "arguments": '{"ci' + _REST}),
    ],
}  # fmt: skip
_OVERLOADED = {"type": "overloaded_error", "message": "Overloaded", "code": "overloaded"}
ERROR = {
    "chat": [event({"error": _OVERLOADED})],
    "anthropic": [named("error", error=_OVERLOADED)],
    "gemini": [event({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}})],
    "responses": [named("error", code="server_is_overloaded", message="Overloaded", param=None,
                        sequence_number=4)],
}  # fmt: skip
END = {
    "chat": [chat({"content": "answer"}, "stop"), b"data: [DONE]\n\n"],
    "anthropic": [
        named("content_block_stop", index=0),
        named("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None},
              usage=_USAGE),
        named("message_stop"),
    ],
    "gemini": [gemini({"text": "answer"}, finishReason="STOP")],
}  # fmt: skip


_LIMIT = "429 Too Many Requests"
CALLED = {
    "chat": [chat({}, "tool_calls"), b"data: [DONE]\n\n"],
    "anthropic": [
        named("message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None},
              usage=_USAGE),
        named("message_stop"),
    ],
}  # fmt: skip


_STATUSES = {
    "wait": _LIMIT, "second": _LIMIT, "date": _LIMIT, "limit": _LIMIT,
    "bad": "400 Bad Request", "unprocessed": "422 Unprocessable Content", "busy": "503 Unavailable",
}  # fmt: skip
_BODIES = {
    "empty": b"",
    "html": b"<html><body>Log in</body></html>",
    "json": b'{"error": {"type": "server_error", "message": "no"}}',
}


def retry_after(fault: str) -> str:
    """The header of an answer that says when to come again."""
    waits = {
        "wait": "3600",
        "second": "1",
        "date": formatdate(time.time() + 2, usegmt=True),
    }
    return f"retry-after: {waits[fault]}\r\n" if fault in waits else ""


def error_body(status: int) -> bytes:
    kinds = {429: "rate_limit_error", 503: "overloaded_error"}
    kind = kinds.get(status, "invalid_request_error")
    return json.dumps({"error": {"type": kind, "message": "no", "code": status}}).encode()


class Server:
    def __init__(self, api: str, fault: str) -> None:
        self.api, self.fault, self.connections, self.requests = api, fault, 0, 0
        self.connected_once = asyncio.Event()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.connected_once.set()
        number = self.connections
        say(f"connection {number} opens")
        try:
            while await self.request(number, reader, writer):
                pass
        except ConnectionError as error:
            say(f"connection {number}: {type(error).__name__}")
        writer.close()

    async def request(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answers a request; false if no further one can come on the connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:
            say(f"connection {number}: the client closed it")
            return False
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:-2])
        await reader.readexactly(int(fields.get("content-length", "0")))
        self.requests += 1
        say(f"connection {number}: request {self.requests}: {head.split(chr(13))[0]}")
        if self.fault in _STATUSES:
            status = _STATUSES[self.fault]
            wait = retry_after(self.fault)
            body = error_body(int(status[:3]))
            writer.write(
                f"HTTP/1.1 {status}\r\n{wait}content-type: application/json\r\n"
                f"content-length: {len(body)}\r\n\r\n".encode()
                + body
            )
            say(f"connection {number}: status {status[:3]}")
            return True
        return await self.stream(number, reader, writer)

    async def stream(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if self.fault == "idle" and self.requests == 2:
            say(f"connection {number}: closed without an answer, as if it had been idle")
            return False
        if self.fault == "refuse":
            say(f"connection {number}: closed without an answer")
            return False
        if self.fault == "silent":
            await reader.read(1)
            say(f"connection {number}: the client closed it")
            return False
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        if self.fault in _BODIES:
            body = _BODIES[self.fault]
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            return True
        writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        first = self.requests == 1 or "call" not in self.fault
        source = CALL if first and "call" in self.fault else WORDS
        more = {
            "idle": [END], "call": [REST, CALLED], "whole-call": [REST], "error": [ERROR],
        }.get(self.fault, [])  # fmt: skip
        rest = [one for events in more if first for one in events.get(self.api, [])]
        if not first:  # of an agent whose tool was executed
            rest = END.get(self.api, [])
        for one in [*source[self.api], *rest]:
            writer.write(f"{len(one):x}\r\n".encode() + one + b"\r\n")
            await writer.drain()
        say(f"connection {number}: the events are sent; {self.fault}")
        if self.fault in ("orderly", "orderly-call", "whole-call", "call", "error", "idle"):
            writer.write(b"0\r\n\r\n")
            return True
        while self.fault == "slow" and not reader.at_eof():
            one = WORDS[self.api][-1]
            writer.write(f"{len(one):x}\r\n".encode() + one + b"\r\n")
            await asyncio.sleep(0.25)
        if self.fault == "slow":
            say(f"connection {number}: the client closed it")
        if self.fault == "stall":
            await reader.read(1)
            say(f"connection {number}: the client closed it")
        if self.fault == "reset":
            await asyncio.sleep(0.05)  # so that the client has read what came before
            own = writer.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        return False


async def main(api: str, fault: str, command: list[str]) -> None:
    state = Server(api, fault)
    server = await asyncio.start_server(state.connected, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    root = f"http://{host}:{port}" + ("/v1" if api in ("chat", "responses") else "")
    say(f"python raw_server.py {api} {fault} -- {' '.join(command)}")
    env = {**os.environ, "BASE_URL": root}
    client = await asyncio.create_subprocess_exec(*command, env=env)
    try:
        await asyncio.wait_for(state.connected_once.wait(), 120)  # it may load for long
        await asyncio.wait_for(client.wait(), PATIENCE)
    except TimeoutError:
        say(f"the client has not ended {PATIENCE} s after its first connection; it is stopped")
        client.kill()
        await client.wait()
    say(f"the client ended with {client.returncode}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[4:]))
