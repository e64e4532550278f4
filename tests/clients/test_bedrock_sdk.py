"""Amazon Bedrock with the official clients: Converse with boto3, and InvokeModel with bodies of
Anthropic with `AnthropicBedrock` and boto3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from botocore.eventstream import ChecksumMismatch
from botocore.exceptions import ClientError, EventStreamError

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.cases import for_all
from tests.clients import anthropic_client
from tests.clients.bedrock_client import FAILING, WAYS, arguments, bedrock, of_events
from tests.clients.conftest import LEAVES_SOCKETS, Run
from tests.clients.conversation import PLAIN, SCENARIOS, converse, drive, first, plays
from tests.clients.dialects import DIALECTS
from tests.clients.matrix import MISREAD
from tests.timeouts import GIVE_UP

API = "bedrock"
MODEL = DIALECTS[API].model
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"

every_way = pytest.mark.parametrize("how", WAYS)


@pytest.fixture
def boto(run: Run) -> Iterator[Any]:
    """boto3 in the test's session."""
    with bedrock(run.root) as client:
        yield client


pytestmark = LEAVES_SOCKETS


@pytest.fixture
def claude_on_bedrock(run: Run) -> Iterator[anthropic.AnthropicBedrock]:
    """Anthropic's client for Bedrock in the test's session."""
    with anthropic.AnthropicBedrock(
        base_url=run.root,
        aws_region="us-east-1",
        aws_access_key="mock-key",
        aws_secret_key="mock-key",
        max_retries=2,
        timeout=GIVE_UP,
        http_client=anthropic.DefaultHttpxClient(trust_env=False),
    ) as client:
        yield client


def message(text: str, model: str = MODEL) -> dict[str, Any]:
    """The arguments of an operation, with one message."""
    return {"modelId": model, "messages": [{"role": "user", "content": [{"text": text}]}]}


# Converse


@pytest.mark.slow
@every_way
@pytest.mark.parametrize("scenario", PLAIN, ids=lambda scenario: scenario.name)
def test_conversation(boto, run, scenario, how):
    """boto3 reads every answer of every scenario, and the server reads its history."""
    drive(converse(scenario, API), lambda request: WAYS[how](boto, request))
    run.expects_plays(plays(scenario, API))


@pytest.mark.parametrize("model", ["a.b-v1:0", PROFILE, "mock/unicode", "a@b"])
def test_models_in_the_path(boto, run, model):
    """boto3 quotes colons, slashes and at signs; the name of the model has them again."""
    request = {**arguments(first(SCENARIOS["unicode"], API)), "modelId": model}
    assert boto.converse(**request)["stopReason"] == "tool_use"
    assert [exchange.played.model for exchange in run.exchanges] == [model]


SERVED = loads(
    FAILING
    + """\
scenario: flipped
match: {user: flipped}
turns: [{reply: {text: Hello, split: 3}, wire: {quirks: ["bedrock-wrong-checksum"]}}]
---
scenario: cut
match: {user: cut}
turns: [{reply: {text: Hello, split: 3}, wire: {quirks: [bedrock-truncated-frame]}}]
---
scenario: signed
match: {user: signed}
turns:
  - reply:
      - {reasoning: Let me look., signature: U0lHMQ==, split: 4}
      - {tool: list_issues, id: tooluse_A1}
      - {tool: get_weather, id: tooluse_B2, arguments: {city: Paris}, split: 4}
    extra:
      bedrock: {metadata: {trace: {guardrail: {actionReason: none}}}}
---
scenario: cached
match: {user: cached}
turns: [{reply: {text: Hi}, usage: {input: 14, output: 7, cached: 3}}]
"""
)


@pytest.fixture(scope="module")
def served() -> Iterator[ServerThread]:
    """A server of the scenarios above."""
    with ServerThread(SERVED, ServerOptions(speed=0)) as server:
        yield server


@pytest.fixture
def here(served: ServerThread) -> Iterator[Any]:
    """boto3 for that server, with one try."""
    with bedrock(served.url, attempts=1) as client:
        yield client


TOOLS = {
    "tools": [
        {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}}
        for name in ("get_weather", "list_issues")
    ]
}


