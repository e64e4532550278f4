"""Programs in processes of their own, led by their environment alone: a row for each stack."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.interception.conftest import Intercepting, intercepting
from tests.timeouts import GIVE_UP

MODELS = "https://api.openai.com/v1/models"

PYTHON = {
    "httpx": f"import httpx; print(httpx.get('{MODELS}').status_code)",
    "httpx2": f"import httpx2; print(httpx2.get('{MODELS}').status_code)",
    "requests": f"import requests; print(requests.get('{MODELS}').status_code)",
    "urllib3": "import os, ssl, urllib3\n"
    "proxy = urllib3.util.parse_url(os.environ['HTTPS_PROXY'])\n"
    "headers = urllib3.make_headers(proxy_basic_auth=proxy.auth)\n"
    "pool = urllib3.ProxyManager(os.environ['HTTPS_PROXY'], proxy_headers=headers)\n"
    f"print(pool.request('GET', '{MODELS}').status)",
    "urllib.request": f"import urllib.request\nprint(urllib.request.urlopen('{MODELS}').status)",
}
NODE = f"fetch('{MODELS}').then(answer => console.log(answer.status))"


def status(server: Intercepting, *command: str) -> str:
    """What a program prints that is led to a server."""
    done = subprocess.run(
        command, env=server.environment, capture_output=True, text=True, timeout=GIVE_UP
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("stack", PYTHON)
def test_a_stack_of_python(server: Intercepting, stack: str) -> None:
    before = len(server.journal)
    assert status(server, sys.executable, "-c", PYTHON[stack]) == "200"
    assert [entry.headers["host"] for entry in server.journal[before:]] == ["api.openai.com"]


def test_botocore() -> None:
    """Its requests are signed; here nothing plays Bedrock, so that it reports what answers."""
    program = """
import boto3, botocore.exceptions
client = boto3.client(
    "bedrock-runtime", "us-east-1", aws_access_key_id="any", aws_secret_access_key="any"
)
try:
    client.apply_guardrail(
        guardrailIdentifier="any", guardrailVersion="1", source="INPUT", content=[]
    )
except botocore.exceptions.ClientError as error:
    print(error.response["ResponseMetadata"]["HTTPStatusCode"])
"""
    with intercepting("bedrock-runtime.*.amazonaws.com") as server:
        assert status(server, sys.executable, "-c", program) == "404"
        (entry,) = server.journal
    assert entry.headers["host"] == "bedrock-runtime.us-east-1.amazonaws.com"


def test_curl(server: Intercepting) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not here")
    assert status(server, curl, "-sS", "-o", "/dev/null", "-w", "%{http_code}", MODELS) == "200"


def test_fetch_of_node(server: Intercepting) -> None:
    """Node reads proxies from its environment since 22.21."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not here")
    if tuple(map(int, status(server, node, "-p", "process.versions.node").split("."))) < (22, 21):
        pytest.skip("this Node reads no proxies from its environment: it has to be 22.21 or newer")
    assert status(server, node, "-e", NODE) == "200"


def test_a_service_of_this_machine() -> None:
    """One that a pattern names, such as Ollama, though this machine is exempt otherwise."""
    program = "import httpx; print(httpx.get('http://localhost:11434/v1/models').status_code)"
    with intercepting("localhost:11434") as server:
        assert status(server, sys.executable, "-c", program) == "200"
        assert len(server.journal) == 1
