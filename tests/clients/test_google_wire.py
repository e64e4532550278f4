"""Gemini beyond the default client: Vertex AI, the array form, arguments in fragments."""

from __future__ import annotations

import json
import re
from typing import Any

import google.oauth2.credentials
import pytest
from google import genai
from google.genai import types

from tests.clients.conversation import (
    PLAIN,
    SCENARIOS,
    converse,
    drive,
    first,
    plays,
)
from tests.clients.dialects import DIALECTS, Json
from tests.clients.google_client import WAYS, of_responses, rest
from tests.clients.oracle import Answer, expected

API = "gemini"
MODEL = DIALECTS[API].model
KEY = {"x-goog-api-key": "AIza-test"}
VERTEX = "/v1/projects/p/locations/europe-west4/publishers/google/models"
FRAGMENTS = {"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}}


def typed(values: list[Json]) -> list[types.GenerateContentResponse]:
    """The responses of a stream, validated as the client's types, which forbid unknown fields.

    The client removes the service tier of the Gemini API before, as its types do not have it.
    """
    for value in values:
        usage = value.get("usageMetadata", {})
        if "trafficType" not in usage:  # only Vertex AI has one
            usage.pop("serviceTier", None)
    return [types.GenerateContentResponse.model_validate(value) for value in values]


def rest_body(request: Json) -> Json:
    """The JSON body for a request whose history may have objects of the client."""
    contents = [
        content
        if isinstance(content, dict)
        else content.model_dump(mode="json", by_alias=True, exclude_none=True)
        for content in request["contents"]
    ]
    return rest({**request, "contents": contents})


def events(content: bytes) -> list[Json]:
    """The chunks of an event stream; lines end in CR LF, without event names or a sentinel."""
    assert content.endswith(b"\r\n\r\n")
    blocks = content.decode().split("\r\n\r\n")
    return [json.loads(block.removeprefix("data: ")) for block in blocks if block]


# Other forms


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/v1beta/models", VERTEX])
@pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)
def test_array(http, run, scenario, path):
    """Without `alt=sse` a stream is one JSON array with the same content."""

    def send(request: Json) -> Answer:
        url = f"{run.root}{path}/{MODEL}:streamGenerateContent"
        while (answer := http.post(url, json=rest_body(request), headers=KEY)).status_code == 429:
            pass
        assert answer.headers["content-type"] == "application/json"
        return of_responses(typed(answer.json()))

    drive(converse(scenario, API, ids=path != VERTEX), send)
    run.expects_plays(plays(scenario, API))


def test_array_with_an_error(http, run):
    """An error inside the array is its last element, and the array is valid JSON."""
    url = f"{run.root}/v1beta/models/{MODEL}:streamGenerateContent"
    request = first(SCENARIOS["stream-error"], API)
    *chunks, last = http.post(url, json=rest_body(request), headers=KEY).json()
    assert of_text(chunks) == "The first half of the answer is"
    assert last["error"]["status"] == "INTERNAL"


def of_text(chunks: list[Json]) -> str:
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    return "".join(part["text"] for part in parts)


@pytest.mark.parametrize("scenario", ["secret-numbers", "multi-hop", "zero-argument-tool"])
def test_vertex_path(http, run, scenario):
    """Paths of Vertex AI are served with a bearer token, streamed and not; calls have no ids."""
    for method in ("generateContent", "streamGenerateContent?alt=sse"):

        def send(request: Json, method: str = method) -> Answer:
            url = f"{run.root}{VERTEX}/{MODEL}:{method}"
            token = {"authorization": "Bearer ya29.token"}
            answer = http.post(url, json=rest_body(request), headers=token)
            assert answer.status_code == 200, answer.text
            whole = method == "generateContent"
            return of_responses(typed([answer.json()] if whole else events(answer.content)))

        drive(converse(SCENARIOS[scenario], API, ids=False), send)
    assert {exchange.headers["authorization"] for exchange in run.exchanges} == {"***"}


@pytest.fixture
def vertex(http, run) -> genai.Client:
    """The official client, configured for Vertex AI."""
    return genai.Client(
        vertexai=True,
        project="p",
        location="europe-west4",
        credentials=google.oauth2.credentials.Credentials(token="ya29.token"),
        http_options=types.HttpOptions(base_url=run.root, httpx_client=http),
    )


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("model", [MODEL, "gemini-2.5-flash"])
@pytest.mark.parametrize("name", ["secret-numbers", "multi-hop", "zero-argument-tool", "unicode"])
def test_vertex_client(vertex, run, name, model, how):
    """The client has conversations over Vertex AI, where the calls of no model have ids."""

    def send(request: Json) -> Answer:
        return WAYS[how](vertex, {**request, "model": model})

    drive(converse(SCENARIOS[name], API, ids=False), send)
    assert run.exchanges[0].path.startswith("/v1beta1/projects/p/locations/europe-west4/")


# Arguments in fragments

_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")


