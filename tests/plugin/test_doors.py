"""No test reaches a service, and none gets what belongs to another: orders of undoing, ways of
asking that read the environment once, and what goes on after its test."""

from __future__ import annotations

import pytest

ASK = '''
    """Ways to ask a service at its own address. Each returns the status of the answer."""

    import asyncio
    import json
    import urllib.error
    import urllib.request

    URL = "https://api.openai.com/v1/chat/completions"
    BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


    def by_httpx():
        import httpx
        return httpx.post(URL, json=BODY, timeout=60).status_code

    def by_httpx_async():
        import httpx

        async def ask():
            async with httpx.AsyncClient(timeout=60) as client:
                return (await client.post(URL, json=BODY)).status_code

        return asyncio.run(ask())

    def by_requests():
        import requests
        return requests.post(URL, json=BODY, timeout=60).status_code

    def by_aiohttp():
        import aiohttp

        async def ask():
            async with aiohttp.ClientSession() as session, session.post(URL, json=BODY) as answer:
                return answer.status

        return asyncio.run(ask())

    def by_http_client():
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(URL, json.dumps(BODY).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    WAYS = {
        "httpx": by_httpx,
        "httpx, asynchronous": by_httpx_async,
        "requests": by_requests,
        "aiohttp": by_aiohttp,
        "http.client": by_http_client,
    }
'''

METHODS = {
    "httpx": ("httpx.HTTPTransport", "handle_request"),
    "httpx, asynchronous": ("httpx.AsyncHTTPTransport", "handle_async_request"),
    "requests": ("urllib3.HTTPConnectionPool", "urlopen"),
    "aiohttp": ("aiohttp.TCPConnector", "connect"),
    "http.client": ("http.client.HTTPConnection", "endheaders"),
}
"""The method of each library that others like to patch, too."""

PATCHED = """
    import importlib, unittest.mock
    import pytest
    from ask import WAYS

    CLASS, NAME = {method!r}
    MODULE, _, CLASS = CLASS.rpartition(".")
    CLASS = getattr(importlib.import_module(MODULE), CLASS)
    BEFORE = getattr(CLASS, NAME)
    ask, calls = WAYS[{way!r}], []

    def traced():
        real = getattr(CLASS, NAME)
        def call(*args, **more):
            calls.append(args)
            return real(*args, **more)
        return call

    @pytest.fixture
    def by_monkeypatch(monkeypatch):
        monkeypatch.setattr(CLASS, NAME, traced())

    @pytest.fixture
    def by_mock():
        with unittest.mock.patch.object(CLASS, NAME, traced()):
            yield

    @pytest.fixture(scope="module")
    def for_the_module():
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(CLASS, NAME, traced())
            yield

    @pytest.mark.parametrize("order", [
        ("monkeypatch", "mockllm_session"), ("mockllm_session", "monkeypatch"),
    ])
    def test_patched_by_the_test(request, order):
        for name in order:
            request.getfixturevalue(name)
        request.getfixturevalue("monkeypatch").setattr(CLASS, NAME, traced())
        answered(request)

    @pytest.mark.parametrize("first", ["by_monkeypatch", "by_mock", "for_the_module", None])
    @pytest.mark.parametrize("last", ["by_monkeypatch", "by_mock", None])
    def test_patched_by_fixtures(request, first, last):
        for name in filter(None, (first, "mockllm_session", last)):
            request.getfixturevalue(name)
        answered(request)

    def answered(request):
        session = request.getfixturevalue("mockllm_session")
        session.reply("Hi", repeat=True)
        assert ask() == 200
        assert len(session.journal) == 1

    def test_afterwards(mockllm_session):
        answered_again = mockllm_session.reply("Hi")
        assert ask() == 200
        assert getattr(CLASS, NAME) is BEFORE or calls

    def test_without_a_session():
        from mockllm.serve.interception.ownership import find_redirect

        assert find_redirect() is None
"""


@pytest.mark.parametrize("way", METHODS)
def test_any_order_of_undoing(project, run, way):
    """Another fixture patches the same method, before the session or in it; whatever is undone
    first, each test with a session is answered, and none without one is redirected."""
    project.makepyfile(ask=ASK)
    result = run(PATCHED.format(method=METHODS[way], way=way))
    result.assert_outcomes(passed=2 + 12 + 2)


