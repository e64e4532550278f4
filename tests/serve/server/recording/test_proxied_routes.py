"""Routes that ask no model: any method, path and body passes the recorder and is replayed."""

import gzip
import json
import socket
import threading

import pytest

from tests.serve.server.recording.odd_upstream import CHUNKED, OddUpstream, script, text_events
from tests.serve.server.recording.recorded_server import Recording, chat
from tests.timeouts import GIVE_UP

BINARY = bytes(range(256)) * 8
JSON = "Content-Type: application/json"


@pytest.fixture
def recorder(tmp_path):
    """A recorder in front of a service that answers with what it received."""

    async def play(request, wire):
        if request.method == "HEAD":  # a body would stand before the next answer
            await wire.head(JSON, "Content-Length: 17", status="201 Created")
            return
        text = json.dumps([request.method, request.target, len(request.body)])
        await wire.body(text, JSON, "X-Odd: 1", status="201 Created")

    with OddUpstream(play) as upstream:
        yield Recording(tmp_path / "recorded", upstream)


def found(recorder, name):
    """The tape of a scenario that was recorded."""
    return recorder.tape(name)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_every_method_is_recorded_and_replayed(recorder, method):
    """Method, path, query and body reach the service and are on the tape; the replay has the same
    status and bytes."""
    body = b"\xff\x00odd" if method in ("POST", "PUT", "PATCH") else b""
    with recorder.recording():
        first = recorder.http.request(method, "/v1/odd/7?limit=3", content=body)
    assert first.json() == [method, "/v1/odd/7?limit=3", len(body)]
    tape = found(recorder, f"{method.lower()}-v1-odd-7")
    assert (tape.exchange.method, tape.exchange.request_body) == (method, body)
    assert tape.exchange.url == f"{recorder.upstream.url}/v1/odd/7?limit=3"
    assert (tape.api, tape.exchange.status) == ("", 201)
    with recorder.replaying() as client:
        again = client.request(method, "/v1/odd/7?limit=3", content=body)
    assert (again.status_code, again.content) == (201, first.content)
    assert len(recorder.upstream.requests) == 1


@pytest.mark.parametrize("prefix", ["", "/s/mine"])
def test_headers_that_point_to_the_service(recorder, prefix):
    """`location`, or where an upload goes on, is at the replaying host; a URL of another host, and
    a relative one, stay. The client gets on with them, though what signs the URL is gone."""
    start = {"x-goog-api-key": "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"}

    async def play(request, wire):
        url = f"{recorder.upstream.url}/upload/v1beta/files?upload_id=Zq8x0Vb2Nm4Kl6Jh"
        further = (f"X-Goog-Upload-URL: {url}", f"Location: {recorder.upstream.url}/v1/jobs/7")
        others = "Content-Location: /v1/jobs/7", "X-Docs: https://docs.example/v1"
        await wire.body(
            "{}" if b"start" in request.body else '{"done": true}', JSON, *further, *others
        )

    recorder.upstream.script = play
    with recorder.recording():
        first = recorder.http.post("/upload/v1beta/files", content=b'"start"', headers=start)
        own = first.headers["x-goog-upload-url"].removeprefix(recorder.upstream.url)
        recorder.http.post(own, content=b"bytes")
    text = "".join(file.read_text() for file in recorder.folder.iterdir())
    assert "Zq8x0Vb2Nm4Kl6Jh" not in text
    assert start["x-goog-api-key"] not in text
    with recorder.replaying() as client:
        again = client.post(f"{prefix}/upload/v1beta/files", content=b'"start"')
        base = str(client.base_url).rstrip("/") + prefix
        assert again.headers["location"] == f"{base}/v1/jobs/7"
        assert again.headers["content-location"] == "/v1/jobs/7"
        assert again.headers["x-docs"] == "https://docs.example/v1"
        assert again.headers["x-goog-upload-url"].startswith(
            f"{base}/upload/v1beta/files?upload_id="
        )
        done = client.post(again.headers["x-goog-upload-url"], content=b"bytes")
    assert (done.status_code, done.json()) == (200, {"done": True})


