"""Which recorded requests are sent again, where, and with which key."""

import json
from dataclasses import replace

import pytest

from mockllm.conformance.drift.destinations import Destinations
from mockllm.conformance.drift.selection import TapeOfTurn, select, without_secrets
from mockllm.core.errors import RequestError
from mockllm.play.tapes.captured import Tape
from tests.conformance.drift.service import exchange

URL = "https://api.openai.com/v1/chat/completions"
BODY = {
    "id": "c",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
}
ANSWER = (200, "application/json", json.dumps(BODY))


def said(text, **fields):
    """A request of Chat."""
    return {"model": "m", "messages": [{"role": "user", "content": text}], **fields}


def taped(recorded, api="chat"):
    """The exchange as a recording."""
    clean = replace(recorded, request_headers=recorded.request_headers[:1])
    return TapeOfTurn("greet", 0, None, Tape(api, False, clean))


def reasons(*recordings, **options):
    """Why recordings are not requested again."""
    return [left.text for left in select(recordings, **options).left_out]


def test_what_is_not_sent():
    """Each with its reason: what changes state, what cannot be filled in, what says nothing."""
    responses = "https://api.openai.com/v1/responses"
    for recorded, reason in (
        (exchange("https://api.openai.com/v1/files", {}, ANSWER), "--include 'POST /v1/files'"),
        (exchange(URL, said("a"), ANSWER, cut="client"), "its answer was cut by the client"),
        (exchange(URL, said("a"), (401, *ANSWER[1:])), "its answer, HTTP 401, depends on the key"),
        (exchange(URL, said("a"), (429, *ANSWER[1:])), "its answer, HTTP 429, is a passing error"),
        (exchange(URL, said("a"), (500, *ANSWER[1:])), "its answer, HTTP 500, is a passing error"),
        (exchange(URL, said("REDACTED-1xxx"), ANSWER), "were redacted (1 secret)"),
        (exchange(URL, said("hidden-1@mail.example"), ANSWER), "redacted (1 e-mail address)"),
        (
            exchange(responses, {"model": "m", "input": "a", "previous_response_id": "r"}, ANSWER),
            "the service kept (previous_response_id)",
        ),
        (exchange(URL, ["no request"], ANSWER), "it cannot be read"),
        (replace(exchange(URL, {}, ANSWER), method=""), "its tape has no request"),
    ):
        (found,) = reasons(taped(recorded))
        assert reason in found


def test_what_is_named_is_sent():
    """A route that calls no model, by its path or with its method."""
    recorded = taped(exchange("https://api.openai.com/v1/embeddings", {"input": "a"}, ANSWER), "")
    for pattern in ("/v1/embeddings", "POST /v1/*", "post /v1/emb*"):
        assert not reasons(recorded, include=[pattern])
    assert reasons(recorded, include=["GET /v1/*"])


def test_equal_requests_are_sent_once_and_cost_what_was_counted():
    """The usage of the recording is the estimate."""
    one = taped(exchange(URL, said("a"), ANSWER))
    found = select([one, one, taped(exchange(URL, said("b"), ANSWER))])
    assert (len(found.requests), found.same, len(found.all)) == (2, 1, 3)
    assert {(request.input, request.output) for request in found.requests} == {(7, 5)}


def test_a_sample_has_each_kind():
    """Models and forms are sampled in turn, the same each time; the rest is counted."""
    many = [taped(exchange(URL, said(str(number)), ANSWER)) for number in range(6)]
    other = taped(exchange(URL, said("x", model="other"), ANSWER))
    found = select([*many, other], sample=3)
    assert [request.group.model for request in found.requests] == ["m", "m", "other"]
    assert {left.text for left in found.left_out} == {"it is not in the sample"}
    assert len(found.left_out) == 4


def test_a_key_goes_to_the_service_of_its_api_alone():
    """Not to another host because a recording has it; and nowhere without a key."""
    recorded = exchange(URL, said("a"), ANSWER).request_headers
    assert ("authorization", "Bearer sk-test-key-1234567890") in recorded
    environment = {"OPENAI_API_KEY": "sk-real", "MINE": "abc"}
    ours = taped(exchange(URL, said("a"), ANSWER)).tape.exchange
    groq = replace(ours, url="https://api.groq.com/openai/v1/chat/completions")
    place = Destinations({}, environment, {}).of(ours)
    assert (place.url, dict(place.headers)["authorization"]) == (URL, "Bearer sk-real")
    with pytest.raises(RequestError, match="--upstream"):
        Destinations({}, environment, {}).of(groq)
    with pytest.raises(RequestError, match="there is no key for chat: set OPENAI_API_KEY"):
        Destinations({}, {}, {}).of(ours)
    named = {"chat": "https://api.groq.com/openai/v1"}
    place = Destinations(named, environment, {}).of(groq)
    assert (place.url, dict(place.headers)["authorization"]) == (groq.url, "Bearer sk-real")
    place = Destinations(named, environment, {"api-key": "MINE"}).of(groq)
    assert dict(place.headers) == {"content-type": "application/json", "api-key": "abc"}
    with pytest.raises(RequestError, match="the variable OTHER is not set"):
        Destinations(named, environment, {"api-key": "OTHER"}).of(groq)


def test_the_version_of_the_recording_stays():
    """Headers that the API requires are added only where the recording has none."""
    url = "https://api.anthropic.com/v1/messages"
    body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "a"}]}
    recorded = taped(exchange(url, body, ANSWER), "anthropic").tape.exchange
    places = Destinations({}, {"ANTHROPIC_API_KEY": "k"}, {})
    assert dict(places.of(recorded).headers)["anthropic-version"] == "2023-06-01"
    old = replace(recorded, request_headers=(("anthropic-version", "2023-01-01"),))
    headers = dict(places.of(old).headers)
    assert (headers["anthropic-version"], headers["x-api-key"]) == ("2023-01-01", "k")


def test_a_redacted_key_in_a_url_is_left_out():
    """It is sent as a header instead."""
    assert without_secrets("https://h/p?key=REDACTED-1xxx&alt=sse") == "https://h/p?alt=sse"
    assert without_secrets("https://h/p?key=REDACTED-1") == "https://h/p"


def test_regions_of_one_service():
    """Amazon's service is the same in each region, and its requests are signed, without a key."""
    url = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse"
    body = {"messages": [{"role": "user", "content": [{"text": "a"}]}]}
    recorded = taped(exchange(url, body, ANSWER), "bedrock").tape.exchange
    assert Destinations({}, {}, {}).of(recorded).url == url
    elsewhere = replace(recorded, url=url.replace("amazonaws.com", "amazonaws.com.evil.example"))
    with pytest.raises(RequestError, match="--upstream"):
        Destinations({}, {}, {}).of(elsewhere)
