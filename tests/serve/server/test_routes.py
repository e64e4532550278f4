"""Routes that call no model, over HTTP: scenarios with a route, `--fallback auto`, unknown routes,
and the paths of models below a prefix."""

from __future__ import annotations

import base64
import json
import struct
from math import isclose

import httpx
import pytest

from mockllm import ServerOptions, ServerThread
from mockllm.checking.conversations.judge import verify
from mockllm.cli.run import judge
from mockllm.play.replay.loading import load
from mockllm.serve.server.options import RecordOptions
from mockllm.wire.protocols import PROTOCOLS
from tests.serve.server.test_server import raw_exchange
from tests.timeouts import GIVE_UP

ROUTES = """
scenario: embed-hello
route: POST /v1/embeddings
match: {body: {input: hello}}
turns:
  - answer: {json: {data: [1]}}
  - answer: {status: 503, headers: {retry-after: "1"}, text: busy}
---
scenario: my-models
route: GET /v1/models
match: {query: {limit: "2"}}
turns: [{answer: {json: {data: [mine]}}}]
---
scenario: stored
route: GET /v1/responses/resp_1
turns: [{answer: {json: {id: resp_1}}}]
---
scenario: file
route: PUT /v1/files/{id}
turns: [{answer: {status: 201, text: put}}]
---
scenario: patch
route: PATCH /v1/files/{id}
turns: [{answer: {text: patched}}]
---
scenario: delete
route: DELETE /v1/files/{id}
turns: [{answer: {status: 204}}]
---
scenario: content
route: GET /v1/files/{id}/content
turns: [{answer: {base64: AAH/}}]
---
scenario: chat
match: any
turns: [{reply: {text: Hello!}, repeat: true}]
"""
CHAT = {"model": "m-1", "messages": [{"role": "user", "content": "hi"}]}


def test_a_scenario_answers_a_route(serve):
    """The turns of a route answer one after the other, also below a prefix, and are journaled."""
    served = serve(ROUTES)
    first = served.http.post("/v1/embeddings", json={"input": "hello", "model": "e-1"})
    assert (first.status_code, first.json()) == (200, {"data": [1]})
    second = served.http.post("/openai/v1/embeddings", json={"input": "hello"})
    assert (second.status_code, second.text) == (503, "busy")
    assert second.headers["retry-after"] == "1"
    one, two = served.journal()
    assert (one["scenario"], one["turn"], one["outcome"]) == ("embed-hello", 0, "played")
    assert (one["model"], one["api"]) == ("e-1", None)
    assert (two["scenario"], two["turn"], two["outcome"]) == ("embed-hello", 1, "error")


def test_every_method_works(serve):
    """PUT, PATCH, DELETE and HEAD are answered, and the connection stays in use."""
    served = serve(ROUTES)
    assert served.http.put("/v1/files/f1", content=b"\0\1").text == "put"
    assert served.http.patch("/v1/files/f1", json={}).text == "patched"
    deleted = served.http.delete("/v1/files/f1")
    assert (deleted.status_code, deleted.content) == (204, b"")
    content = served.http.get("/v1/files/f1/content")
    assert (content.content, content.headers["content-type"]) == (
        b"\0\1\xff",
        "application/octet-stream",
    )
    head = served.http.head("/v1/files/f1/content")
    assert (head.content, head.headers["content-length"]) == (b"", "3")
    assert [entry["outcome"] for entry in served.journal()] == ["played"] * 5


@pytest.mark.parametrize("path", ["/v1/files/f1/content", "/v1/nowhere", "/v1/models"])
def test_the_answer_to_head_has_no_body(serve, path):
    """Nothing follows the head, whatever the outcome is (RFC 9110, section 9.3.2)."""
    request = f"HEAD {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    head, gap, rest = raw_exchange(serve(ROUTES).url, request).partition(b"\r\n\r\n")
    assert (gap, rest) == (b"\r\n\r\n", b"")
    assert b"content-length: " in head


