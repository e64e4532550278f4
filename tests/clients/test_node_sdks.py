"""Bedrock, Ollama, Responses and Interactions with the official SDKs under Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import ollama
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from mockllm.cli.serving.server_log import LineOutput, ServerLog
from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.bedrock_client import FAILING, arguments, of_events, of_response
from tests.clients.conftest import Run
from tests.clients.conversation import PLAIN, SCENARIOS, converse, drive, plays
from tests.clients.dialects import DIALECTS, Json
from tests.clients.observed import of_events as openai_events
from tests.clients.ollama_client import of_responses
from tests.clients.oracle import Answer

CLIENT = Path(__file__).parent / "sdks"
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
NODE = shutil.which("node")


def _missing() -> str | None:
    """Why these tests cannot run here, or None."""
    if NODE is None:
        return "Node is not installed"
    if not (CLIENT / "node_modules").is_dir():
        return f"the SDKs are not installed: run `npm install` in {CLIENT.name}/"
    return None


MISSING = _missing()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "everything is there")


@dataclass(frozen=True)
class Report:
    """What an SDK handed on, and the error that it raised then."""

    events: list[Any]
    error: Json | None

    @property
    def whole(self) -> list[Any]:
        """The events of an answer without an error."""
        assert self.error is None, self.error
        return self.events

    @property
    def failure(self) -> Json:
        """The error."""
        assert self.error is not None, self.events
        return self.error


def _as_json(message: ollama.Message) -> Json:
    return message.model_dump(exclude_none=True)


class Sdks:
    """The SDKs in one process of Node (see `run.mjs`)."""

    def __init__(self, input: IO[str], output: IO[str]) -> None:
        self._input = input
        self._output = output

    def send(self, sdk: str, url: str, operation: str, request: Json, **options: Any) -> Report:
        """Sends one request, and reads its answer to the end."""
        job = {"sdk": sdk, "url": url, "operation": operation, "request": request, **options}
        print(json.dumps(job, default=_as_json), file=self._input, flush=True)
        return Report(**json.loads(self._output.readline()))


@pytest.fixture(scope="module")
def sdks() -> Iterator[Sdks]:
    assert NODE is not None
    pipe = subprocess.PIPE
    command = [NODE, str(CLIENT / "run.mjs")]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8") as node:
        assert node.stdin is not None
        assert node.stdout is not None
        yield Sdks(node.stdin, node.stdout)
        node.stdin.close()
        assert node.wait() == 0


SERVED = (
    FAILING
    + """\
scenario: weather
match: {user: weather}
turns:
  - reply:
      - {reasoning: Let me look., signature: U0lHMQ==, split: 4}
      - {text: One moment., split: words}
      - {tool: get_weather, id: tooluse_A1, arguments: {city: Paris}, split: 4}
      - {tool: list_issues, id: tooluse_B2}
    usage: {input: 14, output: 9, cached: 3}
  - request: {results: {tooluse_A1: "22", tooluse_B2: none}}
    reply: {tool: get_weather, id: tooluse_C3, arguments: {city: Rome}}
  - request: {results: {tooluse_C3: "25"}}
    reply: {text: Rome is warmer.}
    usage: {input: 30, output: 4}
