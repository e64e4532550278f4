"""HTTP bodies: valid by the official types, and the same bytes from every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import httpx
import pytest
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseItem, ResponseStreamEvent
from pydantic import TypeAdapter

from mockllm.wire.framing import sse
from tests.clients.conversation import (
    APIS,
    FOLDER,
    MODEL,
    PLAIN,
    SCENARIOS,
    Answer,
    Json,
    converse,
    drive,
    first,
    plays,
)
from tests.clients.observed import of_chunks, of_completion, of_events, of_response
from tests.wire.protocols.strict import problems

EVENT = TypeAdapter(ResponseStreamEvent)
PATHS = {"chat": "/chat/completions", "responses": "/responses"}
# Every option that adds to an answer.
EXTRAS: dict[str, Json] = {
    "chat": {"n": 2, "stream_options": {"include_usage": True, "include_obfuscation": True}},
    "responses": {
        "stream_options": {"include_obfuscation": True},
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
    },
}


def post(http: httpx.Client, base_url: str, api: str, request: Json) -> httpx.Response:
    """The answer to a request; status 429 is retried, as clients do."""
    while True:
        answer = http.post(base_url + PATHS[api], json=request)
        if answer.status_code != 429:
            return answer
        assert_error(answer.json())


def assert_error(body: Any) -> None:
    """Asserts that an error body has the four fields of an OpenAI error."""
    assert list(body) == ["error"]
    assert list(body["error"]) == ["message", "type", "param", "code"]
    assert isinstance(body["error"]["message"], str)
    assert isinstance(body["error"]["type"], str)


def frames(content: bytes) -> list[sse.Frame]:
    """The events of a stream."""
    return [frame for frame in sse.decode(content) if frame.data is not None]


def read_chat(answer: httpx.Response) -> Answer:
    *chunks, done = frames(answer.content)
    assert done.data == "[DONE]"
    values = [json.loads(chunk.data or "") for chunk in chunks]
    assert [problems(ChatCompletionChunk, value) for value in values] == [[]] * len(values)
    return of_chunks([ChatCompletionChunk.model_validate(value) for value in values])


def read_responses(answer: httpx.Response) -> Answer:
    events = frames(answer.content)
    values = [json.loads(event.data or "") for event in events]
    assert [value["type"] for value in values] == [event.event for event in events]
    assert [problems(ResponseStreamEvent, value) for value in values] == [[]] * len(values)
    return of_events([EVENT.validate_python(value) for value in values])


def read_chat_body(answer: httpx.Response) -> Answer:
    assert problems(ChatCompletion, answer.json()) == []
    return of_completion(ChatCompletion.model_validate(answer.json()))


def read_responses_body(answer: httpx.Response) -> Answer:
    assert problems(Response, answer.json()) == []
    return of_response(Response.model_validate(answer.json()))


READ = {
    ("chat", False): read_chat_body,
    ("chat", True): read_chat,
    ("responses", False): read_responses_body,
    ("responses", True): read_responses,
}


def echoed(answer: Answer) -> Answer:
    """The answer with its echo as JSON."""
    echo = [item if isinstance(item, dict) else item.to_dict() for item in answer.echo]
    return Answer(answer.seen, echo, answer.id)


WAYS: dict[tuple[str, str], Json] = {
    ("chat", "body"): {"n": 2},
    ("chat", "stream"): {"stream": True, "stream_options": {"include_usage": True}},
    ("chat", "all-asked"): {"stream": True, **EXTRAS["chat"]},
    ("responses", "body"): {"include": EXTRAS["responses"]["include"]},
    ("responses", "stream"): {"stream": True},
    ("responses", "all-asked"): {"stream": True, **EXTRAS["responses"]},
}


@pytest.mark.slow
@pytest.mark.parametrize(("api", "way"), WAYS)
@pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)
def test_answers_are_of_the_official_types(http, run, scenario, api, way):
    """Every chunk, event and body is valid, without missing or unknown fields."""
    options = WAYS[api, way]

    def send(request: Json) -> Answer:
        answer = post(http, run.base_url, api, {**request, **options})
        assert answer.status_code == 200, answer.text
        return echoed(READ[api, "stream" in options](answer))

    # Two choices have twice the tokens.
    drive(converse(scenario, api, ignored=("usage",) if "n" in options else ()), send)
    run.expects_plays(plays(scenario, api))


@pytest.mark.parametrize("api", APIS)
def test_error_inside_the_stream(http, run, api):
    """The chunks before an error are valid, and the error has the shape of the service."""
    request = {**first(SCENARIOS["stream-error"], api), "stream": True}
    answer = post(http, run.base_url, api, request)
    values = [json.loads(frame.data or "") for frame in frames(answer.content)]
    if api == "chat":
        *chunks, error = values
        assert [problems(ChatCompletionChunk, value) for value in chunks] == [[]] * len(chunks)
        assert_error(error)
        return
    *events, error, failed = values
    for event in [*events, failed]:
        assert problems(ResponseStreamEvent, event) == []
    assert failed["type"] == "response.failed"
    assert failed["response"]["error"]["message"] == error["error"]["message"]
    # The service nests the error, unlike its types; the client raises only the nested form.
    assert list(error) == ["type", "sequence_number", "error"]
    assert sorted(error["error"]) == ["code", "message", "param", "type"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"{}", b'{"model": 5}', b'{"model": "m", "messages": [], "input": {}}'],
)
def test_refusals_have_the_shape_of_errors(http, run, api, body):
    """The answer to a malformed request is status 400 with an error body."""
    run.expects("invalid")
    answer = http.post(run.base_url + PATHS[api], content=body)
    assert answer.status_code == 400
    assert_error(answer.json())


def test_stored_objects_are_of_the_official_types(http, run):
    """Stored responses, their input items, deletions and models are valid."""
    request = first(SCENARIOS["secret-numbers"], "responses")
    created = post(http, run.base_url, "responses", request).json()
    url = f"{run.base_url}/responses/{created['id']}"
    assert problems(Response, http.get(url).json()) == []
    listed = http.get(f"{url}/input_items").json()
    assert sorted(listed) == ["data", "first_id", "has_more", "last_id", "object"]
    assert [problems(ResponseItem, item) for item in listed["data"]] == [[]]
    assert http.delete(url).json() == {"id": created["id"], "object": "response", "deleted": True}
    models = http.get(f"{run.base_url}/models").json()
    assert models["object"] == "list"
    for model in [*models["data"], http.get(f"{run.base_url}/models/{MODEL}").json()]:
        assert problems(Model, model) == []


# Determinism


@contextmanager
def serving(hash_seed: str) -> Iterator[IO[str]]:
    """The output of a server in another process, with another order of sets."""
    command = [sys.executable, "-m", "mockllm", "serve", str(FOLDER)]
    with subprocess.Popen(
        [*command, "--port", "0", "--speed", "0", "--quiet"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout
        finally:
            process.terminate()


def answers(http: httpx.Client, url: str) -> Iterator[tuple[str, list[tuple[str, str]], bytes]]:
    """Status, headers and body for the first request of every scenario, in every way."""
    for name, scenario in SCENARIOS.items():
        for api in APIS:
            for stream in (False, True):
                extra = EXTRAS[api] if stream else {}
                request = {**first(scenario, api), "stream": stream, **extra}
                answer = http.post(f"{url}/v1{PATHS[api]}", json=request)
                headers = [(k, v) for k, v in answer.headers.items() if k != "date"]
                yield f"{name} {api} {stream} {answer.status_code}", headers, answer.content


@pytest.mark.slow
def test_same_bytes_from_every_process(http, run):
    """Two servers in other processes send the same status, headers and body as this one."""
    ours = list(answers(http, run.root))
    run.expects(*[exchange.outcome for exchange in run.exchanges])
    assert {e.outcome for e in run.exchanges if e.scenario != "rate-limited"} == {"played"}
    with serving("1") as one, serving("2") as other:
        for printed in (one, other):
            url = printed.readline().split()[-1]
            assert list(answers(http, url)) == ours