def test_a_route_goes_before_the_look_ups_of_an_api(serve):
    """A scenario answers `GET /v1/models` and stored responses. Where its conditions fail, the
    API's own answer comes."""
    served = serve(ROUTES)
    assert served.http.get("/v1/models?limit=2").json() == {"data": ["mine"]}
    assert served.http.get("/v1/models").json()["object"] == "list"
    assert served.http.get("/v1/responses/resp_1").json() == {"id": "resp_1"}
    assert served.http.get("/v1/responses/resp_2").status_code == 404


def test_a_route_takes_a_path_of_a_model_only_if_it_is_exactly_that(serve):
    """`POST /*` does not answer a model's path; its own path does, and conversations do not mix."""
    served = serve(
        "scenario: all\nroute: POST /*\nturns: [{answer: {text: all}}]\n---\n"
        "scenario: legacy\nroute: POST /v1/responses\nturns: [{answer: {text: raw}}]\n---\n"
        + ROUTES
    )
    assert served.http.post("/v1/chat/completions", json=CHAT).json()["object"]
    assert served.http.post("/v1/responses", json={}).text == "raw"
    assert served.http.post("/v1/edits", json={}).text == "all"


def test_a_named_scenario_with_a_route_plays_no_conversation(serve):
    """A request for a model's answer that names such a scenario is refused with the reason."""
    named = {"x-mockllm-scenario": "embed-hello"}
    answer = serve(ROUTES).http.post("/v1/chat/completions", json=CHAT, headers=named)
    assert answer.status_code == 404
    assert "answers the route POST /v1/embeddings" in answer.json()["error"]["message"]


def test_a_failed_condition_is_unmatched(serve):
    """A request for a route of a scenario whose conditions fail gets the first failed one."""
    served = serve(ROUTES)
    answer = served.http.post("/v1/embeddings", json={"input": "bye"})
    assert answer.status_code == 404
    message = answer.json()["error"]["message"]
    assert "embed-hello: match.body: body.input must be 'hello', got 'bye'" in message
    (exchange,) = served.journal()
    assert (exchange["outcome"], exchange["body"]) == ("unmatched", '{"input":"bye"}')


def test_a_file_is_served_from_the_folder(tmp_path):
    """The body of an answer is the file beside the scenario; if it is gone, that is the error."""
    text = "scenario: a\nroute: GET /v1/speech\nturns: [{answer: {file: a.mp3}}]"
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "a.mp3").write_bytes(bytes(range(256)))
    with ServerThread(load(tmp_path), ServerOptions()) as thread:
        found = httpx.get(thread.url + "/v1/speech", timeout=GIVE_UP)
        assert (found.content, found.headers["content-type"]) == (bytes(range(256)), "audio/mpeg")
    with ServerThread(load(tmp_path), ServerOptions()) as thread:
        (tmp_path / "a.mp3").unlink()
        gone = httpx.get(thread.url + "/v1/speech", timeout=GIVE_UP)
        assert gone.status_code == 500
        assert "a.mp3:1:1: cannot be read" in gone.json()["error"]["message"]


def test_pages_in_a_browser_may_use_every_method(serve):
    """A preflight request allows the methods of routes (CORS)."""
    answer = serve(ROUTES).http.options("/v1/files/f1")
    allowed = answer.headers["access-control-allow-methods"].split(", ")
    assert {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} <= set(allowed)


def test_a_session_may_name_a_scenario_with_a_route(serve):
    """The scenario that a session names answers the requests for its route, whatever they are."""
    served = serve(ROUTES)
    scenarios = served.server.player.served.scenarios
    served.server.assign("named", scenarios, named="embed-hello")
    body = {"input": "another text"}
    assert served.http.post("/s/named/v1/embeddings", json=body).json() == {"data": [1]}
    assert served.http.post("/v1/embeddings", json=body).status_code == 404


# Unknown routes


