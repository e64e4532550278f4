"""`StreamEvents.mistakes`: what of a whole stream is against the form of its API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mockllm.checking.cases.compile import case_specs
from mockllm.core.events import Frame
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.values import json_object
from tests.corpus import corpus_recordings, needs_corpus


def _mistakes(protocol: WireProtocol, frames: list[Frame]) -> list[str]:
    values = (json_object(frame.data) for frame in frames)
    given = [value for value in values if value is not None]
    return [text for text, _ in protocol.events.mistakes(given)]


@pytest.mark.large
@pytest.mark.slow
def test_what_mockllm_sends_has_the_form() -> None:
    """No stream of the kit without a quirk has a mistake, however it is cut."""
    wrong = {}
    for api, protocol in PROTOCOLS.items():
        for spec in case_specs(api, variations=1):
            if not spec.quirk:
                frames = protocol.usual.decode(b"".join(spec.compile().answer.data))
                if mistakes := _mistakes(protocol, frames):
                    wrong[spec.name] = mistakes
    assert wrong == {}


@needs_corpus
def test_what_services_send_has_the_form() -> None:
    """Nor have the recorded streams, but for those of servers that leave out events."""
    wrong = {
        f"{one.api}/{one.name}": mistakes
        for one in corpus_recordings()
        if (mistakes := _mistakes(PROTOCOLS[one.api], PROTOCOLS[one.api].usual.decode(one.stream)))
    }
    assert set(wrong) == KNOWN


KNOWN = {"responses/test-openai-responses-model-mcp-list-tools-stream-backfills--0"}
"""Recordings whose project took an event out, to test its own reaction."""


def _block(kind: str, index: int, **more: Any) -> dict[str, Any]:
    return {"type": f"content_block_{kind}", "index": index, **more}


def _call(index: Any, id: str | None = None) -> dict[str, Any]:
    call = {"index": index, "id": id, "function": {"arguments": ""}}
    return {"choices": [{"delta": {"tool_calls": [call]}}]}


def _item(kind: str, index: int, number: int) -> dict[str, Any]:
    return {"type": f"response.{kind}", "output_index": index, "sequence_number": number}


_END = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
_START, _STOP = {"type": "message_start"}, {"type": "message_stop"}
_CREATED = {"type": "response.created", "sequence_number": 0}

MISTAKES: list[tuple[str, list[dict[str, Any]], str]] = [
    ("anthropic", [_block("start", 0)], "the first event is content_block_start"),
    ("anthropic", [_START, _START], "message_start comes 2 times"),
    ("anthropic", [_START, _STOP, _block("stop", 0)], "content_block_stop comes after"),
    ("anthropic", [_START, _block("delta", 0)], "content_block_delta for the block 0"),
    ("anthropic", [_START, _block("start", 0), _block("start", 0)], "a second block opens"),
    ("anthropic", [_START, _block("start", 0), _STOP], "the block 0 never ends"),
    ("chat", [_call(None, "a")], "a call has no index"),
    ("chat", [_call(0)], "the call 0 begins without an id"),
    ("chat", [_call(0, "a"), _call(0, "b")], "two calls have the index 0: a and b"),
    ("chat", [_call(0, "a"), _call(1, "a")], "the id a belongs to two calls"),
    ("chat", [_END, _call(0, "a")], "content comes after the finish reason"),
    ("responses", [_item("output_item.added", 0, 0)], "the first event is"),
    (
        "responses",
        [_CREATED, _item("output_text.delta", 0, 1)],
        "for the item 0, which is not open",
    ),
    ("responses", [_CREATED, _item("output_item.done", 0, 1)], "the item 0 ends"),
    (
        "responses",
        [_CREATED, _item("output_item.added", 0, 1), _item("output_item.added", 0, 2)],
        "a second item opens",
    ),
    ("responses", [_CREATED, _item("output_item.added", 0, 0)], "the sequence numbers do not grow"),
    (
        "responses",
        [_CREATED, {"type": "response.completed"}, _item("output_item.added", 0, 1)],
        "comes after response.completed",
    ),
    (
        "responses",
        [_CREATED, _item("output_item.added", 0, 1), {"type": "response.completed"}],
        "the item 0 never ends",
    ),
    ("bedrock", [{"contentBlockDelta": {"contentBlockIndex": 0}}], "the first event is"),
    (
        "bedrock",
        [{"messageStart": {}}, {"contentBlockStop": {"contentBlockIndex": 0}}],
        "contentBlockStop for the block 0",
    ),
    (
        "bedrock",
        [
            {"messageStart": {}},
            {"contentBlockStart": {"contentBlockIndex": 0}},
            {"contentBlockStart": {"contentBlockIndex": 0}},
        ],
        "a second block opens",
    ),
    (
        "bedrock",
        [
            {"messageStart": {}},
            {"contentBlockDelta": {"contentBlockIndex": 0}},
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"contentBlockDelta": {"contentBlockIndex": 0}},
        ],
        "contentBlockDelta for the block 0, which has ended",
    ),
    (
        "bedrock",
        [
            {"messageStart": {}},
            {"contentBlockDelta": {"contentBlockIndex": 0}},
            {"messageStop": {}},
        ],
        "the block 0 never ends",
    ),
]


def test_each_mistake_is_found() -> None:
    """Every sentence about the form has a stream that shows it."""
    for api, events, sentence in MISTAKES:
        frames = [Frame(json.dumps(event)) for event in events]
        found = _mistakes(PROTOCOLS[api], frames)
        assert any(sentence in mistake for mistake in found), (api, events, found)