---
scenario: flipped
match: {user: flipped}
turns: [{reply: {text: Hello, split: 3}, wire: {quirks: [bedrock-wrong-checksum]}}]
---
scenario: cut
match: {user: cut}
turns: [{reply: {text: Hello, split: 3}, wire: {quirks: [bedrock-truncated-frame]}}]
"""
)
TOOLS = [
    {"name": name, "description": name, "parameters": {"type": "object"}}
    for name in ("get_weather", "list_issues")
]


@pytest.fixture(scope="module")
def served() -> Iterator[ServerThread]:
    """A server of the scenarios above."""
    with ServerThread(loads(SERVED), ServerOptions(speed=0)) as server:
        yield server


def request(api: str, text: str) -> Json:
    """A request with tools, as the SDK of an API takes it."""
    written = DIALECTS[api].request(text, TOOLS)
    return arguments(written) if api == "bedrock" else written


# Amazon Bedrock: Converse


def bedrock_answer(report: Report, how: str) -> Answer:
    return of_events(report.whole) if how == "ConverseStream" else of_response(*report.whole)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["Converse", "ConverseStream"])
@pytest.mark.parametrize("scenario", PLAIN, ids=lambda scenario: scenario.name)
def test_conversation_with_bedrock(sdks: Sdks, run: Run, scenario: Any, how: str) -> None:
    """The AWS SDK reads every answer of every scenario, and the server reads its history."""

    def send(request: Json) -> Answer:
        return bedrock_answer(sdks.send("bedrock", run.root, how, arguments(request)), how)

    drive(converse(scenario, "bedrock"), send)
    run.expects_plays(plays(scenario, "bedrock"))


@pytest.mark.parametrize("how", ["Converse", "ConverseStream"])
def test_several_hops_with_bedrock(sdks: Sdks, served: ServerThread, how: str) -> None:
    """Text, reasoning with its signature, calls, finish and usage; results find the next turn."""
    asked = request("bedrock", "weather")
    answers = []
    for results in ({"tooluse_A1": "22", "tooluse_B2": "none"}, {"tooluse_C3": "25"}, {}):
        answer = bedrock_answer(sdks.send("bedrock", served.url, how, asked), how)
        answers.append(answer)
        given = [
            {"toolResult": {"toolUseId": id, "content": [{"text": text}]}}
            for id, text in results.items()
        ]
        history = [*asked["messages"], *answer.echo, {"role": "user", "content": given}]
        asked = {**asked, "messages": history}
    first, second, third = (answer.seen for answer in answers)
    assert (first.text, first.reasoning) == ("One moment.", "Let me look.")
    reasoning = answers[0].echo[0]["content"][0]["reasoningContent"]["reasoningText"]
    assert reasoning["signature"] == "U0lHMQ=="
    assert first.calls == (
        ("tooluse_A1", "get_weather", {"city": "Paris"}),
        ("tooluse_B2", "list_issues", {}),
    )
    assert (first.finish, first.usage) == ("tool_use", (14, 9, 0, 3))
    assert second.calls == (("tooluse_C3", "get_weather", {"city": "Rome"}),)
    assert (third.text, third.finish, third.usage) == (
        "Rome is warmer.",
        "end_turn",
        (30, 4, 0, 0),
    )


@pytest.mark.parametrize("how", ["Converse", "ConverseStream"])
def test_throttled_before_the_stream(sdks: Sdks, served: ServerThread, how: str) -> None:
    """The error has the class of the service and the status; the SDK tries as often as it may."""
    for attempts in (1, 3):
        url = f"{served.url}/s/throttled-{how}-{attempts}"
        asked = request("bedrock", "throttled")
        report = sdks.send("bedrock", url, how, asked, attempts=attempts)
        assert report.failure == {
            "name": "ThrottlingException",
            "message": "Rate limit reached. Please try again later.",
            "status": 429,
        }
        session = served.server.sessions.find(url.rpartition("/")[2])
        assert session is not None
        assert len(session.journal) == attempts


def texts(events: list[Any]) -> str:
    deltas = (event.get("contentBlockDelta", {}).get("delta", {}) for event in events)
    return "".join(delta.get("text", "") for delta in deltas)


@pytest.mark.parametrize(
    ("text", "seen", "name", "message"),
    [
        ("in the stream", "Hel", "ThrottlingException", "Slow down"),
        ("flipped", "Hello", "Error", "The message checksum"),
        ("cut", "Hello", "Error", "Truncated event message received"),
    ],
)
def test_error_inside_the_stream(
    sdks: Sdks, served: ServerThread, text: str, seen: str, name: str, message: str
) -> None:
    """It is raised after the text before it, as is a wrong checksum, and half of a frame."""
    report = sdks.send("bedrock", served.url, "ConverseStream", request("bedrock", text))
    assert texts(report.events) == seen
    assert report.failure["name"] == name
    assert message in report.failure["message"]


def test_http_2_fails_and_the_log_says_why(sdks: Sdks, tmp_path: Path) -> None:
    """With its default handler the SDK speaks HTTP/2 to `http://`: it fails, and what to do about
    it is in the log of the server."""
    asked = request("bedrock", "weather")
    with (tmp_path / "log").open("wb") as file:
        log = ServerLog(output=LineOutput(file.fileno()))
        with ServerThread(loads(SERVED), ServerOptions(log=log.requests)) as server:
            report = sdks.send(
                "bedrock", server.url, "ConverseStream", asked, attempts=1, http2=True
            )
    assert report.events == []
    assert "Protocol error" in report.failure["message"]
    line, *_ = (tmp_path / "log").read_text().splitlines()
    assert "`requestHandler: new NodeHttpHandler()` from `@smithy/node-http-handler`" in line


# Models of Anthropic by InvokeModel


def invoked(sdks: Sdks, url: str, messages: list[Json]) -> list[Json]:
    """The events of a model's own stream."""
    tools = [{"name": tool["name"], "input_schema": tool["parameters"]} for tool in TOOLS]
    body = {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 99,
        "messages": messages,
        "tools": tools,
    }
    asked = {"modelId": DIALECTS["bedrock"].model, "body": json.dumps(body)}
    whole = sdks.send("bedrock", url, "InvokeModel", asked).whole
    assert json.loads(whole[0]["body"])["content"]
    events = sdks.send("bedrock", url, "InvokeModelWithResponseStream", asked).whole
    return [json.loads(event["chunk"]["bytes"]) for event in events]


