"""Gemini where the usual client does not go: Vertex AI, the array form, arguments in fragments."""

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
from tests.clients.google_client import ASK, of_responses, rest
from tests.clients.oracle import Answer, expected

API = "gemini"
MODEL = DIALECTS[API].model
KEY = {"x-goog-api-key": "AIza-test"}
VERTEX = "/v1/projects/p/locations/europe-west4/publishers/google/models"
FRAGMENTS = {"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}}


def typed(values: list[Json]) -> list[types.GenerateContentResponse]:
    """The responses of a stream as the client's types."""
    return [types.GenerateContentResponse.model_validate(value) for value in values]


def sent(request: Json) -> Json:
    """The body for a request whose history may hold what the client answered."""
    contents = [
        content
        if isinstance(content, dict)
        else content.model_dump(mode="json", by_alias=True, exclude_none=True)
        for content in request["contents"]
    ]
    return rest({**request, "contents": contents})


def events(content: bytes) -> list[Json]:
    """The chunks of a stream of events, which end in CR LF and have no name and no end mark."""
    assert content.endswith(b"\r\n\r\n")
    blocks = content.decode().split("\r\n\r\n")
    return [json.loads(block.removeprefix("data: ")) for block in blocks if block]


# Other forms


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/v1beta/models", VERTEX])
@pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)
def test_array(http, run, scenario, path):
    """Without `alt=sse` a stream is one JSON array, that says the same."""

    def ask(request: Json) -> Answer:
        url = f"{run.root}{path}/{MODEL}:streamGenerateContent"
        while (answer := http.post(url, json=sent(request), headers=KEY)).status_code == 429:
            pass
        assert answer.headers["content-type"] == "application/json"
        return of_responses(typed(answer.json()))

    drive(converse(scenario, API), ask)
    run.expects_plays(plays(scenario, API))


def test_array_with_an_error(http, run):
    """An error inside the array is its last element, and the array is whole."""
    url = f"{run.root}/v1beta/models/{MODEL}:streamGenerateContent"
    request = first(SCENARIOS["stream-error"], API)
    *chunks, last = http.post(url, json=sent(request), headers=KEY).json()
    assert of_text(chunks) == "The first half of the answer is"
    assert last["error"]["status"] == "INTERNAL"


def of_text(chunks: list[Json]) -> str:
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    return "".join(part["text"] for part in parts)


@pytest.mark.parametrize("scenario", ["secret-numbers", "multi-hop", "zero-argument-tool"])
def test_vertex_path(http, run, scenario):
    """The path form of Vertex AI, with a bearer token, streamed and not."""
    for method in ("generateContent", "streamGenerateContent?alt=sse"):

        def ask(request: Json, method: str = method) -> Answer:
            url = f"{run.root}{VERTEX}/{MODEL}:{method}"
            token = {"authorization": "Bearer ya29.token"}
            answer = http.post(url, json=sent(request), headers=token)
            assert answer.status_code == 200, answer.text
            whole = method == "generateContent"
            return of_responses(typed([answer.json()] if whole else events(answer.content)))

        drive(converse(SCENARIOS[scenario], API), ask)
    assert {exchange.headers["authorization"] for exchange in run.exchanges} == {"***"}


@pytest.fixture
def vertex(http, run) -> genai.Client:
    """The official client as it talks to Vertex AI."""
    return genai.Client(
        vertexai=True,
        project="p",
        location="europe-west4",
        credentials=google.oauth2.credentials.Credentials(token="ya29.token"),
        http_options=types.HttpOptions(base_url=run.root, httpx_client=http),
    )


@pytest.mark.parametrize("how", ASK)
@pytest.mark.parametrize("model", [MODEL, "gemini-2.5-flash"])
@pytest.mark.parametrize("name", ["secret-numbers", "multi-hop", "zero-argument-tool", "unicode"])
def test_vertex_client(vertex, run, name, model, how):
    """The client's own way to Vertex AI, where the calls of all models have ids."""

    def ask(request: Json) -> Answer:
        return ASK[how](vertex, {**request, "model": model})

    drive(converse(SCENARIOS[name], API), ask)
    assert run.exchanges[0].path.startswith("/v1beta1/projects/p/locations/europe-west4/")


