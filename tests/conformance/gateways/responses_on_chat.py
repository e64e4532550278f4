"""A gateway from Responses to Chat Completions, which imports nothing of mockllm and keeps no
answers: `python -m tests.conformance.gateways responses_on_chat`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import aiohttp
from aiohttp import web

from tests.conformance.gateways.translating import BROKE_OFF, HTTP, URL, Json, Lines, connected


def application(upstream: str) -> web.Application:
    """The gateway.

    Args:
        upstream: the base URL of its upstream, which ends in `/v1`.
    """
    app = web.Application(client_max_size=2**26)
    app.cleanup_ctx.append(connected)
    app[URL] = f"{upstream}/chat/completions"
    app.router.add_post("/v1/responses", _answer)
    return app


async def _answer(request: web.Request) -> web.StreamResponse:
    payload = json.loads(await request.read())
    headers = {"authorization": request.headers.get("authorization", "")}
    try:
        async with request.app[HTTP].post(
            request.app[URL], headers=headers, json=chat_request(payload)
        ) as got:
            if got.status >= 400:
                return _error(got.status, got.headers, await got.read())
            if payload.get("stream"):
                return await _stream(request, got, payload)
            return web.json_response(response_of(json.loads(await got.read())))
    except aiohttp.ClientError:
        return _error(502, {}, BROKE_OFF.encode())


async def _stream(
    request: web.Request, got: aiohttp.ClientResponse, payload: Json
) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
    await answer.prepare(request)
    lines, stream = Lines(), Stream()
    try:
        async for data in got.content.iter_any():
            for text in lines.feed(data):
                for event in stream.feed(text):
                    await answer.write(written(event, stream))
    except aiohttp.ClientError:
        pass  # the stream says that it has no end
    for event in stream.close():
        await answer.write(written(event, stream))
    return answer


def written(event: Json, stream: Stream) -> bytes:
    """An event as bytes, with its number."""
    numbered = {**event, "sequence_number": stream.number}
    stream.number += 1
    return f"event: {event['type']}\ndata: {json.dumps(numbered)}\n\n".encode()


def _error(status: int, headers: Any, body: bytes) -> web.Response:
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        error = {"message": body.decode("utf-8", "replace"), "type": "server_error"}
    kept = {name: headers[name] for name in ("retry-after", "retry-after-ms") if name in headers}
    return web.json_response({"error": error}, status=status, headers=kept)


# Answers


class Item:
    """An item of the output: reasoning, a message or a call."""

    def __init__(self, kind: str, number: int, **fields: Any) -> None:
        self.kind, self.number, self.fields = kind, number, fields
        self.id = f"{kind}_{number}"
        self.text = ""
        self.waiting: list[str] = []
        self.citations: list[Json] = []
        self.opened = False

    def value(self, *, done: bool) -> Json:
        """The item as it is at its beginning, or at its end."""
        status = "completed" if done else "in_progress"
        text = self.text if done else ""
        if self.kind == "function_call":
            return {"type": self.kind, "id": self.id, "status": status, "arguments": text} | (
                self.fields
            )
        if self.kind == "reasoning":
            content = [{"type": "summary_text", "text": text}] if done else []
            return {"type": "reasoning", "id": self.id, "summary": content}
        message = {"type": "message", "id": self.id, "role": "assistant", "status": status}
        return {**message, "content": [self.part(done=True)] if done else []}

    def part(self, *, done: bool) -> Json:
        """The content of a message, or the summary of reasoning."""
        text = self.text if done else ""
        if self.kind == "reasoning":
            return {"type": "summary_text", "text": text}
        if self.fields["refusal"]:
            return {"type": "refusal", "refusal": text}
        cited = self.citations if done else []
        return {"type": "output_text", "text": text, "annotations": cited, "logprobs": []}

    def at(self) -> Json:
        """Where it is."""
        index = {"summary_index": 0} if self.kind == "reasoning" else {"content_index": 0}
        place = {"item_id": self.id, "output_index": self.number}
        return place if self.kind == "function_call" else {**place, **index}

    @property
    def stem(self) -> str:
        """Of its events."""
        if self.kind == "function_call":
            return "response.function_call_arguments"
        if self.kind == "reasoning":
            return "response.reasoning_summary_text"
        return "response.refusal" if self.fields["refusal"] else "response.output_text"

    @property
    def around(self) -> str:
        """The stem of the events around its text; "" for none."""
        stems = {
            "reasoning": "response.reasoning_summary_part",
            "message": "response.content_part",
        }
        return stems.get(self.kind, "")

    def events(self) -> Iterator[Json]:
        """The events with what of it has come."""
        if not self.opened:
            self.opened = True
            place = {"output_index": self.number}
            yield {
                "type": "response.output_item.added",
                **place,
                "item": self.value(done=False),
            }
            if self.around:
                yield {"type": f"{self.around}.added", **self.at(), "part": self.part(done=False)}
        while self.waiting:
            text = self.waiting.pop(0)
            yield {"type": f"{self.stem}.delta", **self.at(), "delta": text}

    def end(self) -> Iterator[Json]:
        """The events at its end."""
        for number, cited in enumerate(self.citations):
            yield {
                "type": "response.output_text.annotation.added",
                **self.at(),
                "annotation_index": number,
                "annotation": cited,
            }
        name = {"function_call": "arguments"}.get(self.kind, "text")
        name = "refusal" if self.fields.get("refusal") else name
        yield {"type": f"{self.stem}.done", **self.at(), name: self.text}
        if self.around:
            yield {"type": f"{self.around}.done", **self.at(), "part": self.part(done=True)}
        yield {
            "type": "response.output_item.done",
            "output_index": self.number,
            "item": self.value(done=True),
        }


class Stream:
    """Turns the chunks of a Chat stream into the events of a Responses stream."""

    def __init__(self) -> None:
        self.number = 0
        self._id = self._model = ""
        self._items: list[Item] = []
        self._calls: dict[int, Item] = {}
        self._finish = ""
        self._usage: Json | None = None
        self._ended = False

    def feed(self, data: str) -> Iterator[Json]:
        """The events of an event's data."""
        if self._ended:
            return
        if data.strip() == "[DONE]":
            yield from self.close()
            return
        chunk = json.loads(data)
        if chunk.get("error"):
            self._ended = True
            error = chunk["error"]
            yield {"type": "error", "code": error.get("code"), "message": error["message"]}
            return
        if not self._id:
            self._id, self._model = f"resp_{chunk['id']}", chunk["model"]
            yield {"type": "response.created", "response": self._response("in_progress")}
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk.get("choices") or ():
            self._add(choice.get("delta") or {})
            self._finish = self._finish or choice.get("finish_reason") or ""
        for item in self._items:
            yield from item.events()

    def close(self) -> Iterator[Json]:
        """The events at the end; an error where the answer of the upstream has none."""
        if self._ended:
            return
        self._ended = True
        if not self._finish:
            yield {"type": "error", "code": "server_error", "message": BROKE_OFF}
            return
        for item in self._items:
            yield from item.end()
        status = "incomplete" if self._finish in INCOMPLETE else "completed"
        yield {"type": f"response.{status}", "response": self._response(status)}

    def _response(self, status: str) -> Json:
        over = status != "in_progress"
        output = [item.value(done=True) for item in self._items] if over else []
        return whole(self._id, self._model, status, self._finish, output, self._usage)

    def _add(self, delta: Json) -> None:
        self._text("reasoning", delta.get("reasoning_content"))
        self._text("message", delta.get("content"), refusal=False)
        self._text("message", delta.get("refusal"), refusal=True)
        for cited in delta.get("annotations") or ():
            self._items[-1].citations.append({"type": "url_citation", **cited["url_citation"]})
        for entry in delta.get("tool_calls") or ():
            function = entry.get("function") or {}
            if entry["index"] not in self._calls:
                item = Item(
                    "function_call",
                    len(self._items),
                    call_id=entry["id"],
                    name=function["name"],
                )
                self._items.append(item)
                self._calls[entry["index"]] = item
            self._append(self._calls[entry["index"]], function.get("arguments"))

    def _text(self, kind: str, text: str | None, **fields: Any) -> None:
        if not text:
            return
        last = self._items[-1] if self._items else None
        if last is None or last.kind != kind or last.fields != fields:
            last = Item(kind, len(self._items), **fields)
            self._items.append(last)
        self._append(last, text)

    def _append(self, item: Item, text: str | None) -> None:
        if text:
            item.text += text
            item.waiting.append(text)


INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def whole(
    id: str, model: str, status: str, finish: str, output: list[Json], usage: Json | None
) -> Json:
    """A response."""
    reason = INCOMPLETE.get(finish)
    return {
        "id": id,
        "object": "response",
        "created_at": 0,
        "model": model,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if usage is None else usage_of(usage),
    }


def usage_of(usage: Json) -> Json:
    """Usage under the names of Responses."""
    given, made = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    thinking = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": thinking},
        "total_tokens": given + made,
    }


def response_of(body: Json) -> Json:
    """The response of a completion."""
    (choice,) = body["choices"]
    finish = choice["finish_reason"]
    stream = Stream()
    calls = [
        {"index": index, **call}
        for index, call in enumerate(choice["message"].get("tool_calls") or ())
    ]
    stream._add({**choice["message"], "tool_calls": calls})
    output = [item.value(done=True) for item in stream._items]
    status = "incomplete" if finish in INCOMPLETE else "completed"
    return whole(f"resp_{body['id']}", body["model"], status, finish, output, body.get("usage"))


# Requests


def chat_request(payload: Json) -> Json:
    """A request of Responses as one of Chat Completions."""
    body: Json = {"model": payload["model"], "messages": list(_messages(payload))}
    for name, other in NAMES.items():
        if payload.get(name) is not None:
            body[other] = payload[name]
    if payload.get("stream"):
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if payload.get("tools"):
        body["tools"] = [_tool(tool) for tool in payload["tools"]]
    form = (payload.get("text") or {}).get("format") or {}
    if form.get("type") == "json_schema":
        schema = {name: value for name, value in form.items() if name != "type"}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif form.get("type") == "json_object":
        body["response_format"] = {"type": "json_object"}
    choice = payload.get("tool_choice")
    if isinstance(choice, dict):
        choice = {"type": "function", "function": {"name": choice["name"]}}
    if choice:
        body["tool_choice"] = choice
    if effort := (payload.get("reasoning") or {}).get("effort"):
        body["reasoning_effort"] = effort
    return body


