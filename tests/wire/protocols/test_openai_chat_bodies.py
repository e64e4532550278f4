"""Chat Completions answers that are not streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mockllm.core.errors import WireError
from mockllm.core.events import StreamError
from mockllm.core.turn import Refusal, Text, Turn
from mockllm.wire.protocols.openai_chat.protocol import PROTOCOL
from tests.wire.protocols.test_openai_chat import CALL, USAGE_JSON
from tests.wire.protocols.test_openai_chat_laws import USAGE, reply


def test_body_of_a_call() -> None:
    """The whole answer has its keys in the service's order, and the arguments joined."""
    body = PROTOCOL.encode_body(Turn((CALL,), "tool_calls", USAGE), reply(service_tier="flex"))
    assert list(body) == [
        "id",
        "object",
        "created",
        "model",
        "choices",
        "usage",
        "service_tier",
        "system_fingerprint",
    ]
    assert json.dumps(body["choices"][0], separators=(",", ":")) == (
        '{"index":0,"message":{"role":"assistant","content":null,"refusal":null,'
        '"annotations":[],"tool_calls":[{"id":"call_q","type":"function","function":'
        '{"name":"get_time","arguments":"{\\"zone\\":\\"UTC\\"}"}}]},'
        '"logprobs":null,"finish_reason":"tool_calls"}'
    )
    assert json.dumps(body["usage"], separators=(",", ":")) == USAGE_JSON
    assert (body["id"], body["service_tier"]) == (PROTOCOL.answer_id(reply()), "flex")


def test_body_of_text_and_of_refusal() -> None:
    """Text has no `tool_calls` key; a refusal has no content and finishes with `stop`."""
    text = PROTOCOL.encode_body(Turn((Text(("a", "b")),), "length"), reply())["choices"][0]
    assert (text["message"]["content"], text["finish_reason"]) == ("ab", "length")
    assert "tool_calls" not in text["message"]
    no = PROTOCOL.encode_body(Turn((Refusal(("No.",)),), "refusal"), reply())["choices"][0]
    assert (no["message"]["content"], no["message"]["refusal"]) == (None, "No.")
    assert no["finish_reason"] == "stop"


def test_body_of_an_error() -> None:
    """A turn that ends in an error has the error for its body, and comes back as one."""
    turn = Turn(error=StreamError("It broke", "server_error", "x"))
    assert PROTOCOL.decode_body(PROTOCOL.encode_body(turn, reply())) == turn


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": [{"index": 0}]}, {"choices": 3}])
def test_body_without_a_message_is_refused(body: dict[str, Any]) -> None:
    """A body of another shape is an error that names the missing field."""
    with pytest.raises(WireError, match="message must be an object"):
        PROTOCOL.decode_body(body)