def test_invoke_model(sdks: Sdks, served: ServerThread) -> None:
    """Each event of Anthropic's stream is a chunk; a result finds the next turn."""
    asked: list[Json] = [{"role": "user", "content": "weather"}]
    events = invoked(sdks, served.url, asked)
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("thinking", "") for delta in deltas) == "Let me look."
    assert "".join(delta.get("text", "") for delta in deltas) == "One moment."
    arguments = "".join(delta.get("partial_json", "") for delta in deltas)
    assert json.loads(arguments) == {"city": "Paris"}
    blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    calls = [block for block in blocks if block["type"] == "tool_use"]
    assert [(call["id"], call["name"]) for call in calls] == [
        ("tooluse_A1", "get_weather"),
        ("tooluse_B2", "list_issues"),
    ]
    (end,) = (event for event in events if event["type"] == "message_delta")
    assert (end["delta"]["stop_reason"], end["usage"]["output_tokens"]) == ("tool_use", 9)
    metrics = events[-1]["amazon-bedrock-invocationMetrics"]
    assert (metrics["inputTokenCount"], metrics["cacheReadInputTokenCount"]) == (11, 3)
    calls[0]["input"] = {"city": "Paris"}
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": text}
        for call, text in zip(calls, ("22", "none"), strict=True)
    ]
    history = [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    (call,) = (
        event["content_block"]
        for event in invoked(sdks, served.url, [*asked, *history])
        if event["type"] == "content_block_start"
    )
    assert (call["id"], call["name"]) == ("tooluse_C3", "get_weather")


# Ollama


def ollama_answer(events: list[Any]) -> Answer:
    return of_responses([ollama.ChatResponse.model_validate(event) for event in events])


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])
@pytest.mark.parametrize("scenario", PLAIN, ids=lambda scenario: scenario.name)
def test_conversation_with_ollama(sdks: Sdks, run: Run, scenario: Any, stream: bool) -> None:
    """ollama-js reads every answer of every scenario, and the server reads its history. It tries
    nothing again by itself."""

    def send(request: Json) -> Answer:
        asked = {**request, "stream": stream}
        reports = (sdks.send("ollama", run.root, "chat", asked) for _ in range(3))
        report = next(report for report in reports if not _is_busy(report))
        return ollama_answer(report.whole)

    ignored = {"usage"} if scenario.name == "token-usage" else set()
    drive(converse(scenario, "ollama", ids=False, ignored=ignored), send)
    run.expects_plays(plays(scenario, "ollama"))


def _is_busy(report: Report) -> bool:
    return report.error is not None and report.error["status"] in (429, 500, 503)


