"""Tests whose clients ask the service itself: the marker's `intercept`, and recorded tests."""

from __future__ import annotations

import pytest

ASK = """
import httpx

URL = "https://api.openai.com/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def ask():
    answer = httpx.post(URL, json=BODY, timeout=60)
    return str(answer.url), answer.json()["choices"][0]["message"]["content"]
"""


@pytest.mark.slow
def test_this_process_and_those_that_it_starts(project, run):
    """Neither has a base URL; both requests belong to the session of the test."""
    project.makepyfile(ask=ASK)
    run(
        """
        import os, subprocess, sys
        import pytest
        from ask import URL, ask

        @pytest.mark.mockllm(intercept="known")
        def test_it(mockllm_session):
            mockllm_session.reply("Hello.", repeat=True)
            assert "OPENAI_BASE_URL" not in os.environ
            assert ask() == (URL, "Hello.")
            command = [sys.executable, "-c", "from ask import ask; print(*ask())"]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.stdout == URL + " Hello.\\n", done.stderr
            hosts = [exchange.headers["host"] for exchange in mockllm_session.journal]
            assert hosts == ["api.openai.com"] * 2

        def test_after_it():
            assert "HTTPS_PROXY" not in os.environ or "mockllm" not in os.environ["SSL_CERT_FILE"]
        """
    ).assert_outcomes(passed=2)


def test_a_base_url_of_an_intercepted_service_stays(project, run, monkeypatch):
    """What asks it is answered here all the same, and the client sees the URL that it has."""
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1")
    run(
        """
        import os
        import pytest

        @pytest.mark.mockllm(intercept="*")
        def test_any(mockllm_session):
            assert os.environ["OPENAI_BASE_URL"] == "https://gateway.example/v1"

        @pytest.mark.mockllm(intercept="known")
        def test_known(mockllm_session):
            assert os.environ["OPENAI_BASE_URL"] == mockllm_session.openai_url
        """
    ).assert_outcomes(passed=2)


def test_the_hint_names_no_service_for_a_route_without_api(run):
    """It is recorded from the host that it is for, whichever API has the rest of the test."""
    result = run(
        """
        import httpx
        import pytest

        @pytest.mark.mockllm_recorded
        def test_it():
            httpx.post("https://api.anthropic.com/v1/complete", json={"prompt": "x"})
        """
    )
    result.assert_outcomes(failed=1)
    lines = [line for line in result.stdout.lines if line.startswith("Nothing is recorded.")]
    assert set(lines) == {
        'Nothing is recorded. To record it: pytest "test_it.py::test_it" --mockllm-record=once'
    }


def test_the_hook_of_pytest_recording(project, run):
    """A conftest that has it still does not end pytest where pytest-recording is gone."""
    project.makeconftest("def pytest_recording_configure(config, vcr): ...\n")
    run("def test_it(): ...", "-p", "no:recording").assert_outcomes(passed=1)
    run("def test_it(): ...").assert_outcomes(passed=1)


def test_a_base_url_that_is_set_already_is_led_here(project, run, monkeypatch):
    """Otherwise a client would ask the gateway on this machine that it names."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:4000/v1")
    run(
        """
        import os
        import pytest

        @pytest.mark.mockllm(intercept="*")
        def test_it(mockllm_session):
            assert os.environ["OPENAI_BASE_URL"] == mockllm_session.openai_url
            assert "ANTHROPIC_BASE_URL" not in os.environ
        """
    ).assert_outcomes(passed=1)


def test_without_the_marker_nothing_is_redirected(project, run):
    """The classes of the libraries are those that they were."""
    run(
        """
        import httpx
        import pytest

        BEFORE = httpx.HTTPTransport.handle_request

        @pytest.mark.mockllm(intercept="known")
        def test_with(mockllm_session):
            assert httpx.HTTPTransport.handle_request is not BEFORE

        def test_without(mockllm_session):
            assert httpx.HTTPTransport.handle_request is BEFORE
        """
    ).assert_outcomes(passed=2)
