"""Exceptions of the official `google-genai` client: errors of scenarios and refused requests."""

from __future__ import annotations

import pytest
from google.genai import errors

from mockllm.play.replay.loading import load
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.conversation import SCENARIOS, converse, first
from tests.clients.google_client import ASYNC_WAYS, WAYS

API = "gemini"
every_way = pytest.mark.parametrize("how", WAYS)


@pytest.fixture
def once(gemini_at, run):
    """The client with its default of no retries."""
    return gemini_at(run.root, retry_options=None)


@every_way
def test_rate_limit_is_raised(once, run, how):
    """Without retries the client raises an error whose details have the time to wait."""
    run.expects("error", "error")
    request = first(SCENARIOS["rate-limited"], API)
    with pytest.raises(errors.ClientError) as caught:
        WAYS[how](once, request)
    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")
    details = {detail["@type"]: detail for detail in caught.value.details["error"]["details"]}
    assert details["type.googleapis.com/google.rpc.RetryInfo"]["retryDelay"] == "0.02s"
    with pytest.raises(errors.ClientError, match="slow down"):
        WAYS[how](once, request)


@every_way
def test_rate_limit_is_retried(gemini, run, how):
    """With two retries the client returns the answer."""
    run.expects("error", "error", "played")
    request = first(SCENARIOS["rate-limited"], API)
    assert WAYS[how](gemini, request).seen.text == "Third time lucky."
    assert [exchange.played.attempt for exchange in run.exchanges] == [1, 2, 3]


@every_way
def test_rate_limit_is_retried_asynchronously(gemini, loop, run, how):
    """And the asynchronous one."""
    run.expects("error", "error", "played")
    request = first(SCENARIOS["rate-limited"], API)
    assert loop.run(ASYNC_WAYS[how](gemini, request)).seen.text == "Third time lucky."


@every_way
def test_continuation_error(once, run, how):
    """An HTTP error after function results is raised."""
    run.expects("played", "error")
    conversation = converse(SCENARIOS["continuation-error"], API, failing=True)
    following = conversation.send(WAYS["body"](once, next(conversation)))
    with pytest.raises(errors.ServerError, match="had an error while") as caught:
        WAYS[how](once, following)
    assert (caught.value.code, caught.value.status) == (500, "INTERNAL")


OVERLOADED = """
scenario: overloaded
match: any
turns:
  - attempts: [{http: 529, error: {message: Overloaded}}]
    reply: {text: Here I am.}
"""


@every_way
def test_overloaded(gemini_at, tmp_path, how):
    """Status 529, which Google does not have, has the status UNAVAILABLE."""
    (tmp_path / "overloaded.yaml").write_text(OVERLOADED)
    with ServerThread(load([tmp_path]), ServerOptions(speed=0)) as server:
        client = gemini_at(server.url, retry_options=None)
        request = first(SCENARIOS["auto"], API)
        with pytest.raises(errors.ServerError, match="Overloaded") as caught:
            WAYS[how](client, request)
        assert (caught.value.code, caught.value.status) == (529, "UNAVAILABLE")
        assert WAYS[how](client, request).seen.text == "Here I am."


def test_error_inside_the_stream(once, loop):
    """An error inside a stream is raised after the text before it."""
    request = first(SCENARIOS["stream-error"], API)
    seen: list[str] = []

    def read() -> None:
        for chunk in once.models.generate_content_stream(**request):
            seen.append(chunk.text)

    async def read_async() -> None:
        async for chunk in await once.aio.models.generate_content_stream(**request):
            seen.append(chunk.text)

    for reading in (read, lambda: loop.run(read_async())):
        seen.clear()
        with pytest.raises(errors.APIError, match="The model stopped unexpectedly") as caught:
            reading()
        assert (caught.value.code, caught.value.status) == (500, "INTERNAL")
        assert "".join(seen) == "The first half of the answer is"


def test_error_in_place_of_a_body(once):
    """A turn with an error in the stream is an HTTP error without streaming."""
    with pytest.raises(errors.ServerError, match="The model stopped unexpectedly"):
        WAYS["body"](once, first(SCENARIOS["stream-error"], API))


@every_way
def test_nothing_matches(gemini_at, run, how):
    """A request that no scenario answers is a 404 error that suggests the nearest scenario."""
    run.expects("unmatched")
    client = gemini_at(run.root, headers={"x-mockllm-scenario": "secret-numberz"})
    with pytest.raises(errors.ClientError, match="did you mean 'secret-numbers'") as caught:
        WAYS[how](client, first(SCENARIOS["auto"], API))
    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")
    assert sorted(caught.value.details["error"]) == ["code", "details", "message", "status"]


@every_way
def test_refused_requests(once, run, how):
    """A request that the service refuses is refused, with the name of the field."""
    run.expects("invalid", "invalid")
    request = first(SCENARIOS["secret-numbers"], API)
    config = request["config"]
    with pytest.raises(errors.ClientError, match="temperature must be in the range") as caught:
        WAYS[how](once, {**request, "config": {**config, "temperature": 5}})
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
    choice = {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["absent"]}}
    with pytest.raises(errors.ClientError, match="absent"):
        WAYS[how](once, {**request, "config": {**config, "tool_config": choice}})


def test_wrong_results_are_refused(once, run):
    """A wrong tool result is refused, and the error has the expected one."""
    run.expects("played", "invalid")
    conversation = converse(SCENARIOS["secret-numbers"], API)
    following = conversation.send(WAYS["body"](once, next(conversation)))
    following["contents"][-1]["parts"][-1]["function_response"]["response"] = {"result": "8"}
    with pytest.raises(errors.ClientError, match=r"call_bob.*must be '7', got '8'"):
        WAYS["stream"](once, following)


def test_missing_results_are_refused(once, run):
    """A request without the result of a call is refused."""
    run.expects("played", "invalid")
    conversation = converse(SCENARIOS["secret-numbers"], API)
    following = conversation.send(WAYS["body"](once, next(conversation)))
    following["contents"][-1]["parts"].pop()
    with pytest.raises(errors.ClientError, match="number of function response parts"):
        WAYS["body"](once, following)
