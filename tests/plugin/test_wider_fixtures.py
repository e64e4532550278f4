"""What fixtures of a wider scope than a test ask: recorded, replayed and never let through."""

from __future__ import annotations

import pytest

from tests.serve.server.recording.odd_upstream import OddUpstream, script, text_events

pytestmark = pytest.mark.slow

TESTS = """
import httpx
import pytest

URL = "{url}/v1/chat/completions"


def ask(text):
    body = {{"model": "m", "messages": [{{"role": "user", "content": text}}], "stream": True}}
    answer = httpx.post(URL, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.fixture(scope="session")
def client():
    with httpx.Client(timeout=60) as client:
        yield client


@pytest.fixture(scope="module", params=["a", "b"])
def greeting(request, client):
    yield ask("for a fixture " + request.param)
    ask("at the end " + request.param)


@pytest.mark.mockllm_recorded
def test_first(greeting):
    assert "hi" in greeting + ask("for the first test")


@pytest.mark.mockllm_recorded
def test_second(greeting, client):
    assert "hi" in greeting
    assert client.get(URL.replace("chat/completions", "models")).status_code == 200
"""


@pytest.fixture
def service():
    with OddUpstream(script(*text_events("hi"))) as made:
        yield made


def test_recorded_and_replayed(run, service, project):
    """A fixture has a recording of its own, so that it does not matter which test it is made for;
    the end of it is recorded, too. A client that it makes is the test's."""
    tests = TESTS.format(url=service.url)
    recorded = run(tests, "--mockllm-record=once", "--mockllm-upstream", service.url)
    recorded.assert_outcomes(passed=4)
    recorded.stdout.fnmatch_lines(["*::greeting-0", "2 exchanges recorded in recorded*"])
    (folder,) = project.path.glob("recorded/*")
    assert {path.name for path in folder.iterdir()} == {
        "fixture-greeting-0",
        "fixture-greeting-1",
        "test_first-a",
        "test_first-b",
        "test_second-a",
        "test_second-b",
    }
    asked = len(service.requests)
    run(tests).assert_outcomes(passed=4)
    run(tests, "-k", "second").assert_outcomes(passed=2)
    assert len(service.requests) == asked


def test_not_recorded(run, service):
    """No request gets through; the error names the fixture and says how to record it."""
    tests = TESTS.format(url="https://api.openai.com")
    result = run(tests, "-k", "first and a")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*Nothing is recorded. To record it: pytest *test_first*--mockllm-record=once*"]
    )
    assert not service.requests


def test_an_error_that_the_fixture_hides(run):
    """It fails all the same."""
    result = run(
        """
        import httpx
        import pytest

        @pytest.fixture(scope="module")
        def hides():
            httpx.get("https://api.openai.com/v1/files")

        @pytest.mark.mockllm(intercept="known")
        def test_it(hides, mockllm_session): ...
        """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["The fixture test_*.py::hides asks a service."])


def test_the_test_after_one_with_a_wrong_marker(run):
    """The fixtures that both need are set up for it, and what is wrong is said by the first alone,
    in a fixture that asks as well."""
    result = run(
        """
        import httpx
        import pytest

        @pytest.fixture(scope="module")
        def client():
            with httpx.Client() as client:
                yield client

        @pytest.fixture(scope="class")
        def asks():
            httpx.get("https://api.openai.com/v1/files")

        @pytest.mark.mockllm_recorded(upstream="no URL")
        def test_wrong(client): ...

        @pytest.mark.mockllm_recorded
        def test_right(client): ...

        @pytest.mark.mockllm_recorded(upstream="no URL")
        def test_asks(asks): ...
        """
    )
    result.assert_outcomes(errors=2, passed=1)
    result.stdout.fnmatch_lines(["mockllm_recorded(upstream=...) needs a base URL such as *"] * 2)