def set_at_path(arguments: Any, path: str, value: Any, *, more: bool) -> None:
    """Sets a value, or (`more`) appends to a string, at a JSON path."""
    steps = [name or int(index) for name, index in _STEP.findall(path)]
    holder = arguments
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, int):
            holder.extend([None] * (step + 1 - len(holder)))
        elif step not in holder:
            holder[step] = None
        if after is None:
            holder[step] = holder[step] + value if more else value
        elif holder[step] is None:
            holder[step] = [] if isinstance(after, int) else {}
        holder = holder[step]


def joined_calls(responses: list[types.GenerateContentResponse]) -> tuple[list[types.Part], int]:
    """The parts with their calls joined, and the number of fragments."""
    parts: list[types.Part] = []
    open_call: types.FunctionCall | None = None
    unfinished_paths: set[str] = set()
    fragments = 0
    for part in (p for r in responses for p in r.candidates[0].content.parts or ()):
        call = part.function_call
        if call is None or (call.name and not call.will_continue):
            assert open_call is None
            parts.append(part)
        elif call.name:
            open_call = types.FunctionCall(id=call.id, name=call.name, args={})
            parts.append(types.Part(function_call=open_call))
        elif call.will_continue:
            assert open_call is not None
            fragments += 1
            for fragment in call.partial_args:
                value = next(
                    v
                    for v in (
                        fragment.string_value,
                        fragment.number_value,
                        fragment.bool_value,
                        None,
                    )
                    if v is not None or fragment.null_value
                )
                set_at_path(
                    open_call.args,
                    fragment.json_path,
                    value,
                    more=fragment.json_path in unfinished_paths,
                )
                (unfinished_paths.add if fragment.will_continue else unfinished_paths.discard)(
                    fragment.json_path
                )
        else:
            assert not unfinished_paths
            open_call = None
    return parts, fragments


def read_fragments(responses: list[types.GenerateContentResponse]) -> Answer:
    """The answer of a stream whose calls are in fragments."""
    parts, _ = joined_calls(responses)
    candidate = (
        responses[-1]
        .candidates[0]
        .model_copy(update={"content": types.Content(role="model", parts=parts)})
    )
    return of_responses([responses[-1].model_copy(update={"candidates": [candidate]})])


CALLING = [scenario for scenario in PLAIN if scenario.tools]


@pytest.mark.slow
@pytest.mark.parametrize("array", [False, True], ids=["events", "array"])
@pytest.mark.parametrize("scenario", CALLING, ids=lambda s: s.name)
def test_streamed_arguments(http, run, scenario, array):
    """Arguments in fragments join to the same calls, and the server reads the history."""
    query = "" if array else "?alt=sse"

    def send(request: Json) -> Answer:
        url = f"{run.root}{VERTEX}/{MODEL}:streamGenerateContent{query}"
        answer = http.post(url, json={**rest_body(request), **FRAGMENTS}, headers=KEY)
        assert answer.status_code == 200, answer.text
        return read_fragments(typed(answer.json() if array else events(answer.content)))

    drive(converse(scenario, API, ids=False), send)
    run.expects_plays(plays(scenario, API))


def test_streamed_arguments_are_in_fragments(http, run):
    """The arguments have the fragments of the scenario."""
    url = f"{run.root}/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"
    request = first(SCENARIOS["secret-numbers"], API)
    answer = http.post(url, json={**rest_body(request), **FRAGMENTS}, headers=KEY)
    _, fragments = joined_calls(typed(events(answer.content)))
    assert fragments == 3 + 1


def test_streamed_arguments_with_the_client(vertex):
    """The client requests and reads fragments, on Vertex AI."""
    request = first(SCENARIOS["unicode"], API)
    choice = {"function_calling_config": {"stream_function_call_arguments": True}}
    config = {**request["config"], "tool_config": choice}
    chunks = list(vertex.models.generate_content_stream(**{**request, "config": config}))
    _, fragments = joined_calls(chunks)
    assert fragments > 10
    assert read_fragments(chunks).seen == expected(SCENARIOS["unicode"], 0, API, ids=False)


# Keys


def test_key_in_the_query(http, run):
    """A key in the URL is accepted, and masked in the journal."""
    url = f"{run.root}/v1beta/models/{MODEL}:generateContent?alt=json&key=AIza-secret"
    assert http.post(url, json=rest_body(first(SCENARIOS["refusal"], API))).status_code == 200
    (exchange,) = run.exchanges
    assert exchange.path.endswith(":generateContent?alt=json&key=***")
    assert "AIza-secret" not in repr(exchange)


def test_key_in_a_header(gemini, run):
    """The key in the client's header is masked in the journal."""
    WAYS["stream"](gemini, first(SCENARIOS["refusal"], API))
    assert run.exchanges[0].headers["x-goog-api-key"] == "***"


def test_without_a_key(http, run):
    """A request without a key is refused as the service does."""
    run.expects("invalid")
    url = f"{run.root}/v1beta/models/{MODEL}:generateContent"
    answer = http.post(url, json=rest_body(first(SCENARIOS["refusal"], API)))
    assert answer.status_code == 403
    assert answer.json()["error"]["status"] == "PERMISSION_DENIED"
