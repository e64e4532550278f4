"""A model and an MCP server without mockllm, of the standard library alone: one call of one tool,
and the fault of a case of docs/mcp-clients.md.

python plain_server.py CASE           # serves until its input ends, then prints what came
python plain_server.py CASE --log URL # the MCP server as a program
"""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

TEXT, DONE = "Rain all day in Oslo", "All done."
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
BLOCKS = {
    "image": {"type": "image", "data": PIXEL, "mimeType": "image/png"},
    "media": {"type": "resource_link", "uri": "kit://b", "name": "b", "mimeType": "text/plain"},
}
"""The answer of a case where nothing fails."""
RETURNED = {"image": PIXEL[:40], "media": "kit://b", "schema": rf'{TEXT}|size\\*": *null'}
"""A result that came back to the model, in a request; in other cases it is the text."""
META = "io.modelcontextprotocol/"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SIZE = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
ARGUMENTS = {"city": "Oslo"}
INFO = {"name": "weather", "version": "1.0.0"}
Json = dict[str, Any]


class State:
    """What came, and the case."""

    def __init__(self, case: str) -> None:
        self.case, self.lock = case, threading.Lock()
        self.offered = self.returned = False
        self.tries = self.lists = self.requests = 0
        self.stopped = threading.Event()

    def note(self, method: str) -> int:
        """Counts a request to the MCP server; how often a tool was called so far."""
        with self.lock:
            self.tries += method == "tools/call"
            self.lists += method == "tools/list"
            return self.tries

    def judgement(self) -> Json:
        names = ("offered", "tries", "lists", "requests", "returned")
        return {name: getattr(self, name) for name in names}


# The MCP server


