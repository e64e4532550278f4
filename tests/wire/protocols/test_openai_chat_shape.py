"""The fields of Chat's chunks and bodies are those that OpenAI sends."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from mockllm.core.turn import Text, TokenUsage, ToolCall, Turn
from mockllm.play.tapes.captured import detect_api
from mockllm.record.importers.file_formats import files
from mockllm.record.importers.reading import Unread
from mockllm.wire.framing.sse import decode
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.openai_chat.protocol import PROTOCOL
from mockllm.wire.protocols.openai_chat.request import Options
from tests.corpus import CORPUS, needs_corpus, read, recorded_files
from tests.wire.protocols.streams import encoded

CALL = ToolCall("f", "call_1", ('{"a":1}',))
USAGE = TokenUsage(1, 1)
TURNS = (
    Turn((Text(("a", "b")), CALL), "tool_calls", USAGE),
    Turn((Text(("a",)),), "stop", USAGE),
    Turn((CALL,), "tool_calls", USAGE),
)
ON_REQUEST = (".moderation", ".choices[].logprobs.")
"""Fields that OpenAI sends only to requests with options that mockllm does not play."""


def paths(value: Any, path: str = "") -> Iterator[str]:
    """The path of each field in a JSON value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}.{key}"
            yield from paths(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from paths(item, f"{path}[]")


_CONTENT = ("tool_calls", "annotations", "refusal", "reasoning_content", "content")


def kind(chunk: dict[str, Any]) -> str:
    """What a chunk is: `first`, `finish`, `usage`, `error`, or its content."""
    if not chunk.get("choices"):
        return "error" if chunk.get("error") else "usage"
    choice = chunk["choices"][0]
    delta = choice.get("delta") or {}
    if choice.get("finish_reason"):
        return "finish"
    if "role" in delta:
        return "first"
    return next((key for key in _CONTENT if delta.get(key) is not None), "other")


Shapes = dict[str, set[str]]


def added(shapes: Shapes, data: str) -> None:
    """Adds the paths of an event, by its kind; those of a body are under `body`."""
    value = json.loads(data)
    name = "body" if value.get("object") == "chat.completion" else kind(value)
    shapes[name] |= {path for path in paths(value) if not path.startswith(ON_REQUEST)}


def recorded() -> Shapes:
    """The paths in the recordings of api.openai.com."""
    shapes: Shapes = defaultdict(set)
    for path in [*recorded_files(), *files([CORPUS / "suite"])]:
        for one in read(path):
            if isinstance(one, Unread) or "//api.openai.com/" not in one.url or one.status != 200:
                continue
            if detect_api(one).protocol is not PROTOCOL:
                continue
            body = one.plain().body
            texts = [body.decode()] if body.startswith(b"{") else [f.data for f in decode(body)]
            for text in texts:
                if text and text.startswith("{"):
                    added(shapes, text)
    return shapes


def ours() -> Shapes:
    """The paths in what mockllm sends."""
    shapes: Shapes = defaultdict(set)
    for turn in TURNS:
        options = Options(stream_usage=True, obfuscation=True)
        reply = Reply("seed", "0" * 40, "m", options, USAGE)
        for frame in encoded(PROTOCOL, turn, reply):
            if frame.data and frame.data.startswith("{"):
                added(shapes, frame.data)
        added(shapes, json.dumps(PROTOCOL.encode_body(turn, reply)))
    return shapes


@pytest.mark.slow
@needs_corpus
def test_fields_are_those_of_the_service() -> None:
    """Each kind of chunk, and the body, has every field that OpenAI sends, and no other."""
    mine, theirs = ours(), recorded()
    kinds = theirs.keys() & mine.keys()
    assert kinds >= {"first", "content", "tool_calls", "finish", "usage", "body"}
    assert {kind: mine[kind] ^ theirs[kind] for kind in kinds if mine[kind] != theirs[kind]} == {}
