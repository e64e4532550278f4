"""aimock, recorded and replayed: what the official SDKs make of an answer is what they make of
its replay.

aimock answers as the real services do on the whole, but for this: the SDK of Google has to be told
to speak `v1beta`; the usage of Messages, Responses and Gemini is zero unless a fixture tells it;
calls of Gemini end with `FUNCTION_CALL`, an event of Responses has no `sequence_number`, and the
type of an error may be one that the API does not have.
"""

from __future__ import annotations

import pytest

from tests.upstreams.raw import REQUESTS, ask, without_chance
from tests.upstreams.talks import TALKS, Chat, talked

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

every_api = pytest.mark.parametrize("api", TALKS)


@every_api
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_conversations(aimock, runs, api, stream):
    """Texts, reasoning, calls and their results, and an error with its `retry-after`, in one
    folder: each replays as it was."""

    def run(url):
        with TALKS[api](url) as talk:
            return {said: talked(talk, said, stream=stream) for said in (*ANSWERED, REFUSED)}

    recorded, replayed = runs.both(aimock.url, run)
    for said, given in recorded.items():
        assert replayed[said] == given
        assert len(given) == TURNS.get(said, 1)
    turns = sorted(len(one.turns) for one in runs.scenarios.values())
    assert turns == sorted(TURNS.get(said, 1) for said in recorded)
    ((failure,),) = recorded[REFUSED]
    assert (failure["status"], failure["retry-after"]) == (429, "7")
    assert "Slow down, please." in failure["says"]


@every_api
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_bytes(aimock, runs, api, stream):
    """A client of the recorder gets the chunks that a client of aimock gets, but for ids and the
    time; the tape has them, and the replay has the same, cut in the same places."""
    requests = {said: REQUESTS[api](said, stream) for said in (*ANSWERED, REFUSED)}

    def run(url):
        return {said: ask(url, *request, **KEYS) for said, request in requests.items()}

    direct = run(aimock.url)
    passed, replayed = runs.both(aimock.url, run)
    taped = {tuple(piece.data for piece in one.pieces) for one in runs.tapes()}
    for said, answer in passed.items():
        assert without_chance(answer.chunks) == without_chance(direct[said].chunks)
        assert told(answer) == told(direct[said])
        assert answer.chunks in taped
        assert replayed[said].chunks == answer.chunks
        assert replayed[said].status == answer.status
        assert not answer.cut


def told(answer):
    """Status and headers, without those of one connection or one answer."""
    private = {"date", "x-request-id", "connection", "keep-alive", "transfer-encoding"}
    kept = [pair for pair in answer.headers if pair[0].lower() not in private]
    return answer.status, kept


@every_api
def test_broken_off(aimock, runs, api):
    """Where aimock breaks off, so does the recorder, and so does the replay; the SDK says the
    same of both, after the same events."""

    def run(url):
        with TALKS[api](url) as talk:
            sdk = {said: talked(talk, said, stream=True) for said in CUT}
        raw = [ask(url, *REQUESTS[api](f"{said} Now.", True), **KEYS) for said in CUT]
        return sdk, [(answer.status, answer.chunks, answer.cut) for answer in raw]

    recorded, replayed = runs.both(aimock.url, run)
    assert recorded == replayed
    sdk, raw = recorded
    for ((*events, last),) in sdk.values():
        assert events
        assert last["raised"]
    assert all(cut for _, _, cut in raw)
    assert {one.cut for one in runs.tapes()} == {"upstream"}


@every_api
def test_second_tries(aimock, runs, api):
    """A request that fails and is made again is one turn with an attempt, and plays so."""
    # aimock counts requests of each test by itself, if it is told which they are.
    headers = {"x-test-id": api}
    more = {"http_options": {"headers": headers}} if api == "gemini" else {"extra_headers": headers}

    def run(url):
        with TALKS[api](url, **more) as talk:
            (failed,), answered = talked(talk, "Once more.", stream=True, tries=2)
        assert "Not now." in failed.pop("says")
        return failed, answered

    with runs.recording(aimock.url) as url:
        recorded = run(url)
    with runs.replaying() as url:
        assert run(url) == recorded
    assert [one.recorded for one in runs.exchanges] == ["", "exact"]
    (scenario,) = runs.scenarios.values()
    (turn,) = scenario.turns
    assert [attempt.status for attempt in turn.attempts] == [503]


def test_comments(aimock, runs):
    """What aimock says as OpenRouter has comments between its events, which stay."""

    def run(url):
        with Chat(url) as talk:
            sdk = talked(talk, "Keep me waiting.", stream=True)
        return sdk, ask(url, *REQUESTS["chat"]("Now: Keep me waiting.", True)).chunks

    recorded, replayed = runs.both(f"{aimock.url}/api/v1", run)
    assert recorded == replayed
    _, chunks = recorded
    assert chunks[0] == b": OPENROUTER PROCESSING\n\n"


def test_other_requests(aimock, runs):
    """What asks no model passes, and leaves nothing behind."""
    with Chat(aimock.url) as talk:
        direct = [model.id for model in talk.client.models.list()]
    with runs.recording(aimock.url) as url, Chat(url) as talk:
        passed = [model.id for model in talk.client.models.list()]
    assert passed == direct
    assert passed
    assert not list(runs.folder.glob("*.*l"))
