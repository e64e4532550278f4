"""`mockllm quirks`, and the options that play them."""

from __future__ import annotations

import json

import pytest

from mockllm.quirks import QUIRKS


def test_all_are_listed(mockllm) -> None:
    """A line each, with what is right."""
    lines = mockllm("quirks").stdout.splitlines()
    assert lines[0].split() == ["NAME", "RIGHT", "APIS", "TITLE"]
    assert [line.split()[0] for line in lines[1:]] == list(QUIRKS)


def test_those_of_an_api_are_listed_for_machines(mockllm) -> None:
    """The JSON has all that is known."""
    found = json.loads(mockllm("quirks", "--api", "gemini", "--json").stdout)
    assert {each["name"] for each in found} == {
        name for name, quirk in QUIRKS.items() if "gemini" in quirk.apis
    }
    assert all(each["correct"] and each["variants"] for each in found)


def test_one_is_told_with_what_it_changes(mockllm) -> None:
    """The lines of the stream before and after."""
    told = mockllm("quirks", "chat-finish-stop-with-tools").stdout
    assert "ollama/ollama#7963" in told
    assert '-data: {"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_' in told
    assert '+data: {"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"' in told


@pytest.mark.slow
def test_every_one_can_be_told(mockllm) -> None:
    """Nobody who asks for one gets a traceback."""
    told = mockllm("quirks", *QUIRKS)
    assert told.exit_code == 0
    assert all(f"{name}: " in told.stdout for name in QUIRKS)


def test_a_typo_is_told(mockllm) -> None:
    """With the nearest name, wherever a quirk is named."""
    for arguments in (
        ("quirks", "sse-clrf"),
        ("show", "sample-text", "--quirk", "sse-clrf"),
        ("serve", ".", "--quirk", "sse-clrf"),
    ):
        told = mockllm(*arguments)
        assert told.exit_code == 2
        assert "did you mean sse-crlf" in told.stderr


def test_show_plays_a_quirk_over_the_api_it_is_met_in(mockllm) -> None:
    """Without --api, the first one that has the quirk is taken."""
    shown = mockllm("show", "sample-call", "--quirk", "gem-args-string").stdout
    assert '"functionCall": {"name": "get_weather","args": "' in shown
    crlf = mockllm("show", "sample-text", "--quirk", "sse-crlf")
    assert b"\r\n\r\n" in crlf.stdout_bytes
