"""The page shows nothing of a request that the journal masks."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pytest

from mockllm import ServerOptions, ServerThread, loads
from mockllm.serve.ui import live_page
from tests.fuzz.valid import SCENARIOS
from tests.timeouts import GIVE_UP

_CHAT = {"model": "g", "messages": [{"role": "user", "content": "weather"}]}
_GEMINI = {"contents": [{"role": "user", "parts": [{"text": "weather"}]}]}
_CONVERSE = {"messages": [{"role": "user", "content": [{"text": "weather"}]}]}

REQUESTS = {
    "unknown route": ("GET", "/nope/{}", None),
    "unknown route at the root": ("POST", "/{}", _CHAT),
    "unknown route below": ("POST", "/{}/nope/x", _CHAT),
    "prefix": ("POST", "/{}/v1/chat/completions", _CHAT),
    "deployment": ("POST", "/openai/deployments/{}/chat/completions", _CHAT),
    "route": ("GET", "/files/{}", None),
    "model": ("GET", "/v1/models/{}", None),
    "stored answer": ("GET", "/v1/responses/{}", None),
    "job": ("GET", "/v1/batches/{}", None),
    "model that streams": ("POST", "/v1beta/models/{}:streamGenerateContent?alt=sse", _GEMINI),
    "model that answers": ("POST", "/model/{}/converse", _CONVERSE),
    "query": ("POST", "/v1/chat/completions?key={}", _CHAT),
    "query of a look-up": ("GET", "/v1beta/models?pageToken={}&key={}", None),
}
SECRETS = ("sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcd", "jane.doe@gmail.com")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("fallback", [True, False], ids=["fallback", "scenarios only"])
def test_no_secret_of_a_target_is_shown(secret: str, fallback: bool) -> None:
    """Neither in the answer, which quotes it, nor in rows, explanations and skeletons."""
    options = ServerOptions(fallback=fallback, grace=0, speed=0, page=live_page)
    with (
        ServerThread(loads(SCENARIOS), options) as server,
        httpx.Client(base_url=server.url, timeout=GIVE_UP) as client,
    ):
        for number, (kind, (method, path, body)) in enumerate(REQUESTS.items(), 1):
            client.request(method, path.replace("{}", secret), json=body)
            shown = client.get(f"/_mockllm/ui/request/default/{number}").json()
            assert shown["entry"]["number"] == number, kind
            for name, value in shown.items():
                assert secret not in str(value), (kind, name)
                assert quote(secret) not in str(value), (kind, name)


def test_what_is_no_secret_is_shown() -> None:
    """Models and paths as they are."""
    with (
        ServerThread(loads(SCENARIOS), ServerOptions(grace=0, page=live_page)) as server,
        httpx.Client(base_url=server.url, timeout=GIVE_UP) as client,
    ):
        client.get("/v1/models/gpt-4o-mini")
        shown = client.get("/_mockllm/ui/request/default/1").json()
    assert "gpt-4o-mini" in str(shown["answer"])
    assert "***" not in str(shown["answer"])
