"""Programs in processes of their own, led by their environment alone: a row for each stack."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mockllm.play.replay.loading import load
from mockllm.serve.server.options import RecordOptions
from tests.serve.interception.conftest import OPENAI, Intercepting, intercepting
from tests.serve.server.recording.odd_upstream import OddUpstream, script, text_events
from tests.timeouts import GIVE_UP

JSON = '{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'
PROGRAMS = Path(__file__).parent / "programs"

PYTHON = {
    "httpx": "import httpx; answer = httpx.post(URL, json=BODY)",
    "httpx2": "import httpx2; answer = httpx2.post(URL, json=BODY)",
    "requests": "import requests; answer = requests.post(URL, json=BODY)",
    "urllib3": "import os, types, urllib3\n"
    "proxy = urllib3.util.parse_url(os.environ['HTTPS_PROXY'])\n"
    "headers = urllib3.make_headers(proxy_basic_auth=proxy.auth)\n"
    "pool = urllib3.ProxyManager(os.environ['HTTPS_PROXY'], proxy_headers=headers)\n"
    "answered = pool.request('POST', URL, json=BODY)\n"
    "answer = types.SimpleNamespace(status_code=answered.status, url=URL)",
    "urllib.request": "import types, urllib.request\n"
    "asked = urllib.request.Request(URL, json.dumps(BODY).encode())\n"
    "asked.add_header('content-type', 'application/json')\n"
    "answered = urllib.request.urlopen(asked)\n"
    "answer = types.SimpleNamespace(status_code=answered.status, url=answered.url)",
    "aiohttp that is told to trust its environment": "import asyncio, aiohttp, types\n"
    "async def main():\n"
    "    async with aiohttp.ClientSession(trust_env=True) as session:\n"
    "        async with session.post(URL, json=BODY) as answer:\n"
    "            return types.SimpleNamespace(status_code=answer.status, url=answer.url)\n"
    "answer = asyncio.run(main())",
}
NODE = (
    f"fetch('{OPENAI}', {{method: 'POST', body: '{JSON}', "
    "headers: {'content-type': 'application/json'}})"
    ".then(answer => console.log(answer.status, answer.url))"
)


def _python(stack: str, _folder: Path) -> list[str]:
    begin, end = (
        f"import json\nURL, BODY = '{OPENAI}', {JSON}\n",
        "print(answer.status_code, answer.url)",
    )
    return [sys.executable, "-c", f"{begin}{PYTHON[stack]}\n{end}"]


def _curl(_folder: Path) -> list[str]:
    told = ["-sS", "-o", os.devnull, "-w", "%{http_code} %{url_effective}", "-d", JSON]
    return [found("curl"), *told, "-H", "content-type: application/json", OPENAI]


def _node(_folder: Path) -> list[str]:
    """Node reads proxies from its environment since 22.21."""
    node = found("node")
    version = subprocess.check_output([node, "-p", "process.versions.node"], text=True)
    if tuple(map(int, version.split("."))) < (22, 21):
        pytest.skip("this Node reads no proxies from its environment: it has to be 22.21 or newer")
    return [node, "-e", NODE]


def _go(folder: Path) -> list[str]:
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    built = [found("go"), "build", "-o", str(folder / "ask"), str(PROGRAMS / "ask.go")]
    subprocess.run(built, env=environment, check=True)
    return [str(folder / "ask"), OPENAI]


def _java(client: str, folder: Path) -> list[str]:
    subprocess.run([found("javac"), "-d", str(folder), str(PROGRAMS / "Ask.java")], check=True)
    return [found("java"), "-cp", str(folder), "Ask", client, OPENAI]


def found(program: str) -> str:
    """The path of a program; the test is skipped where it is not installed."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


heavy = pytest.mark.heavy
STACKS = [
    *(pytest.param(partial(_python, stack), id=stack) for stack in PYTHON),
    pytest.param(_curl, id="curl"),
    pytest.param(_node, id="fetch of Node"),
    pytest.param(_go, id="net/http of Go", marks=heavy),
    *(
        pytest.param(partial(_java, client), id=f"{client} of Java", marks=heavy)
        for client in ("HttpClient", "HttpURLConnection")
    ),
]


def status(server: Intercepting, *command: str) -> str:
    """What a program prints that is led to a server."""
    done = subprocess.run(
        command, env=server.environment, capture_output=True, text=True, timeout=GIVE_UP
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_a_stack(stack: Callable[[Path], list[str]], tmp_path: Path) -> None:
    """It is recorded and replayed, and sees the URL that it asked for."""
    command, folder = stack(tmp_path), tmp_path / "recorded"
    with OddUpstream(script(*text_events("hi"))) as service:
        record = RecordOptions(folder, {"chat": service.url}, "add")
        with intercepting(record=record) as server:
            assert status(server, *command) == f"200 {OPENAI}"
            assert [entry.headers["host"] for entry in server.journal] == ["api.openai.com"]
        assert len(service.requests) == 1
    with intercepting(scenarios=load([folder])) as server:
        assert status(server, *command) == f"200 {OPENAI}"
        assert [entry.outcome for entry in server.journal] == ["played"]


@pytest.mark.slow
def test_botocore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its requests are signed, and again for the service that is recorded."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    program = """
import boto3
client = boto3.client("bedrock-runtime", "us-east-1")
answer = client.converse(
    modelId="any", messages=[{"role": "user", "content": [{"text": "hello"}]}]
)
print(answer["ResponseMetadata"]["HTTPStatusCode"], answer["output"]["message"]["content"])
"""
    host, folder = "bedrock-runtime.*.amazonaws.com", tmp_path / "recorded"

    answer = {
        "output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 1},
    }

    async def play(request: Any, wire: Any) -> None:
        await wire.body(json.dumps(answer), "Content-Type: application/json")

    with OddUpstream(play) as service:
        record = RecordOptions(folder, {"bedrock": service.url}, "add")
        with intercepting(host, record=record) as server:
            assert status(server, sys.executable, "-c", program) == "200 [{'text': 'hi'}]"
        assert len(service.requests) == 1
    with intercepting(host, scenarios=load([folder])) as server:
        assert status(server, sys.executable, "-c", program) == "200 [{'text': 'hi'}]"
        (entry,) = server.journal
    assert entry.headers["host"] == "bedrock-runtime.us-east-1.amazonaws.com"


def test_a_service_of_this_machine() -> None:
    """One that a pattern names, such as Ollama, though this machine is exempt otherwise."""
    program = "import httpx; print(httpx.get('http://localhost:11434/v1/models').status_code)"
    with intercepting("localhost:11434") as server:
        assert status(server, sys.executable, "-c", program) == "200"
        assert len(server.journal) == 1
