"""WebSockets that break in one way each, of plain asyncio: Responses as far as findings need it.

`serve(fault)` gives the base URL of a server; FAULTS has the names. A fault that begins with `call`
breaks the answer with a tool call off after the whole call, before `response.completed`; the next
request gets a whole answer. Others break an answer off after two words.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket
import struct
from collections import Counter

CODES = ("1000", "1001", "1008", "1011", "1012", "4000")
REFUSED = {
    "401": "Unauthorized",
    "403": "Forbidden",
    "426": "Upgrade Required",
    "429": "Too Many Requests",
    "503": "Service Unavailable",
}
FAULTS = (
    *(f"close-{code}" for code in CODES), "no-frame", "reset", "stall", "no-json", "binary",
    "expired", "call-1000", "call-1011", *(f"refused-{status}" for status in REFUSED),
)  # fmt: skip
REQUESTS: Counter[str] = Counter()
"""By the fault: requests, and openings that were refused."""

_KEY = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_RESPONSE = {
    "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": [],
    "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
}  # fmt: skip
_TEXT = {"item_id": "i1", "output_index": 0, "content_index": 0}
_CALL = {"id": "f1", "type": "function_call", "call_id": "t1", "name": "get_weather"}
_ARGUMENTS = '{"city":"Paris"}'
_USAGE = {
    "input_tokens": 5, "output_tokens": 1, "total_tokens": 6,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}  # fmt: skip
_EXPIRED = {
    "type": "error", "status": 400,
    "error": {"type": "invalid_request_error", "code": "websocket_connection_limit_reached",
              "message": "Responses websocket connection limit reached (60 minutes)."},
}  # fmt: skip


def events(kind: str) -> list[dict]:
    """The messages of an answer: `words`, `whole` or `call`, this one without its end."""
    message = {"id": "i1", "type": "message", "role": "assistant", "status": "in_progress"}
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    response = {**_RESPONSE, "id": f"resp_{kind}"}
    begin = [
        {"type": "response.created", "response": response},
        {"type": "response.in_progress", "response": response},
    ]
    if kind == "call":
        item = {**_CALL, "arguments": "", "status": "in_progress"}
        done = {**_CALL, "arguments": _ARGUMENTS, "status": "completed"}
        at = {"item_id": "f1", "output_index": 0}
        more = [
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.function_call_arguments.delta", **at, "delta": _ARGUMENTS},
            {"type": "response.function_call_arguments.done", **at, "name": "get_weather",
             "arguments": _ARGUMENTS},
            {"type": "response.output_item.done", "output_index": 0, "item": done},
        ]  # fmt: skip
    else:
        more = [
            {"type": "response.output_item.added", "output_index": 0,
             "item": {**message, "content": []}},
            {"type": "response.content_part.added", **_TEXT, "part": part},
            {"type": "response.output_text.delta", **_TEXT, "delta": "Half", "logprobs": []},
            {"type": "response.output_text.delta", **_TEXT, "delta": " an", "logprobs": []},
        ]  # fmt: skip
    if kind == "whole":
        text = {**part, "text": "Half an"}
        done = {**message, "status": "completed", "content": [text]}
        ended = {**response, "status": "completed", "output": [done], "usage": _USAGE}
        more += [
            {"type": "response.output_text.done", **_TEXT, "text": "Half an", "logprobs": []},
            {"type": "response.content_part.done", **_TEXT, "part": text},
            {"type": "response.output_item.done", "output_index": 0, "item": done},
            {"type": "response.completed", "response": ended},
        ]
    return [{**one, "sequence_number": number} for number, one in enumerate([*begin, *more])]


def frame(opcode: int, data: bytes) -> bytes:
    size = len(data)
    length = bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2)
    return bytes([0x80 | opcode]) + length + data


async def read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The opcode and the data of a client's message."""
    first, size = await reader.readexactly(2)
    size &= 0x7F
    if size > 125:
        size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8))
    mask = await reader.readexactly(4)
    data = await reader.readexactly(size)
    return first & 15, bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))


async def answer(fault: str, writer: asyncio.StreamWriter) -> bool:
    """Answers a request; whether the connection stays open."""
    number = REQUESTS[fault]
    is_call = fault.startswith("call")
    kind = "whole" if is_call and number > 1 else "call" if is_call else "words"
    sent = events(kind)
    for at, event in enumerate(sent, 1):
        data = json.dumps(event).encode()
        if fault == "no-json" and at == 5:
            data = data[:-1]
        writer.write(frame(2 if fault == "binary" else 1, data))
    if fault in ("no-json", "binary"):  # the rest of the answer is as it should be
        rest = events("whole")[len(sent) :]
        opcode = 2 if fault == "binary" else 1
        writer.write(b"".join(frame(opcode, json.dumps(one).encode()) for one in rest))
    await writer.drain()
    if kind == "whole" or fault in ("stall", "no-json", "binary"):
        return True
    if fault == "expired":
        writer.write(frame(1, json.dumps(_EXPIRED).encode()) + frame(8, struct.pack("!H", 1008)))
    elif fault == "reset":
        await asyncio.sleep(0.05)  # so that the client has read what came before
        own = writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    elif fault != "no-frame":
        code = int(fault.partition("-")[2])
        writer.write(frame(8, struct.pack("!H", code) + b"the server says so"))
    return False


async def connected(fault: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = {line.split(": ")[0].lower(): line.split(": ")[1] for line in head[1:-2]}
        status = fault.partition("-")[2] if fault.startswith("refused") else ""
        if status or "sec-websocket-key" not in fields:
            REQUESTS[fault] += 1
            reason = REFUSED.get(status, "Not Found")
            body = b'{"error": {"message": "no"}}'
            writer.write(
                f"HTTP/1.1 {status or 404} {reason}\r\ncontent-type: application/json\r\n"
                f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode()
                + body
            )
            return
        key = hashlib.sha1(fields["sec-websocket-key"].encode() + _KEY).digest()  # noqa: S324
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
            b"sec-websocket-accept: " + base64.b64encode(key) + b"\r\n\r\n"
        )
        while True:
            opcode, data = await read(reader)
            if opcode == 8:
                writer.write(frame(8, data[:2]))
                return
            if opcode == 1:
                REQUESTS[fault] += 1
                if not await answer(fault, writer):
                    return
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def serve(fault: str) -> tuple[asyncio.Server, str]:
    """A server that breaks in one way, and its base URL."""
    server = await asyncio.start_server(lambda r, w: connected(fault, r, w), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    return server, f"http://{host}:{port}/v1"
