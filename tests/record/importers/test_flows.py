"""Flow files of mitmproxy.

The files in `flows` were written by mitmdump of three versions (formats 14, 18 and 21), as a
reverse proxy before a small server: a stream, an answer in gzip, one to a request in gzip, a list
of models, a stream that broke off, and a WebSocket.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured
from mockllm.record.importers import flows
from mockllm.record.importers.file_formats import detect, files
from mockllm.record.importers.reading import Unread
from tests.corpus import read
from tests.record.importers.tnetstrings import dumps

REAL = sorted(Path(__file__).with_name("flows").glob("*.flows"))
PROMPT = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Packed?"}]}


def flow(**changes):
    """The state of a flow, as mitmproxy 11 writes it, as far as it is read."""
    request = {
        "http_version": b"HTTP/2.0",
        "headers": [[b"Content-Type", b"application/json"]],
        "content": b"{}",
        "timestamp_start": 1000.5,
        "host": "api.openai.com",
        "port": 443,
        "method": b"POST",
        "scheme": b"https",
        "authority": b"",
        "path": b"/v1/chat/completions?a=1",
    }
    response = {"status_code": 200, "headers": [[b"X-A", b"1"], [b"x-a", b"2"]], "content": b"[]"}
    return {
        "type": "http",
        "version": 21,
        "error": None,
        "websocket": None,
        "request": {**request, **changes.pop("request", {})},
        "response": {**response, **changes.pop("response", {})},
        **changes,
    }


def entries(tmp_path, *states):
    path = tmp_path / "traffic.flows"
    path.write_bytes(b"".join(map(dumps, states)))
    assert detect(path) == "flows"
    return read(path)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_files_of_mitmproxy(path):
    """A file that mitmproxy wrote gives its exchanges, and a reason for each other flow."""
    stream, plain, packed, models, broken, websocket = read(path)
    assert stream.url == "http://127.0.0.1:18431/v1/chat/completions"
    assert stream.body.startswith(b'data: {"id":"chatcmpl-1"')
    assert stream.body.endswith(b"data: [DONE]\n\n")
    assert json.loads(stream.request_body)["stream"] is True
    assert plain.header("content-encoding") == "gzip"
    assert json.loads(plain.plain().body)["choices"][0]["message"]["content"] == "Dry."
    assert json.loads(packed.request_body) == PROMPT
    assert "content-encoding" not in dict(packed.request_headers)
    assert (models.method, models.path, models.request_body) == ("GET", "/v1/models", b"")
    assert [one.source.rpartition("#")[2] for one in (stream, websocket)] == ["1", "6"]
    assert broken.reason.startswith("the answer was broken off, and its bytes are not in the file")
    assert "peer closed connection" in broken.reason
    assert websocket.reason == "it is a WebSocket, which is not played"


def test_an_exchange(tmp_path):
    """Method, URL, headers, bodies and time are read as they are in the file."""
    (one,) = entries(tmp_path, flow())
    assert one == Captured(
        method="POST",
        url="https://api.openai.com/v1/chat/completions?a=1",
        request_headers=(("content-type", "application/json"),),
        request_body=b"{}",
        status=200,
        headers=(("x-a", "1"), ("x-a", "2")),
        chunks=(TimedBytes(0, b"[]"),),
        at=1000.5,
        source=f"{tmp_path / 'traffic.flows'}#1",
    )


URLS = {
    "https://api.openai.com/v1/chat/completions?a=1": {},
    "http://localhost:8080/": {
        "scheme": b"http", "host": "localhost", "port": 8080, "path": b"/",
    },
    "https://api.groq.com/": {
        "host": "104.18.40.1", "headers": [[b"Host", b"api.groq.com"]], "path": b"/",
    },
    "https://api.mistral.ai/": {
        "host": "2606:4700::1", "authority": b"api.mistral.ai:443", "path": b"/",
    },
    "https://[2606:4700::1]/": {"host": "2606:4700::1", "path": b"/"},
}  # fmt: skip


@pytest.mark.parametrize("url", URLS)
def test_urls(tmp_path, url):
    """The URL has the name of the server, where the proxy or a header knows it."""
    (one,) = entries(tmp_path, flow(request=URLS[url]))
    assert one.url == url


UNREAD = {
    "it is a flow of TCP, not of HTTP": {"type": "tcp", "request": {}},
    "it is a flow of DNS, not of HTTP": {"type": "dns"},
    "it is a WebSocket, which is not played": {"response": {"status_code": 101}},
    "it only opens a tunnel": {"request": {"method": b"CONNECT"}},
    "no answer came: Client disconnected.": {
        "response_": None, "error": {"msg": "Client disconnected.", "timestamp": 1.0},
    },
    "mitmproxy streamed the body of the answer": {"response": {"content": None}},
    "mitmproxy streamed the body of the request": {"request": {"content": None}},
    "the answer was broken off, and its bytes are not in the file: server closed connection": {
        "response": {"content": None}, "error": {"msg": "server closed connection"},
    },
    "the response has no status": {"response": {"status_code": None}},
    "it is of mitmproxy's file format 11; formats from 12 on": {"version": 11},
    "it is of mitmproxy's file format 0.18; formats from 12 on": {"version": [0, 18]},
}  # fmt: skip


@pytest.mark.parametrize("reason", UNREAD)
def test_flows_that_are_no_exchange(tmp_path, reason):
    """Each is reported with the reason, and the flows after it are read."""
    state = flow(**UNREAD[reason])
    if "response_" in state:
        state["response"] = state.pop("response_")
    one, after = entries(tmp_path, state, flow())
    assert isinstance(one, Unread)
    assert one.reason.startswith(reason)
    assert isinstance(after, Captured)


def test_reason_phrases_and_trailers(tmp_path):
    """An unusual reason phrase of HTTP/1.1 is kept, and so are trailers."""
    odd = {"reason": b"Fine", "http_version": b"HTTP/1.1", "trailers": [[b"X-Sum", b"7"]]}
    usual = {"reason": b"OK", "http_version": b"HTTP/1.1", "trailers": None}
    second = {"reason": b"", "http_version": b"HTTP/2.0"}
    found = entries(tmp_path, *(flow(response=one) for one in (odd, usual, second)))
    assert [one.reason for one in found] == ["Fine", None, None]
    assert [one.trailers for one in found] == [(("x-sum", "7"),), (), ()]


@pytest.mark.parametrize(
    ("message", "cut"),
    [("Client disconnected.", "client"), ("HTTP/2 protocol error", "upstream")],
)
def test_who_cut_an_answer(tmp_path, message, cut):
    """An answer that broke off, with its bytes in the file, is cut by the side that ended it."""
    (one,) = entries(tmp_path, flow(error={"msg": message}))
    assert (one.cut, one.body) == (cut, b"[]")


@given(st.data())
def test_a_truncated_file(tmp_path_factory, data):
    """A file that ends early gives the flows that are whole, and reports that it ends early."""
    states = [dumps(flow(comment=comment)) for comment in ("a", "bc", "")]
    whole = b"".join(states)
    cut = data.draw(st.integers(len(b"500:4:type"), len(whole) - 1))
    path = tmp_path_factory.mktemp("cut") / "a.flow"
    path.write_bytes(whole[:cut])
    ends = [len(b"".join(states[: number + 1])) for number in range(3)]
    found = flows.read(path)
    complete = sum(end <= cut for end in ends)
    assert [type(one) for one in found[:complete]] == [Captured] * complete
    assert len(found) == complete + (cut not in ends)
    if cut not in ends:
        assert found[-1].source == f"{path}#{complete + 1}"
        assert f"of {cut:,}; the flows before it are whole" in found[-1].reason


def test_a_damaged_file(tmp_path):
    """A file with other bytes in it gives the flows before them, and the offset of the damage."""
    path = tmp_path / "a.mitm"
    good = dumps(flow())
    path.write_bytes(good + b"garbage" + good)
    one, damage = read(path)
    assert isinstance(one, Captured)
    assert f"damaged at byte {len(good)}: not a length" in damage.reason


def test_values_that_are_no_flows(tmp_path):
    """Typed netstrings that are no state of a flow are reported, and nothing fails."""
    path = tmp_path / "a.flows"
    path.write_bytes(dumps({"type": "http", "version": 21}) + dumps([1]))
    first, second = flows.read(path)
    assert first.reason == "it is a flow of HTTP without a request"
    assert second.reason == "it is no flow of mitmproxy"


def test_folders(tmp_path):
    """Flow files of a folder are found by the usual ends of their names."""
    for name in ("a.flow", "b.flows", "c.mitm", "d.bin"):
        (tmp_path / name).write_bytes(dumps(flow()))
    assert [path.name for path in files([tmp_path])] == ["a.flow", "b.flows", "c.mitm"]
