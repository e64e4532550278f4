"""The page at `/`, for people, and the routes for probes."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from mockllm import ServerOptions, ServerThread, loads
from mockllm.core.errors import UsageError
from mockllm.wire.protocols import PROTOCOLS
from tests.timeouts import GIVE_UP

HELLO = """
scenario: hello
match: {user: hello}
turns:
  - reply: {text: Hello.}
"""
ROUTE = """
scenario: root
route: GET /
turns:
  - answer: {json: {status: up}}
"""
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_page_names_what_is_served(serve, method):
    """A text, for curl and browsers, with APIs, base URLs, the number of scenarios and the
    documentation."""
    served = serve(HELLO)
    for headers in ({}, BROWSER):
        answer = served.http.request(method, "/", headers=headers)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        if method == "HEAD":
            assert not answer.content
            continue
        assert "1 scenario " in answer.text
        assert f"OPENAI_BASE_URL={served.url}/v1" in answer.text
        assert "mockllm docs server" in answer.text
        for api in PROTOCOLS:
            assert api in answer.text
    assert served.http.get("/_mockllm/journal").json()["exchanges"] == []


def test_a_session_has_its_own_page(serve):
    """Below `/s/NAME/`, the base URLs are those of the session."""
    served = serve(HELLO)
    assert f"OPENAI_BASE_URL={served.url}/s/one/v1" in served.http.get("/s/one/").text


def test_a_host_that_is_none_is_not_repeated(serve):
    """What a client writes as `Host` is shown only where it is one."""
    served = serve(HELLO)
    page = served.http.get("/", headers={"host": "<b>", **BROWSER}).text
    assert "<b>" not in page
    assert f"OPENAI_BASE_URL={served.url}/v1" in page


def test_scenarios_go_before_the_page(serve):
    """A scenario with the route `GET /` answers, of the server and of a session; where its
    conditions do not hold, the client gets the reason."""
    served = serve(ROUTE)
    assert served.http.get("/").json() == {"status": "up"}
    conditional = serve(ROUTE.replace("turns:", "match: {query: {a: b}}\nturns:"))
    refused = conditional.http.get("/")
    assert refused.status_code == 404
    assert "root" in refused.text
    plain = serve(HELLO)
    made = plain.http.post(
        "/_mockllm/sessions",
        json={
            "session": "own",
            "scenarios": [
                {
                    "scenario": "root",
                    "route": "GET /",
                    "turns": [{"answer": {"json": {"status": "own"}}}],
                }
            ],
        },
    )
    assert made.status_code == 201
    assert plain.http.get("/s/own/").json() == {"status": "own"}
    assert "mockllm" in plain.http.get("/").text


def test_a_client_that_takes_no_page_gets_an_error(serve):
    """A client for an API that has the wrong base URL notices it, and so does the verdict."""
    served = serve(HELLO)
    answer = served.http.get("/", headers={"accept": "application/json"})
    assert answer.status_code == 404
    assert served.http.post("/").status_code == 404
    assert [entry["outcome"] for entry in served.journal()] == ["unknown route"] * 2


# Probes


@pytest.mark.parametrize("host", ["10.1.2.3:8080", "mock.namespace.svc", "elsewhere.example", "["])
def test_probes_need_no_host(serve, host):
    """`health` and `ready` answer under any name; the other control routes do not."""
    served = serve(HELLO)
    headers = {"host": host, "origin": "http://page.example"}
    assert served.http.get("/_mockllm/health", headers=headers).json()["status"] == "ok"
    assert served.http.get("/_mockllm/ready", headers=headers).json() == {"status": "ready"}
    assert served.http.head("/_mockllm/ready", headers=headers).status_code == 200
    assert served.http.get("/_mockllm/journal", headers=headers).status_code == 403


def test_a_check_that_fails_is_named(serve):
    """`ready` is 503 while a part of the server is not ready, and has the reason."""
    served = serve(HELLO)
    problem = ["the state store is away"]

    async def check():
        return problem[0] if problem else None

    assert served.http.get("/_mockllm/ready").status_code == 200
    served.server._parts.readiness.checks.append(check)
    answer = served.http.get("/_mockllm/ready")
    assert answer.status_code == 503
    assert answer.json() == {"status": "not ready", "problems": problem}
    problem.clear()
    assert served.http.get("/_mockllm/ready").status_code == 200


WAITS = """
scenario: waits
match: {user: waits}
turns:
  - reply: [{text: first}, {pause: 10m}, {text: never}]
"""


def test_a_server_that_stops_is_not_ready():
    """A probe that is being answered when the server stops gets a 503; others find no listener."""
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "waits"}]}
    begun, go_on = threading.Event(), threading.Event()

    async def check():
        begun.set()
        await asyncio.to_thread(go_on.wait)

    with (
        ServerThread(loads(WAITS), ServerOptions(grace=GIVE_UP)) as thread,
        httpx.stream("POST", f"{thread.url}/v1/chat/completions", json=body) as stream,
        ThreadPoolExecutor() as threads,
    ):
        parts = stream.iter_raw()
        next(parts)
        thread.server._parts.readiness.checks.append(check)
        probe = threads.submit(httpx.get, f"{thread.url}/_mockllm/ready", timeout=GIVE_UP)
        assert begun.wait(GIVE_UP)
        stopping = threads.submit(thread.wait, thread.server.stop)
        while not thread.ask(lambda: thread.server._parts.readiness.stopping):
            pass
        go_on.set()
        answer = probe.result(GIVE_UP)
        assert (answer.status_code, answer.json()["problems"]) == (503, ["the server stops"])
        stream.close()
        stopping.result(GIVE_UP)


def test_an_address_of_all_addresses(serve):
    """A server on 0.0.0.0 has a URL that clients can use."""
    try:
        served = serve(HELLO, host="0.0.0.0")
    except (OSError, UsageError):
        pytest.skip("nothing may listen on all addresses here")
    assert served.url.startswith("http://127.0.0.1:")
    assert served.http.get("/_mockllm/health").status_code == 200
    assert all("://0.0.0.0" not in url for url in served.server.elsewhere)
    assert served.server.base_urls["chat"] == f"{served.url}/v1"
