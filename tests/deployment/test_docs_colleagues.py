"""docs/deployment.md: a server that colleagues use under a name."""

from __future__ import annotations

import httpx
import pytest

from mockllm import ServerOptions, ServerThread, loads
from tests.deployment.command_lines import ROOT, parsed
from tests.timeouts import GIVE_UP

PAGE = (ROOT / "docs" / "deployment.md").read_text()
SECTION = PAGE.partition("## A server for colleagues\n")[2].partition("\n## ")[0]
NAME = "mock.example"
HELLO = "scenario: hello\nmatch: any\nturns:\n  - reply: {text: Hello.}\n"


def test_the_command_allows_the_name():
    """The command without Docker listens for other machines, under the name of the page."""
    (line,) = (one for one in SECTION.splitlines() if one.startswith("mockllm serve "))
    values = parsed(line.split()[1:])
    assert (values["host"], values["allowed_hosts"]) == ("0.0.0.0", (NAME,))


@pytest.mark.parametrize("allowed", [(NAME,), ()])
def test_what_a_colleague_reaches(allowed):
    """An API and its session always; verdict, sessions and page only if the name is allowed, and
    by the IP address."""
    with ServerThread(loads(HELLO), ServerOptions(allowed_hosts=allowed)) as thread:
        named = {"host": f"{NAME}:{thread.url.rpartition(':')[2]}"}
        with httpx.Client(base_url=thread.url, headers=named, timeout=GIVE_UP) as colleague:
            body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            assert colleague.post("/s/anna/v1/chat/completions", json=body).status_code == 200
            verdict = colleague.get("/_mockllm/verify?session=anna")
            made = colleague.post("/_mockllm/sessions", json={"session": "bo"})
            assert verdict.status_code == (200 if allowed else 403)
            if allowed:
                assert verdict.json()["good"]
                assert made.json()["base_urls"]["chat"] == f"http://{named['host']}/s/bo/v1"
        by_address = httpx.get(f"{thread.url}/_mockllm/verify?session=anna", timeout=GIVE_UP)
        assert by_address.json()["good"]
