"""A gateway from Chat Completions to Anthropic Messages, which imports nothing of mockllm."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import aiohttp
from aiohttp import web

from tests.conformance.gateways.translating import BROKE_OFF, HTTP, URL, Json, Lines, connected

USUAL_TOKENS = 4096
THINKING_TOKENS = 1024


def application(upstream: str) -> web.Application:
    """The gateway.

    Args:
        upstream: the base URL of its upstream, without `/v1`.
    """
    app = web.Application(client_max_size=2**26)
    app.cleanup_ctx.append(connected)
    app[URL] = f"{upstream}/v1/messages"
    app.router.add_post("/v1/chat/completions", _answer)
    return app


async def _answer(request: web.Request) -> web.StreamResponse:
    """Answers a request. A client that leaves cancels this, which ends the request upstream."""
    payload = json.loads(await request.read())
    key = request.headers.get("authorization", "").removeprefix("Bearer ")
    headers = {"x-api-key": key or "none", "anthropic-version": "2023-06-01"}
    url, body = request.app[URL], messages_request(payload)
    try:
        async with request.app[HTTP].post(url, headers=headers, json=body) as got:
            if got.status >= 400:
                return error_answer(got.status, got.headers, await got.read())
            if not payload.get("stream"):
                return web.json_response(completion(json.loads(await got.read())))
            return await _stream(request, got, (payload.get("stream_options") or {}))
    except aiohttp.ClientError:
        return web.json_response(error_of(BROKE_OFF), status=502)


async def _stream(
    request: web.Request, got: aiohttp.ClientResponse, options: Json
) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
    await answer.prepare(request)
    lines, stream = Lines(), Stream(with_usage=bool(options.get("include_usage")))
    try:
        async for data in got.content.iter_any():
            for text in lines.feed(data):
                for chunk in stream.feed(json.loads(text)):
                    await answer.write(written(chunk))
    except aiohttp.ClientError:
        pass  # the stream says that it has no end
    for chunk in stream.close():
        await answer.write(written(chunk))
    return answer


def written(chunk: Json | str) -> bytes:
    """A chunk of a stream as bytes."""
    return f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n".encode()


# Errors


def error_answer(status: int, headers: Mapping[str, str], body: bytes) -> web.Response:
    """An error of the upstream, in the form of Chat Completions."""
    try:
        error = json.loads(body)["error"]
        problem = error_of(error["message"], error["type"])
    except (ValueError, KeyError, TypeError):
        problem = error_of(body.decode("utf-8", "replace"))
    kept = {name: headers[name] for name in ("retry-after", "retry-after-ms") if name in headers}
    return web.json_response(problem, status=status, headers=kept)


def error_of(problem: str, kind: str = "server_error") -> Json:
    """An error as it stands in a stream and in a body."""
    return {"error": {"message": problem, "type": kind, "param": None, "code": None}}


# The stream


class Stream:
    """Turns the events of a Messages stream into the chunks of a Chat stream."""

    def __init__(self, *, with_usage: bool) -> None:
        self._with_usage = with_usage
        self._opened: Json = {}
        self._usage: Json = {}
        self._calls: dict[int, int] = {}
        self._argued: set[int] = set()
        self._ended = False

    def feed(self, event: Json) -> Iterator[Json | str]:
        """The chunks of an event."""
        if self._ended:
            return
        match event["type"]:
            case "message_start":
                message = event["message"]
                self._opened = opened(message, "chat.completion.chunk")
                self._usage |= message.get("usage") or {}
                yield self._chunk({"role": "assistant", "content": ""})
            case "content_block_start" if event["content_block"]["type"] == "tool_use":
                yield self._call(event["index"], event["content_block"])
            case "content_block_start" if text := event["content_block"].get("text"):
                yield self._chunk({"content": text})
            case "content_block_delta":
                yield from self._delta(event["index"], event["delta"])
            case "content_block_stop":
                yield from self._stop(event["index"])
            case "message_delta":
                self._usage |= event.get("usage") or {}
                yield self._chunk({}, FINISHES.get(event["delta"]["stop_reason"], "stop"))
            case "message_stop":
                self._ended = True
                if self._with_usage:
                    yield {**self._opened, "choices": [], "usage": usage_of(self._usage)}
                yield "[DONE]"
            case "error":
                self._ended = True
                yield error_of(event["error"]["message"], event["error"]["type"])

    def close(self) -> Iterator[Json]:
        """The error at the end of an answer that broke off."""
        if not self._ended:
            yield error_of(BROKE_OFF)

    def _chunk(self, delta: Json, finish: str | None = None) -> Json:
        return {**self._opened, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    def _call(self, index: int, block: Json) -> Json:
        number = self._calls[index] = len(self._calls)
        function = {"name": block["name"], "arguments": ""}
        call = {"index": number, "id": block["id"], "type": "function", "function": function}
        return self._chunk({"tool_calls": [call]})

    def _delta(self, index: int, delta: Json) -> Iterator[Json]:
        match delta["type"]:
            case "text_delta":
                yield self._chunk({"content": delta["text"]})
            case "citations_delta" if "url" in delta["citation"]:
                yield self._chunk({"annotations": [annotation(delta["citation"])]})
            case "thinking_delta":
                yield self._chunk({"reasoning_content": delta["thinking"]})
            case "input_json_delta" if index in self._calls and delta["partial_json"]:
                yield self._arguments(index, delta["partial_json"])

    def _arguments(self, index: int, text: str) -> Json:
        self._argued.add(index)
        call = {"index": self._calls[index], "function": {"arguments": text}}
        return self._chunk({"tool_calls": [call]})

    def _stop(self, index: int) -> Iterator[Json]:
        """A call without arguments has the arguments `{}`."""
        if index in self._calls and index not in self._argued:
            yield self._arguments(index, "{}")


def annotation(cited: Json) -> Json:
    """A citation of a page."""
    page = {"url": cited["url"], "title": cited["title"], "content": cited["cited_text"]}
    return {"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 0, **page}}


FINISHES = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def opened(message: Json, kind: str) -> Json:
    """The fields that the body has, and each chunk."""
    return {"id": f"chatcmpl-{message['id']}", "object": kind, "created": 0} | {
        "model": message["model"]
    }


def usage_of(usage: Json) -> Json:
    """Usage, where cached tokens count as input."""
    cached = usage.get("cache_read_input_tokens") or 0
    created = usage.get("cache_creation_input_tokens") or 0
    given = (usage.get("input_tokens") or 0) + cached + created
    made = usage.get("output_tokens") or 0
    thinking = (usage.get("output_tokens_details") or {}).get("thinking_tokens") or 0
    return {
        "prompt_tokens": given,
        "completion_tokens": made,
        "total_tokens": given + made,
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": created},
        "completion_tokens_details": {"reasoning_tokens": thinking},
    }


# The body


def completion(message: Json) -> Json:
    """The body of an answer that is not streamed."""
    blocks = message["content"]
    said: Json = {"role": "assistant", "content": _joined(blocks, "text") or None, "refusal": None}
    if cited := [one for block in blocks for one in block.get("citations") or () if "url" in one]:
        said["annotations"] = list(map(annotation, cited))
    if thinking := _joined(blocks, "thinking"):
        said["reasoning_content"] = thinking
    if calls := [_called(block) for block in blocks if block["type"] == "tool_use"]:
        said["tool_calls"] = calls
    finish = FINISHES.get(message["stop_reason"], "stop")
    return {
        **opened(message, "chat.completion"),
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": usage_of(message["usage"]),
    }


def _joined(blocks: list[Json], kind: str) -> str:
    return "".join(block[kind] for block in blocks if block["type"] == kind)


def _called(block: Json) -> Json:
    function = {"name": block["name"], "arguments": json.dumps(block["input"])}
    return {"id": block["id"], "type": "function", "function": function}


# The request


def messages_request(payload: Json) -> Json:
    """A request of Chat Completions as one of Messages."""
    limit = payload.get("max_completion_tokens") or payload.get("max_tokens") or USUAL_TOKENS
    body: Json = {"model": payload["model"], "max_tokens": limit}
    body["messages"] = list(_merged(payload["messages"]))
    system = [message for message in payload["messages"] if message["role"] in SYSTEM]
    if system:
        body["system"] = "\n".join(_text(message["content"]) for message in system)
    for name in ("temperature", "top_p", "stream"):
        if payload.get(name) is not None:
            body[name] = payload[name]
    if stop := payload.get("stop"):
        body["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if payload.get("tools"):
        body["tools"] = [_tool(tool["function"]) for tool in payload["tools"]]
        body["tool_choice"] = _choice(payload)
    if payload.get("user"):
        body["metadata"] = {"user_id": payload["user"]}
    form = payload.get("response_format") or {}
    if form.get("type") == "json_schema":
        schema = form["json_schema"]["schema"]
        body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    if payload.get("reasoning_effort", "none") != "none" and limit > THINKING_TOKENS:
        body["thinking"] = {"type": "enabled", "budget_tokens": THINKING_TOKENS}
    return body


SYSTEM = ("system", "developer")


def _tool(function: Json) -> Json:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    described = function.get("description", "")
    strict = {"strict": function["strict"]} if "strict" in function else {}
    return {"name": function["name"], "description": described, "input_schema": schema, **strict}


def _choice(payload: Json) -> Json:
    choice = payload.get("tool_choice", "auto")
    if isinstance(choice, dict):
        chosen: Json = {"type": "tool", "name": choice["function"]["name"]}
    else:
        chosen = {"type": {"required": "any"}.get(choice, choice)}
    if "parallel_tool_calls" in payload and chosen["type"] != "none":
        chosen["disable_parallel_tool_use"] = not payload["parallel_tool_calls"]
    return chosen


def _merged(messages: list[Json]) -> Iterator[Json]:
    """The messages without the system's; those of one role that follow each other are one."""
    last: Json | None = None
    for message in messages:
        if message["role"] in SYSTEM:
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = list(_blocks(message))
        if last is not None and last["role"] == role:
            last["content"] += blocks
            continue
        if last is not None:
            yield last
        last = {"role": role, "content": blocks}
    if last is not None:
        yield last


def _blocks(message: Json) -> Iterator[Json]:
    content = message.get("content")
    if message["role"] == "tool":
        text = _text(content)
        yield {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": text}
        return
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for part in content or ():
        if part["type"] == "text" and part["text"]:
            yield {"type": "text", "text": part["text"]}
        elif part["type"] == "image_url":
            yield {"type": "image", "source": _source(part["image_url"]["url"])}
    for call in message.get("tool_calls") or ():
        function = call["function"]
        arguments = json.loads(function["arguments"] or "{}")
        yield {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def _source(url: str) -> Json:
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return {"type": "base64", "media_type": kind, "data": data}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content or () if part["type"] == "text")
