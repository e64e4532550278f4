"""Schemas and texts that ask for too much hold up no other client."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from mockllm import ServerOptions, ServerThread
from mockllm.play.replay.loading import loads
from tests.play.replay.hostile_schemas import GIVES_UP, HAS_NO_VALUE
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow

PATH = "/v1/chat/completions"
SCENARIOS = r"""
scenario: auto
match: {model: auto}
turns: [{reply: {auto: true}, repeat: true}]
---
scenario: slow
match: {model: slow, user: {regex: '(x+x+)+y'}}
turns: [{reply: {text: It matches.}, repeat: true}]
---
scenario: plain
match: {model: plain}
turns: [{reply: {text: At once.}, repeat: true}]
---
scenario: checked
match: {model: checked}
turns:
  - request:
      schema: {properties: {user: {pattern: '(x+x+)+y'}}}
    reply: {text: It is checked.}
    repeat: true
"""


def _body(model: str, text: str = "hi", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def _tool(schema: dict[str, Any]) -> dict[str, Any]:
    function = {"name": "f", "parameters": schema}
    tools = [{"type": "function", "function": function}]
    return _body("auto", tools=tools, tool_choice="required")


def _beside(client: httpx.Client, hostile: dict[str, Any]) -> httpx.Response:
    """The answer to a request; another client is answered meanwhile, or after."""
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(client.post, PATH, json=hostile)
        other = pool.submit(client.post, PATH, json=_body("plain"))
        assert "At once." in other.result().text
        return first.result()


@pytest.fixture(scope="module")
def client() -> Any:
    with (
        ServerThread(loads(SCENARIOS), ServerOptions()) as server,
        httpx.Client(base_url=server.url, timeout=GIVE_UP) as client,
    ):
        yield client


def _last(client: httpx.Client, scenario: str | None) -> dict[str, Any]:
    """The last entry of the journal with this scenario."""
    entries = client.get("/_mockllm/journal").json()["exchanges"]
    return next(entry for entry in reversed(entries) if entry["scenario"] == scenario)


@pytest.mark.parametrize("name", ["minLength", "minItems", "depth", "many steps"])
def test_a_schema_is_answered_within_bounds(client: httpx.Client, name: str) -> None:
    """With a tool call, and a note in the journal that says what was given up."""
    answer = _beside(client, _tool(GIVES_UP[name]))
    assert answer.status_code == 200
    (call,) = answer.json()["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "f"
    (problem,) = _last(client, "auto")["problems"]
    assert problem.startswith("mockllm gave up a value for the JSON Schema of tool 'f': ")


@pytest.mark.parametrize("name", ["pattern", "endless", "remote"])
def test_a_schema_without_a_value_is_refused(client: httpx.Client, name: str) -> None:
    """With an error that says why."""
    schema, message = HAS_NO_VALUE[name]
    answer = _beside(client, _tool(schema))
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


@pytest.mark.parametrize("model", ["slow", "checked"])
def test_a_pattern_that_takes_too_long_is_an_error(client: httpx.Client, model: str) -> None:
    """Not "no match": the request is refused with the reason."""
    answer = _beside(client, _body(model, "x" * 20_000, user="x" * 20_000))
    assert answer.status_code == 400
    assert "gave up the regular expression '(x+x+)+y'" in answer.json()["error"]["message"]
    assert answer.json()["error"]["code"] == "pattern_gave_up"