@pytest.mark.parametrize(
    ("method", "path", "known"),
    [
        ("POST", "/v1/videos", "it generates no text"),
        ("POST", "/v1/embeddings", "--fallback auto would answer it"),
        ("GET", "/v1/nothing", "a GET request calls no model"),
        ("GET", "/v1/fine_tuning/jobs", "it is of a service beside the models"),
        ("POST", "/agent", "the body is a request of AG-UI, which is served at /agui"),
        ("POST", "/v1/chat/completion", "Did you mean POST /v1/chat/completions?"),
    ],
)
def test_an_unknown_route_gets_one_line(serve, method, path, known):
    """The error states what is known of the route and how to add it, in one line."""
    logged = []
    served = serve("scenario: a\nturns: [{reply: {text: a}}]", log=logged.append)
    run = b'{"threadId": "t", "runId": "r", "messages": []}'
    answer = served.http.request(method, path, content=run if method == "POST" else None)
    assert answer.status_code == 404
    message = answer.json()["error"]["message"]
    assert known in message
    assert f"route: {method} {path}" in message
    assert "\n" not in message
    (exchange,) = served.journal()
    assert (exchange["outcome"], exchange["api"]) == ("unknown route", None)
    assert [one.outcome for one in logged] == ["unknown route"]


def test_an_unknown_route_is_never_good(serve):
    """The verdict of `verify` and of `mockllm run` is bad."""
    served = serve(ROUTES)
    served.http.post("/v1/rerank", json={})
    session = served.server.sessions.get("default")
    scenarios = served.server.player.served.by_name
    assert not verify(session, scenarios).good
    verdict = judge(list(session.journal), [session], scenarios)
    assert not verdict.good
    assert "1 for an unknown route" in verdict.lines[0]


def test_unplayed_turns_of_a_route_are_reported(serve):
    """A route that was begun and not played to its end makes the verdict bad."""
    served = serve(ROUTES)
    served.http.post("/v1/embeddings", json={"input": "hello"})
    report = served.http.get("/_mockllm/verify").json()
    assert report["unplayed"] == [{"scenario": "embed-hello", "turn": 1}]
    served.http.post("/v1/embeddings", json={"input": "hello"})
    assert served.http.get("/_mockllm/verify").json()["good"]


def test_routes_are_listed(serve):
    """The control route names the route of a scenario, which has no APIs."""
    listed = serve(ROUTES).http.get("/_mockllm/scenarios").json()["scenarios"]
    assert (listed[0]["route"], listed[0]["apis"]) == ("POST /v1/embeddings", [])
    assert listed[-1]["route"] is None


