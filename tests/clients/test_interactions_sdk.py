"""Gemini Interactions with the official `google-genai` client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai.types import HttpOptions, HttpRetryOptions

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.conftest import LEAVES_SOCKETS
from tests.timeouts import GIVE_UP

pytestmark = LEAVES_SOCKETS

OWN = """
scenario: weather
match: {user: weather}
tools:
  - {name: get_weather, parameters: {type: object, properties: {city: {type: string}}}}
turns:
  - reply:
      - {reasoning: Let me look., split: words, signature: U0lHMQ==}
      - {tool: get_weather, id: 61nzpsv4, arguments: {city: Paris}, split: 4}
    usage: {input: 12, output: 9, reasoning: 4, cached: 2}
  - reply:
      text: It is 22 degrees.
      split: words
      citations: [{url: "https://example.com/a", title: A, cited_text: 22 degrees}]
---
scenario: job
match: {user: report}
turns:
  - reply: {text: Done at last., split: words}
    job: {pending: 1 polls}
---
scenario: searched
match: {user: search}
turns:
  - reply:
      - text: Spain won.
      - server_tool: web_search
        id: 7xveqyd2
        input: {queries: [euro 2024]}
        output: [{search_suggestions: <div></div>}]
      - {image: {base64: iVBORw0KGgo=, type: image/png}}
---
scenario: blocked
match: {user: bad}
turns:
  - reply: {text: The story begins}
    finish: content_filter
---
scenario: failing
match: {user: fail}
turns:
  - reply: [{text: So}, {error: {message: The model is overloaded., type: service_unavailable}}]
---
scenario: limited
match: {user: limit}
turns:
  - attempts: [{http: 429, retry_after: 1ms, error: {message: slow down}}]
    reply: {text: At last.}
    repeat: true
