"""Libraries that mock HTTP, too, in the same test and in those around it."""

from __future__ import annotations

import pytest

HEAD = """
    import httpx, pytest, requests

    URL = "https://api.openai.com/v1/chat/completions"
    BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    WEATHER = "https://weather.example/"

    def test_before(mockllm_session):
        mockllm_session.reply("Hi", repeat=True)
        assert httpx.post(URL, json=BODY).status_code == 200
        assert requests.post(URL, json=BODY).status_code == 200

    test_z = test_before
"""

OTHERS = {
    "respx": """
    import respx

    @respx.mock
    def test_alone():
        respx.post(URL).respond(202)
        assert httpx.post(URL, json=BODY).status_code == 202

    @respx.mock
    def test_beside(mockllm_session):
        mockllm_session.reply("Hi")
        respx.get(WEATHER).respond(text="sun")
        assert httpx.get(WEATHER).text == "sun"
        assert httpx.post(URL, json=BODY).status_code == 200
    """,
    "pytest_httpx": """
    def test_alone(httpx_mock):
        httpx_mock.add_response(url=URL, status_code=202)
        assert httpx.post(URL, json=BODY).status_code == 202

    @pytest.mark.httpx_mock(should_mock=lambda request: str(request.url) == WEATHER)
    @pytest.mark.parametrize("order", [1, -1])
    def test_beside(request, order):
        for name in ("httpx_mock", "mockllm_session")[::order]:
            request.getfixturevalue(name)
        request.getfixturevalue("mockllm_session").reply("Hi")
        request.getfixturevalue("httpx_mock").add_response(url=WEATHER, text="sun")
        assert httpx.get(WEATHER).text == "sun"
        assert httpx.post(URL, json=BODY).status_code == 200
    """,
    "responses": """
    import responses

    @responses.activate
    def test_alone():
        responses.post(URL, status=202)
        assert requests.post(URL, json=BODY).status_code == 202

    @responses.activate
    def test_beside(mockllm_session):
        mockllm_session.reply("Hi")
        responses.get(WEATHER, body="sun")
        responses.add_passthru(URL)
        assert requests.get(WEATHER).text == "sun"
        assert requests.post(URL, json=BODY).status_code == 200
    """,
    "vcr": """
    import vcr

    def test_beside(mockllm_session, tmp_path):
        mockllm_session.reply("Hi", repeat=True)
        file, hosts = tmp_path / "cassette.yaml", ["127.0.0.1", "api.openai.com"]
        with vcr.use_cassette(str(file), record_mode="none", ignore_hosts=hosts):
            assert requests.post(URL, json=BODY).status_code == 200
            assert httpx.post(URL, json=BODY).status_code == 200
        assert not file.exists()
    """,
}
"""Tests with each library, which are right without mockllm, or with both."""


@pytest.mark.parametrize("library", OTHERS)
def test_beside_another_mock(run, library):
    """Each answers what is its own, whichever began first, and both are undone."""
    pytest.importorskip(library, reason=f"{library} is not installed")
    options = ("-p", "no:pytest_httpx") if library != "pytest_httpx" else ()
    result = run(HEAD + OTHERS[library], *options)
    outcomes = result.parseoutcomes()
    assert outcomes.keys() <= {"passed", "warnings"}, outcomes
    assert result.ret == 0
