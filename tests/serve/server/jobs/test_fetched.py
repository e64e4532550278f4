"""An answer that is made later counts when it was fetched: of every kind of job."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from mockllm import loads
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

SCENARIOS = """
scenario: hello
match: {user: hello}
turns: [{reply: {text: Hi.}, job: {pending: 1 poll}}]
---
scenario: video
route: POST /videos
turns:
  - answer: {json: {id: "{id}"}}
    job:
      pending: 1 poll
      poll: GET /videos/{id}
      then: {json: {done: true}}
      result: {route: "GET /videos/{id}/content", answer: {text: bytes}}
      cancel: {route: "POST /videos/{id}/cancel", answer: {json: {}}}
"""
MESSAGES = [{"role": "user", "content": "hello"}]
LINE = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions"}
CONTENTS = [{"role": "user", "parts": [{"text": "hello"}]}]


@dataclass(frozen=True)
class Job:
    """The paths of a kind of job: what begins it, polls, fetches and cancels it. `{0}` is the id,
    and `{1}` what a poll says of the output."""

    begin: Callable[[httpx.Client], Any]
    poll: str
    fetch: str
    cancel: str
    id: str = "id"
    output: str = "id"


def _upload(client: httpx.Client) -> Any:
    line = json.dumps({**LINE, "body": {"model": "m", "messages": MESSAGES}})
    form = {"files": {"file": line}, "data": {"purpose": "batch"}}
    file = client.post("/v1/files", **form).json()["id"]
    batch = {"endpoint": LINE["url"], "completion_window": "24h", "input_file_id": file}
    return client.post("/v1/batches", json=batch)


def _post(path: str, **body: Any) -> Callable[[httpx.Client], Any]:
    return lambda client: client.post(path, json=body)


_PARAMS = {"model": "m", "max_tokens": 9, "messages": MESSAGES}
_REQUESTS = {"requests": {"requests": [{"request": {"contents": CONTENTS}}]}}
JOBS = {
    "responses in the background": Job(
        _post("/v1/responses", model="m", input="hello", background=True),
        "/v1/responses/{0}",
        "/v1/responses/{0}",
        "/v1/responses/{0}/cancel",
    ),
    "interactions in the background": Job(
        _post("/v1beta/interactions", model="m", input="hello", background=True),
        "/v1beta/interactions/{0}",
        "/v1beta/interactions/{0}",
        "/v1beta/interactions/{0}/cancel",
    ),
    "batches of chat": Job(
        _upload, "/v1/batches/{0}", "/v1/files/{1}/content", "/v1/batches/{0}/cancel",
        output="output_file_id",
    ),
    "batches of anthropic": Job(
        _post("/v1/messages/batches", requests=[{"custom_id": "1", "params": _PARAMS}]),
        "/v1/messages/batches/{0}",
        "/v1/messages/batches/{0}/results",
        "/v1/messages/batches/{0}/cancel",
    ),
    "batches of gemini": Job(
        _post("/v1beta/models/m:batchGenerateContent", batch={"inputConfig": _REQUESTS}),
        "/v1beta/{0}",
        "/v1beta/{0}",
        "/v1beta/{0}:cancel",
        "name",
        "name",
    ),
    "routes": Job(
        _post("/videos"), "/videos/{0}", "/videos/{0}/content", "/videos/{0}/cancel", output="done"
    ),
}  # fmt: skip
"""Of every protocol with batches or a background, and of routes."""

every_kind = for_all("kind", JOBS)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(loads(SCENARIOS)) as made:
        yield made


_KEYS = {
    "interactions in the background": {"x-goog-api-key": "k"},
    "batches of anthropic": {"anthropic-version": "2023-06-01", "x-api-key": "k"},
    "batches of gemini": {"x-goog-api-key": "k"},
}
"""By these headers a server tells the services apart whose paths are the same."""


def _client(server: ServerThread, kind: str, session: str) -> httpx.Client:
    named = {"x-mockllm-session": f"{session}-{kind}".replace(" ", "-")}
    keys = _KEYS.get(kind, {"authorization": "Bearer k"})
    return httpx.Client(base_url=server.url, headers=keys | named)


def _begin(client: httpx.Client, job: Job) -> str:
    begun = job.begin(client)
    assert begun.status_code == 200, begun.text
    id: str = begun.json()[job.id]
    return id


def _verdict(client: httpx.Client, **options: str) -> Any:
    query = {"session": client.headers["x-mockllm-session"], **options}
    return client.get("/_mockllm/verify", params=query).json()


@every_kind
def test_a_job_counts_when_its_answer_was_fetched(server: ServerThread, kind: str) -> None:
    """Before, the verdict names it: nobody polled, or it is not done, or its output is not read."""
    job = JOBS[kind]
    with _client(server, kind, "fetch") as client:
        id = _begin(client, job)
        for _ in range(2):
            ((found,), good) = (_verdict(client)[name] for name in ("violations", "good"))
            assert (found["invariant"], found["exchange"] > 0, good) == (
                "answer-fetched",
                True,
                False,
            )
            assert id in found["message"]
            polled = client.get(job.poll.format(id)).json()
        if job.poll != job.fetch:
            assert not _verdict(client)["good"]
            fetched = client.get(job.fetch.format(id, polled.get(job.output)))
            assert fetched.status_code == 200
        assert _verdict(client)["good"]


@every_kind
def test_a_job_that_is_cancelled_counts(server: ServerThread, kind: str) -> None:
    """The client needs its answer no longer; and the rule may be left out."""
    job = JOBS[kind]
    with _client(server, kind, "cancel") as client:
        id = _begin(client, job)
        assert _verdict(client, leave_out="answer-fetched")["good"]
        assert client.post(job.cancel.format(id)).status_code == 200
        assert _verdict(client)["good"]


def test_every_kind_of_job_is_tried() -> None:
    """A protocol that gets batches or a background has a row above."""
    batches = {f"batches of {name}" for name in PROTOCOLS if "create_batch" in PROTOCOLS[name].jobs}
    background = {
        f"{name} in the background"
        for name, protocol in PROTOCOLS.items()
        if protocol.stored is not None and protocol.stored.background is not None
    }
    assert batches | background | {"routes"} == set(JOBS)
