"""The official SDK creates, polls, reads, lists, cancels and deletes message batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic

from tests.serve.server.jobs.servers import BATCHED, of_next, urls

SCENARIOS = f"""{BATCHED}---
scenario: limited
match: {{user: limited}}
turns:
  - http: 429
"""

Client = Callable[[], Anthropic]


@contextmanager
def clients(folder: Path, count: int = 1, prefix: str = "") -> Iterator[Client]:
    """A function with a client of the next server."""

    def client(base: str) -> Anthropic:
        return Anthropic(base_url=base + prefix, api_key="k", max_retries=0)

    with urls(SCENARIOS, folder, count) as bases, of_next(bases, client) as made:
        yield made


def params(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}], **more}


def begin(client: Client, *texts: str) -> Any:
    requests: Any = [
        {"custom_id": f"r{at}", "params": params(text)} for at, text in enumerate(texts)
    ]
    return client().messages.batches.create(requests=requests)


def polled(client: Client, id: str, times: int) -> list[str]:
    return [client().messages.batches.retrieve(id).processing_status for _ in range(times)]


@pytest.mark.parametrize("count", [1, 2])
def test_a_batch_is_answered_by_the_scenarios(tmp_path: Path, count: int) -> None:
    """Each result is the answer to a request, as if it had been posted, or its error."""
    with clients(tmp_path, count, "/s/one") as client:
        batch = begin(client, "Norway?", "nobody", "limited", "Norway!")
        assert (batch.processing_status, batch.request_counts.processing) == ("in_progress", 4)
        with pytest.raises(anthropic.AnthropicError, match="results_url"):
            client().messages.batches.results(batch.id)
        assert polled(client, batch.id, 1) == ["ended"]
        ended = client().messages.batches.retrieve(batch.id)
        counts = ended.request_counts
        assert (counts.processing, counts.succeeded, counts.errored) == (0, 2, 2)
        posted = client().messages.create(**params("Norway?"))
        results = {one.custom_id: one.result for one in client().messages.batches.results(batch.id)}
        assert [result.type for result in results.values()] == [
            *("succeeded", "errored", "errored", "succeeded")
        ]
        assert results["r0"].message.to_dict() == posted.to_dict()  # type: ignore[union-attr]
        errors = [results[id].error.error.type for id in ("r1", "r2")]  # type: ignore[union-attr]
        assert errors == ["not_found_error", "rate_limit_error"]


def test_a_request_expires(tmp_path: Path) -> None:
    """The others are answered."""
    with clients(tmp_path) as client:
        batch = begin(client, "Norway", "late")
        assert polled(client, batch.id, 2) == ["in_progress", "ended"]
        counts = client().messages.batches.retrieve(batch.id).request_counts
        assert (counts.succeeded, counts.expired) == (1, 1)
        results = [one.result.type for one in client().messages.batches.results(batch.id)]
        assert results == ["succeeded", "expired"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_pending_batch_is_cancelled(tmp_path: Path, count: int) -> None:
    """All of its requests are canceled then; a batch that has ended stays as it is."""
    with clients(tmp_path, count) as client:
        batch = begin(client, "slow", "Norway")
        assert polled(client, batch.id, 2) == ["in_progress"] * 2
        assert client().messages.batches.cancel(batch.id).processing_status == "canceling"
        assert polled(client, batch.id, 2) == ["ended"] * 2
        results = [one.result.type for one in client().messages.batches.results(batch.id)]
        assert results == ["canceled"] * 2
        ended = client().messages.batches.cancel(batch.id)
        assert (ended.processing_status, ended.request_counts.canceled) == ("ended", 2)


@pytest.mark.parametrize("count", [1, 2])
def test_batches_are_listed_and_deleted(tmp_path: Path, count: int) -> None:
    """The latest first, page by page; only what has ended is deleted."""
    with clients(tmp_path, count) as client:
        ids = [begin(client, "slow").id for _ in range(3)]
        assert [batch.id for batch in client().messages.batches.list(limit=2)] == ids[::-1]
        with pytest.raises(anthropic.BadRequestError, match="in progress"):
            client().messages.batches.delete(ids[0])
        assert polled(client, ids[0], 4)[-1] == "ended"
        assert client().messages.batches.delete(ids[0]).id == ids[0]
        with pytest.raises(anthropic.NotFoundError):
            client().messages.batches.retrieve(ids[0])
        assert [batch.id for batch in client().messages.batches.list()] == [ids[2], ids[1]]


@pytest.mark.parametrize(
    ("requests", "field"),
    [
        ([], "requests"),
        ([{"custom_id": "", "params": {}}], "requests.0.custom_id"),
        ([{"custom_id": "a", "params": params("x")}] * 2, "requests.1.custom_id"),
        ([{"custom_id": "a"}], "requests.0.params"),
        ([{"custom_id": "a", "params": params("x", stream=True)}], "requests.0.params.stream"),
    ],
)
def test_wrong_batches_are_refused(tmp_path: Path, requests: Any, field: str) -> None:
    """The error names the field."""
    with clients(tmp_path) as client, pytest.raises(anthropic.BadRequestError, match=field):
        client().messages.batches.create(requests=requests)
