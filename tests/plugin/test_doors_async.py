"""Whose request it is, in event loops that outlive a test: those of pytest-asyncio and anyio; and
in test cases of unittest."""

from __future__ import annotations

import pytest

ASK = """
    import httpx

    URL = "https://api.openai.com/v1/chat/completions"
    BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


    async def ask():
        async with httpx.AsyncClient(timeout=60) as client:
            return (await client.post(URL, json=BODY)).status_code
"""

ASYNCIO = """
    import asyncio
    import pytest, pytest_asyncio
    from ask import ask

    pytestmark = pytest.mark.asyncio(loop_scope="module")
    LATE = []

    @pytest_asyncio.fixture(loop_scope="module")
    async def answered(mockllm_session):
        mockllm_session.reply("Hi", repeat=True)
        assert await ask() == 200
        yield mockllm_session
        assert await ask() == 200

    async def test_one(answered):
        go_on = asyncio.Event()

        async def late():
            await go_on.wait()
            return await ask()

        LATE.extend([go_on, asyncio.create_task(late())])
        assert await ask() == 200

    async def test_two(answered):
        LATE[0].set()
        assert await LATE[1] == 410
        assert await ask() == 200
        assert len(answered.journal) == 2
"""

ANYIO = """
    import anyio
    import httpx
    import pytest
    from ask import BODY, URL, ask

    pytestmark = pytest.mark.anyio

    @pytest.fixture(scope="module", params=["asyncio", "trio"])
    def anyio_backend(request):
        return request.param

    @pytest.fixture(scope="module")
    async def client(anyio_backend):
        async with httpx.AsyncClient(timeout=60) as client:
            yield client

    @pytest.fixture(scope="module")
    async def tasks(anyio_backend):
        async with anyio.create_task_group() as tasks:
            yield tasks

    @pytest.fixture
    async def answered(client, mockllm_session):
        mockllm_session.reply("Hi", repeat=True)
        assert (await client.post(URL, json=BODY)).status_code == 200
        yield mockllm_session
        assert (await client.post(URL, json=BODY)).status_code == 200

    LATE = []

    async def test_one(answered, tasks, client):
        go_on, done = anyio.Event(), anyio.Event()

        async def late():
            await go_on.wait()
            LATE.append(await ask())
            done.set()

        tasks.start_soon(late)
        LATE[:] = [go_on, done]
        assert (await client.post(URL, json=BODY)).status_code == 200

    async def test_two(answered, tasks, client):
        go_on, done = LATE
        go_on.set()
        await done.wait()
        assert LATE[2] == 410
        assert (await client.post(URL, json=BODY)).status_code == 200
        assert await anyio.to_thread.run_sync(lambda: httpx.post(URL, json=BODY).status_code) == 200
        assert len(answered.journal) == 3
"""

UNITTEST = """
    import unittest
    import httpx
    import pytest
    from ask import BODY, URL, ask

    class WithSession:
        @pytest.fixture(autouse=True)
        def answered(self, mockllm_session):
            self.session = mockllm_session
            mockllm_session.reply("Hi", repeat=True)

    class TestAsynchronous(WithSession, unittest.IsolatedAsyncioTestCase):
        async def asyncSetUp(self):
            assert await ask() == 200

        async def test_one(self):
            assert await ask() == 200
            assert len(self.session.journal) == 2

        async def test_two(self):
            await self.test_one()

    class TestPlain(WithSession, unittest.TestCase):
        def setUp(self):
            assert httpx.post(URL, json=BODY).status_code == 200

        def test_one(self):
            assert httpx.post(URL, json=BODY).status_code == 200
            assert len(self.session.journal) == 2
"""

TABLE = {
    "pytest-asyncio": (ASYNCIO, ["-p", "no:anyio"], 2, ["test_it.py::test_one"]),
    "anyio": (
        ANYIO,
        ["-p", "no:asyncio"],
        4,
        ["test_it.py::test_one[[]asyncio]", "test_it.py::test_one[[]trio]"],
    ),
    "unittest": (UNITTEST, ["-p", "no:asyncio"], 3, []),
}
"""The tests, options, how many pass, and which go on after their end."""


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["", "in a worker"])
@pytest.mark.parametrize("kind", TABLE)
def test_each_belongs_to_its_test(project, run, kind, workers):
    """The test, its fixtures, and the tasks that it leaves behind."""
    tests, options, passed, late = TABLE[kind]
    project.makepyfile(ask=ASK)
    result = run(tests, *options, *workers)
    result.assert_outcomes(passed=passed)
    assert (result.ret == pytest.ExitCode.TESTS_FAILED) == bool(late)
    result.stdout.fnmatch_lines([f"{nodeid}: POST /v1/chat/completions" for nodeid in late])


def test_a_client_that_is_kept_over_event_loops(run):
    """As OpenAI's Agents SDK keeps one: each test has a loop of its own."""
    run(
        """
        import asyncio
        import openai
        import pytest

        CLIENT = openai.AsyncOpenAI()
        ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

        @pytest.mark.parametrize("number", [1, 2, 3])
        def test_it(mockllm_session, number):
            mockllm_session.reply("Hi")
            answer = asyncio.run(CLIENT.chat.completions.create(**ASKED))
            assert answer.choices[0].message.content == "Hi"
        """.replace("openai.AsyncOpenAI()", 'openai.AsyncOpenAI(api_key="any")')
    ).assert_outcomes(passed=3)


def test_the_agents_sdk(run):
    """Which shares one HTTP client."""
    pytest.importorskip("agents", reason="openai-agents is not installed")
    run(
        """
        import pytest
        from agents import Agent, Runner, set_tracing_disabled

        set_tracing_disabled(True)

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.mark.anyio
        @pytest.mark.parametrize("number", [1, 2, 3])
        async def test_it(mockllm_session, number):
            mockllm_session.reply("Hi")
            assert (await Runner.run(Agent(name="a", model="m"), "hi")).final_output == "Hi"
        """,
        "-p",
        "no:asyncio",
    ).assert_outcomes(passed=3)
