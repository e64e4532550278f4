"""Clients poll the operations and files of Gemini that the scenarios in docs/jobs.md have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from google import genai
from google.genai import types

from mockllm import ServerThread, loads
from mockllm.serve.server.options import ServerOptions
from tests.deployment.balancer.processes import free_ports

PAGE = Path(__file__).parents[4] / "docs" / "jobs.md"


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of a server with the scenarios, in one of which it stands."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (text,) = [block for block in blocks if "predictLongRunning" in block]
    (port,) = free_ports(1)
    scenarios = list(loads(text.replace("127.0.0.1:8080", f"127.0.0.1:{port}")))
    with ServerThread(scenarios, ServerOptions(port=port)) as server:
        yield server.url


def test_a_video_is_an_operation(url: str) -> None:
    """It is not done for the polls, then it has the video."""
    model = f"{url}/v1beta/models/veo-3.1-generate-preview"
    name = httpx.post(f"{model}:predictLongRunning", json={"instances": [{}]}).json()["name"]
    polls = [httpx.get(f"{url}/v1beta/{name}").json() for _ in range(3)]
    assert polls[:2] == [{"name": name}] * 2
    (video,) = polls[2]["response"]["generateVideoResponse"]["generatedSamples"]
    assert (polls[2]["name"], polls[2]["done"]) == (name, True)
    assert name.rpartition("/")[2] in video["video"]["uri"]


def test_a_file_is_processed(url: str, tmp_path: Path) -> None:
    """For the official SDK it is processed for the polls, then active."""
    (tmp_path / "cat.mp4").write_bytes(b"video")
    options = types.HttpOptions(base_url=url)
    with closing(genai.Client(api_key="k", http_options=options)) as client:
        file = client.files.upload(file=tmp_path / "cat.mp4")
        states = [file.state]
        states += [client.files.get(name=file.name or "").state for _ in range(3)]
    assert [state and state.value for state in states] == ["PROCESSING"] * 3 + ["ACTIVE"]
