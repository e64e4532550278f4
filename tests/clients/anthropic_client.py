"""The ways to send a request with the official `anthropic` client, sync and async.

Each returns an `Answer`. `body` is not streamed; `stream` is accumulated by hand; `helper` is the
client's own accumulation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anthropic
from anthropic.types import Message, RawMessageStreamEvent, ToolUseBlock, Usage

from tests.clients.dialects import Json
from tests.clients.oracle import Answer, Seen, read_arguments

# Answers


def of_message(message: Message) -> Answer:
    """Reads a whole message."""
    texts: dict[str, str] = defaultdict(str)
    calls = []
    cites: list[tuple[str, str]] = []
    for block in message.content:
        match block.type:
            case "text":
                texts["text"] += block.text
                cites += [(cite.url, cite.title or "") for cite in block.citations or ()]
            case "thinking":
                assert block.signature
                texts["reasoning"] += block.thinking
            case "tool_use":
                calls.append((block.id, block.name, block.input))
    seen = Seen(
        text=texts["text"],
        reasoning=texts["reasoning"],
        calls=tuple(calls),
        finish=message.stop_reason or "",
        usage=_usage(message.usage),
        cites=tuple(cites),
    )
    # Malformed arguments are text, where the client's types require an object: pydantic would warn.
    content = [
        block if block.type != "tool_use" or isinstance(block.input, dict) else _untyped(block)
        for block in message.content
    ]
    return Answer(seen, [{"role": "assistant", "content": content}], message.id)


def _untyped(block: ToolUseBlock) -> Json:
    return block.to_dict(warnings=False)


def _usage(usage: Usage) -> tuple[int, int, int, int]:
    cached = usage.cache_read_input_tokens or 0
    created = usage.cache_creation_input_tokens or 0
    details = usage.output_tokens_details
    thought = details.thinking_tokens if details is not None else 0
    return usage.input_tokens + created + cached, usage.output_tokens, thought, cached


_ADDED = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("input", "partial_json"),
}


def of_events(events: Sequence[RawMessageStreamEvent]) -> Answer:
    """Accumulates a stream by hand, and asserts the documented order of its events."""
    begun, *others, last, stop = events
    assert (begun.type, last.type, stop.type) == ("message_start", "message_delta", "message_stop")
    assert begun.message.content == []
    assert begun.message.stop_reason is None
    blocks: list[dict[str, Any]] = []
    open_blocks: set[int] = set()
    for event in others:
        match event.type:
            case "content_block_start":
                assert event.index == len(blocks)
                open_blocks.add(event.index)
                blocks.append({**event.content_block.to_dict(), "cites": []})
            case "content_block_delta":
                assert event.index in open_blocks
                _add(blocks[event.index], event.delta)
            case "content_block_stop":
                open_blocks.remove(event.index)
            case other:
                raise AssertionError(f"{other} in the middle of a message")
    assert not open_blocks
    usage = begun.message.usage.to_dict() | last.usage.to_dict(exclude_unset=True)
    seen = Seen(
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        reasoning="".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        calls=tuple(
            (block["id"], block["name"], _input(block))
            for block in blocks
            if block["type"] == "tool_use"
        ),
        finish=last.delta.stop_reason or "",
        usage=_usage(Usage.model_validate(usage)),
        cites=tuple(cite for block in blocks for cite in block["cites"]),
    )
    return Answer(seen, [{"role": "assistant", "content": _echoed(blocks)}], begun.message.id)


def _add(block: dict[str, Any], delta: Any) -> None:
    if delta.type == "citations_delta":
        block["cites"].append((delta.citation.url, delta.citation.title or ""))
        return
    name, field = _ADDED[delta.type]
    # A call begins with the value `{}`, which its fragments replace.
    before = block.get(name) or ""
    block[name] = before + getattr(delta, field)


def _input(block: dict[str, Any]) -> Any:
    return read_arguments(block["input"] or "{}")


def _echoed(blocks: list[dict[str, Any]]) -> list[Json]:
    """The blocks as JSON, as a client sends them back."""
    echo = []
    for block in blocks:
        sent = {name: value for name, value in block.items() if name not in ("cites", "citations")}
        echo.append({**sent, "input": _input(block)} if block["type"] == "tool_use" else sent)
    return echo


# The ways to send


def body(client: anthropic.Anthropic, request: Json) -> Answer:
    return of_message(client.messages.create(**request))


def stream(client: anthropic.Anthropic, request: Json) -> Answer:
    with client.messages.create(**request, stream=True) as events:
        return of_events(list(events))


def helper(client: anthropic.Anthropic, request: Json) -> Answer:
    with client.messages.stream(**request) as events:
        seen = list(events)
        message = events.get_final_message()
    _agrees(seen, message)
    return of_message(message)


def _agrees(events: Sequence[Any], message: Message) -> None:
    """Asserts that the client's own events have the content of its final message."""
    answer = of_message(message).seen
    assert "".join(event.text for event in events if event.type == "text") == answer.text
    thought = "".join(event.thinking for event in events if event.type == "thinking")
    assert thought == answer.reasoning
    assert [e.content_block for e in events if e.type == "content_block_stop"] == message.content


WAYS: dict[str, Callable[[anthropic.Anthropic, Json], Answer]] = {
    "body": body,
    "stream": stream,
    "helper": helper,
}


async def body_async(client: anthropic.AsyncAnthropic, request: Json) -> Answer:
    return of_message(await client.messages.create(**request))


async def stream_async(client: anthropic.AsyncAnthropic, request: Json) -> Answer:
    async with await client.messages.create(**request, stream=True) as events:
        return of_events([event async for event in events])


async def helper_async(client: anthropic.AsyncAnthropic, request: Json) -> Answer:
    async with client.messages.stream(**request) as events:
        seen = [event async for event in events]
        message = await events.get_final_message()
    _agrees(seen, message)
    return of_message(message)


ASYNC_WAYS: dict[str, Callable[[anthropic.AsyncAnthropic, Json], Awaitable[Answer]]] = {
    "body": body_async,
    "stream": stream_async,
    "helper": helper_async,
}
