"""`mockllm list quirks`, and the options that play them."""

from __future__ import annotations

import json

import pytest

from mockllm.play.quirks import QUIRKS


def test_all_quirks_are_listed(mockllm) -> None:
    """The table has a row for each quirk, with the correct reaction."""
    lines = mockllm("list", "quirks").stdout.splitlines()
    assert lines[0].split() == ["NAME", "RIGHT", "APIS", "TITLE"]
    assert [line.split()[0] for line in lines[1:]] == list(QUIRKS)


def test_quirks_of_an_api_as_json(mockllm) -> None:
    """`--api` selects quirks, and `--json` prints their fields."""
    found = json.loads(mockllm("list", "quirks", "--api", "gemini", "--json").stdout)
    assert {each["name"] for each in found} == {
        name for name, quirk in QUIRKS.items() if "gemini" in quirk.apis
    }
    assert all(each["correct"] and each["variants"] for each in found)


def test_a_quirk_is_described_with_its_changes(mockllm) -> None:
    """The description of a quirk has its source and the changed lines."""
    printed = mockllm("list", "quirks", "chat-finish-stop-with-tools").stdout
    assert "ollama/ollama#7963" in printed
    assert (
        '-data: {"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_' in printed
    )
    assert (
        '+data: {"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"' in printed
    )


@pytest.mark.slow
def test_every_quirk_can_be_described(mockllm) -> None:
    """Every quirk can be described, without an error."""
    result = mockllm("list", "quirks", *QUIRKS)
    assert result.exit_code == 0
    assert all(f"{name}: " in result.stdout for name in QUIRKS)


def test_an_unknown_quirk_is_an_error(mockllm) -> None:
    """The error for an unknown quirk suggests the nearest, in every command."""
    for arguments in (
        ("list", "quirks", "sse-clrf"),
        ("show", "sample-text", "--quirk", "sse-clrf"),
        ("serve", ".", "--quirk", "sse-clrf"),
    ):
        result = mockllm(*arguments)
        assert result.exit_code == 2
        assert "did you mean 'sse-crlf'" in result.stderr


def test_show_plays_a_quirk_over_its_first_api(mockllm) -> None:
    """Without `--api` the first API of the quirk is used."""
    printed = mockllm("show", "sample-call", "--quirk", "gem-args-string").stdout
    assert '"functionCall": {"name": "get_weather","args": "' in printed
    crlf = mockllm("show", "sample-text", "--quirk", "sse-crlf")
    assert b"\r\n\r\n" in crlf.stdout_bytes