# Paths of models below a prefix


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/api/v1/chat/completions", "chat"),
        ("/compatible-mode/v1/chat/completions", "chat"),
        ("/inference/v1/chat/completions", "chat"),
        ("/v1beta/openai/chat/completions", "chat"),
        ("/openai/deployments/d-1/chat/completions?api-version=2024-10-21", "chat"),
        ("/gateway/openai/deployments/d-1/chat/completions", "chat"),
        ("/v1/projects/p/locations/l/endpoints/openapi/chat/completions", "chat"),
        ("/anthropic/v1/messages", "anthropic"),
        ("/api/v1/responses", "responses"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/m-1:rawPredict", "anthropic"),
        ("/proxy/v1beta/models/gemini-x:generateContent", "gemini"),
        ("/v1/projects/p/locations/l/models/gemini-x:generateContent", "gemini"),
    ],
)
def test_the_end_of_a_path_names_the_api(serve, path, api):
    """Services put prefixes before the paths of an API; the request is answered all the same, each
    time."""
    served = serve(ROUTES, strict=False)
    bodies = {
        "chat": CHAT,
        "anthropic": {**CHAT, "max_tokens": 9},
        "responses": {"model": "m-1", "input": "hi"},
        "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    }
    for _ in range(2):
        answer = served.http.post(path, json=bodies[api])
        assert answer.status_code == 200, answer.text
        assert "Hello!" in answer.text
    assert {entry["api"] for entry in served.journal()} == {api}


def test_the_model_in_the_path_counts(serve):
    """A request whose body has no model matches by the model in its path."""
    served = serve(
        "scenario: by-path\nmatch: {model: d-1}\nturns: [{reply: {text: found}, repeat: true}]",
        strict=False,
    )
    body = {"messages": CHAT["messages"]}
    path = "/gateway/openai/deployments/d-1/chat/completions"
    assert "found" in served.http.post(path, json=body).text
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    assert "found" in served.http.post("/x/v1beta/models/d-1:generateContent", json=body).text


def test_look_ups_are_known_below_a_prefix(serve):
    """Lists of models and counts of tokens are answered below a prefix, too."""
    served = serve(ROUTES, strict=False)
    assert served.http.get("/api/v1/models").json()["object"] == "list"
    counted = served.http.post("/anthropic/v1/messages/count_tokens", json=CHAT)
    assert counted.json()["input_tokens"] > 0


def test_threads_of_assistants_are_no_messages(serve):
    """`/v1/threads/ID/messages` ends like a path of another API, and is unknown."""
    served = serve(ROUTES)
    assert served.http.post("/v1/threads/t1/messages", json={}).status_code == 404
    assert served.journal()[0]["outcome"] == "unknown route"


def test_a_path_of_many_segments_is_unknown_quickly(serve):
    """Thousands of segments are no error of the server."""
    assert serve(ROUTES).http.get("/" + "a/" * 3000).status_code == 404


# --fallback auto


def test_embeddings_of_the_fallback(serve):
    """Embeddings are unit vectors of the dimensions requested, as numbers or packed in base64."""
    served = serve("scenario: a\nturns: [{reply: {text: a}}]", fallback=True)
    body = {"model": "text-embedding-3-small", "input": ["one", "two"], "dimensions": 8}
    numbers = served.http.post("/v1/embeddings", json=body).json()
    packed = served.http.post("/v1/embeddings", json={**body, "encoding_format": "base64"}).json()
    vectors = [number["embedding"] for number in numbers["data"]]
    unpacked = [struct.unpack("<8f", base64.b64decode(one["embedding"])) for one in packed["data"]]
    for vector, other in zip(vectors, unpacked, strict=True):
        assert isclose(sum(value**2 for value in vector), 1, abs_tol=1e-5)
        assert all(isclose(a, b, abs_tol=1e-6) for a, b in zip(vector, other, strict=True))
    assert vectors[0] != vectors[1]
    assert numbers["usage"] == {"prompt_tokens": 2, "total_tokens": 2}
    assert {entry["outcome"] for entry in served.journal()} == {"played"}


@pytest.mark.parametrize(
    ("path", "model", "dimensions"),
    [
        ("/v1/embeddings", "text-embedding-3-small", 1536),
        ("/v1/embeddings", "text-embedding-3-large", 3072),
        ("/openai/deployments/text-embedding-3-large/embeddings", None, 3072),
    ],
)
def test_default_dimensions(serve, path, model, dimensions):
    """Without `dimensions`, a vector has as many as the model's."""
    served = serve("scenario: a\nturns: [{reply: {text: a}}]", fallback=True)
    body = {"input": "a", **({"model": model} if model else {})}
    (one,) = served.http.post(path, json=body).json()["data"]
    assert len(one["embedding"]) == dimensions


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "m"}, "input"),
        ({"input": "a"}, "model"),
        ({"model": "m", "input": []}, "input"),
        ({"model": "m", "input": ""}, "input"),
        ({"model": "m", "input": [["a"]]}, "input[0]"),
        ({"model": "m", "input": "a", "dimensions": 0}, "dimensions"),
        ({"model": "m", "input": "a", "dimensions": "8"}, "dimensions"),
        ({"model": "m", "input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"model": "m", "input": "a", "encoding_format": 5}, "encoding_format"),
    ],
)
def test_bad_embedding_requests_are_refused(serve, body, param):
    """A request that the service refuses is refused in its form."""
    served = serve("scenario: a\nturns: [{reply: {text: a}}]", fallback=True)
    answer = served.http.post("/v1/embeddings", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param
    assert served.journal()[0]["outcome"] == "invalid"


def test_gemini_embeddings_of_the_fallback(serve):
    """Single and batched contents get vectors of the dimensions requested."""
    served = serve("scenario: a\nturns: [{reply: {text: a}}]", fallback=True)
    content = {"parts": [{"text": "one"}]}
    path = "/v1beta/models/gemini-embedding-001"
    one = served.http.post(
        f"{path}:embedContent", json={"content": content, "outputDimensionality": 4}
    ).json()
    batch = served.http.post(
        f"{path}:batchEmbedContents",
        json={"requests": [{"content": content, "output_dimensionality": 4}, {"content": content}]},
    ).json()
    assert len(one["embedding"]["values"]) == 4
    assert batch["embeddings"][0] == one["embedding"]
    assert len(batch["embeddings"][1]["values"]) == 3072
    refused = served.http.post(f"{path}:embedContent", json={})
    assert refused.json()["error"]["status"] == "INVALID_ARGUMENT"


def test_token_counts_of_the_fallback(serve):
    """Responses' count of input tokens is answered."""
    served = serve("scenario: a\nturns: [{reply: {text: a}}]", fallback=True)
    body = {"model": "m", "input": "one two three"}
    counted = served.http.post("/v1/responses/input_tokens", json=body).json()
    assert counted == {"object": "response.input_tokens", "input_tokens": 4}


def test_a_scenario_goes_before_the_fallback(serve):
    """A scenario of the route answers; what it does not match, the fallback answers."""
    served = serve(ROUTES, fallback=True)
    assert served.http.post("/v1/embeddings", json={"input": "hello"}).json() == {"data": [1]}
    other = served.http.post("/v1/embeddings", json={"input": "bye", "model": "m"}).json()
    assert other["object"] == "list"
    assert served.http.post("/v1/nothing", json={}).status_code == 404


def test_moderations_of_the_fallback(serve):
    """Nothing is flagged; a list of texts has a result each, a list of parts has one."""
    served = serve("scenario: a\nturns: [{reply: {text: a}}]", fallback=True)

    def results(given):
        return served.http.post("/v1/moderations", json={"input": given}).json()["results"]

    assert [result["flagged"] for result in results(["a", "b"])] == [False, False]
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    (one,) = results([{"type": "text", "text": "a"}, image])
    assert one["category_applied_input_types"]["violence"] == ["text", "image"]
    assert one["category_applied_input_types"]["hate"] == ["text"]
    assert set(one["categories"]) == set(one["category_scores"])
    assert json.dumps(results("a")) == json.dumps(results("b"))


# Recorded and replayed


def _sent(url):
    """Status, body and length of the answers to requests of many kinds."""
    with httpx.Client(base_url=url, timeout=GIVE_UP) as http:
        answers = [
            http.post("/v1/embeddings", json={"input": text, "model": "m"})
            for text in ("one", "two", "one")
        ]
        upload = {"files": {"file": ("a.txt", b"abc")}, "data": {"purpose": "batch"}}
        answers += [
            http.post("/v1/files", **upload),
            http.get("/v1/files/f1/content"),
            http.head("/v1/files/f1/content"),
            http.put("/v1/files/f1", content=b"\0\1"),
            http.delete("/v1/files/f1"),
            http.get("/v1/models?limit=2"),
        ]
    return [
        (answer.status_code, answer.content, answer.headers.get("content-length"))
        for answer in answers
    ]


@pytest.mark.slow
def test_what_was_recorded_is_played_again(serve, tmp_path):
    """Requests of every kind, uploads with another boundary among them, get the recorded answers
    without the service."""
    service = serve(ROUTES, fallback=True)
    folder = tmp_path / "recorded"
    record = RecordOptions(folder, dict.fromkeys(PROTOCOLS, service.url), "add")
    with ServerThread((), ServerOptions(record=record)) as thread:
        recorded = _sent(thread.url)
    with ServerThread(load(folder), ServerOptions()) as thread:
        assert _sent(thread.url) == recorded
        session = thread.server.sessions.get("default")
        assert {entry.played.recorded for entry in session.journal} == {"exact"}
