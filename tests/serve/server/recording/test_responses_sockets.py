"""Responses over a WebSocket is recorded as conversations, which play over HTTP and a WebSocket."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from mockllm.play.replay.loading import load, loads
from mockllm.scenario.model import Scenario
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.serve.server.recording.test_upgrades import recorder

SCENARIO = """
scenario: weather
match: {user: {contains: weather}}
turns:
  - reply:
      - {text: I will look., split: 3}
      - {tool: get_weather, id: call_1, arguments: {city: Oslo}, split: 4}
  - reply: {text: Wear boots., split: 2}
"""

TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
ASKED = {"model": "gpt-5.2", "tools": [TOOL], "store": False}


@contextmanager
def served(scenarios: tuple[Scenario, ...]) -> Iterator[ServerThread]:
    with ServerThread(scenarios, ServerOptions(grace=0)) as thread:
        yield thread


def over_socket(url: str) -> list[Any]:
    """The events of two turns on one connection, each as its JSON."""
    found: list[Any] = []
    with (
        OpenAI(base_url=f"{url}/v1", api_key="sk-proj-secret0123456789abcd") as openai,
        openai.responses.connect() as connection,
    ):
        connection.response.create(**ASKED, input="The weather, anna@holm.example.org?")
        found += answer(connection)
        previous = found[-1]["response"]["id"]
        connection.response.create(**ASKED, input=[OUTPUT], previous_response_id=previous)
        found += answer(connection)
    return found


def over_http(url: str) -> list[Any]:
    """The same two requests over HTTP."""
    found: list[Any] = []
    with OpenAI(base_url=f"{url}/v1", api_key="any") as openai:
        first = openai.responses.create(
            **ASKED, input="The weather, anna@holm.example.org?", stream=True
        )
        found += [event.to_dict() for event in first]
        previous = found[-1]["response"]["id"]
        second = openai.responses.create(
            **ASKED, input=[OUTPUT], previous_response_id=previous, stream=True
        )
        found += [event.to_dict() for event in second]
    return found


def answer(connection: Any) -> Iterator[Any]:
    """The events up to the end of an answer."""
    while True:
        event = json.loads(connection.recv_bytes())
        yield event
        if event["type"] in ("response.completed", "error"):
            return


@pytest.mark.parametrize("client", [over_socket, over_http])
def test_a_conversation_plays_over_both(tmp_path: Path, client: Callable[[str], list[Any]]) -> None:
    """Turns with text and calls, and no secret."""
    with (
        served(loads(SCENARIO)) as upstream,
        recorder(upstream.url, tmp_path) as (thread, lines),
    ):
        recorded = over_socket(thread.url)
    assert [(line.outcome, line.not_found) for line in lines] == [("neutral", "")] * 2
    (scenario,) = load([tmp_path / "recorded"])
    assert [[type(part).__name__ for part in turn.reply] for turn in scenario.turns] == [
        ["TextPart", "ToolPart"],
        ["TextPart"],
    ]
    written = [file.read_text() for file in (tmp_path / "recorded").glob("*.*")]
    assert not any("anna@holm" in text or "secret0123" in text for text in written)
    with served((scenario,)) as thread:
        replayed = client(thread.url)
        journal = thread.server.sessions.get("default").journal
        assert [entry.played.recorded for entry in journal] == ["exact", "exact"]
    assert replayed == recorded


def test_what_belongs_to_no_answer(tmp_path: Path) -> None:
    """A line names what is not kept; the answer of a request that failed is an error over HTTP."""
    with (
        served(loads(SCENARIO)) as upstream,
        recorder(upstream.url, tmp_path) as (thread, lines),
        OpenAI(base_url=f"{thread.url}/v1", api_key="any") as openai,
        openai.responses.connect() as connection,
    ):
        connection.send({"type": "response.processed", "response_id": "resp_1"})
        connection.response.create(model="gpt-5.2", input="The news?")
        (event,) = answer(connection)
        assert event["status"] == 404
    assert [line.outcome for line in lines] == ["neutral", "skipped"]
    assert "HTTP 404" in lines[0].description
    assert lines[1].description.endswith("are not kept: response.processed")
    assert not lines[1].is_missing
