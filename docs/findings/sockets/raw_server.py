"""WebSockets that break in one way each, of plain asyncio: Responses, Realtime and Gemini Live as
far as findings need them.

`serve(fault)` gives the URL of a server; FAULTS has the names. An answer breaks off after two
words, with `args` in the arguments of a call, with `call` after a whole call and before the end of
the answer; the next request gets a whole one. `cancel` is an answer of many words. `again` closes
the first connection with 1012, and refuses to open another one.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import json
import socket
import ssl
import struct
import time
from collections import defaultdict

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
    "expired", "args-1000", "args-1011", "call-1000", "call-1011", "again-503",
    "cancel-task", "cancel-call", *(f"refused-{status}" for status in REFUSED),
)  # fmt: skip
CAME: defaultdict[str, list[float]] = defaultdict(list)
"""By the fault: when requests came, and openings that were refused, in seconds."""
ENDED: dict[str, tuple[str, float]] = {}
"""By the fault: whether the client `left` an answer of many words or sent a message to `stop` it,
and how many seconds after its request."""

_KEY = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_NUMBERS = itertools.count(1)
_WORDS = ["Half", " an"]
_FRAGMENTS = ['{"ci', 'ty":', '"Pari', 's"}']
_ARGUMENTS = "".join(_FRAGMENTS)
_CALL = {"id": "f1", "type": "function_call", "call_id": "t1", "name": "get_weather"}


class Responses:
    """The messages of the Responses API."""

    reason_of_age = 1008
    no_json_at = 5

    def __init__(self) -> None:
        self.greeting: list[dict] = []
        self.response = {
            "id": "resp_1", "object": "response", "created_at": 1, "model": "m",
            "status": "in_progress", "output": [], "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": [],
        }  # fmt: skip

    def receive(self, message: dict) -> list[dict] | None:
        """The answers to a message; None where it is a request for an answer of the model."""
        return None

    def stopped(self, message: dict) -> list[dict]:
        """The end of an answer that a message stops; nothing where it does not."""
        return []

    def age(self) -> list[dict]:
        error = {
            "type": "invalid_request_error",
            "code": "websocket_connection_limit_reached",
            "message": "Responses websocket connection limit reached (60 minutes).",
        }
        return [{"type": "error", "status": 400, "error": error}]

    def answer(self, words: list[str], call: list[str]) -> tuple[list[dict], list[dict]]:
        """The messages of an answer up to its last word or fragment, and those after it."""
        created = [
            {"type": "response.created", "response": self.response},
            {"type": "response.in_progress", "response": self.response},
        ]
        if call:
            item = {**_CALL, "arguments": "", "status": "in_progress"}
            done = {**_CALL, "arguments": _ARGUMENTS, "status": "completed"}
            at = {"item_id": "f1", "output_index": 0}
            begin = [{"type": "response.output_item.added", "output_index": 0, "item": item}]
            begin += [
                {"type": "response.function_call_arguments.delta", **at, "delta": one}
                for one in call
            ]
            end = [{"type": "response.function_call_arguments.done", **at, "name": "get_weather",
                    "arguments": _ARGUMENTS}]  # fmt: skip
        else:
            text = "".join(words)
            at = {"item_id": "i1", "output_index": 0, "content_index": 0}
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            full = {**part, "text": text}
            item = {"id": "i1", "type": "message", "role": "assistant", "status": "in_progress",
                    "content": []}  # fmt: skip
            done = {**item, "status": "completed", "content": [full]}
            begin = [
                {"type": "response.output_item.added", "output_index": 0, "item": item},
                {"type": "response.content_part.added", **at, "part": part},
            ]
            begin += [
                {"type": "response.output_text.delta", **at, "delta": one, "logprobs": []}
                for one in words
            ]
            end = [
                {"type": "response.output_text.done", **at, "text": text, "logprobs": []},
                {"type": "response.content_part.done", **at, "part": full},
            ]
        usage = {
            "input_tokens": 5, "output_tokens": 1, "total_tokens": 6,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }  # fmt: skip
        whole = {**self.response, "status": "completed", "output": [done], "usage": usage}
        end += [
            {"type": "response.output_item.done", "output_index": 0, "item": done},
            {"type": "response.completed", "response": whole},
        ]
        begin = [*created, *begin]
        for number, event in enumerate([*begin, *end]):
            event["sequence_number"] = number
        return begin, end


class Realtime:
    """The messages of OpenAI Realtime."""

    reason_of_age = 1001
    no_json_at = 5

    def __init__(self) -> None:
        pcm = {"type": "audio/pcm", "rate": 24000}
        detection = {  # the default of the service
            "type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300,
            "silence_duration_ms": 200, "idle_timeout_ms": None, "create_response": True,
            "interrupt_response": True,
        }  # fmt: skip
        self.session = {
            "type": "realtime", "object": "realtime.session", "id": "sess_1", "model": "m",
            "output_modalities": ["audio"], "instructions": "", "tools": [],
            "tool_choice": "auto", "max_output_tokens": "inf", "tracing": None,
            "truncation": "auto", "prompt": None, "expires_at": 1800000000, "include": None,
            "audio": {"input": {"format": pcm, "transcription": None, "noise_reduction": None,
                                "turn_detection": detection},
                      "output": {"format": pcm, "voice": "alloy", "speed": 1.0}},
        }  # fmt: skip
        self.response = {
            "object": "realtime.response", "id": "resp_1", "status": "in_progress",
            "status_details": None, "output": [], "conversation_id": "conv_1",
            "output_modalities": ["text"], "max_output_tokens": "inf", "usage": None,
            "metadata": None,
        }  # fmt: skip
        self.greeting = self._said({"type": "session.created", "session": self.session})
        self.items = 0

    @staticmethod
    def _said(*events: dict) -> list[dict]:
        return [{**one, "event_id": f"event_{next(_NUMBERS)}"} for one in events]

    def receive(self, message: dict) -> list[dict] | None:
        kind = message["type"]
        if kind == "response.create":
            return None
        if kind == "session.update":
            self.session |= {
                key: value for key, value in message["session"].items() if key != "audio"
            }
            return self._said({"type": "session.updated", "session": self.session})
        if kind == "conversation.item.create":
            self.items += 1
            item = {"id": f"item_u{self.items}", **message["item"], "status": "completed"}
            item.setdefault("object", "realtime.item")
            return self._said(
                {"type": "conversation.item.added", "previous_item_id": None, "item": item},
                {"type": "conversation.item.done", "previous_item_id": None, "item": item},
            )
        return []

    def stopped(self, message: dict) -> list[dict]:
        if message["type"] != "response.cancel":
            return []
        why = {"type": "cancelled", "reason": "client_cancelled"}
        whole = {**self.response, "status": "cancelled", "status_details": why}
        return self._said({"type": "response.done", "response": whole})

    def age(self) -> list[dict]:
        error = {"type": "invalid_request_error", "code": "session_expired", "param": None,
                 "message": "Your session hit the maximum duration of 60 minutes.",
                 "event_id": None}  # fmt: skip
        return self._said({"type": "error", "error": error})

    def answer(self, words: list[str], call: list[str]) -> tuple[list[dict], list[dict]]:
        at = {"response_id": "resp_1", "item_id": "i1", "output_index": 0}
        if call:
            item = {**_CALL, "id": "i1", "object": "realtime.item", "arguments": "",
                    "status": "in_progress"}  # fmt: skip
            done = {**item, "arguments": _ARGUMENTS, "status": "completed"}
            own = {"call_id": "t1"}
            name = "response.function_call_arguments"
            begin = [{"type": f"{name}.delta", **at, **own, "delta": one} for one in call]
            end = [{"type": f"{name}.done", **at, **own, "name": "get_weather",
                    "arguments": _ARGUMENTS}]  # fmt: skip
        else:
            text = "".join(words)
            at["content_index"] = 0
            item = {"id": "i1", "object": "realtime.item", "type": "message",
                    "status": "in_progress", "role": "assistant", "content": []}  # fmt: skip
            done = {**item, "status": "completed",
                    "content": [{"type": "output_text", "text": text}]}  # fmt: skip
            begin = [{"type": "response.content_part.added", **at,
                      "part": {"type": "text", "text": ""}}]  # fmt: skip
            begin += [{"type": "response.output_text.delta", **at, "delta": one} for one in words]
            end = [
                {"type": "response.output_text.done", **at, "text": text},
                {"type": "response.content_part.done", **at,
                 "part": {"type": "text", "text": text}},
            ]  # fmt: skip
        added = {"response_id": "resp_1", "output_index": 0}
        begin = [
            {"type": "response.created", "response": self.response},
            {"type": "response.output_item.added", **added, "item": item},
            {"type": "conversation.item.added", "previous_item_id": None, "item": item},
            *begin,
        ]
        usage = {"total_tokens": 6, "input_tokens": 5, "output_tokens": 1}
        whole = {**self.response, "status": "completed", "output": [done], "usage": usage}
        end += [
            {"type": "conversation.item.done", "previous_item_id": None, "item": done},
            {"type": "response.output_item.done", **added, "item": done},
            {"type": "response.done", "response": whole},
        ]
        return self._said(*begin), self._said(*end)


class Live:
    """The messages of Gemini Live."""

    reason_of_age = 1008
    no_json_at = 1
    greeting: tuple[dict, ...] = ()
    speaks = False

    def receive(self, message: dict) -> list[dict] | None:
        if "setup" not in message:
            return None
        self.speaks = message["setup"]["generationConfig"]["responseModalities"] == ["AUDIO"]
        return [{"setupComplete": {}}]

    def stopped(self, message: dict) -> list[dict]:
        return []

    def age(self) -> list[dict]:
        return []

    def answer(self, words: list[str], call: list[str]) -> tuple[list[dict], list[dict]]:
        if call:
            function = {"id": "t1", "name": "get_weather", "args": json.loads(_ARGUMENTS)}
            return [{"toolCall": {"functionCalls": [function]}}], []
        if self.speaks:  # the words of the sound
            parts = [{"outputTranscription": {"text": one}} for one in words]
        else:
            parts = [{"modelTurn": {"role": "model", "parts": [{"text": one}]}} for one in words]
        usage = {"promptTokenCount": 5, "responseTokenCount": 1, "totalTokenCount": 6}
        return [{"serverContent": one} for one in parts], [
            {"serverContent": {"generationComplete": True}},
            {"serverContent": {"turnComplete": True}, "usageMetadata": usage},
        ]


APIS = {"responses": Responses, "realtime": Realtime, "BidiGenerateContent": Live}
"""By the last part of the path, after slashes and dots."""


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


def write(writer: asyncio.StreamWriter, messages: list[dict], opcode: int = 1) -> None:
    writer.write(b"".join(frame(opcode, json.dumps(one).encode()) for one in messages))


async def answer(
    fault: str, api: Responses | Realtime | Live, writer: asyncio.StreamWriter
) -> None:
    """Answers a request, and ends the connection."""
    kind = fault.partition("-")[0]
    calls = kind in ("args", "call")
    if calls and len(CAME[fault]) > 1:
        begin, end = api.answer(_WORDS, [])
        write(writer, [*begin, *end])
        return
    if kind == "cancel":  # a word each 100 ms, for 10 seconds
        begin, end = api.answer([f"word{number} " for number in range(100)], [])
        for event in begin:
            write(writer, [event])
            await asyncio.sleep(0.1)
        write(writer, end)
        return
    begin, end = api.answer(_WORDS, (_FRAGMENTS[:2] if kind == "args" else _FRAGMENTS) * calls)
    if kind == "call":
        begin, end = begin + end[:-1], end[-1:]
    opcode = 2 if fault == "binary" else 1
    for at, event in enumerate(begin, 1):
        data = json.dumps(event).encode()
        broken = fault == "no-json" and at == api.no_json_at
        writer.write(frame(opcode, data[:-1] if broken else data))
    if fault in ("no-json", "binary"):  # the rest of the answer is as it should be
        write(writer, end, opcode)
    if fault in ("stall", "no-json", "binary"):
        return
    await asyncio.sleep(0.1)  # so that the client has read what came before
    if fault == "expired":
        write(writer, api.age())
        writer.write(frame(8, struct.pack("!H", api.reason_of_age)))
    elif fault == "reset":
        own = writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    elif fault != "no-frame":
        code = 1012 if fault.startswith("again") else int(fault.partition("-")[2])
        writer.write(frame(8, struct.pack("!H", code) + b"the server says so"))
    writer.close()


async def connected(fault: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection of a client."""
    talking: asyncio.Task[None] | None = None
    begun = time.monotonic()
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = {line.split(": ")[0].lower(): line.split(": ")[1] for line in head[1:-2]}
        refuses = fault.startswith("refused") or (fault.startswith("again") and CAME[fault])
        status = fault.partition("-")[2] if refuses else ""
        path = head[0].split(" ")[1].partition("?")[0].replace(".", "/").rpartition("/")[2]
        if status or "sec-websocket-key" not in fields or path not in APIS:
            CAME[fault].append(time.monotonic())
            reason = REFUSED.get(status, "Not Found")
            message = "The server is overloaded." if status == "503" else reason
            body = json.dumps({"error": {"message": message}}).encode()
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
        api = APIS[path]()
        write(writer, api.greeting)
        while True:
            opcode, data = await read(reader)
            if opcode == 8:
                writer.write(frame(8, data[:2]))
                return
            if opcode not in (1, 2):
                continue
            message = json.loads(data)
            if talking is not None and (end := api.stopped(message)):
                talking.cancel()
                write(writer, end)
                ENDED.setdefault(fault, ("stop", time.monotonic() - begun))
            replies = api.receive(message)
            if replies is not None:
                write(writer, replies)
                continue
            CAME[fault].append(time.monotonic())
            if talking is None or talking.done():  # else this connection ends soon
                begun = time.monotonic()
                talking = asyncio.create_task(answer(fault, api, writer))
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        if talking is not None:
            if not talking.done():
                ENDED.setdefault(fault, ("left", time.monotonic() - begun))
            talking.cancel()
        writer.close()


async def serve(fault: str, context: ssl.SSLContext | None = None) -> tuple[asyncio.Server, str]:
    """A server that breaks in one way, and its URL.

    Args:
        context: of TLS, for clients that dial nothing else.
    """
    server = await asyncio.start_server(
        lambda r, w: connected(fault, r, w), "127.0.0.1", 0, ssl=context
    )
    host, port = server.sockets[0].getsockname()
    return server, f"http{'s' if context else ''}://{host}:{port}"