def test_several_hops_with_ollama(sdks: Sdks, served: ServerThread) -> None:
    """Thinking, calls with their ids, finish and usage; results find the next turn."""
    asked = {**request("ollama", "weather"), "stream": True, "think": True}
    events = sdks.send("ollama", served.url, "chat", asked).whole
    answer = ollama_answer(events).seen
    assert (answer.text, answer.reasoning) == ("One moment.", "Let me look.")
    assert (answer.finish, answer.usage) == ("stop", (14, 9, 0, 0))
    calls = [call for event in events for call in event["message"].get("tool_calls", ())]
    assert [
        (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls
    ] == [
        ("tooluse_A1", "get_weather", {"city": "Paris"}),
        ("tooluse_B2", "list_issues", {}),
    ]
    for results in (("get_weather", "22"), ("list_issues", "none")), (("get_weather", "25"),):
        said = {"role": "assistant", "content": "", "tool_calls": calls}
        given = [{"role": "tool", "tool_name": name, "content": text} for name, text in results]
        asked = {**asked, "messages": [*asked["messages"], said, *given]}
        events = sdks.send("ollama", served.url, "chat", asked).whole
        calls = [call for event in events for call in event["message"].get("tool_calls", ())]
    assert ollama_answer(events).seen.text == "Rome is warmer."


def test_errors_with_ollama(sdks: Sdks, served: ServerThread) -> None:
    """A status is an error with it; an error that is the last line has a message only."""
    asked = {**request("ollama", "throttled"), "stream": True}
    report = sdks.send("ollama", served.url, "chat", asked)
    assert (report.failure["name"], report.failure["status"]) == ("ResponseError", 429)
    asked = {**request("ollama", "in the stream"), "stream": True}
    report = sdks.send("ollama", served.url, "chat", asked)
    assert [event["message"]["content"] for event in report.events] == ["Hel"]
    assert report.failure == {"name": "Error", "message": "Slow down"}


# Gemini Interactions


def test_interactions(sdks: Sdks, served: ServerThread) -> None:
    """A body, a stream that goes on after it, a look-up, and the end of what is kept."""
    url, tools = f"{served.url}/s/interactions", [{"type": "function", **tool} for tool in TOOLS]
    asked: Json = {"model": "gemini-3.5-flash", "input": "weather", "tools": tools}
    (first,) = sdks.send("interactions", url, "create", asked).whole
    assert (first["status"], first["output_text"]) == ("requires_action", "One moment.")
    assert [step["type"] for step in first["steps"]] == [
        "thought",
        "model_output",
        "function_call",
        "function_call",
    ]
    results = [
        {"type": "function_result", "call_id": id, "result": text}
        for id, text in (("tooluse_A1", "22"), ("tooluse_B2", "none"))
    ]
    asked |= {"input": results, "previous_interaction_id": first["id"], "stream": True}
    events = sdks.send("interactions", url, "create", asked).whole
    deltas = [event["delta"] for event in events if event["event_type"] == "step.delta"]
    assert "".join(delta["arguments"] for delta in deltas) == '{"city":"Rome"}'
    assert events[-1]["interaction"]["status"] == "requires_action"
    (read,) = sdks.send("interactions", url, "get", {}, id=first["id"]).whole
    assert read["steps"][0]["type"] == "user_input"
    assert sdks.send("interactions", url, "delete", {}, id=first["id"]).error is None
    gone = sdks.send("interactions", url, "get", {}, id=first["id"])
    assert gone.failure["status"] == 404


# OpenAI Responses over a WebSocket


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [SCENARIOS["secret-numbers"], SCENARIOS["multi-hop"]], ids=str)
def test_conversation_on_one_socket(sdks: Sdks, run: Run, scenario: Any) -> None:
    """`ResponsesWS` of the SDK reads every event of every answer."""

    def send(request: Json) -> Answer:
        events = sdks.send("responses", run.root, "create", request).whole
        return openai_events([EVENT.validate_python(event) for event in events])

    drive(converse(scenario, "responses"), send)
    assert len({exchange.received.connection for exchange in run.exchanges}) == 1
    run.expects_plays(plays(scenario, "responses"))


def test_an_error_is_an_event_of_the_socket(sdks: Sdks, served: ServerThread) -> None:
    url = f"{served.url}/s/socket-errors"
    asked = {"model": "gpt-5.2", "input": "weather", "previous_response_id": "resp_none"}
    (event,) = sdks.send("responses", url, "create", asked).whole
    assert (event["status"], event["error"]["code"]) == (400, "previous_response_not_found")
    del asked["previous_response_id"]
    assert sdks.send("responses", url, "create", asked).whole[-1]["type"] == "response.completed"