def pointing(to, header):
    """A script of a service whose answers point to a URL, but for those at that URL."""

    async def play(request, wire):
        further = () if to.endswith(request.target) else (f"{header}: {to}",)
        await wire.body("{}", JSON, *further)

    return play


@pytest.mark.parametrize("prefix", ["", "/s/mine"])
def test_headers_that_point_to_the_recorded_service(recorder, prefix):
    """The client that records gets them at the recorder, so that it does not go past it; the tape
    has what the service sent."""
    url = f"{recorder.upstream.url}/upload/v1beta/files?upload_id=7"
    recorder.upstream.script = pointing(url, "X-Goog-Upload-URL")
    with recorder.recording():
        first = recorder.http.post(f"{prefix}/upload/v1beta/files", content=b"start")
        there = first.headers["x-goog-upload-url"]
        assert there == f"{recorder.url}{prefix}/upload/v1beta/files?upload_id=7"
        recorder.http.post(there, content=b"bytes")
    assert [request.body for request in recorder.upstream.requests] == [b"start", b"bytes"]
    assert [line.outcome for line in recorder.lines] == ["neutral", "neutral"]
    tape = found(recorder, "post-upload-v1beta-files")
    kept = dict(tape.exchange.headers)["x-goog-upload-url"]
    assert kept.startswith(f"{recorder.upstream.url}/upload/v1beta/files?upload_id=")


def test_a_url_that_was_moved_leads_to_its_service(recorder):
    """Of several services, the one that named a path gets the requests for it, though nothing in
    them shows that they are for it."""
    recorder.upstream.script = pointing(f"{recorder.upstream.url}/jobs/7", "Location")
    with OddUpstream() as other:
        services = {"gemini": recorder.upstream.url, "chat": other.url}
        with recorder.recording(upstreams=services):
            first = recorder.http.post("/jobs", headers={"x-goog-api-key": "k"})
            assert recorder.http.get(first.headers["location"]).status_code == 200
        assert not other.requests
    assert [request.target for request in recorder.upstream.requests] == ["/jobs", "/jobs/7"]


@pytest.mark.parametrize("path", ["/other/7", "https://elsewhere.test/v1/jobs/7"])
def test_headers_that_would_not_come_to_the_url_stay(recorder, path):
    """A URL that is not below the service's base URL, where the recorder sends what it gets, and
    one of another host."""
    url = path if "://" in path else recorder.upstream.url + path
    recorder.upstream.script = pointing(url, "Location")
    with recorder.recording(upstreams={"chat": f"{recorder.upstream.url}/api"}):
        assert recorder.http.post("/jobs").headers["location"] == url


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_probes_of_the_port(recorder, method):
    """What asks whether somebody listens is passed on and reported, and leaves no scenario."""
    with recorder.recording():
        assert recorder.http.request(method, "/").status_code == 201
        assert recorder.http.get("/?limit=3").status_code == 201
    assert [request.target for request in recorder.upstream.requests] == ["/", "/?limit=3"]
    assert [line.outcome for line in recorder.lines] == ["skipped", "neutral"]
    assert recorder.descriptions[0].startswith(f"{method} /: a probe of the port")
    assert not any(line.is_missing for line in recorder.lines)
    assert [scenario.route.path for scenario in recorder.scenarios().values()] == ["/"]


def test_head_is_recorded_and_replayed(recorder):
    """The length of the body that HEAD does not send is replayed, and no body."""

    async def play(request, wire):
        await wire.head("Content-Length: 17")

    recorder.upstream.script = play
    with recorder.recording():
        recorder.http.head("/v1/files/7")
    with recorder.replaying() as client:
        for _ in range(2):  # on one connection: a body would spoil the second answer
            again = client.head("/v1/files/7")
            assert (again.status_code, again.headers["content-length"]) == (200, "17")


