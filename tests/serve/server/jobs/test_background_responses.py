"""The official SDK polls, cancels and resumes responses that are made in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.serve.server.jobs.servers import of_next, openai_client, urls

SCENARIOS = """
scenario: slow
match: {user: slow}
turns:
  - reply: {text: It is done., split: words}
    job: {pending: 3 polls}
---
scenario: plain
match: {user: plain}
turns:
  - reply: {text: At once.}
---
scenario: long
match: {user: long}
turns:
  - reply: {text: Never.}
    job: {pending: 60m}
---
scenario: fails
match: {user: fails}
turns:
  - reply: {error: {message: The model broke., code: server_error}}
    job: {pending: 1 poll}
---
scenario: short
match: {user: short}
turns:
  - reply: {text: It is}
    finish: length
"""

Client = Callable[[], OpenAI]


@contextmanager
def clients(folder: Path, count: int, **options: Any) -> Iterator[Client]:
    """A function with a client of the next server."""
    with urls(SCENARIOS, folder, count, **options) as bases, of_next(bases, openai_client) as made:
        yield made


def begin(client: Client, text: str) -> Any:
    return client().responses.create(model="m", input=text, background=True)


def polled(client: Client, id: str, times: int) -> list[str | None]:
    return [client().responses.retrieve(id).status for _ in range(times)]


@pytest.mark.parametrize("count", [1, 2])
def test_a_response_is_pending_for_its_polls(tmp_path: Path, count: int) -> None:
    """It is queued, in progress for the polls of its turn, then complete with its reply; and a
    second one begins anew."""
    with clients(tmp_path, count) as client:
        for _ in range(2):
            made = begin(client, "slow")
            assert (made.status, made.background, made.output) == ("queued", True, [])
            assert (made.service_tier, made.usage) == ("auto", None)
            assert polled(client, made.id, 3) == ["in_progress"] * 3
            done = client().responses.retrieve(made.id)
            assert (done.status, done.output_text) == ("completed", "It is done.")
            assert (done.service_tier, done.usage is not None) == ("default", True)


def test_a_turn_without_a_job_is_done_at_the_first_poll(tmp_path: Path) -> None:
    """Also one that ends early."""
    with clients(tmp_path, 1) as client:
        assert polled(client, begin(client, "plain").id, 1) == ["completed"]
        cut = client().responses.retrieve(begin(client, "short").id)
        assert cut.status == "incomplete"
        assert cut.incomplete_details is not None
        assert cut.incomplete_details.reason == "max_output_tokens"


def test_a_response_may_fail(tmp_path: Path) -> None:
    """The error of a reply is the error of the response."""
    with clients(tmp_path, 1) as client:
        made = begin(client, "fails")
        assert (made.status, made.error) == ("queued", None)
        assert polled(client, made.id, 2) == ["in_progress", "failed"]
        error = client().responses.retrieve(made.id).error
        assert (error.code, error.message) == ("server_error", "The model broke.")  # type: ignore[union-attr]


@pytest.mark.parametrize("count", [1, 2])
def test_a_pending_response_is_cancelled(tmp_path: Path, count: int) -> None:
    """It stays cancelled. What is done already is not cancelled."""
    with clients(tmp_path, count) as client:
        made = begin(client, "slow")
        assert polled(client, made.id, 1) == ["in_progress"]
        assert client().responses.cancel(made.id).status == "cancelled"
        assert client().responses.cancel(made.id).status == "cancelled"
        assert polled(client, made.id, 4) == ["cancelled"] * 4
        done = begin(client, "plain")
        assert client().responses.cancel(done.id).output_text == "At once."
        plain = client().responses.create(model="m", input="plain")
        with pytest.raises(openai.BadRequestError, match="background"):
            client().responses.cancel(plain.id)


def test_time_goes_by(tmp_path: Path) -> None:
    """A job with a duration is pending until that is over; the speed of the server changes it."""
    with clients(tmp_path, 1) as client:
        assert polled(client, begin(client, "long").id, 5) == ["in_progress"] * 5
    with clients(tmp_path, 1, speed=0) as client:
        assert polled(client, begin(client, "long").id, 1) == ["completed"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_stream_is_taken_up_again(tmp_path: Path, count: int) -> None:
    """The rest of the stream follows the event that the client names."""
    with clients(tmp_path, count) as client:
        stream = client().responses.create(model="m", input="slow", background=True, stream=True)
        events = list(stream)
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert [event.type for event in events[:3]] == [
            *("response.created", "response.queued", "response.in_progress")
        ]
        id = events[0].response.id  # type: ignore[union-attr]
        for after in (0, 3):
            rest = client().responses.retrieve(id, stream=True, starting_after=after)
            assert list(rest) == events[after + 1 :]
        assert client().responses.retrieve(id).status == "completed"
        plain = client().responses.create(model="m", input="plain")
        with pytest.raises(openai.BadRequestError, match="background"):
            client().responses.retrieve(plain.id, stream=True)


def test_what_is_not_stored_cannot_be_polled(tmp_path: Path) -> None:
    """The service refuses it."""
    with clients(tmp_path, 1) as client, pytest.raises(openai.BadRequestError, match="stored"):
        client().responses.create(model="m", input="plain", background=True, store=False)
