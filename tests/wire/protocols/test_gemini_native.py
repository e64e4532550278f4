"""Gemini: what an answer says of its sources and of itself, and why it ended."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types

from mockllm.core.events import Cite, Frame
from mockllm.core.turn import Opaque, Text, TokenUsage, ToolCall, Turn
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.gemini.fields import ABNORMAL, FINISH_REASONS, Options
from mockllm.wire.protocols.gemini.native import NATIVE
from mockllm.wire.protocols.gemini.protocol import PROTOCOL
from mockllm.wire.protocols.native import by_key
from tests.wire.protocols.streams import encoded, read, untimed

REPLY = Reply("seed", "0" * 40, "gemini-2.5-flash", Options())
USAGE = TokenUsage(11, 7)
VALUES: dict[str, Any] = {
    "groundingMetadata": {
        "webSearchQueries": ["tides"],
        "searchEntryPoint": {"renderedContent": "<div>tides</div>", "sdkBlob": "YQ=="},
        "retrievalMetadata": {"googleSearchDynamicRetrievalScore": 0.5},
    },
    "urlContextMetadata": {
        "urlMetadata": [
            {
                "retrievedUrl": "https://example.com/",
                "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS",
            }
        ]
    },
    "citationMetadata": {"citations": [{"startIndex": 1, "endIndex": 4, "license": "MIT"}]},
    "continuationToken": {"token": "YWJj"},
}
every_field = pytest.mark.parametrize("name", VALUES)


def native(name: str, value: Any) -> Opaque:
    """A native part as it is read."""
    text = json.dumps({"type": name, **value}, separators=(",", ":"))
    return Opaque("gemini", Frame(text), native=True)


def chunks(turn: Turn) -> list[dict[str, Any]]:
    """The chunks of a stream."""
    return [json.loads(frame.data or "") for frame in encoded(PROTOCOL, turn, REPLY)]


def test_every_field_has_a_sample() -> None:
    """The samples are those of the table, and in its order."""
    assert list(VALUES) == list(NATIVE)


@every_field
def test_a_field_is_sent_at_the_end_and_read(name: str) -> None:
    """It is in the last chunk and in the body, as the SDK's types have it, and comes back."""
    turn = Turn((Text(("High.",)), native(name, VALUES[name])), "stop", USAGE)
    *before, last = chunks(turn)
    body = PROTOCOL.encode_body(turn, REPLY)
    sent = VALUES[name].get("token", VALUES[name])
    assert last["candidates"][0][name] == body["candidates"][0][name] == sent
    assert not any(name in chunk["candidates"][0] for chunk in before)
    assert types.GenerateContentResponse.model_validate(
        {key: value for key, value in body.items() if key != "usageMetadata"}
    )
    assert read(PROTOCOL, untimed(encoded(PROTOCOL, turn, REPLY))) == turn
    assert PROTOCOL.decode_body(body) == turn


@every_field
def test_other_shapes_are_refused_and_kept_as_frames(name: str) -> None:
    """A misspelt key is a mistake of a scenario; a recorded one is a frame."""
    value = {"type": name, **VALUES[name]}
    assert list(by_key("type", NATIVE)(value)) == []
    assert [path for path, _ in by_key("type", NATIVE)({**value, "newer": 1})] == [("newer",)]
    candidate = {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP", name: {"newer": 1}}
    turn = PROTOCOL.decode_body({"candidates": [candidate]})
    (part,) = [part for part in turn.parts if isinstance(part, Opaque)]
    assert not part.native
    assert json.loads(part.frame.data or "")["candidates"][0][name] == {"newer": 1}


def test_a_token_is_base64() -> None:
    """It is bytes, which clients decode."""
    value = {"type": "continuationToken", "token": "not base64"}
    assert list(by_key("type", NATIVE)(value)) == [(("token",), "must be base64, got 'not base64'")]


def test_sources_and_queries_are_one_grounding() -> None:
    """Citations and the queries that led to them are sent in one object, and read apart."""
    cited = Text(("High.",), (Cite(0, "https://example.com/", "Tides", "High."),))
    queries = native("groundingMetadata", {"webSearchQueries": ["tides"]})
    turn = Turn((cited, queries), "stop", USAGE)
    grounding = chunks(turn)[-1]["candidates"][0]["groundingMetadata"]
    assert list(grounding) == ["groundingChunks", "groundingSupports", "webSearchQueries"]
    assert PROTOCOL.decode_body(PROTOCOL.encode_body(turn, REPLY)) == turn


def test_a_long_list_is_a_frame() -> None:
    """Fifty brackets and more are no YAML; nothing of them is lost."""
    value = {"urlMetadata": [{"retrievedUrl": f"https://example.com/{n}"} for n in range(60)]}
    candidate = {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}
    body = {"candidates": [{**candidate, "urlContextMetadata": value}]}
    (part,) = [p for p in PROTOCOL.decode_body(body).parts if isinstance(p, Opaque)]
    assert not part.native
    assert json.loads(part.frame.data or "")["candidates"][0]["urlContextMetadata"] == value


def test_every_finish_reason_of_the_sdk_is_known() -> None:
    """A new one is found here; the zero of the enumeration is never sent."""
    assert {reason.value for reason in types.FinishReason} == {
        *FINISH_REASONS,
        "FINISH_REASON_UNSPECIFIED",
    }


@pytest.mark.parametrize("raw", sorted(FINISH_REASONS - {"STOP", "MAX_TOKENS", "SAFETY"}))
def test_every_finish_reason_comes_back(raw: str) -> None:
    """It is sent as it is written, with or without calls, and read as the same finish."""
    call = ToolCall("f", "c1", ('{"a":1}',))
    for parts in ((Text(("a",)),), (call,)):
        bare = Turn(parts, "stop", USAGE, finish_raw=raw)
        (first, *_), body = chunks(bare)[::-1], PROTOCOL.encode_body(bare, REPLY)
        assert first["candidates"][0]["finishReason"] == raw
        turn = PROTOCOL.decode_body(body)
        assert turn.finish_raw == raw
        if raw in ABNORMAL:
            assert turn.finish == ("tool_calls" if call in parts else "stop")
        again = PROTOCOL.encode_body(turn, REPLY)["candidates"][0]
        assert again["finishReason"] == raw
