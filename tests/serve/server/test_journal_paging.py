"""The journal over HTTP: as a whole, page by page, and while it changes."""

import asyncio
import json
import socket
from urllib.parse import urlsplit

import pytest

from mockllm.play.replay.sessions.session import Session
from mockllm.serve.server.control.control_routes import JournalPage, journal_parts
from tests.entries import journal_entry
from tests.timeouts import GIVE_UP

HELLO = """
scenario: hello
turns:
  - reply: {text: Hello.}
    repeat: true
"""


def send(served, *texts, session="default"):
    for text in texts:
        body = {"model": "mock/hello", "messages": [{"role": "user", "content": text}]}
        answer = served.http.post(f"/s/{session}/v1/chat/completions", json=body)
        assert answer.status_code == 200


def page(served, **query):
    answer = served.http.get("/_mockllm/journal", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def numbers(found):
    return [exchange["number"] for exchange in found["exchanges"]]


def session_with(count, **bounds):
    session = Session("default", **bounds)
    for number in range(count):
        session.record(journal_entry("POST", "/", {}, b"%d" % number, outcome="played"))
    return session


def parts_of(sessions, shown):
    async def collect():
        return [part async for part in journal_parts(sessions, shown)]

    return asyncio.run(collect())


def test_the_whole_journal_has_its_shape(serve):
    """Without `after` and `limit` the answer is that of all entries of all sessions."""
    served = serve(HELLO)
    send(served, "a", "b")
    send(served, "c", session="other")
    found = page(served)
    assert list(found) == ["exchanges", "dropped"]
    assert [(exchange["session"], exchange["number"]) for exchange in found["exchanges"]] == [
        ("default", 1),
        ("default", 2),
        ("other", 1),
    ]


def test_pages_follow_each_other(serve):
    """`next` of a page is `after` of the following one; `more` says whether it has entries now."""
    served = serve(HELLO)
    send(served, "a", "b", "c", "d", "e")
    first = page(served, session="default", limit=2)
    assert (numbers(first), first["next"], first["more"]) == ([1, 2], 2, True)
    second = page(served, session="default", limit=2, after=first["next"])
    assert (numbers(second), second["next"], second["more"]) == ([3, 4], 4, True)
    third = page(served, session="default", limit=2, after=second["next"])
    assert (numbers(third), third["next"], third["more"]) == ([5], 5, False)
    empty = page(served, session="default", after=5)
    assert (numbers(empty), empty["next"], empty["more"], empty["missed"]) == ([], 5, False, 0)
    send(served, "f")
    assert numbers(page(served, session="default", after=5)) == [6]
    assert numbers(served.http.get("/s/default/_mockllm/journal?after=4").json()) == [5, 6]


def test_entries_that_were_dropped_are_counted():
    """A page that begins before the oldest entry says how many are missing between."""
    session = session_with(9, max_exchanges=4)
    found = json.loads(b"".join(parts_of([session], JournalPage(2, 2, paged=True))))
    assert numbers(found) == [6, 7]
    assert (found["missed"], found["dropped"], found["next"], found["more"]) == (3, 5, 7, True)


def test_failures_that_outlived_the_journal_are_on_pages():
    """They come first; what is missing between entries is counted on one page only."""
    session = Session("s", max_exchanges=3)
    for outcome in ("played", "unmatched", *["played"] * 7):
        session.record(journal_entry("POST", "/v1/x", {}, b"{}", outcome=outcome))
    first = json.loads(b"".join(parts_of([session], JournalPage(0, 2, paged=True))))
    assert (numbers(first), first["missed"], first["next"]) == ([2, 7], 5, 7)
    second = json.loads(b"".join(parts_of([session], JournalPage(7, 2, paged=True))))
    assert (numbers(second), second["missed"], second["more"]) == ([8, 9], 0, False)


@pytest.mark.parametrize(
    "query",
    [
        {"after": "1"},
        {"limit": "1"},
        {"session": "default", "after": "-1"},
        {"session": "default", "after": "x"},
        {"session": "default", "after": "²"},
        {"session": "default", "limit": "0"},
        {"session": "default", "limit": "9" * 5000},
    ],
)
def test_wrong_pages_are_refused(serve, query):
    """The error names the parameter; no number is too long to be refused."""
    served = serve(HELLO)
    send(served, "a")
    answer = served.http.get("/_mockllm/journal", params=query)
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert "after" in message or "limit" in message
    assert len(message) < 300


def test_it_is_made_entry_by_entry():
    """No part has two entries, and an entry that leaves the journal meanwhile is left out."""
    session = session_with(3, max_exchanges=3)

    async def read():
        parts = journal_parts([session], JournalPage())
        first = [await anext(parts), await anext(parts)]
        for number in range(2):
            session.record(journal_entry("POST", "/", {}, b"later %d" % number, outcome="played"))
        return b"".join([*first, *[part async for part in parts]])

    found = json.loads(asyncio.run(read()))
    assert numbers(found) == [1, 3]
    assert found["dropped"] == 2
    assert all(part.count(b'"number"') <= 1 for part in parts_of([session], JournalPage()))


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_it_is_framed_for_each_version(serve, version):
    """HTTP/1.1 gets chunks on a connection that stays open, HTTP/1.0 a body that the end of the
    connection ends."""
    served = serve(HELLO)
    send(served, *"abc")
    where = urlsplit(served.url)
    with socket.create_connection((where.hostname, where.port), GIVE_UP) as sock:
        sock.sendall(
            b"GET /_mockllm/journal HTTP/%b\r\nhost: x.localhost\r\n\r\n" % version.encode()
        )
        data = b""
        while part := sock.recv(65536):
            data += part
            if version == "1.1" and data.endswith(b"\r\n0\r\n\r\n"):
                break
    head, _, body = data.partition(b"\r\n\r\n")
    assert (b"transfer-encoding: chunked" in head) == (version == "1.1")
    assert (b"connection: close" in head) == (version == "1.0")
    if version == "1.0":
        assert numbers(json.loads(body)) == [1, 2, 3]


def test_odd_characters_are_shown(serve):
    """A body with half of a surrogate pair, and bytes that are no UTF-8, stand in the journal."""
    served = serve(HELLO)
    odd = rb'{"model": "mock/hello", "messages": [{"role": "user", "content": "\ud83c"}]}'
    served.http.post("/v1/chat/completions", content=odd)
    served.http.post("/v1/chat/completions", content=b"\xff\xfe")
    first, second = page(served, session="default")["exchanges"]
    assert first["body"] == odd.decode()
    assert second["body_base64"] == "//4="
