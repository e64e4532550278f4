"""One recorder of aimock for all APIs, from Python and from the command line."""

from __future__ import annotations

import pytest

from tests.upstreams.conftest import aimock_command
from tests.upstreams.conversations import CONVERSATIONS, Chat, Responses, transcript
from tests.upstreams.process import Service

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:FUNCTION_CALL is not a valid FinishReason:UserWarning"),
]

WAYS = [
    (api, stream) for api in CONVERSATIONS for stream in (True, False) if api != "gemini" or stream
]
"""Gemini only streamed: the path alone says whether it streams, and no `match` covers the path."""

PROMPT = "What is the weather in both?"


def test_equal_conversations_over_all_apis(aimock, runs):
    """Equal conversations over all APIs, streamed or not, are recorded to one folder, and each
    client is replayed its own."""

    def run(url):
        found = {}
        for api, stream in WAYS:
            with CONVERSATIONS[api](url) as conversation:
                found[api, stream] = transcript(conversation, PROMPT, stream=stream)
        return found

    recorded, replayed = runs.both(aimock.url, run)
    assert recorded == replayed
    assert len(runs.scenarios) == len(WAYS)


@pytest.mark.parametrize("api", CONVERSATIONS)
def test_a_recording_is_played_over_every_api(aimock, runs, api):
    """A recording over one API is played over the others with the same texts, calls and
    arguments, turn by turn."""
    with runs.recording(aimock.url) as url:
        expected = gists(CONVERSATIONS[api](url))
    with runs.replaying() as url:
        for other in CONVERSATIONS:
            assert gists(CONVERSATIONS[other](url)) == expected
    assert len(expected) == 2
    assert len(expected[0][1]) == 2


def gists(conversation):
    """Text and calls of each turn."""
    found = []
    with conversation:
        conversation.begin(PROMPT)
        goes_on = True
        while goes_on:
            list(conversation.events(stream=True))
            found.append(conversation.gist())
            goes_on = conversation.go_on()
    return found


def test_record_and_serve_on_the_command_line(program, tmp_path):
    """`mockllm record` records a program; after the end of the service `mockllm serve` replays
    the same to it."""
    folder = tmp_path / "recorded"

    def run(url):
        with Chat(url) as chat, Responses(url) as responses:
            return [
                transcript(chat, PROMPT, stream=True),
                transcript(responses, "Think first.", stream=True),
            ]

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