def test_reasoning_and_calls(here):
    """Reasoning with its signature, a call without arguments, and one in fragments; the trace of a
    guardrail is in the metadata."""
    stream = here.converse_stream(**message("signed"), toolConfig=TOOLS)["stream"]
    events = list(stream)
    answer = of_events(events)
    reasoning, issues, weather = answer.echo[0]["content"]
    assert reasoning["reasoningContent"]["reasoningText"] == {
        "text": "Let me look.",
        "signature": "U0lHMQ==",
    }
    assert issues == {"toolUse": {"toolUseId": "tooluse_A1", "name": "list_issues", "input": {}}}
    assert weather["toolUse"]["input"] == {"city": "Paris"}
    assert events[-1]["metadata"]["trace"] == {"guardrail": {"actionReason": "none"}}
    whole = here.converse(**message("signed"), toolConfig=TOOLS)
    assert whole["output"]["message"]["content"] == [reasoning, issues, weather]
    assert whole["trace"] == {"guardrail": {"actionReason": "none"}}


def test_cached_tokens(here):
    """Tokens read from the cache are not in `inputTokens`, and are in `totalTokens`."""
    usage = here.converse(**message("cached"))["usage"]
    assert usage["inputTokens"] == 11
    assert (usage["cacheReadInputTokens"], usage["totalTokens"]) == (3, 21)


def test_throttled(served):
    """An error over HTTP has its type in upper case; the client tries three times."""
    with bedrock(served.url) as client, pytest.raises(ClientError) as caught:
        client.converse(**message("throttled"))
    assert type(caught.value).__name__ == "ThrottlingException"
    assert caught.value.response["Error"]["Code"] == "ThrottlingException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429
    assert caught.value.response["ResponseMetadata"]["RetryAttempts"] == 2
    assert caught.value.response["ResponseMetadata"]["RequestId"]


def test_throttled_in_the_stream(here):
    """An error in a stream has its type in lower case, after the text before it."""
    texts: list[str] = []

    def gather() -> None:
        for event in here.converse_stream(**message("in the stream"))["stream"]:
            texts.append(event.get("contentBlockDelta", {}).get("delta", {}).get("text", ""))

    with pytest.raises(EventStreamError) as caught:
        gather()
    assert "".join(texts) == "Hel"
    assert caught.value.response["Error"] == {"Code": "throttlingException", "Message": "Slow down"}


def test_a_wrong_checksum(here):
    """boto3 reports it by an error of its own; what came before arrives."""
    events: list[Any] = []
    stream = here.converse_stream(**message("flipped"))["stream"]
    with pytest.raises(ChecksumMismatch):
        events.extend(stream)
    stream.close()
    assert [*map(list, events)][-1] == ["contentBlockStop"]


def test_cut_inside_a_frame(here):
    """boto3 drops half of a frame without a word: only the missing `messageStop` shows the cut."""
    events = list(here.converse_stream(**message("cut"))["stream"])
    assert [*map(list, events)][-1] == ["contentBlockStop"]


