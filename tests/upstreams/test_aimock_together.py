"""One recorder of aimock for all APIs, and what a user does with it."""

from __future__ import annotations

import pytest

from tests.upstreams.conftest import aimock_command
from tests.upstreams.process import Service
from tests.upstreams.talks import TALKS, Chat, Responses, talked

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:FUNCTION_CALL is not a valid FinishReason:UserWarning"),
]

WAYS = [(api, stream) for api in TALKS for stream in (True, False) if api != "gemini" or stream]
"""Whether Gemini streams is told by the path alone, which no `match` can tell."""

SAID = "What is the weather in both?"


def test_the_same_words_over_all_apis(aimock, runs):
    """Conversations that differ in nothing but the API, and whether it streams, are recorded to
    one folder; each client gets its own again."""

    def run(url):
        given = {}
        for api, stream in WAYS:
            with TALKS[api](url) as talk:
                given[api, stream] = talked(talk, SAID, stream=stream)
        return given

    recorded, replayed = runs.both(aimock.url, run)
    assert recorded == replayed
    assert len(runs.scenarios) == len(WAYS)


@pytest.mark.parametrize("api", TALKS)
def test_recorded_once_for_all(aimock, runs, api):
    """What was recorded over one API is played to the clients of the others: the same texts, the
    same calls with the same arguments, turn by turn."""
    with runs.recording(aimock.url) as url:
        expected = gists(TALKS[api](url))
    with runs.replaying() as url:
        for other in TALKS:
            assert gists(TALKS[other](url)) == expected
    assert len(expected) == 2
    assert len(expected[0][1]) == 2


def gists(talk):
    """What a client gets to know in each turn."""
    given = []
    with talk:
        talk.begin(SAID)
        goes_on = True
        while goes_on:
            list(talk.events(stream=True))
            given.append(talk.gist())
            goes_on = talk.go_on()
    return given


def test_as_a_user_does_it(program, tmp_path):
    """`mockllm record`, a program that talks, the end of the service; then `mockllm serve` gives
    that program the same."""
    folder = tmp_path / "recorded"

    def run(url):
        with Chat(url) as chat, Responses(url) as responses:
            return [talked(chat, SAID, stream=True), talked(responses, "Think first.", stream=True)]

    with Service(aimock_command()) as service:
        recorder = program(
            "record", "--upstream", service.url, "-o", folder, "--port", "0"
        ).listening()
        recorded = run(recorder.url)
        recorder.signal()
        assert recorder.end()[::2] == (0, "")
    checked = program("validate", folder)
    assert checked.end()[::2] == (0, "")
    player = program("serve", folder, "--port", "0", "--speed", "0").listening()
    assert run(player.url) == recorded
    player.signal()
    assert player.end()[::2] == (0, "")