def answer(case: str, message: Json, tried: int) -> Json | None:
    """The answer to a message, where nothing breaks on the way.

    Args:
        tried: how often a tool was called, with this time.
    """
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message or method is None:
        return None
    stateless = f"{META}protocolVersion" in (params.get("_meta") or {})
    tools = [
        {"name": "get", "inputSchema": CITY},
        {"name": "ping", "inputSchema": {"type": "object"}},
    ]
    tools += [{"name": "measure", "inputSchema": CITY, "outputSchema": SIZE}]
    if case == "tools" and tried:
        tools = [tools[0], {"name": "put", "inputSchema": {"type": "object"}}]
    more = {"ttlMs": 0, "cacheScope": "private"} if stateless else {}
    result: Json
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True} if case == "tools" else {}}
        version = params.get("protocolVersion")
        if version not in ("2025-11-25", "2025-06-18", "2025-03-26"):
            version = "2025-11-25"
        result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": INFO}
    elif method == "server/discover":
        versions = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]
        result = {"supportedVersions": versions, "capabilities": {"tools": {}}, **more}
        result |= {"resultType": "complete", "_meta": {f"{META}serverInfo": INFO}}
    elif method == "tools/list":
        result = {"tools": tools, **more}
    elif method == "tools/call" and case == "rpc-error":
        error = {"code": -32000, "message": "The station is closed"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    elif method == "tools/call":
        result = {"content": [BLOCKS.get(case, {"type": "text", "text": TEXT})]}
        if case == "schema":
            result["structuredContent"] = {"size": None}
    elif method == "ping":
        result = {}
    else:
        error = {"code": -32601, "message": f"Method not found: {method}"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    if stateless:
        result["resultType"] = "complete"
    id = "not-the-id" if case == "unknown-id" and method == "tools/call" else message["id"]
    return {"jsonrpc": "2.0", "id": id, "result": result}


def before(case: str, message: Json) -> list[Json]:
    """The messages before the result of a call."""
    params = message.get("params") or {}
    meta = params.get("_meta") or {}
    sent: list[Json] = []
    if case == "progress" and "progressToken" in meta:
        values = {"progressToken": meta["progressToken"], "total": 2}
        for number, text in ((1, "a"), (2, "b")):
            sent.append({"method": "notifications/progress",
                         "params": {**values, "progress": number, "message": text}})  # fmt: skip
    if case == "tools" and f"{META}protocolVersion" not in meta:
        sent.append({"method": "notifications/tools/list_changed"})
    return [{"jsonrpc": "2.0", **one} for one in sent]


# The model


def chat(body: Json) -> tuple[list[str], bool]:
    """The names of the offered tools, and whether there is a result."""
    names = [tool["function"]["name"] for tool in body.get("tools") or ()]
    return names, any(one["role"] == "tool" for one in body["messages"])


def responses(body: Json) -> tuple[list[str], bool]:
    names = []
    for tool in body.get("tools") or ():
        inner = tool.get("tools") or [tool]
        space = f"{tool['name']} " if tool.get("type") == "namespace" else ""
        names += [f"{space}{one['name']}" for one in inner if "name" in one]
    items = body["input"] if isinstance(body["input"], list) else []
    return names, any(one.get("type") == "function_call_output" for one in items)


def anthropic(body: Json) -> tuple[list[str], bool]:
    names = [tool["name"] for tool in body.get("tools") or ()]
    blocks = [b for one in body["messages"] for b in one["content"] if isinstance(b, dict)]
    return names, any(block.get("type") == "tool_result" for block in blocks)


def gemini(body: Json) -> tuple[list[str], bool]:
    names = [one["name"] for tool in body.get("tools") or ()
             for one in tool.get("functionDeclarations") or ()]  # fmt: skip
    parts = [part for one in body["contents"] for part in one.get("parts") or ()]
    return names, any("functionResponse" in part for part in parts)


def chat_answer(name: str, *, streamed: bool) -> list[Json]:
    call = {"id": "call_1", "type": "function",
            "function": {"name": name, "arguments": json.dumps(ARGUMENTS)}}  # fmt: skip
    said = {"role": "assistant", "content": None if name else DONE}
    said |= {"tool_calls": [call]} if name else {}
    reason = "tool_calls" if name else "stop"
    top = {"id": "chatcmpl-1", "created": 1, "model": "gpt-5"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if not streamed:
        choice = {"index": 0, "message": said, "finish_reason": reason}
        return [{**top, "object": "chat.completion", "choices": [choice], "usage": usage}]
    if name:
        said["tool_calls"] = [{"index": 0, **call}]
    top["object"] = "chat.completion.chunk"
    return [
        {**top, "choices": [{"index": 0, "delta": said, "finish_reason": None}]},
        {**top, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**top, "choices": [], "usage": usage},
    ]


def responses_answer(name: str, *, streamed: bool) -> list[Json]:
    space, _, plain = name.rpartition(" ")
    item: Json = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    item["content"] = [{"type": "output_text", "text": DONE, "annotations": []}]
    if name:
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed"}
        item |= {"name": plain, "arguments": json.dumps(ARGUMENTS)}
        item |= {"namespace": space} if space else {}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage |= {"input_tokens_details": {"cached_tokens": 0},
              "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5"}
    whole |= {"status": "completed", "output": [item], "usage": usage, "tools": []}
    whole |= {"parallel_tool_calls": True, "tool_choice": "auto", "error": None}
    if not streamed:
        return [whole]
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    empty = {**item, "status": "in_progress", **({"arguments": ""} if name else {"content": []})}
    place = {"output_index": 0, "item_id": item["id"]}
    if name:
        inner = [
            {"type": "response.function_call_arguments.delta", "delta": item["arguments"], **place},
            {"type": "response.function_call_arguments.done", "name": plain,
             "arguments": item["arguments"], **place},
        ]  # fmt: skip
    else:
        part = {"type": "output_text", "text": "", "annotations": []}
        place["content_index"] = 0
        inner = [
            {"type": "response.content_part.added", "part": part, **place},
            {"type": "response.output_text.delta", "delta": DONE, **place},
            {"type": "response.output_text.done", "text": DONE, **place},
            {"type": "response.content_part.done", "part": {**part, "text": DONE}, **place},
        ]
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": empty},
        *inner,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def anthropic_answer(name: str, *, streamed: bool) -> list[Json]:
    block: Json = {"type": "text", "text": DONE}
    if name:
        block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": ARGUMENTS}
    reason = "tool_use" if name else "end_turn"
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    whole |= {"content": [block], "stop_reason": reason, "stop_sequence": None}
    whole["usage"] = {"input_tokens": 1, "output_tokens": 1}
    if not streamed:
        return [whole]
    delta = {"type": "text_delta", "text": DONE}
    empty = {**block, "text": ""}
    if name:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(ARGUMENTS)}
        empty = {**block, "input": {}}
    return [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


def gemini_answer(name: str, *, streamed: bool) -> list[Json]:
    part: Json = {"functionCall": {"name": name, "args": ARGUMENTS}} if name else {"text": DONE}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return [{"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}]


MODELS: dict[str, tuple[Callable[[Json], tuple[list[str], bool]], Callable[..., list[Json]]]] = {
    "chat/completions": (chat, chat_answer),
    "responses": (responses, responses_answer),
    "messages": (anthropic, anthropic_answer),
    "generateContent": (gemini, gemini_answer),
    "streamGenerateContent": (gemini, gemini_answer),
}


class Handler(BaseHTTPRequestHandler):
    """All requests."""

    protocol_version = "HTTP/1.1"
    state: State

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        end = path.partition("/v1/")[2] or path.rpartition(":")[2]
        if path == "/log":
            self._send(200, json.dumps(self.state.note(raw.decode())).encode())
        elif path.startswith("/mcp/"):
            self._mcp(json.loads(raw))
        elif end in MODELS:
            self._model(end, json.loads(raw), raw.decode())
        else:
            self._send(404, b"{}")

    def do_DELETE(self) -> None:
        self._send(200, b"")

    def do_GET(self) -> None:
        if self.state.case == "resumed" and self.headers.get("last-event-id", "").startswith("at-"):
            id = json.loads(self.headers["last-event-id"].removeprefix("at-"))
            message = {"id": id, "method": "tools/call"}
            sent = answer(self.state.case, message, 1)
            self._send(200, f"event: message\ndata: {json.dumps(sent)}\n\n".encode(), SSE)
        else:
            self._send(405, b"")

    def _model(self, end: str, body: Json, text: str) -> None:
        read, write = MODELS[end]
        names, has_result = read(body)
        state = self.state
        wanted = "measure" if state.case == "schema" else "get"
        ours = [name for name in names if name.endswith((wanted, f"_{wanted}", f" {wanted}"))
                and (name == wanted or "weather" in name)]  # fmt: skip
        with state.lock:
            state.requests += 1
            state.offered |= bool(ours)
            state.returned |= bool(re.search(RETURNED.get(state.case, TEXT), text))
        events = write(
            ours[0] if ours and not has_result else "",
            streamed=bool(body.get("stream")) or end.startswith("stream"),
        )
        if not body.get("stream") and not end.startswith("stream"):
            self._send(200, json.dumps(events[0]).encode())
            return
        lines = [
            (f"event: {event['type']}\n" if "type" in event else "")
            + f"data: {json.dumps(event)}\n"
            for event in events
        ]
        lines += ["data: [DONE]\n"] if end == "chat/completions" else []
        self._send(200, "".join(f"{line}\n" for line in lines).encode(), SSE)

    def _mcp(self, message: Json) -> None:
        state, method = self.state, message.get("method", "")
        tried = state.note(method)
        case = state.case if method == "tools/call" else ""
        failing = {"list": ("tools/list",), "connect": ("server/discover", "initialize")}
        sent = answer(state.case, message, tried)
        whole = b"" if sent is None else json.dumps(sent).encode()
        first = before(case, message) if case else []
        stateless = self.headers.get("mcp-protocol-version") == "2026-07-28"
        if case == "500" or method in failing.get(state.case, ()):
            self._send(500, b'{"error": "the server failed"}')
        elif case == "503-once" and tried == 1:
            self._send(503, b'{"error": "the server failed"}')
        elif case == "session-lost" and tried == 1:
            lost = {"code": -32600, "message": "Session not found"}
            error = {"jsonrpc": "2.0", "id": message["id"], "error": lost}
            self._send(404, json.dumps(error).encode())
        elif case in ("stall", "reset"):
            state.stopped.wait(60 if case == "stall" else 0)
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
            self.connection.close()
        elif case == "cut":
            self._send(200, whole, cut=40)
            self.close_connection = True
        elif case == "empty":
            self._send(200, b"")
        elif case == "html":
            self._send(200, b"<h1>Sign in</h1>", "text/html")
        elif case == "resumed" and not stateless:
            event = f"id: at-{json.dumps(message['id'])}\nretry: 200\ndata: \n\n"
            self._send(200, event.encode(), SSE)
        elif first:
            events = [f"event: message\ndata: {json.dumps(one)}\n\n" for one in [*first, sent]]
            self._send(200, "".join(events).encode(), SSE)
        else:
            begins = state.case == "session-lost" and method == "initialize"
            headers = {"mcp-session-id": "s1"} if begins else {}
            self._send(202 if sent is None else 200, whole, headers=headers)

    def _send(
        self,
        status: int,
        body: bytes,
        kind: str = "application/json",
        headers: dict[str, str] | None = None,
        cut: int | None = None,
    ) -> None:
        self.send_response(status)
        if body:
            self.send_header("content-type", kind)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])


SSE = "text/event-stream"


class PlainServer:
    """The server, while a `with` block lasts."""

    def __init__(self, case: str) -> None:
        self.state = State(case)
        handler = type("Bound", (Handler,), {"state": self.state})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client left
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.state.stopped.set()
        self.server.shutdown()
        self.server.server_close()


def program(case: str, log: str, lines: Iterator[str]) -> None:
    """The MCP server over standard input and output."""
    for line in lines:
        message = json.loads(line)
        method = message.get("method", "")
        with urllib.request.urlopen(f"{log}/log", method.encode()) as counted:
            tried = int(counted.read())
        is_call = method == "tools/call"
        if is_call and case == "exit":
            os._exit(1)
        if is_call and case == "stall":
            continue
        if is_call and case == "noise":
            print("starting up, this line is no JSON", flush=True)
        sent = answer(case, message, tried)
        for one in [*(before(case, message) if is_call else []), *([sent] if sent else [])]:
            print(json.dumps(one), flush=True)


if __name__ == "__main__":
    if sys.argv[2:3] == ["--log"]:
        program(sys.argv[1], sys.argv[3], iter(sys.stdin))
    else:
        with PlainServer(sys.argv[1]) as server:
            print(f"model: {server.url}, MCP: {server.url}/mcp/weather", flush=True)
            sys.stdin.read()
            print(json.dumps(server.state.judgement()))
