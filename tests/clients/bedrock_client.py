"""The ways to send a request of Converse with boto3. Each returns an `Answer`: `body` is not
streamed, `stream` is accumulated by hand, as boto3 leaves it to its users."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import boto3
from botocore.config import Config

from tests.clients.dialects import Json
from tests.clients.oracle import Answer, Seen, read_arguments
from tests.timeouts import GIVE_UP

FAILING = """\
scenario: throttled
match: {user: throttled}
turns: [{http: {status: 429, retry_after: 1ms}, repeat: true}]
---
scenario: in-stream
match: {user: in the stream}
turns:
  - reply:
      - {text: Hel}
      - error: {message: Slow down, type: throttlingException}
---
"""
"""Scenarios that fail before and inside of the stream, as Bedrock does."""


@contextmanager
def bedrock(url: str, *, attempts: int = 3) -> Iterator[Any]:
    """A client for a server; `attempts` is how often it tries a request."""
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="mock-key",
        aws_secret_access_key="mock-key",
        config=Config(
            retries={"total_max_attempts": attempts, "mode": "standard"},
            read_timeout=GIVE_UP,
            proxies={},
        ),
    )
    try:
        yield client
    finally:
        client.close()


def arguments(request: Json) -> Json:
    """The arguments of an operation."""
    return {"modelId" if name == "model" else name: value for name, value in request.items()}


def _body(client: Any, request: Json) -> Answer:
    response = client.converse(**arguments(request))
    assert response["ResponseMetadata"]["RequestId"]
    return of_response(response)


def _stream(client: Any, request: Json) -> Answer:
    # A stream that fails would leave its socket to the garbage collector.
    with closing(client.converse_stream(**arguments(request))["stream"]) as events:
        return of_events(events)


def of_response(response: Json) -> Answer:
    """The answer of an operation that does not stream."""
    message = response["output"]["message"]
    return _answer(message["content"], response["stopReason"], response["usage"])


def of_events(events: Iterable[Json]) -> Answer:
    """Accumulates a stream, and asserts the documented order of its events."""
    begun, *others, stop, end = (next(iter(event.items())) for event in events)
    assert begun == ("messageStart", {"role": "assistant"})
    assert (stop[0], end[0]) == ("messageStop", "metadata")
    assert end[1]["metrics"]["latencyMs"] > 0
    blocks: dict[int, Json] = {}
    inputs: defaultdict[int, str] = defaultdict(str)
    closed = set()
    for name, value in others:
        index = value["contentBlockIndex"]
        assert index not in closed
        match name:
            case "contentBlockStart":
                assert index == len(blocks)
                blocks[index] = {"toolUse": dict(value["start"]["toolUse"])}
            case "contentBlockDelta":
                inputs[index] += value["delta"].get("toolUse", {}).get("input", "")
                _add(blocks.setdefault(index, {}), value["delta"])
            case "contentBlockStop":
                closed.add(index)
    assert closed == set(blocks)
    for index, block in blocks.items():
        if "toolUse" in block:
            block["toolUse"]["input"] = read_arguments(inputs[index] or "{}")
    content = [blocks[index] for index in sorted(blocks)]
    return _answer(content, stop[1]["stopReason"], end[1]["usage"])


def _add(block: Json, delta: Json) -> None:
    match delta:
        case {"text": text}:
            block["text"] = block.get("text", "") + text
        case {"citation": citation}:
            block.setdefault("citations", []).append(citation)
        case {"reasoningContent": content}:
            texts = block.setdefault("reasoningContent", {}).setdefault("reasoningText", {})
            for name, text in content.items():
                texts[name] = texts.get(name, "") + text


def _answer(content: list[Json], finish: str, usage: Json) -> Answer:
    texts: defaultdict[str, str] = defaultdict(str)
    calls, cites = [], []
    echo = []
    for block in content:
        cited = block.get("citationsContent", {})
        text = block.get("text", "") + "".join(part["text"] for part in cited.get("content", ()))
        texts["text"] += text
        citations = [*block.get("citations", ()), *cited.get("citations", ())]
        cites += [(cite["location"]["web"]["url"], cite.get("title", "")) for cite in citations]
        if "reasoningContent" in block:
            texts["reasoning"] += block["reasoningContent"]["reasoningText"]["text"]
        if "toolUse" in block:
            use = block["toolUse"]
            calls.append((use["toolUseId"], use["name"], use["input"]))
        if text.strip():
            echo.append({"text": text})
        elif not text:
            echo.append(block)
    cached, written = usage.get("cacheReadInputTokens", 0), usage.get("cacheWriteInputTokens", 0)
    counted = (usage["inputTokens"] + cached + written, usage["outputTokens"], 0, cached)
    assert usage["totalTokens"] == counted[0] + counted[1]
    seen = Seen(
        text=texts["text"],
        reasoning=texts["reasoning"],
        calls=tuple(calls),
        finish=finish,
        usage=counted,
        cites=tuple(cites),
    )
    return Answer(seen, [{"role": "assistant", "content": echo}], "")


WAYS: dict[str, Callable[[Any, Json], Answer]] = {"body": _body, "stream": _stream}