def test_binary_answers(recorder):
    """Bytes that are no text, in HTTP chunks, compressed or of known length, are replayed as they
    were."""

    async def play(request, wire):
        if request.target.endswith("sized"):
            await wire.body(BINARY, "Content-Type: audio/mpeg")
        elif request.target.endswith("packed"):
            await wire.body(gzip.compress(BINARY), "Content-Encoding: gzip")
        else:
            await wire.head("Content-Type: audio/mpeg", CHUNKED)
            await wire.chunk(BINARY[:700])
            await wire.chunk(BINARY[700:])
            await wire.end()

    recorder.upstream.script = play
    paths = ["/v1/audio/sized", "/v1/audio/packed", "/v1/audio/chunked"]
    with recorder.recording():
        assert [recorder.http.get(path).content for path in paths] == [BINARY] * 3
    with recorder.replaying(speed=0) as client:
        assert [client.get(path).content for path in paths] == [BINARY] * 3


def test_a_known_lookup_is_recorded(recorder):
    """A path that mockllm can answer by itself goes to the service; its recording wins later."""
    with recorder.recording():
        first = recorder.http.get("/v1/models")
    with recorder.replaying() as client:
        assert client.get("/v1/models").content == first.content


def test_new_episodes_forwards_unknown_routes_only(recorder):
    """A route that is recorded is answered from the recording; another one, and another body, goes
    to the service and is recorded."""
    with recorder.recording():
        recorder.http.post("/v1/embeddings", json={"input": "one"})
    with recorder.recording("new_episodes", recorder.scenarios().values()):
        assert recorder.http.post("/v1/embeddings", json={"input": "one"}).status_code == 201
        assert len(recorder.upstream.requests) == 1
        recorder.http.post("/v1/embeddings", json={"input": "another"})
        recorder.http.get("/v1/files")
        assert len(recorder.upstream.requests) == 3
    with recorder.recording("none", recorder.scenarios().values()):
        assert recorder.http.post("/v1/embeddings", json={"input": "another"}).status_code == 201
        assert recorder.http.get("/v1/files").status_code == 201
        assert recorder.http.get("/v1/other").status_code == 404
    assert len(recorder.upstream.requests) == 3


def test_once_records_routes_into_an_empty_folder_only(recorder):
    """The first run records routes; a later one replays them and asks no service."""
    with recorder.recording("once"):
        recorder.http.post("/v1/moderations", json={"input": "one"})
    with recorder.recording("once", recorder.scenarios().values()):
        assert recorder.http.post("/v1/moderations", json={"input": "one"}).status_code == 201
        assert recorder.http.post("/v1/moderations", json={"input": "two"}).status_code == 404
    assert len(recorder.upstream.requests) == 1


def test_all_asks_again(recorder):
    """With `all` a route goes to the service although it is recorded."""
    for _ in range(2):
        with recorder.recording("all"):
            recorder.http.post("/v1/moderations", json={"input": "one"})
    assert len(recorder.upstream.requests) == 2


@pytest.mark.parametrize(
    "path", ["/api/v1/chat/completions", "/compatible-mode/v1/chat/completions"]
)
def test_an_api_below_a_prefix(recorder, path):
    """A request for a model below a prefix goes to the service with its path, is recorded as that
    of the API, and replayed at the same path."""
    recorder.upstream.script = script(*text_events("hi"))
    with recorder.recording():
        first = recorder.http.post(path, json=chat()).content
    assert recorder.upstream.requests[0].target == path
    assert recorder.tape("hello").api == "chat"
    with recorder.replaying(speed=0) as client:
        assert client.post(path, json=chat()).content == first


# Several services


def test_the_service_of_the_clients_headers(recorder):
    """With several services the headers of the client choose; without them the client gets an error
    that names the services, and nothing is forwarded."""
    with OddUpstream(recorder.upstream.script) as other:
        upstreams = {"chat": recorder.upstream.url, "anthropic": other.url}
        with recorder.recording(upstreams=upstreams):
            recorder.http.get("/v1/files", headers={"authorization": "Bearer k"})
            recorder.http.get("/v1/batches", headers={"anthropic-version": "1", "x-api-key": "k"})
            refused = recorder.http.get("/v1/other")
    assert [request.target for request in recorder.upstream.requests] == ["/v1/files"]
    assert [request.target for request in other.requests] == ["/v1/batches"]
    assert refused.status_code == 502
    assert f"which of the services gets it: {', '.join(sorted(upstreams.values()))}" in refused.text


