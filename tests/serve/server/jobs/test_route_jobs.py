"""Jobs of routes that scenarios describe, with the official SDK where it has such routes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.serve.server.jobs.servers import of_next, openai_client, urls

pytestmark = pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")

VIDEOS = """
scenario: cat-video
route: POST /v1/videos
turns:
  - answer:
      headers: {location: "/v1/videos/video_{id}"}
      json: &video
        {id: "video_{id}", object: video, model: sora-2, created_at: 1767225600, status: queued,
         progress: 0, prompt: a cat, seconds: "4", size: 720x1280}
    job:
      pending: 2 polls
      poll: GET /v1/videos/video_{id}
      wait: {json: {<<: *video, status: in_progress, progress: 50}}
      then: {json: {<<: *video, status: completed, progress: 100}}
      result:
        route: GET /v1/videos/video_{id}/content
        answer: {base64: AAAAIGZ0eXB7aWR9, headers: {content-type: video/mp4}}
      cancel:
        route: POST /v1/videos/video_{id}/cancel
        answer: {json: {<<: *video, status: cancelled}}
      delete:
        route: DELETE /v1/videos/video_{id}
        answer: {json: {id: "video_{id}", object: video.deleted, deleted: true}}
      list:
        route: GET /v1/videos
        answer: {json: {object: list, data: "{jobs}", has_more: false}}
---
scenario: timed
route: POST /timed
turns:
  - answer: {json: {id: "{id}"}}
    job: {pending: 60m, poll: "GET /timed/{id}", then: {text: "done {id}"}}
"""


@contextmanager
def bases(folder: Path, count: int = 1, **options: Any) -> Iterator[Iterator[str]]:
    with urls(VIDEOS, folder, count, **options) as found:
        yield found


@pytest.mark.parametrize("count", [1, 2])
def test_a_video_is_made_while_the_client_polls(tmp_path: Path, count: int) -> None:
    """It is queued, in progress for the polls, completed with its content; a second one has an id
    of its own."""
    with bases(tmp_path, count) as found, of_next(found, openai_client) as client:
        ids = set()
        for _ in range(2):
            video = client().videos.create(prompt="a cat")
            assert video.status == "queued"
            ids.add(video.id)
            with pytest.raises(openai.NotFoundError, match="not done yet"):
                client().videos.download_content(video.id)
            polls = [client().videos.retrieve(video.id) for _ in range(3)]
            assert [(poll.id, poll.status, poll.progress) for poll in polls] == [
                (video.id, "in_progress", 50),
                (video.id, "in_progress", 50),
                (video.id, "completed", 100),
            ]
            content = client().videos.download_content(video.id)
            assert content.read() == base64.b64decode("AAAAIGZ0eXB7aWR9")
        assert len(ids) == 2


@pytest.mark.parametrize("count", [1, 2])
def test_jobs_are_listed_cancelled_and_deleted(tmp_path: Path, count: int) -> None:
    """Each in the list is as a poll would get it; what was cancelled stays so."""
    with bases(tmp_path, count) as found, of_next(found, openai_client) as client:
        assert client().videos.list().data == []
        first, second = (client().videos.create(prompt="a cat") for _ in range(2))
        cancelled = httpx.post(f"{next(found)}/v1/videos/{first.id}/cancel").json()
        assert cancelled["status"] == "cancelled"
        for _ in range(3):
            assert httpx.get(f"{next(found)}/v1/videos/{first.id}").json() == cancelled
        listed = [(one.id, one.status) for one in client().videos.list().data]
        assert listed == [(second.id, "in_progress"), (first.id, "cancelled")]
        assert client().videos.delete(first.id).deleted
        with pytest.raises(openai.NotFoundError, match="there is no job"):
            client().videos.retrieve(first.id)
        assert [one.id for one in client().videos.list().data] == [second.id]


def test_headers_have_the_id(tmp_path: Path) -> None:
    """So do paths below a prefix; bytes stay as they are."""
    with bases(tmp_path) as found:
        made = httpx.post(f"{next(found)}/openai/v1/videos")
        assert made.headers["location"] == f"/v1/videos/{made.json()['id']}"
        assert httpx.get(f"{next(found)}/openai{made.headers['location']}").status_code == 200


def test_a_job_takes_its_time(tmp_path: Path) -> None:
    """A duration is over when it is; the speed of the server changes it. Polls get what the
    creation got, if the scenario says nothing else."""
    with bases(tmp_path) as found:
        made = httpx.post(f"{next(found)}/timed").json()
        polls = [httpx.get(f"{next(found)}/timed/{made['id']}").json() for _ in range(3)]
        assert polls == [made] * 3
    with bases(tmp_path, speed=0) as found:
        made = httpx.post(f"{next(found)}/timed").json()
        assert httpx.get(f"{next(found)}/timed/{made['id']}").text == f"done {made['id']}"
