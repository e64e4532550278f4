"""The official SDK uploads files, and creates, polls, reads, lists and cancels batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.serve.server.jobs.servers import BATCHED, of_next, openai_client, urls

SCENARIOS = f"""{BATCHED}---
scenario: limited
match: {{user: limited}}
turns:
  - http: 429
---
scenario: broken
match: {{user: broken}}
turns:
  - reply: {{text: Oslo.}}
    fault: {{cut: {{after: 10 bytes}}}}
---
scenario: embedded
route: POST /v1/embeddings
match: {{body: {{input: hello}}}}
turns:
  - answer: {{json: {{object: list, data: []}}}}
"""

Client = Callable[[], OpenAI]
CHAT = "/v1/chat/completions"


@contextmanager
def clients(folder: Path, count: int = 1, **options: Any) -> Iterator[Client]:
    """A function with a client of the next server."""
    with urls(SCENARIOS, folder, count, **options) as bases, of_next(bases, openai_client) as made:
        yield made


def chat(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def lines(endpoint: str, *bodies: dict[str, Any]) -> bytes:
    requests = [
        {"custom_id": f"r{number}", "method": "POST", "url": endpoint, "body": body}
        for number, body in enumerate(bodies)
    ]
    return "\n".join(map(json.dumps, requests)).encode()


def begin(client: Client, content: bytes, endpoint: str = CHAT) -> Any:
    file = client().files.create(file=("in.jsonl", content), purpose="batch")
    return client().batches.create(
        input_file_id=file.id,
        endpoint=endpoint,  # type: ignore[arg-type]
        completion_window="24h",
        metadata={"k": "v"},
    )


def read(client: Client, id: str | None) -> list[Any]:
    assert id is not None
    return [json.loads(line) for line in client().files.content(id).text.splitlines()]


def polled(client: Client, id: str, times: int) -> list[str]:
    return [client().batches.retrieve(id).status for _ in range(times)]


@pytest.mark.parametrize("count", [1, 2])
def test_a_batch_is_answered_by_the_scenarios(tmp_path: Path, count: int) -> None:
    """The output file has the answer to each request, as if it had been posted; the error file has
    those that were refused, or whose answers broke off."""
    with clients(tmp_path, count) as client:
        content = lines(CHAT, *map(chat, ["Norway?", "nobody", "limited", "broken", "Norway!"]))
        batch = begin(client, content)
        assert (batch.status, batch.metadata) == ("validating", {"k": "v"})
        assert polled(client, batch.id, 2) == ["in_progress", "completed"]
        done = client().batches.retrieve(batch.id)
        counts = done.request_counts
        assert counts is not None
        assert (counts.total, counts.completed, counts.failed) == (5, 2, 3)
        posted = client().chat.completions.create(**chat("Norway?"))
        output = read(client, done.output_file_id)
        assert [line["custom_id"] for line in output] == ["r0", "r4"]
        assert output[0]["response"]["body"] == posted.model_dump(exclude_unset=True)
        assert [line["response"]["status_code"] for line in output] == [200, 200]
        errors = read(client, done.error_file_id)
        statuses = [(line["custom_id"], line["response"]["status_code"]) for line in errors]
        assert statuses == [("r1", 404), ("r2", 429), ("r3", 500)]
        assert all(line["response"]["body"]["error"]["message"] for line in errors)


@pytest.mark.parametrize("count", [1, 2])
def test_a_batch_is_as_slow_as_its_slowest_request(tmp_path: Path, count: int) -> None:
    """`job` of the turns says how long it is pending; until then it is cancelled."""
    with clients(tmp_path, count) as client:
        content = lines(CHAT, chat("slow"), chat("Norway"))
        batch = begin(client, content)
        assert polled(client, batch.id, 4) == ["in_progress"] * 3 + ["completed"]
        with pytest.raises(openai.ConflictError, match="completed"):
            client().batches.cancel(batch.id)
        other = begin(client, content)
        assert polled(client, other.id, 1) == ["in_progress"]
        assert client().batches.cancel(other.id).status == "cancelling"
        assert polled(client, other.id, 4) == ["cancelled"] * 4
        assert client().batches.retrieve(other.id).output_file_id is None


def test_a_request_expires(tmp_path: Path) -> None:
    """The batch has expired then, and its files have what became of each request."""
    with clients(tmp_path) as client:
        batch = begin(client, lines(CHAT, chat("Norway"), chat("late")))
        assert polled(client, batch.id, 2) == ["in_progress", "expired"]
        done = client().batches.retrieve(batch.id)
        assert (done.completed_at, done.expired_at) == (None, done.expires_at)
        assert [line["custom_id"] for line in read(client, done.output_file_id)] == ["r0"]
        (line,) = read(client, done.error_file_id)
        assert (line["response"], line["error"]["code"]) == (None, "batch_expired")


@pytest.mark.parametrize(
    ("endpoint", "body", "field"),
    [
        ("/v1/responses", {"model": "m", "input": "Norway"}, "output"),
        ("/v1/embeddings", {"model": "m", "input": "hello"}, "data"),
        ("/v1/embeddings", {"model": "m", "input": "other"}, "data"),
        ("/v1/moderations", {"input": "hello"}, "results"),
    ],
)
def test_other_endpoints(tmp_path: Path, endpoint: str, body: dict[str, Any], field: str) -> None:
    """Responses, routes of scenarios, and what `--fallback auto` answers."""
    with clients(tmp_path, fallback=True) as client:
        batch = begin(client, lines(endpoint, body), endpoint)
        assert polled(client, batch.id, 2)[-1] == "completed"
        (line,) = read(client, client().batches.retrieve(batch.id).output_file_id)
        assert field in line["response"]["body"]


@pytest.mark.parametrize(
    ("content", "codes"),
    [
        (b"", ["empty_file"]),
        (b"{", ["invalid_json_line"]),
        (b'{"custom_id": "a", "method": "POST"}', ["missing_required_parameter"]),
        (lines("/v1/responses", {"input": "x"}), ["invalid_url"]),
        (lines(CHAT, chat("Norway", stream=True)), ["invalid_request"]),
        (lines(CHAT, chat("a")) + b"\n" + lines(CHAT, chat("a")), ["duplicate_custom_id"]),
    ],
)
def test_a_wrong_input_file_fails_the_batch(
    tmp_path: Path, content: bytes, codes: list[str]
) -> None:
    """Each wrong line is named."""
    with clients(tmp_path) as client:
        batch = client().batches.retrieve(begin(client, content).id)
        assert (batch.status, batch.output_file_id) == ("failed", None)
        assert [error.code for error in batch.errors.data] == codes  # type: ignore[union-attr]


def test_wrong_batches_are_refused(tmp_path: Path) -> None:
    """Files that are not there, or are for something else."""
    with clients(tmp_path) as client:
        other = client().files.create(file=("a.txt", b"x"), purpose="assistants")
        window: Any = {"endpoint": CHAT, "completion_window": "24h"}
        with pytest.raises(openai.NotFoundError):
            client().batches.create(input_file_id="file-none", **window)
        with pytest.raises(openai.BadRequestError, match="purpose"):
            client().batches.create(input_file_id=other.id, **window)
        with pytest.raises(openai.NotFoundError, match="Batch"):
            client().batches.retrieve("batch_none")
        with pytest.raises(openai.APIStatusError, match="keeps 1048576 bytes"):
            client().files.create(file=("big", b"x" * 2**20), purpose="batch")


@pytest.mark.parametrize("count", [1, 2])
def test_files_and_batches_are_listed(tmp_path: Path, count: int) -> None:
    """The latest first, page by page; what is deleted is gone, and its batch stays."""
    with clients(tmp_path, count) as client:
        content = lines(CHAT, chat("Norway"))
        batches = [begin(client, content) for _ in range(3)]
        assert len({batch.id for batch in batches}) == 3
        listed = [batch.id for batch in client().batches.list(limit=2)]
        assert listed == [batch.id for batch in reversed(batches)]
        assert polled(client, batches[0].id, 2)[-1] == "completed"
        output = client().batches.retrieve(batches[0].id).output_file_id or ""
        files = client().files.list().data
        assert [file.id for file in files] == [
            output,
            *(batch.input_file_id for batch in reversed(batches)),
        ]
        assert [file.bytes for file in files][1:] == [len(content)] * 3
        assert client().files.content(batches[0].input_file_id).content == content
        assert [file.id for file in client().files.list(purpose="batch_output")] == [output]
        for id in (batches[0].input_file_id, output):
            assert client().files.delete(id).deleted
            with pytest.raises(openai.NotFoundError, match="File"):
                client().files.retrieve(id)
        assert client().batches.retrieve(batches[0].id).status == "completed"
        assert len(client().files.list().data) == 2