def test_a_method_that_is_kept(project, run):
    """What a conftest has kept of a library is what stands there later."""
    project.makeconftest("import httpx\nKEPT = httpx.HTTPTransport.handle_request\n")
    run(
        """
        import httpx
        from conftest import KEPT

        def test_it(mockllm_session):
            assert httpx.HTTPTransport.handle_request is KEPT

        def test_other():
            assert httpx.HTTPTransport.handle_request is KEPT
        """,
        "--mockllm-no-requests",
    ).assert_outcomes(passed=2)


LATE = """
    import asyncio, concurrent.futures, contextvars, multiprocessing.pool, os, threading
    import httpx, pytest
    from ask import BODY, URL, by_httpx

    GO, LATE, ANSWERS = threading.Event(), [], []
    POOL = concurrent.futures.ThreadPoolExecutor(2)
    OTHER_POOL = multiprocessing.pool.ThreadPool(2)
    LOOP = asyncio.new_event_loop()

    def ask(url=URL):
        ANSWERS.append(httpx.post(url, json=BODY, timeout=60))

    def late(url=URL):
        GO.wait()
        ask(url)

    async def task():
        await asyncio.to_thread(GO.wait)
        async with httpx.AsyncClient(timeout=60) as client:
            ANSWERS.append(await client.post(URL, json=BODY))

    def thread(): return started(late)
    def thread_of_a_thread(): return started(lambda: started(late)())
    def pool(): return POOL.submit(late).result
    def other_pool(): return OTHER_POOL.apply_async(late).get
    def mapped(): return OTHER_POOL.map_async(late, [URL]).get
    def context(): return started(lambda: contextvars.copy_context().run(late))
    def loop():
        made = started(LOOP.run_until_complete, task())
        return made
    def environment(): return started(late, os.environ["OPENAI_BASE_URL"] + "/chat/completions")

    def started(function, *args):
        made = threading.Thread(target=function, args=args)
        made.start()
        return made.join

    def test_one(mockllm_session):
        mockllm_session.reply("one")
        ask()
        LATE.append({way}())

    def test_two(mockllm_session):
        mockllm_session.reply("two")
        GO.set()
        LATE[0]()
        assert [answer.status_code for answer in ANSWERS] == [200, 410]
        assert "test_one" in ANSWERS[1].text
        ask()
        assert ANSWERS[2].status_code == 200
        assert len(mockllm_session.journal) == 1

    def test_z():
        POOL.shutdown()
        OTHER_POOL.terminate()
        LOOP.close()
"""

CARRIED = (
    "thread", "thread_of_a_thread", "pool", "other_pool", "mapped", "context", "loop", "environment"
)  # fmt: skip


@pytest.mark.parametrize("way", CARRIED)
def test_what_goes_on_belongs_to_its_test(project, run, way):
    """The next test gets neither its request nor is its reply used up; the run says so."""
    project.makepyfile(ask=ASK)
    result = run(LATE.format(way=way))
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["test_it.py::test_one: POST /v1/chat/completions"])


def test_a_pool_that_outlives_tests(project, run):
    """What a test has it do belongs to that test, also in threads that another one started."""
    project.makepyfile(ask=ASK)
    run(
        """
        import asyncio, concurrent.futures, multiprocessing.pool
        import pytest
        from ask import by_httpx

        POOL = concurrent.futures.ThreadPoolExecutor(1)
        OTHER_POOL = multiprocessing.pool.ThreadPool(1)

        async def in_thread():
            loop = asyncio.get_running_loop()
            return [await asyncio.to_thread(by_httpx), await loop.run_in_executor(POOL, by_httpx)]

        @pytest.mark.parametrize("number", [1, 2, 3])
        def test_it(mockllm_session, number):
            mockllm_session.reply("Hi", repeat=True)
            assert POOL.submit(by_httpx).result() == 200
            assert list(POOL.map(lambda _: by_httpx(), [1])) == [200]
            assert OTHER_POOL.apply(by_httpx) == 200
            assert list(OTHER_POOL.imap(lambda _: by_httpx(), [1])) == [200]
            assert asyncio.run(in_thread()) == [200, 200]
            assert len(mockllm_session.journal) == 6

        def test_z():
            POOL.shutdown()
            OTHER_POOL.terminate()
        """
    ).assert_outcomes(passed=4)


