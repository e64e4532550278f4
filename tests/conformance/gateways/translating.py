"""A gateway from Anthropic Messages to Chat Completions:
`python -m tests.conformance.gateways translating`.

It is written by hand and imports nothing of mockllm, so that each checks the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import aiohttp
from aiohttp import web

Json = dict[str, Any]
HTTP = web.AppKey("HTTP", aiohttp.ClientSession)
URL = web.AppKey("URL", str)
BROKE_OFF = "The service broke off its answer."


def application(upstream: str) -> web.Application:
    """The gateway.

    Args:
        upstream: the base URL of its upstream, which ends in `/v1`.
    """
    app = web.Application(client_max_size=2**26)
    app.cleanup_ctx.append(connected)
    app[URL] = f"{upstream}/chat/completions"
    app.router.add_post("/v1/messages", _answer)
    return app


async def connected(app: web.Application) -> AsyncIterator[None]:
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as app[HTTP]:
        yield


async def _answer(request: web.Request) -> web.StreamResponse:
    """Answers a request. A client that leaves cancels this, which ends the request upstream."""
    payload = json.loads(await request.read())
    key = request.headers.get("x-api-key", "")
    headers = {"authorization": f"Bearer {key}"}
    url, body = request.app[URL], chat_request(payload)
    try:
        async with request.app[HTTP].post(url, headers=headers, json=body) as got:
            if got.status >= 400:
                return error_answer(got.status, got.headers, await got.read())
            if not payload.get("stream"):
                return web.json_response(message(json.loads(await got.read())))
            return await _stream(request, got)
    except aiohttp.ClientError:
        return web.json_response(error_event(BROKE_OFF), status=502)


async def _stream(request: web.Request, got: aiohttp.ClientResponse) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
    await answer.prepare(request)
    lines, stream = Lines(), Stream()
    try:
        async for data in got.content.iter_any():
            for text in lines.feed(data):
                for event in stream.feed(text):
                    await answer.write(written(event))
    except aiohttp.ClientError:
        pass  # the stream says that it has no end
    for event in stream.close():
        await answer.write(written(event))
    return answer


def written(event: Json) -> bytes:
    """An event of a stream as bytes."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


# Errors

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error_answer(status: int, headers: Mapping[str, str], body: bytes) -> web.Response:
    """An error of the upstream, in the form of Messages."""
    try:
        problem = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        problem = body.decode("utf-8", "replace")
    kept = {name: headers[name] for name in ("retry-after", "retry-after-ms") if name in headers}
    event = error_event(problem, TYPES.get(status, "api_error"))
    return web.json_response(event, status=status, headers=kept)


def error_event(problem: str, kind: str = "api_error") -> Json:
    """An error as it stands in a stream and in a body."""
    return {"type": "error", "error": {"type": kind, "message": problem}}


# The stream


class Lines:
    """The data of server-sent events, from bytes that come in any pieces."""

    def __init__(self) -> None:
        self._rest = b""
        self._after_cr = False
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[str]:
        """The data of the events that are complete with these bytes."""
        if self._after_cr:  # it may be half of a CRLF
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
        *lines, self._rest = re.split(rb"\r\n|\n|\r", self._rest + data)
        for line in lines:
            name, _, value = line.decode().partition(":")
            if line and name == "data":
                self._data.append(value.removeprefix(" "))
            elif not line:
                if text := "\n".join(self._data):
                    yield text
                self._data = []


class Part:
    """A block of the message, as far as it has come: text, thinking, or arguments of a call."""

    def __init__(self, block: Json, delta: str, field: str) -> None:
        self.block, self.delta, self.field = block, delta, field
        self.text = ""
        self.citations: list[Json] = []
        self.began = False
        self._sent = 0

    @property
    def over(self) -> bool:
        """Whether nothing of it can follow once another part has begun."""
        return self.block["type"] != "tool_use" or is_json(self.text)

    def events(self, index: int) -> Iterator[Json]:
        """The events with what of it has not been handed on."""
        if not self.began:
            self.began = True
            yield {"type": "content_block_start", "index": index, "content_block": self.block}
        text = self.text[self._sent :]
        self._sent = len(self.text)
        if text:
            delta = {"type": self.delta, self.field: text}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        while self.citations:
            cited = {"type": "citations_delta", "citation": self.citations.pop(0)}
            yield {"type": "content_block_delta", "index": index, "delta": cited}


