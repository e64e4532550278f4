"""What a scenario states of an answer as it goes over the wire: headers that come twice, a frame
before the first event, fields of items; and the query as a condition."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from mockllm.play.replay.loading import loads
from mockllm.scenario.dump import dump
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread

SCENARIOS = """
scenario: old
match: {query: {api-version: "2024-10-21"}}
turns: [{reply: {text: old}, repeat: true}]
---
scenario: new
match: {query: {api-version: {regex: "^2025"}}}
turns:
  - reply:
      - {frame: {data: {choices: [], prompt_filter_results: []}}, api: chat, first: true}
      - {text: new}
    headers: {set-cookie: [a=1, b=2], content-type: text/plain}
    extra:
      responses: {message: {phase: final_answer}}
      anthropic: {text: {own: 1}}
    repeat: true
---
scenario: failing
match: {user: fail}
turns: [{http: {status: 503, headers: {set-cookie: [a=1, b=2]}}, repeat: true}]
---
scenario: route
route: GET /v1/cookies
turns: [{answer: {text: x, headers: {set-cookie: [a=1, b=2]}}}]
"""

BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
PATH = "/openai/deployments/m/chat/completions"


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a server of the scenarios above."""
    with (
        ServerThread(loads(SCENARIOS), ServerOptions(speed=0)) as server,
        httpx.Client(base_url=server.url, headers={"authorization": "Bearer k"}) as made,
    ):
        yield made


def test_scenarios_are_written_as_they_are_read() -> None:
    """With lists of values, and frames that come first."""
    scenarios = loads(SCENARIOS)
    assert loads("---\n".join(map(dump, scenarios))) == scenarios


@pytest.mark.parametrize(
    ("version", "text"), [("2024-10-21", "old"), ("2025-04-01-preview", "new")]
)
def test_the_query_decides(client: httpx.Client, version: str, text: str) -> None:
    """As Azure's `api-version` of a model's route."""
    answer = client.post(PATH, params={"api-version": version}, json=BODY)
    assert answer.json()["choices"][0]["message"]["content"] == text


def test_another_query_is_answered_by_none(client: httpx.Client) -> None:
    """The refusal names the parameter."""
    answer = client.post(PATH, params={"api-version": "2023-05-15"}, json=BODY)
    assert answer.status_code == 404
    assert "api-version" in answer.text


def test_headers_come_as_often_as_they_are_stated(client: httpx.Client) -> None:
    """In answers, errors and routes; the scenario's own value replaces that of the API."""
    query = {"api-version": "2025-04-01"}
    failing = {**BODY, "messages": [{"role": "user", "content": "fail"}]}
    answers = [
        client.post(PATH, params=query, json=BODY),
        client.post(PATH, params=query, json={**BODY, "stream": True}),
        client.post(PATH, json=failing),
        client.get("/v1/cookies"),
    ]
    for answer in answers:
        assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert [answer.headers["content-type"] for answer in answers[:2]] == ["text/plain"] * 2


def test_a_frame_before_the_first_event(client: httpx.Client) -> None:
    """It comes before the chunk with the role; a body has no frames."""
    query = {"api-version": "2025-04-01"}
    streamed = client.post(PATH, params=query, json={**BODY, "stream": True}).text
    first, second, *_ = streamed.split("\n\n")
    assert json.loads(first[6:]) == {"choices": [], "prompt_filter_results": []}
    assert '"role":"assistant"' in second
    assert "prompt_filter_results" not in client.post(PATH, params=query, json=BODY).text


def test_fields_of_items(client: httpx.Client) -> None:
    """Each message of Responses and each text block of Anthropic has them, in all events."""
    query = {"api-version": "2025-04-01"}
    body = {"model": "m", "input": "Hi"}
    whole = client.post("/v1/responses", params=query, json=body).json()
    assert [item["phase"] for item in whole["output"]] == ["final_answer"]
    stream = client.post("/v1/responses", params=query, json={**body, "stream": True}).text
    assert stream.count('"phase":"final_answer"') == 3
    asked = {**BODY, "max_tokens": 9}
    headers = {"anthropic-version": "2023-06-01"}
    answer = client.post("/v1/messages", params=query, json=asked, headers=headers).json()
    assert answer["content"] == [{"type": "text", "text": "new", "own": 1}]