def test_what_began_before_is_refused(project, run):
    """A thread of the import, or of a test without a session, is none of this test."""
    project.makepyfile(ask=ASK)
    result = run(
        """
        import threading
        import httpx
        from ask import BODY, URL

        GO, ANSWERS = threading.Event(), []

        def late():
            GO.wait()
            ANSWERS.append(httpx.post(URL, json=BODY, timeout=60))

        THREADS = [threading.Thread(target=late)]
        THREADS[0].start()

        def test_a():
            THREADS.append(threading.Thread(target=late))
            THREADS[1].start()

        def test_b(mockllm_session):
            GO.set()
            for thread in THREADS:
                thread.join()
            assert [answer.status_code for answer in ANSWERS] == [410, 410]
            assert "test_a, which has no session" in ANSWERS[0].text + ANSWERS[1].text
            assert mockllm_session.journal == []
        """,
        "--mockllm-no-requests",
    )
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["test_it.py::test_a: POST /v1/chat/completions"])


def test_a_fixture_that_asks_too_early(project, run):
    """Before the session of its test is there, nothing answers it, and it reaches no service."""
    project.makepyfile(ask=ASK)
    result = run(
        """
        import pytest
        from ask import by_httpx

        @pytest.fixture
        def early():
            assert by_httpx() == 410

        @pytest.fixture(scope="module")
        def wide():
            by_httpx()

        def test_early(early, mockllm_session): ...

        def test_wide(wide, mockllm_session): ...
        """,
        "--mockllm-no-requests",
    )
    result.assert_outcomes(passed=1, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "The fixture 'wide' asks a service. Nothing answers it*",
            "test_it.py::test_early, before its session: POST /v1/chat/completions",
        ]
    )


def test_what_a_wider_fixture_starts_works_for_each_test(project, run):
    """A server of the application in a thread of its own, for example."""
    project.makepyfile(ask=ASK)
    run(
        """
        import queue, threading
        import pytest
        from ask import by_httpx

        @pytest.fixture(scope="module")
        def worker():
            asked, answered = queue.Queue(), queue.Queue()

            def work():
                while asked.get():
                    answered.put(by_httpx())

            thread = threading.Thread(target=work)
            thread.start()
            yield lambda: asked.put(True) or answered.get()
            asked.put(False)
            thread.join()

        @pytest.mark.parametrize("number", [1, 2])
        def test_it(worker, mockllm_session, number):
            mockllm_session.reply("Hi")
            assert worker() == 200
            assert len(mockllm_session.journal) == 1
        """
    ).assert_outcomes(passed=2)


TWICE = """
    import pytest

    M = [{"role": "user", "content": "hi"}]

    def openai_module():
        import openai
        return openai.chat.completions.create(model="m", messages=M).choices[0].message.content

    def ollama_module():
        import ollama
        return ollama.chat(model="m", messages=M).message.content

    def cohere():
        import cohere
        return cohere.ClientV2().chat(model="m", messages=M).message.content[0].text

    def anthropic():
        import anthropic
        client = anthropic.Anthropic()
        return client.messages.create(model="m", max_tokens=9, messages=M).content[0].text

    def boto3():
        import boto3
        client = boto3.client("bedrock-runtime", region_name="us-east-1")
        messages = [{"role": "user", "content": [{"text": "hi"}]}]
        answer = client.converse(modelId="x", messages=messages)
        return answer["output"]["message"]["content"][0]["text"]

    CLIENTS = []

    def kept():
        import openai
        if not CLIENTS:
            CLIENTS.append(openai.OpenAI())
        return CLIENTS[0].chat.completions.create(model="m", messages=M).choices[0].message.content

    WAYS = [openai_module, ollama_module, cohere, anthropic, boto3, kept]

    @pytest.mark.parametrize("time", [1, 2])
    @pytest.mark.parametrize("way", WAYS)
    def test_it(mockllm_session, way, time):
        mockllm_session.reply(str(time))
        assert way() == str(time)

    @pytest.mark.mockllm(speed=0)
    @pytest.mark.parametrize("way", WAYS)
    def test_at_another_speed(mockllm_session, way):
        mockllm_session.reply("quick")
        assert way() == "quick"
"""


@pytest.mark.slow
def test_a_base_url_that_is_read_once(run):
    """By a library when it is imported, or its class is made; and by a client that is kept."""
    run(TWICE, "-W", "ignore::pydantic.warnings.PydanticDeprecatedSince20").assert_outcomes(
        passed=18
    )


