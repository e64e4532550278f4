"""What the official `anthropic` client raises: errors of scenarios, requests that are refused."""

from __future__ import annotations

import anthropic
import pytest

from mockllm.replay.loading import load
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread
from tests.clients.anthropic_client import ASK, ASK_ASYNC
from tests.clients.conversation import SCENARIOS, converse, first

API = "anthropic"
every_way = pytest.mark.parametrize("how", ASK)


@every_way
def test_rate_limit_is_raised(claude, run, how):
    """A client that does not try again gets a rate limit error that says when to."""
    run.expects("error", "error")
    once = claude.with_options(max_retries=0)
    request = first(SCENARIOS["rate-limited"], API)
    with pytest.raises(anthropic.RateLimitError) as caught:
        ASK[how](once, request)
    assert caught.value.response.headers["retry-after"] == "1"
    assert caught.value.response.headers["retry-after-ms"] == "20"
    assert caught.value.response.headers["anthropic-ratelimit-requests-remaining"] == "0"
    with pytest.raises(anthropic.RateLimitError, match="slow down") as caught:
        ASK[how](once, request)
    assert caught.value.type == "rate_limit_error"


@every_way
def test_rate_limit_is_retried(claude, run, how):
    """A client that tries again twice sees nothing of it."""
    run.expects("error", "error", "played")
    assert ASK[how](claude, first(SCENARIOS["rate-limited"], API)).seen.text
    assert [exchange.attempt for exchange in run.exchanges] == [1, 2, 3]


@every_way
def test_rate_limit_is_retried_async(async_claude, loop, run, how):
    """Nor does the asynchronous one."""
    run.expects("error", "error", "played")
    answer = loop.run(ASK_ASYNC[how](async_claude, first(SCENARIOS["rate-limited"], API)))
    assert answer.seen.text == "Third time lucky."


@every_way
def test_continuation_error(claude, run, how):
    """An error in answer to tool results surfaces, once the client has tried again."""
    run.expects("played", "error", "error", "error")
    talk = converse(SCENARIOS["continuation-error"], API, failing=True)
    following = talk.send(ASK["body"](claude, next(talk)))
    with pytest.raises(anthropic.InternalServerError, match="had an error while") as caught:
        ASK[how](claude, following)
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
    """Status 529 has the service's own type of error, and is worth another try."""
    (tmp_path / "overloaded.yaml").write_text(OVERLOADED)
    with ServerThread(load([tmp_path]), ServerOptions(speed=0)) as server:
        here = anthropic_sdk.with_options(base_url=server.url)
        request = first(SCENARIOS["auto"], API)
        with pytest.raises(anthropic.InternalServerError, match="Overloaded") as caught:
            ASK[how](here.with_options(max_retries=0), request)
        assert (caught.value.status_code, caught.value.type) == (529, "overloaded_error")
        assert ASK[how](here.with_options(max_retries=0), request).seen.text == "Here I am."
        assert ASK[how](here, request).seen.text == "Here I am."


def test_error_inside_the_stream(claude):
    """An error after half an answer is raised, and the half before it was seen."""
    seen: list[str] = []
    request = first(SCENARIOS["stream-error"], API)
    with (
        pytest.raises(anthropic.APIStatusError, match="The model stopped unexpectedly") as caught,
        claude.messages.stream(**request) as stream,
    ):
        seen += stream.text_stream
    assert caught.value.type == "api_error"
    assert caught.value.body["request_id"].startswith("req_01")


def test_half_an_answer_is_seen(claude):
    """What came before the error is not lost to a client that reads event by event."""
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
    """The same turn, not streamed, is an error of the server."""
    once = claude.with_options(max_retries=0)
    with pytest.raises(anthropic.InternalServerError, match="The model stopped unexpectedly"):
        ASK["body"](once, first(SCENARIOS["stream-error"], API))


@every_way
def test_nothing_matches(claude, run, how):
    """A request that no scenario answers is the client's mistake, and the error helps."""
    run.expects("unmatched")
    named = claude.with_options(default_headers={"x-mockllm-scenario": "secret-numberz"})
    with pytest.raises(anthropic.NotFoundError, match="Did you mean 'secret-numbers'") as caught:
        ASK[how](named, first(SCENARIOS["auto"], API))
    assert sorted(caught.value.body) == ["error", "request_id", "type"]
    assert caught.value.body["type"] == "error"
    assert caught.value.type == "not_found_error"
    assert caught.value.request_id == caught.value.body["request_id"]


@every_way
def test_refused_requests(claude, run, how):
    """What the service would refuse is refused, with the path of the field."""
    run.expects("invalid", "invalid")
    request = first(SCENARIOS["secret-numbers"], API)
    with pytest.raises(anthropic.BadRequestError, match="max_tokens: Input should be") as caught:
        ASK[how](claude, {**request, "max_tokens": -1})
    assert caught.value.type == "invalid_request_error"
    bad = {**request, "tool_choice": {"type": "tool", "name": "absent"}}
    with pytest.raises(anthropic.BadRequestError, match="absent"):
        ASK[how](claude, bad)


@pytest.mark.parametrize("name", ["x-api-key", "authorization"])
def test_either_credential_will_do(http, run, name):
    """Keys and bearer tokens are both taken, whatever they are, and kept out of the journal."""
    headers = {name: "Bearer sk-ant-secret", "anthropic-version": "2023-06-01"}
    request = first(SCENARIOS["refusal"], API)
    assert http.post(f"{run.root}/v1/messages", json=request, headers=headers).status_code == 200
    assert run.exchanges[0].headers[name] == "***"


def test_wrong_results_are_told(claude, run):
    """Results that the turn does not expect are refused, and the error says what was expected."""
    run.expects("played", "invalid")
    talk = converse(SCENARIOS["secret-numbers"], API)
    following = talk.send(ASK["body"](claude, next(talk)))
    following["messages"][-1]["content"][-1]["content"] = "8"
    with pytest.raises(anthropic.BadRequestError, match=r"call_bob.*must be '7', got '8'"):
        ASK["stream"](claude, following)


@pytest.mark.parametrize(
    ("headers", "status", "type"),
    [
        ({"anthropic-version": "2023-06-01"}, 401, "authentication_error"),
        ({"x-api-key": "k"}, 400, "invalid_request_error"),
    ],
)
def test_what_the_client_never_forgets(http, run, headers, status, type):
    """A credential and a version are demanded as the service does."""
    run.expects("invalid")
    request = first(SCENARIOS["refusal"], API)
    answer = http.post(f"{run.root}/v1/messages", json=request, headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"]["type"] == type
    assert answer.json()["request_id"] == answer.headers["request-id"]