REFUSED = {
    "no tools": (
        {
            "messages": [
                {"role": "user", "content": [{"text": "Hello"}]},
                {
                    "role": "assistant",
                    "content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}],
                },
                {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": []}}]},
            ]
        },
        "The toolConfig field must be defined",
    ),
    "blank text": (
        {"messages": [{"role": "user", "content": [{"text": " "}]}]},
        "The text field in the ContentBlock object at messages.0.content.0 is blank",
    ),
    "no result": (
        {
            "messages": [
                {"role": "user", "content": [{"text": "Hello"}]},
                {
                    "role": "assistant",
                    "content": [{"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}],
                },
                {"role": "user", "content": [{"text": "Well?"}]},
            ],
            "toolConfig": TOOLS,
        },
        "Expected toolResult blocks at messages.2.content for the following Ids: t1",
    ),
    "name of a tool": (
        {
            "messages": [{"role": "user", "content": [{"text": "Hello"}]}],
            "toolConfig": {
                "tools": [{"toolSpec": {"name": "$f", "inputSchema": {"json": {"type": "object"}}}}]
            },
        },
        "Member must satisfy regular expression pattern",
    ),
}


@for_all("name", REFUSED)
def test_validation(here, name):
    """A request that the service refuses is a `ValidationException`, by its own words."""
    request, words = REFUSED[name]
    with pytest.raises(here.exceptions.ValidationException, match=words):
        here.converse(modelId=MODEL, **request)


def test_results_of_every_kind(boto, run):
    """A result may be text, JSON or an image, and may be a failure; cache points count for nothing
    in a history."""
    run.expects("played", "played")
    scenario = SCENARIOS["parallel-tools"]
    request = arguments(first(scenario, API))
    answer = boto.converse(**request)
    uses = [block["toolUse"] for block in answer["output"]["message"]["content"]]
    image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    contents = [[{"json": {"degrees": 21}}], [{"text": "none"}], [image]]
    given = [
        {"toolResult": {"toolUseId": use["toolUseId"], "content": content, "status": status}}
        for use, content, status in zip(
            uses, contents, ("success", "error", "success"), strict=True
        )
    ]
    point = {"cachePoint": {"type": "default"}}
    history = [answer["output"]["message"], {"role": "user", "content": [*given, point]}]
    boto.converse(**{**request, "messages": [*request["messages"], *history]})


def test_count_tokens(here):
    """Tokens of a request to Converse, and of one to a model in its own form."""
    own = {"messages": [{"role": "user", "content": "Hello there"}]}
    body = json.dumps(own).encode()
    converse = {"converse": {"messages": message("Hello there")["messages"]}}
    for input in (converse, {"invokeModel": {"body": body}}):
        assert here.count_tokens(modelId=MODEL, input=input)["inputTokens"] == 3


# Anthropic's models by InvokeModel


@pytest.mark.slow
@pytest.mark.parametrize("how", anthropic_client.WAYS)
@pytest.mark.parametrize("scenario", PLAIN, ids=lambda scenario: scenario.name)
def test_conversation_with_anthropic(claude_on_bedrock, run, scenario, how):
    """Anthropic's client for Bedrock reads every answer of every scenario."""
    ignored = MISREAD.get((scenario.name, "anthropic", f"anthropic {how}"), ())
    conversation = converse(scenario, "anthropic", ignored=ignored)
    drive(conversation, lambda request: anthropic_client.WAYS[how](claude_on_bedrock, request))
    run.expects_plays(plays(scenario, "anthropic"))


def test_errors_with_anthropic(served):
    """An error over HTTP, and one in a stream, which Bedrock has as a frame of its own."""
    with anthropic.AnthropicBedrock(
        base_url=served.url,
        aws_region="us-east-1",
        aws_access_key="mock-key",
        aws_secret_key="mock-key",
        max_retries=0,
        http_client=anthropic.DefaultHttpxClient(trust_env=False),
    ) as client:
        messages = [{"role": "user", "content": "throttled"}]
        with pytest.raises(anthropic.RateLimitError) as caught:
            client.messages.create(model=MODEL, max_tokens=9, messages=messages)
        headers = caught.value.response.headers
        assert headers["x-amzn-errortype"].startswith("ThrottlingException:")
        assert caught.value.body == {"message": "Rate limit reached. Please try again later."}
        messages = [{"role": "user", "content": "in the stream"}]
        with (
            pytest.raises(anthropic.APIStatusError) as failed,
            client.messages.stream(model=MODEL, max_tokens=9, messages=messages) as stream,
        ):
            stream.get_final_message()
    assert failed.value.body["error"] == {"type": "throttlingException", "message": "Slow down"}


def test_invoke_with_boto(here):
    """Each event is a chunk; the last one has the metrics. A body has them in its headers."""
    body = json.dumps(
        {
            "anthropic_version": "bedrock-2023-05-31",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "cached"}],
        }
    )
    answer = here.invoke_model_with_response_stream(modelId=MODEL, body=body)
    events = [json.loads(event["chunk"]["bytes"]) for event in answer["body"]]
    assert answer["contentType"] == "application/json"
    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[0]["message"]["id"].startswith("msg_bdrk_")
    metrics = events[-1]["amazon-bedrock-invocationMetrics"]
    assert (metrics["inputTokenCount"], metrics["cacheReadInputTokenCount"]) == (11, 3)
    whole = here.invoke_model(modelId=MODEL, body=body)
    assert json.loads(whole["body"].read())["content"][0]["text"] == "Hi"
    counted = whole["ResponseMetadata"]["HTTPHeaders"]["x-amzn-bedrock-output-token-count"]
    assert counted == "7"


@for_all("quirk", ["sse-crlf", "sse-comments", "sse-bom", "sse-content-type"])
def test_quirks_of_text_leave_frames_alone(here, quirk):
    """A quirk of server-sent events, which `anthropic` has, is none of frames of InvokeModel."""

    def ask_for_it(request, **_):
        request.headers["x-mockllm-quirk"] = quirk

    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9}
    body |= {"messages": [{"role": "user", "content": "cached"}]}
    here.meta.events.register_first("before-send.bedrock-runtime", ask_for_it, "quirk")
    try:
        answer = here.invoke_model_with_response_stream(modelId=MODEL, body=json.dumps(body))
        events = [json.loads(event["chunk"]["bytes"]) for event in answer["body"]]
    finally:
        here.meta.events.unregister("before-send.bedrock-runtime", ask_for_it, "quirk")
    assert [event["type"] for event in events][-1] == "message_stop"