def test_a_lookup_of_an_api_without_a_service(recorder):
    """The only service gets the path of another API, too."""
    with recorder.recording(upstreams={"anthropic": recorder.upstream.url}):
        assert recorder.http.get("/v1/models").status_code == 201


# Bodies of requests


def raw(url, *parts):
    """Sends parts of a request, each a bytes object or a function that is called; the answer."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=GIVE_UP) as sock:
        for part in parts:
            if callable(part):
                part(sock)
            else:
                sock.sendall(part)
        got = b""
        while data := sock.recv(65536):
            got += data
    return got


HEAD = b"POST /v1/files HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"


@pytest.mark.parametrize("mode", ["add", "new_episodes"])
def test_a_client_that_expects_100_continue(recorder, mode):
    """It gets that before it sends its body, also a large one, and its body reaches the service."""
    body = b"z" * 2_000_000
    interim = []

    def wait(sock):
        interim.append(sock.recv(100))

    with recorder.recording(mode):
        head = HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
        answer = raw(recorder.url, head, wait, body)
    assert interim == [b"HTTP/1.1 100 Continue\r\n\r\n"]
    assert answer.startswith(b"HTTP/1.1 201 Created\r\n")
    (received,) = recorder.upstream.requests
    assert received.body == body
    assert not received.header("expect")


def test_request_bodies_in_chunks(recorder):
    """A chunked body reaches the service whole and is on the tape whole."""
    with recorder.recording():
        chunks = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        raw(recorder.url, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
    assert recorder.upstream.requests[0].body == b"abcde"
    assert found(recorder, "post-v1-files").exchange.request_body == b"abcde"


@pytest.mark.parametrize("framing", ["sized", "chunked"])
def test_large_uploads(recorder, framing):
    """An upload beyond the limit for model requests passes, is recorded whole and replayed."""
    body = b"0123456789" * 200_000
    parts = (body[at : at + 65536] for at in range(0, len(body), 65536))
    with recorder.recording():
        object.__setattr__(recorder.thread.server.options, "max_body", 1000)
        first = recorder.http.post("/v1/files", content=body if framing == "sized" else parts)
    assert first.json() == ["POST", "/v1/files", len(body)]
    assert found(recorder, "post-v1-files").exchange.request_body == body


def test_an_upload_is_sent_on_as_it_arrives(recorder):
    """The service gets the beginning of a large upload before the client has sent its end."""
    begun = threading.Event()

    size = 3_000_000

    class Watching(OddUpstream):
        async def _connected(self, reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(1_000_000)
            begun.set()
            await reader.readexactly(size - 1_000_000)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
            writer.close()

    def wait(sock):
        assert begun.wait(GIVE_UP)

    with Watching() as upstream:
        recorder.upstream = upstream
        with recorder.recording():
            head = HEAD + b"Content-Length: %d\r\n\r\n" % size
            answer = raw(recorder.url, head, b"a" * 2_000_000, wait, b"b" * 1_000_000)
    assert answer.startswith(b"HTTP/1.1 200 OK")


# What is not recorded


def test_answers_beyond_the_limit(recorder):
    """Such an answer passes whole, and its line gives the limit. The next one is recorded."""

    async def play(request, wire):
        await wire.head(CHUNKED)
        for _ in range(10):
            await wire.chunk(b"x" * int(request.target.rpartition("/")[2]))
        await wire.end()

    recorder.upstream.script = play
    with recorder.recording(max_recorded=1000):
        assert len(recorder.http.get("/v1/files/101").content) == 1010
        assert len(recorder.http.get("/v1/files/100").content) == 1000
    assert [line.outcome for line in recorder.lines] == ["skipped", "neutral"]
    assert recorder.descriptions[0] == "GET /v1/files/101: its answer is larger than 1000 bytes"


@pytest.mark.parametrize("size", [1001, 2_000_000])
def test_requests_beyond_the_limit(recorder, size):
    """Such a request passes whole, and its line gives the limit."""
    with recorder.recording(max_recorded=1000):
        answer = recorder.http.post("/v1/files?key=abc", content=b"x" * size)
    assert answer.json()[2] == size
    assert recorder.descriptions == ["POST /v1/files: its request is larger than 1000 bytes"]
