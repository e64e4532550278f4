"""Google Gemini: the official client in conversation with the protocol."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from google import genai
from google.genai import errors, types

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.request import Request
from mockllm.core.turn import Text, TokenUsage, ToolCall, Turn
from mockllm.wire.framing import sse
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.gemini.protocol import PROTOCOL
from tests.wire.protocols.streams import encoded

pytestmark = pytest.mark.slow

Json = dict[str, Any]


def client(answers: Callable[[Request], Turn], requests: list[Request]) -> genai.Client:
    """The official client with a transport that plays turns and checks requests strictly."""

    def answer(http: httpx.Request) -> httpx.Response:
        _, _, tail = http.url.path.rpartition("/")
        model, _, method = tail.rpartition(":")
        target = Target({"model": model}, method, dict(http.url.params))
        try:
            request = PROTOCOL.parse(json.loads(http.content), target, True)
        except RequestError as error:
            return httpx.Response(error.status, json=PROTOCOL.error_body(error))
        requests.append(request)
        settings = Reply("seed", "0" * 40, request.model, PROTOCOL.options(request))
        turn = answers(request)
        headers = PROTOCOL.headers(settings, request.stream)
        if not request.stream:
            return httpx.Response(200, json=PROTOCOL.encode_body(turn, settings), headers=headers)
        frames = encoded(PROTOCOL, turn, settings)
        data = b"".join(sse.encode(frame, PROTOCOL.line_end) for frame in frames)
        return httpx.Response(200, content=data, headers=headers)

    http = httpx.Client(transport=httpx.MockTransport(answer))
    return genai.Client(api_key="k", http_options=types.HttpOptions(httpx_client=http))


NUMBERS = {"alice": 42, "bob": 7}


def get_secret_number(name: str) -> int:
    """The secret number of a person."""
    return NUMBERS[name]


def secret_numbers(request: Request) -> Turn:
    """Two calls, then the answer once both results are there."""
    if request.messages[-1].role == "tool":
        return Turn((Text(("42 ", "and 7.")),), "stop", TokenUsage(30, 5))
    calls = (
        ToolCall("get_secret_number", "a1", ('{"na', 'me":"alice"}')),
        ToolCall("get_secret_number", "b2", ('{"name":"bob"}',)),
    )
    return Turn(calls, "tool_calls", TokenUsage(11, 7))


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3-pro-preview"])
def test_official_client_calls_functions_by_itself(model: str) -> None:
    """A chat with automatic function calling runs through both turns, streamed and not."""
    requests: list[Request] = []
    official = client(secret_numbers, requests)
    config = types.GenerateContentConfig(
        tools=[get_secret_number], system_instruction="Be brief.", temperature=0.5
    )
    whole = official.chats.create(model=model, config=config).send_message("secret numbers")
    assert whole.text == "42 and 7."
    chat = official.chats.create(model=model, config=config)
    streamed = [item.text or "" for item in chat.send_message_stream("secret numbers")]
    assert "".join(streamed) == "42 and 7."
    assert [request.stream for request in requests] == [False, False, True, True]
    ids = ["a1", "b2"] if model.startswith("gemini-3") else ["", ""]
    for request in (requests[1], requests[3]):
        tools = [message for message in request.messages if message.role == "tool"]
        assert [(m.text, m.name) for m in tools] == [
            ("42", "get_secret_number"),
            ("7", "get_secret_number"),
        ]
        assert [call.id for m in request.messages for call in m.calls] == ids
        assert [message.call_id for message in tools] == ids
    official.close()


def test_official_client_sees_refusals() -> None:
    """A refusal is the client's own error, with its status."""
    official = client(secret_numbers, [])
    with pytest.raises(errors.ClientError, match="temperature must be in the range") as caught:
        official.models.generate_content(
            model="gemini-2.5-flash",
            contents="x",
            config=types.GenerateContentConfig(temperature=5),
        )
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
    official.close()
