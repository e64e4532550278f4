"""aimock, recorded and replayed: the official SDKs read the replay as they read the original.

aimock differs from the real services. The SDK of Google needs `v1beta`. The usage of Messages,
Responses and Gemini is zero unless a fixture has it. Calls of Gemini end with `FUNCTION_CALL`,
events of Responses have no `sequence_number`, and the type of an error may be one that the API
does not have.
"""

from __future__ import annotations

import pytest

from tests.upstreams.conversations import CONVERSATIONS, Chat, transcript
from tests.upstreams.raw import REQUESTS, post, without_ids_and_times

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:FUNCTION_CALL is not a valid FinishReason:UserWarning"),
]

ANSWERED = (
    "Does it rain?",
    "Slowly, please.",
    "In your own rhythm.",
    "Think first.",
    "How long is it?",
    "What is the weather in Rome?",
    "What is the weather in both?",
    "Tell me by turns.",
)
REFUSED = "Too many."
CUT = ("Break off.", "Hang up.")
TURNS = dict.fromkeys(ANSWERED[-3:], 2)

KEYS = {"x_api_key": "test", "x_goog_api_key": "test", "anthropic_version": "2023-06-01"}

every_api = pytest.mark.parametrize("api", CONVERSATIONS)


@every_api
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_conversations(aimock, runs, api, stream):
    """Texts, reasoning, calls with results, and an error with `retry-after` are recorded to one
    folder, and each replay has the same transcript."""

    def run(url):
        with CONVERSATIONS[api](url) as conversation:
            return {
                prompt: transcript(conversation, prompt, stream=stream)
                for prompt in (*ANSWERED, REFUSED)
            }

    recorded, replayed = runs.both(aimock.url, run)
    for prompt, recorded_transcript in recorded.items():
        assert replayed[prompt] == recorded_transcript
        assert len(recorded_transcript) == TURNS.get(prompt, 1)
    turns = sorted(len(scenario.turns) for scenario in runs.scenarios.values())
    assert turns == sorted(TURNS.get(prompt, 1) for prompt in recorded)
    ((failure,),) = recorded[REFUSED]
    assert (failure["status"], failure["retry-after"]) == (429, "7")
    assert "Slow down, please." in failure["message"]


@every_api
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_bytes(aimock, runs, api, stream):
    """Recorder, tape and replay have the same HTTP chunks, which equal aimock's own except for ids
    and times."""
    requests = {prompt: REQUESTS[api](prompt, stream) for prompt in (*ANSWERED, REFUSED)}

    def run(url):
        return {prompt: post(url, *request, **KEYS) for prompt, request in requests.items()}

    direct = run(aimock.url)
    passed, replayed = runs.both(aimock.url, run)
    taped = {tuple(chunk.data for chunk in tape.chunks) for tape in runs.tapes()}
    for prompt, answer in passed.items():
        assert without_ids_and_times(answer.chunks) == without_ids_and_times(direct[prompt].chunks)
        assert head(answer) == head(direct[prompt])
        assert answer.chunks in taped
        assert replayed[prompt].chunks == answer.chunks
        assert replayed[prompt].status == answer.status
        assert not answer.cut


def head(answer):
    """Status and headers, without headers of one connection or one answer."""
    private = {"date", "x-request-id", "connection", "keep-alive", "transfer-encoding"}
    kept = [pair for pair in answer.headers if pair[0].lower() not in private]
    return answer.status, kept


def lower_head(answer):
    """As `head`, with names in lower case, in which a tape keeps them."""
    status, kept = head(answer)
    return status, [(name.lower(), value) for name, value in kept]


@every_api
def test_streams_that_break_off(aimock, runs, api):
    """If aimock breaks off a stream, recorder and replay do so at the same byte, and the SDK
    raises the same error after the same events."""

    def run(url):
        with CONVERSATIONS[api](url) as conversation:
            sdk = {prompt: transcript(conversation, prompt, stream=True) for prompt in CUT}
        raw = [post(url, *REQUESTS[api](f"{prompt} Now.", True), **KEYS) for prompt in CUT]
        return sdk, [(answer.status, answer.chunks, answer.cut) for answer in raw]

    recorded, replayed = runs.both(aimock.url, run)
    assert recorded == replayed
    sdk, raw = recorded
    for ((*events, last),) in sdk.values():
        assert events
        assert last["raised"]
    assert all(cut for _, _, cut in raw)
    assert {tape.cut for tape in runs.tapes()} == {"upstream"}


@every_api
def test_a_failed_attempt_and_its_retry(aimock, runs, api):
    """A failed request and its retry are recorded as one turn with an attempt; the replay has the
    exact error first, then the exact answer."""
    # With this header aimock counts the requests of each test separately.
    headers = {"x-test-id": api}
    more = {"http_options": {"headers": headers}} if api == "gemini" else {"extra_headers": headers}

    def run(url):
        with CONVERSATIONS[api](url, **more) as conversation:
            return transcript(conversation, "Once more.", stream=True, attempts=2)

    recorded, replayed = runs.both(aimock.url, run)
    assert replayed == recorded
    (failed,), (*_, answered) = recorded
    assert failed["status"] == 503
    assert "Not now." in failed["message"]
    assert "raised" not in answered
    assert [(exchange.status, exchange.played.attempt) for exchange in runs.exchanges] == [
        (503, 1),
        (200, 2),
    ]
    (scenario,) = runs.scenarios.values()
    (turn,) = scenario.turns
    assert [attempt.http.status for attempt in turn.attempts] == [503]
    assert [recording.file for recording in turn.recordings()] == [
        "once-more.1.jsonl",
        "once-more.1-2.jsonl",
    ]


@every_api
def test_the_bytes_of_a_failed_attempt(aimock, runs, api):
    """The error and the answer to its retry have the recorded status, headers and chunks."""
    request = REQUESTS[api]("Once more.", True)

    def run(url):
        return [post(url, *request, **KEYS, x_test_id=f"bytes of {api}") for _ in range(2)]

    recorded, replayed = runs.both(aimock.url, run)
    assert [answer.status for answer in recorded] == [503, 200]
    assert [answer.chunks for answer in replayed] == [answer.chunks for answer in recorded]
    assert list(map(lower_head, replayed)) == list(map(lower_head, recorded))


def test_comments(aimock, runs):
    """Comments between events, which aimock sends like OpenRouter, are replayed."""

    def run(url):
        with Chat(url) as conversation:
            sdk = transcript(conversation, "Keep me waiting.", stream=True)
        return sdk, post(url, *REQUESTS["chat"]("Now: Keep me waiting.", True)).chunks

    recorded, replayed = runs.both(f"{aimock.url}/api/v1", run)
    assert recorded == replayed
    _, chunks = recorded
    assert chunks[0] == b": OPENROUTER PROCESSING\n\n"


def test_requests_without_a_model_are_recorded_as_routes(aimock, runs):
    """A request that calls no model is forwarded, recorded as a route, and replayed exactly."""

    def run(url):
        with Chat(url) as conversation:
            return [model.to_dict() for model in conversation.client.models.list()]

    direct = run(aimock.url)
    recorded, replayed = runs.both(aimock.url, run)
    assert recorded == direct
    assert replayed == recorded
    assert recorded
    (scenario,) = runs.scenarios.values()
    assert (scenario.route.method, scenario.route.path) == ("GET", "/v1/models")
    assert len(scenario.turns) == 1
    assert len(runs.tapes()) == 1