def citation(cited: Json) -> Json:
    """A citation of a page."""
    where = {"url": cited["url"], "title": cited.get("title"), "encrypted_index": "-"}
    text = cited.get("content") or cited.get("title") or ""
    return {"type": "web_search_result_location", "cited_text": text, **where}


def is_json(text: str) -> bool:
    """Whether a text is a whole JSON value."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


class Stream:
    """Turns the chunks of a Chat stream into the events of a Messages stream. One block is open at
    a time, so what comes of a later part waits until the one before it is over."""

    def __init__(self) -> None:
        self._begun = False
        self._parts: list[Part] = []
        self._calls: dict[int, Part] = {}
        self._open = 0
        self._finish = ""
        self._refused = False
        self._usage: Json = {}
        self._ended = False

    def feed(self, data: str) -> Iterator[Json]:
        """The events of an event's data; services send events of their own between the chunks."""
        if self._ended:
            return
        if data.strip() == "[DONE]":
            yield from self.close()
            return
        chunk = json.loads(data)
        if chunk.get("error"):
            self._ended = True
            yield error_event(chunk["error"]["message"])
            return
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk.get("choices") or ():
            yield from self._begin(chunk)
            self._add(choice["delta"])
            yield from self._ready()
            self._finish = self._finish or choice.get("finish_reason") or ""

    def close(self) -> Iterator[Json]:
        """The events at the end of the upstream's answer: an error where that is not its end."""
        if self._ended:
            return
        self._ended = True
        if not self._finish:
            yield error_event(BROKE_OFF)
            return
        yield from self._ready(ends=True)
        reason = stop_reason(self._finish, called=bool(self._calls), refused=self._refused)
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": usage_of(self._usage)}
        yield {"type": "message_stop"}

    def _begin(self, chunk: Json) -> Iterator[Json]:
        if not self._begun:
            self._begun = True
            yield {"type": "message_start", "message": {**opened_message(chunk), "usage": NONE}}

    def _add(self, delta: Json) -> None:
        if text := delta.get("reasoning_content"):
            self._text("thinking", text)
        if text := delta.get("content"):
            self._text("text", text)
        if text := delta.get("refusal"):
            self._refused = True
            self._text("text", text)
        if cited := delta.get("annotations"):
            self._parts[-1].citations += [citation(one["url_citation"]) for one in cited]
        for entry in delta.get("tool_calls") or ():
            self._call(entry["index"], entry)

    def _text(self, kind: str, text: str) -> None:
        last = self._parts[-1] if self._parts else None
        if last is None or last.block["type"] != kind:
            last = Part({"type": kind, kind: ""}, f"{kind}_delta", kind)
            self._parts.append(last)
        last.text += text

    def _call(self, index: int, entry: Json) -> None:
        function = entry.get("function", {})
        if index not in self._calls:
            block = {"type": "tool_use", "id": entry["id"], "name": function["name"], "input": {}}
            self._calls[index] = Part(block, "input_json_delta", "partial_json")
            self._parts.append(self._calls[index])
        self._calls[index].text += function.get("arguments") or ""

    def _ready(self, *, ends: bool = False) -> Iterator[Json]:
        """What can be handed on."""
        while self._open < len(self._parts):
            part, index = self._parts[self._open], self._open
            yield from part.events(index)
            follows = self._open + 1 < len(self._parts)
            if not ends and not (follows and part.over):
                return
            yield {"type": "content_block_stop", "index": index}
            self._open += 1


def stop_reason(finish: str, *, called: bool, refused: bool) -> str:
    """The reason of an end; a call of a tool that the client named ends in `stop`."""
    if finish == "stop" and called:
        return "tool_use"
    if finish == "stop" and refused:
        return "refusal"
    reasons = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
    return reasons.get(finish, "end_turn")


def usage_of(usage: Json) -> Json:
    """Usage, where cached tokens do not count as input."""
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    thinking = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    return {
        "input_tokens": usage.get("prompt_tokens", 0) - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.get("completion_tokens", 0),
        "output_tokens_details": {"thinking_tokens": thinking},
    }


NONE = usage_of({})

