"""OpenAI Responses: the answer of the route that compacts a conversation."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.responses import CompactedResponse

from mockllm.core.errors import RequestError
from mockllm.core.http import NO_TARGET
from mockllm.wire.protocols.openai_responses.routes import FALLBACK_ROUTES
from tests.wire.protocols.strict import problems


def compacted(**body: Any) -> dict[str, Any]:
    """The answer to a request."""
    (route,) = [one for one in FALLBACK_ROUTES if one.path.search("/v1/responses/compact")]
    return route.answer(body, NO_TARGET)


INPUT = [
    {"role": "user", "content": "Hello!"},
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": "Bye."},
]


def test_user_messages_stay_and_the_rest_is_one_item() -> None:
    """The answer is of the official type, which lacks the messages that the service sends; equal
    requests get equal answers."""
    answer = compacted(model="m", input=INPUT)
    *users, last = answer["output"]
    assert problems(CompactedResponse, {**answer, "output": [last]}) == []
    assert [item["content"][0]["text"] for item in users] == ["Hello!", "Bye."]
    assert last["type"] == "compaction"
    assert last["encrypted_content"]
    assert compacted(model="m", input=INPUT) == answer != compacted(model="m", input=INPUT[:1])


def test_a_request_without_a_model_is_refused() -> None:
    """It is refused as a request for an answer is."""
    with pytest.raises(RequestError) as caught:
        compacted(input=INPUT)
    assert caught.value.param == "model"