IMPORTED = """
    import contextlib
    import os
    import pytest
    import anthropic, cohere, httpx, ollama, openai
    from service import SERVICE

    os.environ["OPENAI_BASE_URL"] = SERVICE.url + "/v1"
    M = [{"role": "user", "content": "hi"}]
    LOCAL = openai.OpenAI(api_key="sk-real")
    del os.environ["OPENAI_BASE_URL"]
    OPENAI = openai.OpenAI(api_key="sk-real")
    AZURE = openai.AzureOpenAI(
        api_key="sk-real", azure_endpoint="https://mine.openai.azure.com", api_version="2024-10-21"
    )
    ANTHROPIC = anthropic.Anthropic(api_key="sk-real")
    COHERE = cohere.ClientV2(api_key="sk-real")
    OLLAMA = ollama.Client()
    os.environ["OPENAI_BASE_URL"] = SERVICE.url + "/v1"

    def of_chat(client):
        return client.chat.completions.create(model="m", messages=M).choices[0].message.content

    WAYS = {
        "a gateway": lambda: of_chat(LOCAL),
        "openai": lambda: of_chat(OPENAI),
        "azure": lambda: of_chat(AZURE),
        "anthropic": lambda: ANTHROPIC.messages.create(
            model="m", max_tokens=9, messages=M
        ).content[0].text,
        "cohere": lambda: COHERE.chat(model="m", messages=M).message.content[0].text,
        "ollama": lambda: OLLAMA.chat(model="m", messages=M).message.content,
    }

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("time", [1, 2])
    def test_it(mockllm_session, way, time):
        mockllm_session.reply(str(time))
        assert WAYS[way]() == str(time)
        assert SERVICE.requests == []

    @pytest.mark.mockllm(intercept=None)
    def test_not_intercepted(mockllm_session):
        with contextlib.suppress(AttributeError):  # it answers with a stream
            of_chat(LOCAL.with_options(max_retries=0))
        assert len(SERVICE.requests) == 1

    def teardown_module():
        SERVICE.__exit__()
"""


@pytest.mark.slow
def test_a_client_that_is_made_at_import(project, run, monkeypatch):
    """It never asks the service, whose key it has; also where the service is one of this machine
    that the environment names."""
    project.makepyfile(
        service="""
        from tests.serve.server.recording.odd_upstream import OddUpstream, script, text_events

        SERVICE = OddUpstream(script(*text_events("real")))
        SERVICE.__enter__()
        """
    )
    monkeypatch.setenv("OPENAI_BASE_URL", "")  # which is put back after what the file sets
    run(IMPORTED, "--mockllm-no-requests").assert_outcomes(passed=13)


def test_the_environment_is_put_back(run, monkeypatch):
    """In whatever order it and another fixture undo what they set."""
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1")
    monkeypatch.delenv("CO_API_URL", raising=False)
    run(
        """
        import os, unittest.mock
        import pytest

        BEFORE = dict(os.environ)

        @pytest.fixture
        def sets(monkeypatch):
            yield lambda: monkeypatch.setenv("OPENAI_BASE_URL", "x")

        @pytest.fixture
        def restores():
            with unittest.mock.patch.dict(os.environ):
                yield

        def test_one(sets, restores, mockllm_session, monkeypatch):
            sets()
            monkeypatch.setenv("CO_API_URL", "x")

        def test_two():
            now = dict(os.environ, PYTEST_CURRENT_TEST="")
            assert now == dict(BEFORE, PYTEST_CURRENT_TEST="")
        """,
        "--mockllm-no-requests",
    ).assert_outcomes(passed=2)


def test_azure_on_request(run):
    """Endpoint, key and version; without it none of them, as the module `openai` cannot choose."""
    run(
        """
        import os
        import openai
        import pytest

        ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

        @pytest.mark.mockllm(azure=True)
        def test_azure(mockllm_session):
            mockllm_session.reply("Hi")
            assert openai.AzureOpenAI().chat.completions.create(**ASKED).choices

        def test_default(mockllm_session):
            assert not [name for name in os.environ if name.startswith("AZURE_OPENAI")]

        def test_a_real_key(monkeypatch, request):
            monkeypatch.setenv("AZURE_OPENAI_API_KEY", "sk-real")
            request.getfixturevalue("mockllm_session")
            assert os.environ["AZURE_OPENAI_API_KEY"] == "mock-key"
        """,
        "--mockllm-no-requests",
    ).assert_outcomes(passed=3)
