"""Exceptions of the official `anthropic` client: errors of scenarios and refused requests."""

from __future__ import annotations

import anthropic
import pytest

from mockllm.play.replay.loading import load
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.anthropic_client import ASYNC_WAYS, WAYS
from tests.clients.conversation import SCENARIOS, converse, first

API = "anthropic"
every_way = pytest.mark.parametrize("how", WAYS)


@every_way
def test_rate_limit_is_raised(claude, run, how):
    """Without retries the client raises a rate limit error with the time to wait."""
    run.expects("error", "error")
    once = claude.with_options(max_retries=0)
    request = first(SCENARIOS["rate-limited"], API)
    with pytest.raises(anthropic.RateLimitError) as caught:
        WAYS[how](once, request)
    assert caught.value.response.headers["retry-after"] == "1"
    assert caught.value.response.headers["retry-after-ms"] == "20"
    assert caught.value.response.headers["anthropic-ratelimit-requests-remaining"] == "0"
    with pytest.raises(anthropic.RateLimitError, match="slow down") as caught:
        WAYS[how](once, request)
    assert caught.value.type == "rate_limit_error"


@every_way
def test_rate_limit_is_retried(claude, run, how):
    """With two retries the client returns the answer."""
    run.expects("error", "error", "played")
    assert WAYS[how](claude, first(SCENARIOS["rate-limited"], API)).seen.text
    assert [exchange.played.attempt for exchange in run.exchanges] == [1, 2, 3]


@every_way
def test_rate_limit_is_retried_async(async_claude, loop, run, how):
    """With two retries the asynchronous client returns the answer."""
    run.expects("error", "error", "played")
    answer = loop.run(ASYNC_WAYS[how](async_claude, first(SCENARIOS["rate-limited"], API)))
    assert answer.seen.text == "Third time lucky."


@every_way
def test_continuation_error(claude, run, how):
    """An HTTP error after tool results is raised after the client's retries."""
    run.expects("played", "error", "error", "error")
    conversation = converse(SCENARIOS["continuation-error"], API, failing=True)
    following = conversation.send(WAYS["body"](claude, next(conversation)))
    with pytest.raises(anthropic.InternalServerError, match="had an error while") as caught:
        WAYS[how](claude, following)
    assert caught.value.type == "api_error"


OVERLOADED = """
scenario: overloaded
match: any
turns:
  - attempts: [{http: 529, retry_after: 1ms, error: {message: Overloaded}}]
    reply: {text: Here I am.}
"""


@every_way
def test_overloaded(anthropic_sdk, tmp_path, how):
    """Status 529 is an `overloaded_error`, and is retried."""
    (tmp_path / "overloaded.yaml").write_text(OVERLOADED)
    with ServerThread(load([tmp_path]), ServerOptions(speed=0)) as server:
        here = anthropic_sdk.with_options(base_url=server.url)
        request = first(SCENARIOS["auto"], API)
        with pytest.raises(anthropic.InternalServerError, match="Overloaded") as caught:
            WAYS[how](here.with_options(max_retries=0), request)
        assert (caught.value.status_code, caught.value.type) == (529, "overloaded_error")
        assert WAYS[how](here.with_options(max_retries=0), request).seen.text == "Here I am."
        assert WAYS[how](here, request).seen.text == "Here I am."


def test_error_inside_the_stream(claude):
    """An error inside a stream is raised after the text before it."""
    seen: list[str] = []
    request = first(SCENARIOS["stream-error"], API)
    with (
        pytest.raises(anthropic.APIStatusError, match="The model stopped unexpectedly") as caught,
        claude.messages.stream(**request) as stream,
    ):
        seen += stream.text_stream
    assert caught.value.type == "api_error"
    assert caught.value.body["request_id"].startswith("req_01")


def test_text_before_an_error_is_received(claude):
    """A client that reads single events receives the text before the error."""
    seen: list[str] = []

    def gather() -> None:
        with claude.messages.create(**first(SCENARIOS["stream-error"], API), stream=True) as events:
            for event in events:
                if event.type == "content_block_delta":
                    seen.append(event.delta.text)

    with pytest.raises(anthropic.APIStatusError):
        gather()
    assert "".join(seen) == "The first half of the answer is"


def test_error_in_place_of_a_body(claude):
    """A turn with an error in the stream is an HTTP error without streaming."""
    once = claude.with_options(max_retries=0)
    with pytest.raises(anthropic.InternalServerError, match="The model stopped unexpectedly"):
        WAYS["body"](once, first(SCENARIOS["stream-error"], API))


@every_way
def test_nothing_matches(claude, run, how):
    """A request that no scenario answers is a 404 error that suggests the nearest scenario."""
    run.expects("unmatched")
    named = claude.with_options(default_headers={"x-mockllm-scenario": "secret-numberz"})
    with pytest.raises(anthropic.NotFoundError, match="did you mean 'secret-numbers'") as caught:
        WAYS[how](named, first(SCENARIOS["auto"], API))
    assert sorted(caught.value.body) == ["error", "request_id", "type"]
    assert caught.value.body["type"] == "error"
    assert caught.value.type == "not_found_error"
    assert caught.value.request_id == caught.value.body["request_id"]


@every_way
def test_refused_requests(claude, run, how):
    """A request that the service refuses is refused, with the path of the field."""
    run.expects("invalid", "invalid")
    request = first(SCENARIOS["secret-numbers"], API)
    with pytest.raises(anthropic.BadRequestError, match="max_tokens: Input should be") as caught:
        WAYS[how](claude, {**request, "max_tokens": -1})
    assert caught.value.type == "invalid_request_error"
    bad = {**request, "tool_choice": {"type": "tool", "name": "absent"}}
    with pytest.raises(anthropic.BadRequestError, match="absent"):
        WAYS[how](claude, bad)


@pytest.mark.parametrize("name", ["x-api-key", "authorization"])
def test_either_credential_is_accepted(http, run, name):
    """Any key or bearer token is accepted, and masked in the journal."""
    headers = {name: "Bearer sk-ant-secret", "anthropic-version": "2023-06-01"}
    request = first(SCENARIOS["refusal"], API)
    assert http.post(f"{run.root}/v1/messages", json=request, headers=headers).status_code == 200
    assert run.exchanges[0].headers[name] == "***"


def test_wrong_results_are_refused(claude, run):
    """A wrong tool result is refused, and the error has the expected one."""
    run.expects("played", "invalid")
    conversation = converse(SCENARIOS["secret-numbers"], API)
    following = conversation.send(WAYS["body"](claude, next(conversation)))
    following["messages"][-1]["content"][-1]["content"] = "8"
    with pytest.raises(anthropic.BadRequestError, match=r"call_bob.*must be '7', got '8'"):
        WAYS["stream"](claude, following)


@pytest.mark.parametrize(
    ("headers", "status", "type"),
    [
        ({"anthropic-version": "2023-06-01"}, 401, "authentication_error"),
        ({"x-api-key": "k"}, 400, "invalid_request_error"),
    ],
)
def test_credential_and_version_are_required(http, run, headers, status, type):
    """A missing credential or version header is refused as the service does."""
    run.expects("invalid")
    request = first(SCENARIOS["refusal"], API)
    answer = http.post(f"{run.root}/v1/messages", json=request, headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"]["type"] == type
    assert answer.json()["request_id"] == answer.headers["request-id"]
