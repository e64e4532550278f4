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

        @pytest.mark.mockllm(intercept="*", no_requests=True)
        def test_any(mockllm_session):
            assert os.environ["OPENAI_BASE_URL"] == "https://gateway.example/v1"

        @pytest.mark.mockllm(intercept="known", no_requests=True)
        def test_known(mockllm_session):
            assert os.environ["OPENAI_BASE_URL"].endswith("/s/running-test/v1")
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

        @pytest.mark.mockllm(intercept="*", no_requests=True)
        def test_it(mockllm_session):
            assert os.environ["OPENAI_BASE_URL"].endswith("/s/running-test/v1")
            assert "ANTHROPIC_BASE_URL" not in os.environ
        """
    ).assert_outcomes(passed=1)


RECORDED = """\
scenario: hi
match: {user: hi}
turns: [{reply: {text: Hello.}}]
"""


@pytest.mark.parametrize("options", [(), ("-p", "no:recording")])
def test_the_fixture_of_pytest_recording_has_the_requests(project, run, options):
    """A converted test may look at what its client sent; what a cassette has more is an error that
    says so. Other tests get what pytest-recording gives them."""
    project.makepyfile(ask=ASK)
    folder = project.mkdir("recorded") / "test_it" / "test_it"
    folder.mkdir(parents=True)
    (folder / "hi.yaml").write_text(RECORDED)
    run(
        """
        import json
        import pytest
        from ask import URL, BODY, ask

        @pytest.mark.mockllm_recorded
        def test_it(vcr):
            assert len(vcr.requests) == vcr.play_count == 0
            ask()
            (request,) = vcr.requests
            assert (request.method, request.uri, request.host) == ("POST", URL, "api.openai.com")
            assert (request.path, request.query) == ("/v1/chat/completions", [])
            assert json.loads(request.body) == BODY
            assert request.headers["content-type"] == "application/json"
            with pytest.raises(AttributeError, match="mockllm_session.journal has more"):
                vcr.responses

        def test_other(vcr):
            assert vcr is None
        """,
        *options,
    ).assert_outcomes(passed=2)


@pytest.mark.parametrize("options", [(), ("--allowed-hosts=10.0.0.1",)])
def test_blocked_networks(project, run, options):
    """`--block-network` of pytest-recording blocks everything but mockllm, in recorded tests."""
    project.makepyfile(ask=ASK)
    folder = project.mkdir("recorded") / "test_it" / "test_it"
    folder.mkdir(parents=True)
    (folder / "hi.yaml").write_text(RECORDED)
    run(
        """
        import socket
        import pytest
        from ask import URL, ask

        @pytest.mark.mockllm_recorded
        def test_it():
            assert ask() == (URL, "Hello.")
            with socket.socket() as one, pytest.raises(RuntimeError, match="disabled"):
                one.connect(("127.0.0.11", 1))

        def test_other():
            with socket.socket() as one, pytest.raises(RuntimeError, match="disabled"):
                one.connect(("127.0.0.1", 1))
        """,
        "--block-network",
        *options,
    ).assert_outcomes(passed=2)


@pytest.mark.slow
def test_a_websocket_of_a_client_that_insists_on_tls(run):
    """google-genai dials wss: at the host of the service, and at whatever its base URL is."""
    run(
        """
        import asyncio
        import pytest
        from google import genai

        HOST = "https://generativelanguage.googleapis.com"

        async def ask(client):
            config = {"response_modalities": ["TEXT"]}
            async with client.aio.live.connect(model="m", config=config) as session:
                await session.send_client_content(turns={"role": "user", "parts": [{"text": "hi"}]})
                return "".join([message.text or "" async for message in session.receive()])

        @pytest.mark.mockllm(intercept="known")
        def test_the_service(mockllm_session):
            mockllm_session.reply("Hello.")
            client = genai.Client(api_key="AIza", http_options={"base_url": HOST})
            assert asyncio.run(ask(client)) == "Hello."

        def test_the_base_url(mockllm_session):
            mockllm_session.reply("Hello.")
            assert asyncio.run(ask(genai.Client())) == "Hello."

        @pytest.mark.mockllm(intercept=None)
        def test_a_process_that_is_not_redirected(mockllm_session):
            mockllm_session.reply("Hello.")
            assert asyncio.run(ask(genai.Client())) == "Hello."
        """
    ).assert_outcomes(passed=3)


INSISTS = """
import os, urllib.request
url = os.environ["OPENAI_BASE_URL"].replace("http:", "https:") + "/models"
print(urllib.request.urlopen(url).status)
"""


@pytest.mark.slow
def test_a_program_that_insists_on_tls(project, run):
    """It trusts the server by its environment, which is that of the test, and only so long."""
    project.makepyfile(insists=INSISTS)
    run(
        """
        import os, subprocess, sys
        from pathlib import Path

        BEFORE = os.environ.get("SSL_CERT_FILE")

        def test_it(mockllm_session):
            assert os.environ["SSL_CERT_FILE"] != BEFORE
            done = subprocess.run([sys.executable, "insists.py"], capture_output=True, text=True)
            assert done.stdout == "200\\n", done.stderr
            files = os.environ["SSL_CERT_FILE"], os.environ["NODE_EXTRA_CA_CERTS"]
            assert len({Path(file).read_text().split("-----BEGIN ")[-1] for file in files}) == 1

        def test_after_it():
            assert os.environ.get("SSL_CERT_FILE") == BEFORE
        """
    ).assert_outcomes(passed=2)