GUARDED = """
scenario: guarded
match: {user: Hello}
turns:
  - reply:
      - text: I cannot say that.
    finish_raw: guardrail_intervened
    usage: {input: 9, output: 5, cached: 2}
    extra:
      bedrock:
        metadata:
          trace: {guardrail: {actionReason: Guardrail blocked., modelOutput: [A secret.]}}
        finish: {additionalModelResponseFields: {stop_sequence: END}}
        usage: {cacheDetails: [{inputTokens: 2, ttl: 1h}]}
---
scenario: blocks-secrets
route: POST /guardrail/{guardrail}/version/{version}/apply
match: {body: {source: OUTPUT}}
turns:
  - answer:
      json:
        action: GUARDRAIL_INTERVENED
        assessments:
          - wordPolicy: {customWords: [{action: BLOCKED, match: secret}], managedWordLists: []}
        outputs: [{text: I cannot say that.}]
        usage: {wordPolicyUnits: 1}
"""


@pytest.fixture
def guarded() -> Iterator[Any]:
    """boto3 with a server that has the scenarios with guardrails, and answers other routes."""
    options = ServerOptions(speed=0, fallback=True)
    with ServerThread(loads(GUARDED), options) as server, bedrock(server.url) as client:
        yield client


def test_trace_cache_details_and_fields_of_the_model(guarded: Any) -> None:
    """`extra` says them at their places, in the stream and in the body; a system tool among the
    tools of the request is none that the client runs."""
    asked = {
        **message("Hello"),
        "toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}]},
    }
    trace = {"guardrail": {"actionReason": "Guardrail blocked.", "modelOutput": ["A secret."]}}
    body = guarded.converse(**asked)
    assert body["stopReason"] == "guardrail_intervened"
    assert (body["trace"], body["additionalModelResponseFields"]) == (
        trace,
        {"stop_sequence": "END"},
    )
    assert body["usage"]["cacheDetails"] == [{"ttl": "1h", "inputTokens": 2}]
    events = list(guarded.converse_stream(**asked)["stream"])
    (metadata,) = [event["metadata"] for event in events if "metadata" in event]
    (stop,) = [event["messageStop"] for event in events if "messageStop" in event]
    assert (metadata["trace"], metadata["usage"]) == (trace, body["usage"])
    assert stop["additionalModelResponseFields"] == {"stop_sequence": "END"}


def test_a_system_tool_needs_a_name(guarded: Any) -> None:
    """As the service checks it."""
    asked = {**message("Hello"), "toolConfig": {"tools": [{"systemTool": {"name": "no name"}}]}}
    with pytest.raises(ClientError, match="systemTool"):
        guarded.converse(**asked)


GUARDRAIL = {
    "guardrailIdentifier": "arn:aws:bedrock:us-east-1:123456789012:guardrail/abc",
    "guardrailVersion": "DRAFT",
}


def test_a_guardrail_lets_pass(guarded: Any) -> None:
    """Made from the request, it intervenes nowhere, and has the types of botocore."""
    content = [{"text": {"text": "Hello"}}, {"image": {"format": "png", "source": {"bytes": b"x"}}}]
    answer = guarded.apply_guardrail(**GUARDRAIL, source="INPUT", content=content)
    assert (answer["action"], answer["outputs"], answer["assessments"]) == ("NONE", [], [{}])
    assert answer["guardrailCoverage"] == {
        "textCharacters": {"guarded": 5, "total": 5},
        "images": {"guarded": 1, "total": 1},
    }
    shape = guarded.meta.service_model.operation_model("ApplyGuardrail").output_shape
    assert answer["usage"].keys() >= set(shape.members["usage"].required_members)
    assert answer.keys() >= set(shape.required_members)


def test_a_route_says_what_a_guardrail_blocks(guarded: Any) -> None:
    """A scenario for the route wins over the answer that is made from the request."""
    content = [{"text": {"text": "A secret."}}]
    answer = guarded.apply_guardrail(**GUARDRAIL, source="OUTPUT", content=content)
    assert answer["action"] == "GUARDRAIL_INTERVENED"
    assert answer["outputs"] == [{"text": "I cannot say that."}]


def test_a_wrong_request_to_a_guardrail(guarded: Any) -> None:
    """It is refused as Bedrock refuses requests."""
    with pytest.raises(ClientError, match="source") as caught:
        guarded.apply_guardrail(**GUARDRAIL, source="BOTH", content=[{"text": {"text": "a"}}])
    assert caught.value.response["Error"]["Code"] == "ValidationException"