"""
MODEL = "gemini-3.5-flash"
TOOLS: Any = [
    {
        "type": "function",
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(loads(OWN), ServerOptions(speed=0)) as running:
        yield running


@pytest.fixture
def client(server: ServerThread) -> Iterator[genai.Client]:
    options = HttpOptions(
        base_url=server.url,
        timeout=int(GIVE_UP * 1000),
        retry_options=HttpRetryOptions(attempts=1),
        client_args={"trust_env": False},
    )
    with genai.Client(api_key="k", http_options=options) as client:
        yield client


def test_a_call_and_its_result(client: genai.Client) -> None:
    """The steps of a body, then the result with `previous_interaction_id`, streamed."""
    called = client.interactions.create(model=MODEL, input="weather", tools=TOOLS)
    assert called.status == "requires_action"
    thought, call = called.steps or []
    assert (thought.signature, [one.text for one in thought.summary]) == (
        "U0lHMQ==",
        ["Let me look."],
    )
    assert (call.id, call.name, call.arguments) == ("61nzpsv4", "get_weather", {"city": "Paris"})
    usage = called.usage
    assert (usage.total_input_tokens, usage.total_output_tokens) == (12, 5)
    assert (usage.total_thought_tokens, usage.total_cached_tokens, usage.total_tokens) == (4, 2, 21)
    result: Any = {"type": "function_result", "call_id": call.id, "name": call.name, "result": "22"}
    events = list(
        client.interactions.create(
            model=MODEL,
            input=[result],
            previous_interaction_id=called.id,
            tools=TOOLS,
            stream=True,
        )
    )
    deltas = [event.delta for event in events if event.event_type == "step.delta"]
    assert "".join(delta.text for delta in deltas if delta.type == "text") == "It is 22 degrees."
    (cited,) = deltas[-1].annotations
    assert (cited.url, cited.title, cited.start_index, cited.end_index) == (
        "https://example.com/a",
        "A",
        6,
        16,
    )
    assert events[-1].event_type == "interaction.completed"
    assert events[-1].interaction.status == "completed"
    assert not any(getattr(event, "is_unknown", False) for event in events)


def test_the_whole_history(client: genai.Client) -> None:
    """Steps go back as they came, without an id of an earlier interaction."""
    first = client.interactions.create(model=MODEL, input="weather", tools=TOOLS, store=False)
    assert first.id == ""
    user: Any = {"type": "user_input", "content": [{"type": "text", "text": "weather"}]}
    result: Any = {"type": "function_result", "call_id": "61nzpsv4", "result": {"degrees": 22}}
    history = [user, *(step.model_dump() for step in first.steps or []), result]
    second = client.interactions.create(model=MODEL, input=history, tools=TOOLS, store=False)
    assert second.output_text == "It is 22 degrees."


def test_in_the_background(client: genai.Client) -> None:
    """Polls, the steps of the client in a look-up, a stream that is resumed, cancel, delete."""
    started = client.interactions.create(model=MODEL, input="a report", background=True)
    assert (started.status, started.steps, started.usage) == ("in_progress", None, None)
    assert client.interactions.get(started.id).status == "in_progress"
    done = client.interactions.get(started.id, include_input=True)
    assert (done.status, done.output_text, done.input) == ("completed", "Done at last.", "a report")
    assert [step.type for step in done.steps or []] == ["user_input", "model_output"]
    events = list(client.interactions.get(started.id, stream=True))
    ids = [event.event_id for event in events if event.event_type == "step.delta"]
    assert len(set(ids)) == len(ids) == 3
    rest = list(client.interactions.get(started.id, stream=True, last_event_id=ids[0]))
    assert rest == events[events.index(rest[0]) :]
    assert "".join(e.delta.text for e in rest if e.event_type == "step.delta") == " at last."
    other = client.interactions.create(model=MODEL, input="a report", background=True)
    assert client.interactions.cancel(other.id).status == "cancelled"
    assert client.interactions.get(other.id).status == "cancelled"
    assert client.interactions.delete(other.id) is None
    assert status_of(lambda: client.interactions.get(other.id)) == (404, "not_found")


def status_of(call: Any) -> tuple[int, str]:
    """Status and code of the error of a call."""
    with pytest.raises(Exception, match="Error code") as caught:
        call()
    error: Any = caught.value
    return error.status_code, error.body["error"]["code"]


def test_tools_of_the_service_and_images(client: genai.Client) -> None:
    """Each is a step that the SDK knows, in a body and in a stream."""
    answer = client.interactions.create(model=MODEL, input="search")
    assert [step.type for step in answer.steps or []] == [
        "model_output",
        "google_search_call",
        "google_search_result",
        "model_output",
    ]
    assert answer.output_image.mime_type == "image/png"
    events = list(client.interactions.create(model=MODEL, input="search", stream=True))
    deltas = [event.delta for event in events if event.event_type == "step.delta"]
    assert [delta.type for delta in deltas] == [
        "text",
        "google_search_call",
        "google_search_result",
        "image",
    ]
    assert deltas[1].arguments.queries == ["euro 2024"]


def test_blocked_answers_and_errors(client: genai.Client) -> None:
    """The SDK raises for a body, and hands on the error of a stream as an event."""

    def answer(text: str, **options: Any) -> Any:
        return client.interactions.create(model=MODEL, input=text, **options)

    assert status_of(lambda: answer("bad")) == (400, "safety")
    *_, last = answer("bad", stream=True)
    assert (last.event_type, last.error.code) == ("error", "safety")
    *_, last = answer("fail", stream=True)
    assert (last.error.code, last.error.message) == (
        "service_unavailable",
        "The model is overloaded.",
    )
    assert status_of(lambda: answer("limit")) == (429, "rate_limit_exceeded")
    assert answer("limit").output_text == "At last."


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"model": MODEL, "input": "weather", "extra_body": {"top_n": 1}}, "parameter_unknown"),
        (
            {"model": MODEL, "input": "weather", "background": True, "store": False},
            "invalid_request",
        ),
        ({"model": MODEL, "input": [{"type": "odd"}]}, "invalid_request"),
        (
            {"model": MODEL, "input": [{"type": "function_result", "call_id": "x", "result": "1"}]},
            "invalid_request",
        ),
    ],
)
def test_refusals(client: genai.Client, body: Any, code: str) -> None:
    """Each has the words of the service."""
    assert status_of(lambda: client.interactions.create(**body)) == (400, code)