# The body


def opened_message(answer: Json) -> Json:
    """A message before its content."""
    return {
        "id": f"msg_{answer['id']}",
        "type": "message",
        "role": "assistant",
        "model": answer["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def message(body: Json) -> Json:
    """The message of an answer that is not streamed."""
    choice = body["choices"][0]
    said = choice["message"]
    calls, refusal = said.get("tool_calls") or [], said.get("refusal") or ""
    text = (said.get("content") or "") + refusal
    content: list[Json] = []
    if thinking := said.get("reasoning_content"):
        content.append({"type": "thinking", "thinking": thinking})
    if text:
        cited = [citation(one["url_citation"]) for one in said.get("annotations") or ()]
        content.append({"type": "text", "text": text, **({"citations": cited} if cited else {})})
    for call in calls:
        function = call["function"]
        arguments = json.loads(function["arguments"] or "{}")
        content.append(
            {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}
        )
    reason = stop_reason(choice["finish_reason"], called=bool(calls), refused=bool(refusal))
    return {
        **opened_message(body),
        "content": content,
        "stop_reason": reason,
        "usage": usage_of(body.get("usage") or {}),
    }


# The request


def chat_request(payload: Json) -> Json:
    """A request of Messages as one of Chat Completions."""
    body: Json = {"model": payload["model"], "messages": list(_messages(payload))}
    for name, other in NAMES.items():
        if name in payload:
            body[other] = payload[name]
    if user := payload.get("metadata", {}).get("user_id"):
        body["user"] = user
    if payload.get("stream"):
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if payload.get("tools"):
        body["tools"] = [_tool(tool) for tool in payload["tools"]]
        body |= _choice(payload.get("tool_choice", {"type": "auto"}))
    if form := payload.get("output_config", {}).get("format"):
        schema = {"name": "answer", "schema": form["schema"], "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if payload.get("thinking", {}).get("type", "disabled") != "disabled":
        body["reasoning_effort"] = "medium"
    return body


NAMES = {
    "max_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop_sequences": "stop",
}


def _tool(tool: Json) -> Json:
    function = {"name": tool["name"], "description": tool.get("description", "")}
    if "strict" in tool:
        function["strict"] = tool["strict"]
    return {"type": "function", "function": {**function, "parameters": tool["input_schema"]}}


def _choice(choice: Json) -> Json:
    chosen: Any = {"auto": "auto", "any": "required", "none": "none"}.get(choice["type"])
    if choice["type"] == "tool":
        chosen = {"type": "function", "function": {"name": choice["name"]}}
    several = {}
    if "disable_parallel_tool_use" in choice:
        several = {"parallel_tool_calls": not choice["disable_parallel_tool_use"]}
    return {"tool_choice": chosen, **several}


def _messages(payload: Json) -> Iterator[Json]:
    if payload.get("system"):
        yield {"role": "system", "content": _text(payload["system"])}
    for message in payload["messages"]:
        if message["role"] == "assistant":
            yield _assistant(_blocks(message["content"]))
        else:
            yield from _user(_blocks(message["content"]))


def _blocks(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: str | list[Json]) -> str:
    return "".join(block["text"] for block in _blocks(content) if block["type"] == "text")


def _assistant(blocks: list[Json]) -> Json:
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": json.dumps(block["input"])},
        }
        for block in blocks
        if block["type"] == "tool_use"
    ]
    called = {"tool_calls": calls} if calls else {}
    return {"role": "assistant", "content": _text(blocks) or None, **called}


def _user(blocks: list[Json]) -> Iterator[Json]:
    """Results are messages of their own, before what the user says."""
    for block in blocks:
        if block["type"] == "tool_result":
            text = _text(block.get("content", ""))
            failed = "Error: " if block.get("is_error") else ""
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": failed + text}
    parts = [part for block in blocks for part in _part(block)]
    if parts:
        yield {"role": "user", "content": parts}


def _part(block: Json) -> Iterator[Json]:
    if block["type"] == "text":
        yield {"type": "text", "text": block["text"]}
    if block["type"] == "image":
        source = block["source"]
        data = f"data:{source.get('media_type')};base64,{source.get('data')}"
        yield {"type": "image_url", "image_url": {"url": source.get("url", data)}}
