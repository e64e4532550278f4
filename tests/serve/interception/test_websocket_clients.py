"""WebSocket clients that know the service's own address alone, led by their environment: through
the proxy, with TLS on both sides."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from tests.serve.server.recording.websocket_service import service
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow

CLIENTS = {
    "websockets": """
from websockets.sync.client import connect
with connect(URL, subprotocols=["realtime"]) as client:
    print(client.recv())
    client.send("Zürich")
    print(client.recv())
""",
    "websockets, asynchronous": """
import asyncio
from websockets import connect
async def main():
    async with connect(URL, subprotocols=["realtime"]) as client:
        print(await client.recv())
        await client.send("Zürich")
        print(await client.recv())
asyncio.run(main())
""",
    "websocket-client": """
from websocket import create_connection
client = create_connection(URL, subprotocols=["realtime"])
print(client.recv())
client.send("Zürich")
print(client.recv())
client.close()
""",
    "aiohttp": """
import asyncio, aiohttp
async def main():
    async with aiohttp.ClientSession(trust_env=True) as session:
        async with session.ws_connect(URL, protocols=["realtime"]) as client:
            print(await client.receive_str())
            await client.send_str("Zürich")
            print(await client.receive_str())
asyncio.run(main())
""",
    "openai": """
import json
from openai import OpenAI
class Raw:
    pass
with OpenAI(websocket_base_url=URL.rpartition("/")[0], api_key="any").realtime.connect(
    model="gpt-realtime", websocket_connection_options={"subprotocols": ["realtime"]}
) as client:
    print(client.recv_bytes().decode())
    client.send({"type": "response.create"})
    print("Zürich" if json.loads(client.recv_bytes())["type"] == "response.create" else "")
""",
}


@dataclass(frozen=True)
class Service:
    """A WebSocket service with TLS.

    Args:
        trusted: the file with the certificates to trust.
    """

    place: str
    trusted: Path


@pytest.fixture(scope="module")
def wss(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    authority = trustme.CA()
    trusted = tmp_path_factory.mktemp("trusted") / "service.pem"
    authority.cert_pem.write_to_path(str(trusted))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with service(ssl=context) as url:
        yield Service(url.removeprefix("https://"), trusted)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client(
    wss: Service, tmp_path: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is recorded by `mockllm record`, and sees the same again in `mockllm run`; what was not
    recorded is refused, with the reason."""
    monkeypatch.setenv("SSL_CERT_FILE", str(wss.trusted))
    python = ["--intercept", wss.place, "--", sys.executable, "-c"]
    program = f"URL = 'wss://{wss.place}/v1/realtime'\n{CLIENTS[client]}"
    command = [*python, program]
    done = mockllm("record", "-o", str(tmp_path / "recorded"), *command)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "\n1 recorded\n" in done.stdout
    greeting, answer = said = said_to(done.stdout)
    asked = json.loads(greeting)
    assert (asked["path"].partition("?")[0], asked["subprotocol"]) == ("/v1/realtime", "realtime")
    assert answer == "Zürich"
    done = mockllm("run", "--scenarios", str(tmp_path / "recorded"), *command)
    assert (done.returncode, said_to(done.stdout)) == (0, said), done.stderr
    (tmp_path / "hello.yaml").write_text("scenario: hello\nturns: [{reply: {text: Hello.}}]\n")
    elsewhere = program.replace("/v1/realtime", "/elsewhere/other", 1)
    done = mockllm("run", "--scenarios", str(tmp_path / "recorded"), *python, elsewhere)
    assert done.returncode != 0
    assert re.search("501|matches nothing", done.stderr), done.stderr


def said_to(output: str) -> list[str]:
    """What the service said, as a client printed it."""
    return [line for line in output.splitlines() if line[:1] in "{Z"]


def mockllm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mockllm", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=GIVE_UP,
    )
