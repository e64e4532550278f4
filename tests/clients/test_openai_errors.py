"""Exceptions of the official `openai` client: errors of scenarios and refused requests."""

from __future__ import annotations

import openai
import pytest

from tests.clients.conversation import (
    APIS,
    MODEL,
    SCENARIOS,
    Json,
    converse,
    first,
)
from tests.clients.openai_client import WAYS


def send(api: str, client: openai.OpenAI, request: Json, *, stream: bool) -> None:
    """Sends a request and reads the answer to its end."""
    if api == "chat":
        answer = client.chat.completions.create(**request, stream=stream)
    else:
        answer = client.responses.create(**request, stream=stream)
    if stream:
        with answer:
            list(answer)


both_apis = pytest.mark.parametrize("api", APIS)
streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])


@both_apis
@streamed_or_not
def test_rate_limit_is_raised(client, run, api, stream):
    """Without retries the client raises a rate limit error with the time to wait."""
    run.expects("error", "error")
    once = client.with_options(max_retries=0)
    request = first(SCENARIOS["rate-limited"], api)
    with pytest.raises(openai.RateLimitError) as caught:
        send(api, once, request, stream=stream)
    assert caught.value.response.headers["retry-after"] == "1"
    assert caught.value.response.headers["retry-after-ms"] == "20"
    assert caught.value.response.headers["x-ratelimit-remaining-requests"] == "0"
    with pytest.raises(openai.RateLimitError, match="slow down") as caught:
        send(api, once, request, stream=stream)
    assert caught.value.code == "rate_limit_exceeded"
    assert caught.value.request_id


@both_apis
@streamed_or_not
def test_rate_limit_is_retried(client, run, api, stream):
    """With two retries the client returns the answer."""
    run.expects("error", "error", "played")
    send(api, client, first(SCENARIOS["rate-limited"], api), stream=stream)
    assert [exchange.played.attempt for exchange in run.exchanges] == [1, 2, 3]


@both_apis
@streamed_or_not
def test_continuation_error(client, run, api, stream):
    """An HTTP error after tool results is raised after the client's retries."""
    run.expects("played", "error", "error", "error")
    scenario = SCENARIOS["continuation-error"]
    request = first(scenario, api)
    key = "messages" if api == "chat" else "input"
    answer = WAYS[api, "body"](client, request)
    done = (
        {"role": "tool", "tool_call_id": "call_delete", "content": "3 deleted"}
        if api == "chat"
        else {"type": "function_call_output", "call_id": "call_delete", "output": "3 deleted"}
    )
    following = {**request, key: [*request[key], *answer.echo, done]}
    with pytest.raises(openai.InternalServerError, match="had an error while processing"):
        send(api, client, following, stream=stream)


def gather(client: openai.OpenAI, request: Json, api: str, into: list[str]) -> None:
    """Appends the fragments of a streamed text to a list."""
    if api == "chat":
        with client.chat.completions.create(**request, stream=True) as chunks:
            for chunk in chunks:
                into.append(chunk.choices[0].delta.content or "")
        return
    with client.responses.create(**request, stream=True) as events:
        for event in events:
            if event.type == "response.output_text.delta":
                into.append(event.delta)


@both_apis
def test_error_inside_the_stream(client, api):
    """An error inside a stream is raised after the text before it."""
    seen: list[str] = []
    with pytest.raises(openai.APIError, match="The model stopped unexpectedly") as caught:
        gather(client, first(SCENARIOS["stream-error"], api), api, seen)
    assert caught.value.type == "server_error"
    assert "".join(seen) == "The first half of the answer is"


@both_apis
def test_error_in_place_of_a_body(client, run, api):
    """A turn with an error in the stream is an HTTP error without streaming."""
    request = first(SCENARIOS["stream-error"], api)
    with pytest.raises(openai.InternalServerError, match="The model stopped unexpectedly"):
        send(api, client.with_options(max_retries=0), request, stream=False)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("length-truncated", openai.LengthFinishReasonError),
        ("content-filtered", openai.ContentFilterFinishReasonError),
    ],
)
def test_incomplete_answers_are_raised(client, name, error):
    """The helpers raise for an answer that was cut or filtered."""
    request = first(SCENARIOS[name], "chat")
    with client.chat.completions.stream(**request) as stream, pytest.raises(error):
        stream.get_final_completion()
    request = first(SCENARIOS[name], "responses")
    with (
        client.responses.stream(**request) as events,
        pytest.raises(RuntimeError, match="completed"),
    ):
        events.get_final_response()


@both_apis
def test_nothing_matches(client, run, api):
    """A request that no scenario answers is a 404 error that suggests the nearest scenario."""
    run.expects("unmatched")
    key = "messages" if api == "chat" else "input"
    messages = [{"role": "user", "content": "secret numberz"}]
    request = {"model": MODEL, key: messages}
    named = client.with_options(default_headers={"x-mockllm-scenario": "secret-numberz"})
    with pytest.raises(openai.NotFoundError, match="did you mean 'secret-numbers'"):
        send(api, named, request, stream=True)


@both_apis
def test_refused_requests(client, run, api):
    """A request that the service refuses is refused, with the name of the field."""
    run.expects("invalid", "invalid")
    request = first(SCENARIOS["secret-numbers"], api)
    with pytest.raises(openai.BadRequestError) as caught:
        send(api, client, {**request, "temperature": 3}, stream=False)
    assert caught.value.param == "temperature"
    bad = {**request, "tool_choice": {"type": "function", "name": "absent"}}
    if api == "chat":
        bad["tool_choice"] = {"type": "function", "function": {"name": "absent"}}
    with pytest.raises(openai.BadRequestError, match="absent"):
        send(api, client, bad, stream=True)


@both_apis
def test_wrong_results_are_refused(client, run, api):
    """A wrong tool result is refused, and the error has the expected one."""
    run.expects("played", "invalid")
    scenario = SCENARIOS["secret-numbers"]
    conversation = converse(scenario, api)
    request = next(conversation)
    answer = WAYS[api, "body"](client, request)
    following = conversation.send(answer)
    key, content = ("messages", "content") if api == "chat" else ("input", "output")
    following[key][-1] = {**following[key][-1], content: "8"}
    with pytest.raises(openai.BadRequestError, match=r"call_bob.*must be '7', got '8'"):
        WAYS[api, "stream"](client, following)