NAMES = {
    "max_output_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "user": "user",
    "metadata": "metadata",
    "parallel_tool_calls": "parallel_tool_calls",
}


def _tool(tool: Json) -> Json:
    function = {name: value for name, value in tool.items() if name != "type"}
    return {"type": "function", "function": function}


def _messages(payload: Json) -> Iterator[Json]:
    if payload.get("instructions"):
        yield {"role": "system", "content": payload["instructions"]}
    given = payload["input"]
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    calls: list[Json] = []
    said: Json | None = None
    for item in given:
        kind = item.get("type", "message")
        if kind == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            calls.append({"id": item["call_id"], "type": "function", "function": function})
            continue
        if calls:
            yield {**(said or {"role": "assistant", "content": None}), "tool_calls": calls}
            calls, said = [], None
        if said is not None:
            yield said
            said = None
        if kind == "function_call_output":
            yield {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
        elif kind == "message" and item["role"] == "assistant":
            said = {"role": "assistant", "content": _content(item["content"])}
        elif kind == "message":
            yield {"role": item["role"], "content": _content(item["content"])}
    if calls:
        yield {**(said or {"role": "assistant", "content": None}), "tool_calls": calls}
    elif said is not None:
        yield said


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [
        {"type": "image_url", "image_url": {"url": part["image_url"]}}
        if part["type"] == "input_image"
        else {"type": "text", "text": part["text"]}
        for part in content
    ]
