"""One server for all clients, and for each test a session of its own that is judged at its end."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Iterator

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai import types

from mockllm.checking.conversations.judge import verify
from mockllm.replay.session import Exchange
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread
from tests.clients.conversation import SCENARIOS


class Run:
    """One test's session: where its clients find the server, and what the server noted.

    Every request has to be played, unless the test says with `expects` what becomes of them.
    """

    def __init__(self, server: ServerThread, name: str) -> None:
        self._server = server
        self._expected: tuple[str, ...] | None = None
        self.name = name
        self.root = f"{server.url}/s/{name}"
        self.base_url = f"{self.root}/v1"

    @property
    def exchanges(self) -> list[Exchange]:
        """What the server received in this session, oldest first."""
        session = self._server.server.sessions.find(self.name)
        return list(session.journal) if session is not None else []

    @property
    def plays(self) -> list[tuple[str | None, int | None, str]]:
        """(scenario, index of the turn, outcome) of each request."""
        return [(e.scenario, e.turn, e.outcome) for e in self.exchanges]

    def expects(self, *outcomes: str) -> None:
        """Says what becomes of all requests of this test, in order."""
        self._expected = outcomes

    def expects_plays(self, plays: list[tuple[str, int | None, str]]) -> None:
        """Says which turns of which scenarios are asked for, and what becomes of that."""
        self.expects(*(outcome for _, _, outcome in plays))
        assert self.plays == plays

    def judge(self) -> None:
        """Asserts that the journal is as expected."""
        exchanges = self.exchanges
        outcomes = tuple(exchange.outcome for exchange in exchanges)
        problems = [problem for exchange in exchanges for problem in exchange.problems]
        assert outcomes, "no request reached the server"
        assert outcomes == (self._expected or ("played",) * len(outcomes)), problems
        # Whatever these clients do is right, but for what a test has refused on purpose.
        session = self._server.server.sessions.find(self.name)
        assert session is not None
        found = verify(session, SCENARIOS)
        assert [one for one in found.violations if one.exchange not in found.invalid] == []


@pytest.fixture(scope="session")
def server() -> Iterator[ServerThread]:
    """A server of all shipped scenarios, without pauses."""
    with ServerThread(SCENARIOS.values(), ServerOptions(speed=0)) as running:
        yield running


@pytest.fixture
def run(server: ServerThread, request: pytest.FixtureRequest) -> Iterator[Run]:
    """The test's own session."""
    # Readable, and another one for each test, whatever its parameters are spelt with.
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name)[:80]
    current = Run(server, f"{name}-{zlib.crc32(request.node.nodeid.encode()):08x}")
    yield current
    current.judge()


@pytest.fixture(scope="session")
def sdk() -> Iterator[openai.OpenAI]:
    """The official client; not for use, but to share its connections."""
    # Proxies of the environment are not for loopback.
    http = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(api_key="sk-test", max_retries=2, http_client=http) as client:
        yield client


@pytest.fixture
def client(sdk: openai.OpenAI, run: Run) -> openai.OpenAI:
    """The official client in the test's session; it tries again twice."""
    return sdk.with_options(base_url=run.base_url)


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.Runner]:
    """The event loop of all asynchronous tests, so that they can share connections."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def async_sdk(loop: asyncio.Runner) -> Iterator[openai.AsyncOpenAI]:
    """The official asynchronous client; not for use, but to share its connections."""
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    client = openai.AsyncOpenAI(api_key="sk-test", max_retries=2, http_client=http)
    yield client
    loop.run(client.close())


@pytest.fixture
def async_client(async_sdk: openai.AsyncOpenAI, run: Run) -> openai.AsyncOpenAI:
    """The official asynchronous client in the test's session; it tries again twice."""
    return async_sdk.with_options(base_url=run.base_url)


@pytest.fixture(scope="session")
def anthropic_sdk() -> Iterator[anthropic.Anthropic]:
    """The official client of Anthropic; not for use, but to share its connections."""
    http = anthropic.DefaultHttpxClient(trust_env=False)
    with anthropic.Anthropic(api_key="sk-ant-test", max_retries=2, http_client=http) as client:
        yield client


@pytest.fixture
def claude(anthropic_sdk: anthropic.Anthropic, run: Run) -> anthropic.Anthropic:
    """The official client of Anthropic in the test's session; it tries again twice."""
    return anthropic_sdk.with_options(base_url=run.root)


@pytest.fixture(scope="session")
def async_anthropic_sdk(loop: asyncio.Runner) -> Iterator[anthropic.AsyncAnthropic]:
    """The asynchronous client of Anthropic; not for use, but to share its connections."""
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    client = anthropic.AsyncAnthropic(api_key="sk-ant-test", max_retries=2, http_client=http)
    yield client
    loop.run(client.close())


@pytest.fixture
def async_claude(async_anthropic_sdk: anthropic.AsyncAnthropic, run: Run):
    """The asynchronous client of Anthropic in the test's session; it tries again twice."""
    return async_anthropic_sdk.with_options(base_url=run.root)


@pytest.fixture(scope="session")
def http() -> Iterator[httpx.Client]:
    """A client that hides nothing of HTTP."""
    with httpx.Client(trust_env=False) as client:
        yield client


@pytest.fixture(scope="session")
def async_http(loop: asyncio.Runner) -> Iterator[httpx.AsyncClient]:
    """The same, asynchronous."""
    client = httpx.AsyncClient(trust_env=False)
    yield client
    loop.run(client.aclose())


@pytest.fixture
def gemini_at(http: httpx.Client, async_http: httpx.AsyncClient):
    """Makes the official client of Google for a base URL; it tries again twice, at once."""

    def make(url: str, **options: object) -> genai.Client:
        again = types.HttpRetryOptions(attempts=3, initial_delay=0, max_delay=0, jitter=0)
        usual = {"retry_options": again, "httpx_client": http, "httpx_async_client": async_http}
        http_options = types.HttpOptions(base_url=url, **{**usual, **options})
        return genai.Client(api_key="AIza-test", http_options=http_options)

    return make


@pytest.fixture
def gemini(gemini_at, run: Run) -> genai.Client:
    """The official client of Google in the test's session, sync and (`aio`) async."""
    return gemini_at(run.root)
