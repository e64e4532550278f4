"""What open pages are sent."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from mockllm import ServerOptions, ServerThread, loads
from mockllm.core.errors import Problem
from mockllm.play.replay.client_requests import first_body
from mockllm.serve.server.app import MockServer
from mockllm.serve.ui import live_page
from mockllm.serve.ui.live import Live, _Page
from mockllm.wire.protocols import PROTOCOLS
from tests.conftest import Served
from tests.entries import journal_entry
from tests.serve.ui.reading import HOSTILE, page
from tests.timeouts import GIVE_UP

SCENARIO = """\
scenario: hello
match: {user: hello}
turns:
  - reply: {text: one two three, split: words}
"""
SLOW = """\
scenario: slow
match: {user: hello}
turns:
  - reply: [{text: begin}, {pause: 600s}, {text: end}]
"""


KEYS = {"authorization": "Bearer sk-test", "x-api-key": "test", "x-goog-api-key": "test"}


def ask(served: Served, text: str, api: str = "chat", model: str = "m") -> Any:
    client = PROTOCOLS[api].client
    return served.http.post(
        client.path_of("m"),
        content=json.dumps(first_body(PROTOCOLS[api], model, text)).encode(),
        headers={**KEYS, **client.headers, "content-type": "application/json"},
    )


def test_the_first_events(serve: Callable[..., Served]) -> None:
    """A page gets what the server is, then the requests so far, then the sessions."""
    served = serve(SCENARIO)
    ask(served, "hello")
    ask(served, "nothing like it")
    with page(served.url) as events:
        name, hello = events.next()
        assert name == "hello"
        assert hello["apis"] == list(PROTOCOLS)
        assert hello["urls"]["chat"] == f"{served.url}/v1"
        assert (hello["scenarios"], hello["problems"], hello["recording"]) == (1, [], None)
        name, rows = events.next()
        assert name == "requests"
        assert [(row["number"], row["outcome"], row["open"]) for row in rows] == [
            (1, "played", False),
            (2, "unmatched", False),
        ]
        assert rows[0]["scenario"] == "hello"
        assert (rows[0]["text"], rows[1]["text"]) == ("hello", "nothing like it")
        assert rows[1]["problem"].startswith("No scenario answers this request")
        sessions = events.until("sessions")
        assert sessions[0]["outcomes"] == {"played": 1, "unmatched": 1}
        assert events.next()[0] == "ready"


@pytest.mark.parametrize("api", PROTOCOLS.over_http)
def test_requests_arrive_while_a_page_is_open(serve: Callable[..., Served], api: str) -> None:
    served = serve(SCENARIO)
    with page(served.url) as events:
        events.until("ready")
        ask(served, "hello", api)
        row = events.row(number=1)
        assert (row["api"], row["scenario"], row["turn"], row["status"]) == (api, "hello", 0, 200)


def test_sessions_follow_their_requests(serve: Callable[..., Served]) -> None:
    served = serve(SCENARIO)
    with page(served.url) as events:
        events.until("ready")
        ask(served, "hello")
        assert events.until("sessions")[0]["requests"] == 1


def test_a_request_comes_when_its_answer_begins_and_when_it_ends(
    serve: Callable[..., Served],
) -> None:
    served = serve(SLOW)
    with page(served.url) as events:
        events.until("ready")
        body = first_body(PROTOCOLS["chat"], "m", "hello")
        with served.http.stream("POST", "/v1/chat/completions", json={**body, "stream": True}):
            assert events.row(number=1, open=True)["client_gone"] is False
        ended = events.row(number=1, open=False)
        assert ended["client_gone"] is True


def test_requests_of_pages_stand_in_no_journal(serve: Callable[..., Served]) -> None:
    served = serve(SCENARIO)
    with page(served.url) as events:
        events.until("ready")
        assert served.http.get("/_mockllm/ui").status_code == 200
        assert served.http.get("/_mockllm/ui/scenarios").status_code == 200
        ask(served, "hello")
        assert [entry["path"] for entry in served.journal()] == ["/v1/chat/completions"]


def test_hostile_texts_arrive_as_they_are(serve: Callable[..., Served]) -> None:
    served = serve(SCENARIO)
    with page(served.url) as events:
        events.until("ready")
        for text in HOSTILE:
            ask(served, text, model=text)
        rows: dict[int, dict[str, Any]] = {}
        while len(rows) < len(HOSTILE):
            rows |= {one["number"]: one for one in events.until("requests")}
        for number, text in enumerate(HOSTILE, 1):
            assert rows[number]["model"] == text
            assert rows[number]["text"] == " ".join(text.split())


def test_a_page_that_reads_nothing_holds_up_nothing(serve: Callable[..., Served]) -> None:
    """What waits for it is bounded, and the others get everything."""
    served = serve(SCENARIO)
    place = urlsplit(served.url)
    with socket.create_connection((place.hostname, place.port), timeout=GIVE_UP) as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.sendall(b"GET /_mockllm/ui/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        with page(served.url) as events:
            events.until("ready")
            for number in range(1, 41):
                ask(served, "x" * 5000 + str(number))
            assert events.row(number=40)["outcome"] == "unmatched"


def test_requests_that_come_too_fast_are_counted() -> None:
    """A page gets the newest rows, and how many are left out."""

    async def run() -> bytes:
        live = Live(MockServer([])._parts.view)
        opened = _Page()
        live._pages.add(opened)
        for number in range(1, 501):
            live.note_change(journal_entry("POST", "/", {}, b"", session="s", number=number))
        live._send_rows()
        live.close()
        return opened.take()

    events = asyncio.run(run()).decode().split("\n\n")
    rows = json.loads(events[0].partition("data: ")[2])
    assert [row["number"] for row in rows] == list(range(301, 501))
    assert events[1] == 'event: skipped\ndata: {"count":300}'


def test_a_page_that_misses_more_than_rows_connects_again() -> None:
    """What waits is bounded; rows that do not fit are counted, and no other event is left out."""
    page = _Page()
    page.put(b"x" * 4 * 1024 * 1024)
    page.put(b"rows", rows=3)
    assert (page.skipped, page.behind) == (3, False)
    page.put(b"recorded")
    assert page.behind
    assert page.size <= 4 * 1024 * 1024


def test_a_stopping_server_ends_the_events_at_once() -> None:
    """Pages are no answers that a server waits for: its grace has no part in it."""
    with ServerThread(loads(SCENARIO), ServerOptions(grace=3600, page=live_page)) as thread:
        opened = page(thread.url)
        events = opened.__enter__()
        events.until("ready")
    with pytest.raises(EOFError):
        events.next()
    opened.__exit__(None, None, None)


def test_files_that_are_broken_show_as_problems() -> None:
    problem = Problem("a.yaml", 3, 5, "turns", HOSTILE[0])
    shown = [{"file": "a.yaml", "line": 3, "column": 5, "path": "turns", "message": HOSTILE[0]}]
    with ServerThread(loads(SCENARIO), ServerOptions(page=live_page)) as thread:
        with page(thread.url) as events:
            events.until("ready")
            thread.ask(thread.server.note_problems, (problem,))
            assert events.until("reload")["problems"] == shown
        with page(thread.url) as events:
            assert events.until("hello")["problems"] == shown
            thread.ask(thread.server.reload, loads(SCENARIO))
            assert events.until("reload")["problems"] == []


@pytest.mark.parametrize(
    "path", ["", "/", "/events", "/main.js", "/scenarios", "/request/default/1"]
)
def test_foreign_pages_are_refused(serve: Callable[..., Served], path: str) -> None:
    served = serve(SCENARIO)
    for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
        answer = served.http.get(f"/_mockllm/ui{path}", headers=headers)
        assert answer.status_code == 403, answer.text


@pytest.mark.parametrize("path", ["", "/events", "/main.js", "/scenarios"])
def test_without_the_page(serve: Callable[..., Served], path: str) -> None:
    served = serve(SCENARIO, page=None)
    answer = served.http.get(f"/_mockllm/ui{path}")
    assert answer.status_code == 404
    assert "--no-ui" in answer.json()["error"]["message"]
    assert "_mockllm/ui" not in served.http.get("/").text


def test_the_front_page_names_it(serve: Callable[..., Served]) -> None:
    served = serve(SCENARIO)
    assert f"{served.url}/_mockllm/ui" in served.http.get("/").text
