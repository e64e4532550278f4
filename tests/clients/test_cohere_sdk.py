"""Cohere's Chat API with the official `cohere` client."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose
from typing import Any

import cohere
import httpx
import pytest

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.conftest import LEAVES_SOCKETS
from tests.clients.conversation import SCENARIOS
from tests.timeouts import GIVE_UP

pytestmark = LEAVES_SOCKETS

OWN = """
scenario: thoughtful
match: {user: think}
turns:
  - reply:
      - {reasoning: Seventeen is prime., split: [Seventeen, " is prime."]}
      - text: "Yes."
        citations: [{url: "https://example.com/", title: Primes, cited_text: 17 is prime}]
    usage: {input: 12, output: 7, cached: 3}
---
scenario: planned
match: {user: plan}
turns:
  - reply:
      - {text: I will look., split: words}
      - {tool: get_weather, id: w1, arguments: {city: Paris}, split: 6}
      - {tool: list_issues, id: i2}
  - reply: {text: Sunny.}
---
scenario: limited
match: {user: limit}
turns:
  - attempts: [{http: 429, retry_after: 1ms, error: {message: slow down}}]
    reply: {text: At last.}
    repeat: true
"""
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("get_weather", "list_issues")
]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    scenarios = [*loads(OWN), SCENARIOS["stream-error"]]
    with ServerThread(scenarios, ServerOptions(speed=0, fallback=True)) as running:
        yield running


@pytest.fixture
def client(server: ServerThread) -> Iterator[cohere.ClientV2]:
    with httpx.Client(trust_env=False, timeout=GIVE_UP) as http:
        yield cohere.ClientV2(api_key="k", base_url=server.url, httpx_client=http)


def asked(text: str) -> dict[str, Any]:
    return {"model": "command-a", "messages": [{"role": "user", "content": text}]}


def test_thinking_and_citations(client: cohere.ClientV2) -> None:
    """A body has a block for the reasoning, one for the text, and the citations beside them."""
    answer = client.chat(**asked("think"))
    thinking, text = answer.message.content or []
    assert (thinking.type, thinking.thinking) == ("thinking", "Seventeen is prime.")
    assert (text.type, text.text) == ("text", "Yes.")
    (citation,) = answer.message.citations or []
    (source,) = citation.sources or []
    assert (citation.start, citation.end, citation.content_index) == (0, 4, 1)
    assert source.document == {
        "id": "doc:0",
        "title": "Primes",
        "url": "https://example.com/",
        "text": "17 is prime",
    }
    assert answer.finish_reason == "COMPLETE"
    assert answer.usage is not None
    assert answer.usage.tokens is not None
    assert (answer.usage.tokens.input_tokens, answer.usage.cached_tokens) == (12, 3)


def test_a_stream(client: cohere.ClientV2) -> None:
    """Every event has the type that the SDK knows, and the deltas join to the same answer."""
    events = list(client.chat_stream(**asked("think")))
    assert [event.type for event in events] == [
        "message-start",
        "content-start",
        "content-delta",
        "content-delta",
        "content-end",
        "content-start",
        "content-delta",
        "citation-start",
        "citation-end",
        "content-end",
        "message-end",
    ]
    contents = [event.delta.message.content for event in events if event.type == "content-delta"]
    assert "".join(content.thinking or "" for content in contents) == "Seventeen is prime."
    assert "".join(content.text or "" for content in contents) == "Yes."
    assert events[-1].delta.finish_reason == "COMPLETE"
    assert events[-1].delta.usage.tokens.output_tokens == 7


def test_calls_and_their_results(client: cohere.ClientV2) -> None:
    """The text before calls is the tool plan; the results find the next turn."""
    request = {**asked("plan"), "tools": TOOLS}
    answer = client.chat(**request)
    message = answer.message
    assert (answer.finish_reason, message.tool_plan, message.content) == (
        "TOOL_CALL",
        "I will look.",
        None,
    )
    calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls]
    assert calls == [("w1", "get_weather", '{"city":"Paris"}'), ("i2", "list_issues", "{}")]
    results = [
        {"role": "tool", "tool_call_id": id, "content": [{"type": "text", "text": "sunny"}]}
        for id, _, _ in calls
    ]
    following = client.chat(**{**request, "messages": [*request["messages"], message, *results]})
    assert following.message.content[0].text == "Sunny."


def test_streamed_calls(client: cohere.ClientV2) -> None:
    """Calls come in fragments, each with the index of its call; one without arguments has `{}`."""
    plan, names, arguments = "", {}, {0: "", 1: ""}
    for event in client.chat_stream(**asked("plan"), tools=TOOLS):
        if event.type == "tool-plan-delta":
            plan += event.delta.message.tool_plan
        elif event.type == "tool-call-start":
            names[event.index] = event.delta.message.tool_calls.function.name
        elif event.type == "tool-call-delta":
            arguments[event.index] += event.delta.message.tool_calls.function.arguments
    assert plan == "I will look."
    assert names == {0: "get_weather", 1: "list_issues"}
    assert arguments == {0: '{"city":"Paris"}', 1: "{}"}


def test_an_error_in_the_stream_is_a_finish_reason(client: cohere.ClientV2) -> None:
    """The SDK raises nothing: `ERROR` and a message are all that a client gets."""
    events = list(client.chat_stream(**asked("break in the middle")))
    assert events[-1].delta.finish_reason == "ERROR"
    assert "stopped unexpectedly" in events[-1].delta.error


@pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])
def test_a_rate_limit(client: cohere.ClientV2, stream: bool) -> None:
    """It is raised with the service's body; the SDK tries bodies again, and no streams."""
    once = {"request_options": {"max_retries": 0}}
    send = client.chat_stream if stream else client.chat
    with pytest.raises(cohere.TooManyRequestsError) as caught:
        list(send(**asked("limit"), **once))
    assert caught.value.body["message"] == "slow down"
    assert caught.value.body.keys() == {"id", "message"}
    list(send(**asked("limit"), **once))  # the second try succeeds


def test_refused_requests(client: cohere.ClientV2) -> None:
    """Refusals have the service's form."""
    with pytest.raises(cohere.BadRequestError) as caught:
        client.chat(model="m", messages=[])
    assert caught.value.body["message"] == (
        "invalid request: messages must have at least one message."
    )


def test_embeddings(client: cohere.ClientV2) -> None:
    """Each text has a vector of length 1, in each form that is wanted."""
    found = client.embed(
        model="embed-v4.0",
        texts=["hello", "world"],
        input_type="search_query",
        embedding_types=["float", "int8", "ubinary"],
        output_dimension=256,
    ).embeddings
    assert [len(vector) for vector in found.float_] == [256, 256]
    assert all(isclose(sum(x * x for x in vector), 1, rel_tol=1e-4) for vector in found.float_)
    assert [len(vector) for vector in found.ubinary] == [32, 32]
    assert max(abs(value) for value in found.int8[0]) <= 127


def test_rankings(client: cohere.ClientV2) -> None:
    """The documents that share words with the query come first."""
    documents = ["green apples", "the capital of France is Paris", "blue cars"]
    ranked = client.rerank(model="rerank-v4", query="capital of France", documents=documents)
    assert [result.index for result in ranked.results][:1] == [1]
    assert len(ranked.results) == 3
    top = client.rerank(model="rerank-v4", query="cars", documents=documents, top_n=1).results
    assert [result.index for result in top] == [2]
