"""`mockllm serve --workers 2`: the official SDKs with two processes on one port."""

from __future__ import annotations

import sys

import httpx
import pytest

from tests.deployment.balancer.processes import Process, free_ports
from tests.deployment.balancer.sdks import ASK, MODEL, Answers, ask, openai_client
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow

SERVED = """
scenario: busy
match: {user: busy}
turns:
  - attempts: [{http: 429, retry_after: 1ms}, {http: 503, retry_after: 1ms}]
    reply: {text: Made it.}
---
scenario: two
match: {user: first}
turns: [{reply: {text: One.}}, {reply: {text: Two.}}]
"""


def test_the_sdks_see_one_server(tmp_path):
    """Whichever process a new connection meets: tries are counted, conversations and stored answers
    found, and the journal is whole."""
    (tmp_path / "served.yaml").write_text(SERVED)
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    server = Process(
        [sys.executable, "-m", "mockllm", "serve", "served.yaml", "--port", str(port),
         "--workers", "2"],
        tmp_path,
        "mockllm listening on ",
    ).wait_until_ready()  # fmt: skip
    try:
        for api in ASK:
            seen = []
            for _ in range(3):
                with Answers() as http:  # a connection of its own for each request
                    seen.append(ask(api, f"{url}/s/{api}", http, "busy"))
            assert seen == [429, 503, "Made it."]
        previous = {}
        for question, text in (("first", "One."), ("second", "Two.")):
            with Answers() as http, openai_client(f"{url}/s/stored", http) as client:
                answer = client.responses.create(model=MODEL, input=question, **previous)
                assert answer.output_text == text
                previous = {"previous_response_id": answer.id}
        for _ in range(4):
            with Answers() as http, openai_client(f"{url}/s/stored", http) as client:
                assert client.responses.retrieve(answer.id).output_text == "Two."
            journal = httpx.get(
                f"{url}/_mockllm/journal?session=chat", timeout=GIVE_UP, trust_env=False
            ).json()
            assert [entry["status"] for entry in journal["exchanges"]] == [429, 503, 200]
    finally:
        code = server.stop()
    assert code == 0, server.output
    assert "Traceback" not in server.output
