"""One server for all clients, and for each test a session that is judged at its end."""

from __future__ import annotations

import asyncio
import gc
import re
import warnings
import zlib
from collections.abc import Iterator

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai import types

from mockllm.checking.conversations.judge import verify
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.conversation import SCENARIOS
from tests.timeouts import GIVE_UP


@pytest.fixture(autouse=True, scope="module")
def _sockets_of_sdks() -> Iterator[None]:
    """boto3 and others leave the sockets of streams that fail to the garbage collector, which would
    report them in the middle of any later test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


LEAVES_SOCKETS = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""The mark of a module whose client leaves nearly every test's sockets to the garbage collector."""


class Run:
    """The session of one test: its URLs, and its journal.

    Every request must be played, unless the test expects other outcomes with `expects`.
    """

    def __init__(self, server: ServerThread, name: str) -> None:
        self._server = server
        self._expected: tuple[str, ...] | None = None
        self.name = name
        self.root = f"{server.url}/s/{name}"
        self.base_url = f"{self.root}/v1"

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges of this session, oldest first."""
        session = self._server.server.sessions.find(self.name)
        return list(session.journal) if session is not None else []

    @property
    def plays(self) -> list[tuple[str | None, int | None, str]]:
        """(scenario, index of the turn, outcome) of each request."""
        return [(e.scenario, e.turn, e.outcome) for e in self.exchanges]

    def expects(self, *outcomes: str) -> None:
        """Sets the expected outcomes of all requests of this test, in order."""
        self._expected = outcomes

    def expects_plays(self, plays: list[tuple[str, int | None, str]]) -> None:
        """Asserts which turns of which scenarios answered, and sets the expected outcomes."""
        self.expects(*(outcome for _, _, outcome in plays))
        assert self.plays == plays

    def judge(self) -> None:
        """Asserts that the journal is as expected."""
        exchanges = self.exchanges
        outcomes = tuple(exchange.outcome for exchange in exchanges)
        problems = [problem for exchange in exchanges for problem in exchange.problems]
        assert outcomes, "no request reached the server"
        assert outcomes == (self._expected or ("played",) * len(outcomes)), problems
        # These clients are correct, except for requests that a test expects to be refused.
        session = self._server.server.sessions.find(self.name)
        assert session is not None
        found = verify(session, SCENARIOS)
        assert [
            violation for violation in found.violations if violation.exchange not in found.invalid
        ] == []


@pytest.fixture(scope="session")
def server() -> Iterator[ServerThread]:
    """A server of all shipped scenarios, without pauses."""
    with ServerThread(SCENARIOS.values(), ServerOptions(speed=0)) as running:
        yield running


@pytest.fixture
def run(server: ServerThread, request: pytest.FixtureRequest) -> Iterator[Run]:
    """The session of the test."""
    # The checksum keeps names unique after the replacement of special characters.
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name)[:80]
    current = Run(server, f"{name}-{zlib.crc32(request.node.nodeid.encode()):08x}")
    yield current
    current.judge()


@pytest.fixture(scope="session")
def sdk() -> Iterator[openai.OpenAI]:
    """The official client, whose connections `client` shares."""
    # Proxies of the environment must not be used for loopback.
    http = openai.DefaultHttpxClient(trust_env=False)
    client = openai.OpenAI(api_key="sk-test", max_retries=2, timeout=GIVE_UP, http_client=http)
    with client:
        yield client


@pytest.fixture
def client(sdk: openai.OpenAI, run: Run) -> openai.OpenAI:
    """The official client in the test's session, with two retries."""
    return sdk.with_options(base_url=run.base_url)


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.Runner]:
    """The event loop of all asynchronous tests, so that they can share connections."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def async_sdk(loop: asyncio.Runner) -> Iterator[openai.AsyncOpenAI]:
    """The official asynchronous client, whose connections `async_client` shares."""
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    client = openai.AsyncOpenAI(api_key="sk-test", max_retries=2, timeout=GIVE_UP, http_client=http)
    yield client
    loop.run(client.close())


@pytest.fixture
def async_client(async_sdk: openai.AsyncOpenAI, run: Run) -> openai.AsyncOpenAI:
    """The official asynchronous client in the test's session, with two retries."""
    return async_sdk.with_options(base_url=run.base_url)


@pytest.fixture(scope="session")
def anthropic_sdk() -> Iterator[anthropic.Anthropic]:
    """The official client of Anthropic, whose connections `claude` shares."""
    http = anthropic.DefaultHttpxClient(trust_env=False)
    client = anthropic.Anthropic(
        api_key="sk-ant-test", max_retries=2, timeout=GIVE_UP, http_client=http
    )
    with client:
        yield client


@pytest.fixture
def claude(anthropic_sdk: anthropic.Anthropic, run: Run) -> anthropic.Anthropic:
    """The official client of Anthropic in the test's session, with two retries."""
    return anthropic_sdk.with_options(base_url=run.root)


@pytest.fixture(scope="session")
def async_anthropic_sdk(loop: asyncio.Runner) -> Iterator[anthropic.AsyncAnthropic]:
    """The asynchronous client of Anthropic, whose connections `async_claude` shares."""
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    client = anthropic.AsyncAnthropic(
        api_key="sk-ant-test", max_retries=2, timeout=GIVE_UP, http_client=http
    )
    yield client
    loop.run(client.close())


@pytest.fixture
def async_claude(async_anthropic_sdk: anthropic.AsyncAnthropic, run: Run):
    """The asynchronous client of Anthropic in the test's session, with two retries."""
    return async_anthropic_sdk.with_options(base_url=run.root)


@pytest.fixture(scope="session")
def http() -> Iterator[httpx.Client]:
    """A plain HTTP client."""
    with httpx.Client(trust_env=False, timeout=GIVE_UP) as client:
        yield client


@pytest.fixture(scope="session")
def async_http(loop: asyncio.Runner) -> Iterator[httpx.AsyncClient]:
    """A plain asynchronous HTTP client."""
    client = httpx.AsyncClient(trust_env=False, timeout=GIVE_UP)
    yield client
    loop.run(client.aclose())


@pytest.fixture
def gemini_at(http: httpx.Client, async_http: httpx.AsyncClient):
    """Builds the official client of Google for a base URL, with two retries without delay."""

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