# Arguments in fragments

_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")


def put(arguments: Any, path: str, value: Any, *, more: bool) -> None:
    """Puts a value, or (`more`) the next characters of a string, where a JSON Path says."""
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


def gathered(responses: list[types.GenerateContentResponse]) -> tuple[list[types.Part], int]:
    """The parts with the calls put together, and in how many fragments they came."""
    parts: list[types.Part] = []
    running: types.FunctionCall | None = None
    going_on: set[str] = set()
    fragments = 0
    for part in (p for r in responses for p in r.candidates[0].content.parts or ()):
        call = part.function_call
        if call is None or (call.name and not call.will_continue):
            assert running is None
            parts.append(part)
        elif call.name:
            running = types.FunctionCall(id=call.id, name=call.name, args={})
            parts.append(types.Part(function_call=running))
        elif call.will_continue:
            assert running is not None
            fragments += 1
            for piece in call.partial_args:
                value = next(
                    v
                    for v in (piece.string_value, piece.number_value, piece.bool_value, None)
                    if v is not None or piece.null_value
                )
                put(running.args, piece.json_path, value, more=piece.json_path in going_on)
                (going_on.add if piece.will_continue else going_on.discard)(piece.json_path)
        else:
            assert not going_on
            running = None
    return parts, fragments


def understood(responses: list[types.GenerateContentResponse]) -> Answer:
    """An answer whose calls came in fragments."""
    parts, _ = gathered(responses)
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
    """Arguments in fragments add up to the same calls, and the conversation goes on."""
    query = "" if array else "?alt=sse"

    def ask(request: Json) -> Answer:
        url = f"{run.root}{VERTEX}/{MODEL}:streamGenerateContent{query}"
        answer = http.post(url, json={**sent(request), **FRAGMENTS}, headers=KEY)
        assert answer.status_code == 200, answer.text
        return understood(typed(answer.json() if array else events(answer.content)))

    drive(converse(scenario, API), ask)
    run.expects_plays(plays(scenario, API))


def test_streamed_arguments_are_in_fragments(http, run):
    """The fragments are those of the scenario, as far as there is something to cut."""
    url = f"{run.root}/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"
    request = first(SCENARIOS["secret-numbers"], API)
    answer = http.post(url, json={**sent(request), **FRAGMENTS}, headers=KEY)
    _, fragments = gathered(typed(events(answer.content)))
    assert fragments == 3 + 1


def test_streamed_arguments_with_the_client(vertex):
    """The client asks for fragments by itself, on Vertex AI."""
    request = first(SCENARIOS["unicode"], API)
    choice = {"function_calling_config": {"stream_function_call_arguments": True}}
    config = {**request["config"], "tool_config": choice}
    chunks = list(vertex.models.generate_content_stream(**{**request, "config": config}))
    _, fragments = gathered(chunks)
    assert fragments > 10
    assert understood(chunks).seen == expected(SCENARIOS["unicode"], 0, API)


# Keys


def test_key_in_the_query(http, run):
    """A key in the URL will do, and the journal does not show it."""
    url = f"{run.root}/v1beta/models/{MODEL}:generateContent?alt=json&key=AIza-secret"
    assert http.post(url, json=sent(first(SCENARIOS["refusal"], API))).status_code == 200
    (exchange,) = run.exchanges
    assert exchange.path.endswith(":generateContent?alt=json&key=***")
    assert "AIza-secret" not in repr(exchange)


def test_key_in_a_header(gemini, run):
    """The key that the client sends is kept out of the journal too."""
    ASK["stream"](gemini, first(SCENARIOS["refusal"], API))
    assert run.exchanges[0].headers["x-goog-api-key"] == "***"


def test_without_a_key(http, run):
    """A request without any key is refused as the service does."""
    run.expects("invalid")
    url = f"{run.root}/v1beta/models/{MODEL}:generateContent"
    answer = http.post(url, json=sent(first(SCENARIOS["refusal"], API)))
    assert answer.status_code == 403
    assert answer.json()["error"]["status"] == "PERMISSION_DENIED"
