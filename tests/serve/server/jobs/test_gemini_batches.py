"""Google's SDK creates, polls, reads, lists, cancels and deletes batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from tests.serve.server.jobs.servers import BATCHED, urls

SCENARIOS = BATCHED

Client = Callable[[], genai.Client]


@contextmanager
def clients(folder: Path, count: int = 1, version: str = "v1beta") -> Iterator[Client]:
    """A function with a client of the next server."""
    with urls(SCENARIOS, folder, count) as bases, ExitStack() as stack:
        made = []
        for _ in range(count):
            options = types.HttpOptions(base_url=next(bases), api_version=version)
            made.append(
                stack.enter_context(closing(genai.Client(api_key="k", http_options=options)))
            )
        turns = cycle(made)
        yield lambda: next(turns)


def begin(client: Client, *texts: str) -> Any:
    requests = [
        types.InlinedRequest(contents=text, metadata={"key": str(at)})
        for at, text in enumerate(texts)
    ]
    config = types.CreateBatchJobConfig(display_name="mine")
    return client().batches.create(model="gemini-3", src=requests, config=config)


def polled(client: Client, name: str, times: int) -> list[str]:
    states = [client().batches.get(name=name).state for _ in range(times)]
    return [state.value.removeprefix("JOB_STATE_") for state in states if state is not None]


@pytest.mark.parametrize("version", ["v1beta", "v1"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_batch_is_answered_by_the_scenarios(tmp_path: Path, count: int, version: str) -> None:
    """Each response is the answer to a request, as if it had been posted, or its error."""
    with clients(tmp_path, count, version) as client:
        batch = begin(client, "Norway?", "nobody")
        assert (batch.state.value, batch.display_name) == ("JOB_STATE_PENDING", "mine")
        assert polled(client, batch.name, 2) == ["RUNNING", "SUCCEEDED"]
        done = client().batches.get(name=batch.name)
        assert done.model == "models/gemini-3"
        first, second = done.dest.inlined_responses  # type: ignore[union-attr,misc]
        assert first.response is not None
        assert first.response.text == "Oslo."
        assert first.metadata == {"key": "0"}
        assert (second.error.code, second.response) == (5, None)  # type: ignore[union-attr]


@pytest.mark.parametrize("count", [1, 2])
def test_batches_are_listed_cancelled_and_deleted(tmp_path: Path, count: int) -> None:
    """The latest first, page by page; what was cancelled has no responses."""
    with clients(tmp_path, count) as client:
        names = [begin(client, "slow").name for _ in range(3)]
        assert polled(client, names[0], 1) == ["RUNNING"]
        client().batches.cancel(name=names[0])
        assert polled(client, names[0], 4) == ["CANCELLED"] * 4
        assert polled(client, names[1], 4) == ["RUNNING"] * 3 + ["SUCCEEDED"]
        listed = list(client().batches.list(config=types.ListBatchJobsConfig(page_size=2)))
        assert [(one.name, one.state and one.state.value) for one in listed] == [
            (names[2], "JOB_STATE_RUNNING"),
            (names[1], "JOB_STATE_SUCCEEDED"),
            (names[0], "JOB_STATE_CANCELLED"),
        ]
        client().batches.delete(name=names[0])
        with pytest.raises(errors.ClientError, match="not found"):
            client().batches.get(name=names[0])
        assert [one.name for one in client().batches.list()] == names[:0:-1]


def test_a_batch_expires(tmp_path: Path) -> None:
    """It has no responses then."""
    with clients(tmp_path) as client:
        batch = begin(client, "Norway", "late")
        assert polled(client, batch.name, 2) == ["RUNNING", "EXPIRED"]
        assert client().batches.get(name=batch.name).dest is None


def test_wrong_batches_are_refused(tmp_path: Path) -> None:
    """Those of files are played only by scenarios."""
    with clients(tmp_path) as client:
        with pytest.raises(errors.ClientError, match="at least one request"):
            begin(client)
        with pytest.raises(errors.ClientError, match="file_name"):
            client().batches.create(model="gemini-3", src="files/abc")
