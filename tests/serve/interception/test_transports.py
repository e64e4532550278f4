"""The HTTP libraries of this process, redirected: clients made before and after, and undone."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3
from openai import OpenAI

from mockllm.serve.interception.hosts import Hosts
from tests.serve.interception.conftest import ASKED, OPENAI, Intercepting
from tests.serve.interception.redirecting import redirected

MODELS = "https://api.openai.com/v1/models?x=1"


async def _aiohttp() -> str:
    async with aiohttp.ClientSession() as session, session.get(MODELS) as answer:
        await answer.read()
        return f"{answer.status} {answer.url}"


async def _httpx_async() -> str:
    async with httpx.AsyncClient() as client:
        answer = await client.get(MODELS)
        return f"{answer.status_code} {answer.url}"


def _httpx() -> str:
    answer = httpx.get(MODELS)
    return f"{answer.status_code} {answer.url}"


def _httpx2() -> str:
    answer = httpx2.get(MODELS)
    return f"{answer.status_code} {answer.url}"


def _requests() -> str:
    answer = requests.get(MODELS, timeout=60)
    return f"{answer.status_code} {answer.url}"


def _urllib3() -> str:
    answer = urllib3.request("GET", MODELS)
    return f"{answer.status} {MODELS}"


def _http_client() -> str:
    with urllib.request.urlopen(MODELS, timeout=60) as answer:
        return f"{answer.status} {answer.url}"


STACKS: dict[str, Callable[[], str]] = {
    "aiohttp": lambda: asyncio.run(_aiohttp()),
    "http.client": _http_client,
    "httpx": _httpx,
    "httpx, asynchronous": lambda: asyncio.run(_httpx_async()),
    "httpx2": _httpx2,
    "requests": _requests,
    "urllib3": _urllib3,
}


@contextmanager
def led(server: Intercepting, *hosts: str) -> Iterator[None]:
    intercept = server.thread.server.options.intercept
    assert intercept is not None
    with redirected(server.thread.url, Hosts(hosts), intercept.key):
        yield


@pytest.mark.parametrize("proxied", [False, True], ids=["", "behind a proxy"])
@pytest.mark.parametrize("stack", STACKS)
def test_a_stack(
    server: Intercepting, stack: str, proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller sees the URL that it asked for; a proxy of the environment makes no difference."""
    for name in ("HTTPS_PROXY", "https_proxy"):
        if proxied:
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        else:
            monkeypatch.delenv(name, raising=False)
    before = len(server.journal)
    with led(server):
        assert STACKS[stack]() == f"200 {MODELS}"
    (entry,) = server.journal[before:]
    assert entry.headers["host"] == "api.openai.com"
    assert entry.headers["x-mockllm-origin"] == "https://api.openai.com"


def test_clients_that_were_made_before(server: Intercepting) -> None:
    """An SDK's client, with a stream, and a session of requests with its connections."""
    with OpenAI(api_key="any") as openai, requests.Session() as session, led(server):
        chunks = list(openai.chat.completions.create(**ASKED, stream=True))
        answer = session.post(OPENAI, json=ASKED, timeout=60)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hi there."
    assert (answer.status_code, answer.url) == (200, OPENAI)


def test_others_are_left_alone(server: Intercepting) -> None:
    """A request to this machine goes where it was sent, also with the pattern `*`."""
    with led(server, "*"):
        assert httpx.get(f"{server.thread.url}/v1/models").status_code == 200
        answer = requests.get(f"{server.thread.url}/v1/models", timeout=60)
    assert answer.request.headers.get("x-mockllm-origin") is None


def test_everything_is_undone(server: Intercepting) -> None:
    before = [httpx.HTTPTransport.handle_request, urllib3.HTTPConnectionPool.urlopen]
    with pytest.raises(KeyError), led(server):
        raise KeyError
    assert [httpx.HTTPTransport.handle_request, urllib3.HTTPConnectionPool.urlopen] == before
