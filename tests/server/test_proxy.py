"""The recording proxy: what passes through it, and what it keeps."""

import gzip
import json
import socket
import threading
import zlib

import httpx
import pytest

from mockllm import ServerOptions, ServerThread
from mockllm.errors import UsageError
from mockllm.replay.loading import load
from mockllm.scenario.model import Http
from mockllm.server.options import RecordOptions
from tests.server.odd_upstream import (
    CHUNKED,
    EVENTS,
    OddUpstream,
    call,
    delta,
    finish,
    says,
    script,
)
from tests.server.recording import PATH, Recording, chat, exchanges


@pytest.fixture
def odd(tmp_path):
    """A recorder in front of a service that a test gives a script to."""
    with OddUpstream() as upstream:
        yield Recording(tmp_path / "recorded", upstream)


def body_of(pieces):
    return b"".join(piece.data for piece in pieces)


# What passes


def test_the_request_passes_as_the_client_sent_it(odd):
    """Method, path, query, body and the client's own headers reach the service, and what is
    said to mockllm alone does not."""
    odd.upstream.script = script(*says("hi"))
    with odd.recording():
        odd.http.post(
            PATH + "?a=1&b=%2F",
            content=b'{"model": "m",  "messages": []}',
            headers={
                "authorization": "Bearer secret-one",
                "x-odd": "odd",
                "x-mockllm-session": "mine",
                "content-type": "application/json",
                "user-agent": "odd/1",
                "connection": "keep-alive, x-hop",
                "x-hop": "gone",
            },
        )
    (asked,) = odd.upstream.asked
    assert (asked.method, asked.target) == ("POST", PATH + "?a=1&b=%2F")
    assert asked.body == b'{"model": "m",  "messages": []}'
    assert asked.header("authorization") == ["Bearer secret-one"]
    assert asked.header("user-agent") == ["odd/1"]
    assert asked.header("accept") == ["*/*"]
    assert asked.header("host") == [odd.upstream.url.removeprefix("http://")]
    assert not asked.header("x-hop")
    assert not [name for name, _ in asked.headers if name.lower().startswith("x-mockllm")]


def test_the_answer_passes_as_the_service_sent_it(odd):
    """Status, headers (doubled ones, and their spelling, too) and body come out as they went
    in; what is of the service's own connection does not."""

    async def play(request, wire):
        await wire.body(
            b"{}", "X-Odd-One: 1", "Set-Cookie: a=1", "Set-Cookie: b=2",
            "Keep-Alive: timeout=7", "Connection: keep-alive", status="203 Quite Right",
        )  # fmt: skip

    odd.upstream.script = play
    with odd.recording():
        answer = odd.post(chat())
    assert (answer.status_code, answer.reason_phrase) == (203, "Quite Right")
    names = [name for name, _ in answer.headers.raw]
    assert b"X-Odd-One" in names
    assert b"Keep-Alive" not in names
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert answer.content == b"{}"


def test_chunks_pass_when_they_come(odd):
    """The client sees each chunk before the service has sent the next one."""
    seen = threading.Event()

    async def play(request, wire):
        import asyncio

        await wire.head(EVENTS, CHUNKED)
        for event in says("one", "two"):
            await wire.chunk(event)
            await asyncio.to_thread(seen.wait, 20)
            seen.clear()
        await wire.end()

    odd.upstream.script = play
    got = []
    with odd.recording(), odd.http.stream("POST", PATH, json=chat()) as answer:
        for data in answer.iter_raw():
            got.append(data)
            seen.set()
    assert got == says("one", "two")


@pytest.mark.parametrize("size", [1, 7])
def test_pieces_of_every_size(odd, size):
    """A service that sends a byte at a time is passed on, recorded and replayed so."""
    whole = b"".join(says("h\u00e9llo", " \U0001f600"))
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    odd.upstream.script = script(*pieces)
    with odd.recording():
        assert odd.post(chat()).content == whole
    assert [piece.data for piece in odd.tape("hello").pieces] == pieces
    with odd.replaying(speed=0) as client:
        assert client.post(PATH, json=chat()).content == whole


def test_comments_line_ends_and_extensions(odd):
    """CRLF, comments and chunk extensions survive; what a comment says is on the tape."""
    stream = [b": OPENROUTER PROCESSING\r\n\r\n", f"data: {delta(0, content='x')}\r\n\r\n".encode()]

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED)
        for one in stream:
            await wire.chunk(one, extension=";odd=yes")
        await wire.chunk(f"data: {finish()}\r\n\r\ndata: [DONE]\r\n\r\n")
        await wire.end()

    odd.upstream.script = play
    with odd.recording():
        sent = odd.post(chat()).content
    assert sent.startswith(b"".join(stream))
    assert body_of(odd.tape("hello").pieces) == sent
    with odd.replaying(speed=0) as client:
        assert client.post(PATH, json=chat()).content == sent


def test_interleaved_calls_keep_their_order(odd):
    """The fragments of two calls that alternate are written so that they alternate again."""
    texts = [
        call(0, id="call_a", name="one"),
        call(1, id="call_b", name="two"),
        call(0, '{"x"'),
        call(1, '{"y"'),
        call(0, ":1}"),
        call(1, ":2}"),
        finish("tool_calls"),
        "[DONE]",
    ]
    stream = [f"data: {text}\n\n" for text in texts]
    odd.upstream.script = script(*stream)
    with odd.recording():
        odd.post(chat())
    text = (odd.folder / "hello.yaml").read_text()
    assert "parallel:" in text or "interleaved:" in text
    with odd.replaying(speed=0) as client:
        assert client.post(PATH, json=chat()).text == "".join(stream)


def test_compression_is_passed_on_and_undone_on_the_tape(odd):
    """A stream that is compressed piece by piece reaches the client compressed, piece by
    piece; the tape has it readable."""
    events = says("one", "two")

    async def play(request, wire):
        squeeze = zlib.compressobj(wbits=31)
        await wire.head(EVENTS, CHUNKED, "Content-Encoding: gzip")
        for event in events:
            await wire.chunk(squeeze.compress(event) + squeeze.flush(zlib.Z_SYNC_FLUSH))
        await wire.chunk(squeeze.flush())
        await wire.end()

    odd.upstream.script = play
    with odd.recording(), odd.http.stream("POST", PATH, json=chat()) as answer:
        raw = list(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert len(raw) == len(events) + 1
    assert gzip.decompress(b"".join(raw)) == b"".join(events)
    assert [piece.data for piece in odd.tape("hello").pieces] == events
    assert "content-encoding" not in dict(odd.tape("hello").headers)


def test_only_readable_compressions_are_asked_for(odd):
    """What a recording cannot undo is not asked for; the rest is as the client says."""
    odd.upstream.script = script(*says("hi"))
    with odd.recording():
        odd.post(chat(), **{"accept-encoding": "gzip, deflate, compress;q=0.9"})
        odd.post(chat("again"), **{"accept-encoding": "compress"})
    assert [one.header("accept-encoding") for one in odd.upstream.asked] == [
        ["gzip, deflate"],
        ["identity"],
    ]


def test_a_folder_that_cannot_be_written_to(tmp_path):
    """Who cannot record says so, before anybody asks anything."""
    (tmp_path / "file").write_text("")
    record = RecordOptions(tmp_path / "file", {"chat": "http://127.0.0.1:1"})
    with (
        pytest.raises(UsageError, match=r"cannot record into '.*file': File exists; name a folder"),
        ServerThread((), ServerOptions(record=record)),
    ):
        raise AssertionError("it listens")


def test_without_recording_nothing_is_written(tmp_path):
    """With `none` the folder is left alone."""
    record = RecordOptions(tmp_path / "new", {"chat": "http://127.0.0.1:1"}, mode="none")
    with ServerThread((), ServerOptions(record=record)) as thread:
        assert httpx.post(f"{thread.url}/v1/chat/completions", json=chat()).status_code == 404
    assert list(tmp_path.iterdir()) == []


def test_packages_that_are_there_undo_more(odd):
    """With the packages of the extra `compression`, what they know is asked for and undone."""
    brotli = pytest.importorskip("brotli")
    pytest.importorskip("zstandard")
    events = says("hi")

    async def play(request, wire):
        squeeze = brotli.Compressor()
        await wire.head(EVENTS, CHUNKED, "Content-Encoding: br")
        for event in events:
            await wire.chunk(squeeze.process(event) + squeeze.flush())
        await wire.chunk(squeeze.finish())
        await wire.end()

    odd.upstream.script = play
    with odd.recording():
        odd.post(chat(), **{"accept-encoding": "br, zstd"})
    (asked,) = odd.upstream.asked
    assert asked.header("accept-encoding") == ["br, zstd"]
    assert [piece.data for piece in odd.tape("hello").pieces] == events


def test_trailers_pass(odd):
    """Fields after the last chunk reach the client."""

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED, "Trailer: x-checksum")
        for event in says("hi"):
            await wire.chunk(event)
        await wire.end("x-checksum: 0abc")

    odd.upstream.script = play
    with odd.recording():
        raw = by_hand(odd.url, chat())
    assert raw.endswith(b"0\r\nx-checksum: 0abc\r\n\r\n")
    assert b"Trailer: x-checksum" in raw


def by_hand(url, body):
    """The bytes of an answer, as they are on the wire."""
    host, port = url.removeprefix("http://").split(":")
    content = json.dumps(body).encode()
    head = f"POST {PATH} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
    with socket.create_connection((host, int(port)), timeout=20) as sock:
        sock.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        raw = b""
        while data := sock.recv(65536):
            raw += data
    return raw


def test_a_slow_client_slows_the_service(odd):
    """What a client does not read is not fetched either, beyond what buffers hold."""
    piece = b"x" * 65536
    count = 1000
    written = []
    stuck = threading.Event()

    async def play(request, wire):
        import asyncio

        await wire.head(CHUNKED)
        for _ in range(count):
            wire.writer.write(b"10000\r\n%b\r\n" % piece)
            try:
                await asyncio.wait_for(wire.writer.drain(), 0.5)
            except TimeoutError:
                stuck.set()
                await wire.writer.drain()
            written.append(1)
        await wire.end()

    odd.upstream.script = play
    with odd.recording(), odd.http.stream("GET", "/v1/files/1/content") as answer:
        parts = answer.iter_raw()
        size = len(next(parts))
        assert stuck.wait(20)
        assert len(written) < count
        size += sum(map(len, parts))
    assert size == count * len(piece)


# Errors


def test_errors_pass_and_are_recorded(odd):
    """A 429 keeps its status, `retry-after` and body, and is played again with them."""
    error = {"error": {"message": "Slow down", "type": "requests", "param": None, "code": "rate"}}

    async def play(request, wire):
        await wire.body(
            json.dumps(error), "Content-Type: application/json", "Retry-After: 2",
            "x-ratelimit-remaining-requests: 0", status="429 Too Many Requests",
        )  # fmt: skip

    odd.upstream.script = play
    with odd.recording():
        answer = odd.post(chat())
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "2"
    assert answer.json() == error
    (turn,) = odd.scenarios()["hello"].turns
    assert isinstance(turn.http, Http)
    assert (turn.http.status, turn.http.retry_after) == (429, 2_000_000)
    assert turn.http.error.message == "Slow down"
    with odd.replaying() as client:
        again = client.post(PATH, json=chat())
    assert (again.status_code, again.headers["retry-after"], again.json()) == (429, "2", error)


def test_a_page_in_place_of_an_error(odd):
    """A gateway's HTML passes as it is, and is played again."""
    page = "<html><h1>502 Bad Gateway</h1></html>"

    async def play(request, wire):
        await wire.body(page, "Content-Type: text/html", status="500 Internal Server Error")

    odd.upstream.script = play
    with odd.recording():
        answer = odd.post(chat())
    assert (answer.status_code, answer.text) == (500, page)
    with odd.replaying() as client:
        again = client.post(PATH, json=chat())
    assert (again.status_code, again.text, again.headers["content-type"]) == (
        500,
        page,
        "text/html",
    )


@pytest.mark.parametrize("stream", [True, False])
def test_an_error_that_says_it_is_fine(odd, stream):
    """A 200 whose body is an error object is played as it was, and told as an error."""
    error = {"error": {"message": "No credits", "code": 402}}

    async def play(request, wire):
        await wire.body(json.dumps(error), "Content-Type: application/json")

    odd.upstream.script = play
    with odd.recording():
        assert odd.post(chat(stream=stream)).json() == error
    assert odd.lines[0].outcome == "frames"
    assert "No credits" in (odd.folder / "hello.yaml").read_text()
    with odd.replaying() as client:
        again = client.post(PATH, json=chat(stream=stream))
    assert (again.status_code, again.json()) == (200, error)


def test_redirects_are_the_clients_business(odd):
    """A redirection is passed on, not followed, and is no answer to record."""

    async def play(request, wire):
        await wire.body("", "Location: https://elsewhere.test/", status="307 Temporary Redirect")

    odd.upstream.script = play
    with odd.recording():
        answer = odd.post(chat())
    assert (answer.status_code, answer.headers["location"]) == (307, "https://elsewhere.test/")
    assert odd.lines[0].outcome == "skipped"
    assert load_or_nothing(odd) == {}


def load_or_nothing(odd):
    return odd.scenarios() if list(odd.folder.glob("*.yaml")) else {}


def test_a_service_that_is_not_there(odd):
    """The client gets a 502 in its API's words, which says what to do; nothing is recorded."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    with odd.recording(upstreams={"chat": url}):
        answer = odd.post(chat())
        missing = odd.http.post("/v1/messages", json={})
    assert answer.status_code == missing.status_code == 502
    assert "--upstream chat=URL" in answer.json()["error"]["message"]
    assert missing.json()["type"] == "error"
    assert "--upstream anthropic=URL" in missing.json()["error"]["message"]
    assert not list(odd.folder.glob("*.yaml"))


# Broken off


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_service_that_breaks_off(odd, how):
    """What came before the break reaches the client, then its connection breaks; the recording
    is marked, and breaks at the same place."""
    events = says("one", "two")[:2]

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED)
        for event in events:
            await wire.chunk(event)
        if how == "reset":
            await wire.writer.drain()
            wire.reset()
        else:
            wire.writer.close()

    odd.upstream.script = play
    with odd.recording():
        if how == "closed":
            assert read_broken(odd.http) == b"".join(events)
        else:
            assert b"".join(events).startswith(read_broken(odd.http))
    assert odd.tape("hello").cut == "upstream"
    assert "cut by the upstream" in odd.words[0]
    if how == "closed":
        assert body_of(odd.tape("hello").pieces) == b"".join(events)
        with odd.replaying(speed=0) as client:
            assert read_broken(client) == b"".join(events)


def read_broken(client):
    """What comes before the connection breaks, which it has to."""
    got = b""
    try:
        with client.stream("POST", PATH, json=chat()) as answer:
            for data in answer.iter_raw():
                got += data
    except httpx.TransportError:
        return got
    raise AssertionError("the answer was whole")


def test_a_body_that_is_shorter_than_it_says(odd):
    """An answer of known length that breaks off is no whole answer for the client either."""

    async def play(request, wire):
        await wire.head("Content-Type: application/json", "Content-Length: 100")
        await wire.raw('{"id": "x", ')
        wire.writer.close()

    odd.upstream.script = play
    with odd.recording(), pytest.raises(httpx.TransportError):
        odd.post(chat(stream=False))
    assert odd.tape("hello").cut == "upstream"


def test_a_client_that_leaves(odd):
    """What came so far is recorded and marked, and the service hears that nobody reads on."""
    events = says("one", "two")
    heard = threading.Event()

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED)
        await wire.chunk(events[0])
        await wire.gone()
        heard.set()

    odd.upstream.script = play
    with odd.recording():
        with (
            httpx.Client(base_url=odd.url) as client,
            client.stream("POST", PATH, json=chat()) as answer,
        ):
            assert next(answer.iter_raw()) == events[0]
        assert heard.wait(20)
    assert odd.tape("hello").cut == "client"
    assert [piece.data for piece in odd.tape("hello").pieces] == [events[0]]


def test_a_client_that_leaves_at_the_end_mark(odd):
    """Whoever has read `[DONE]` has everything: the recording is whole."""
    events = says("one")

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED)
        for event in events:
            await wire.chunk(event)
        await wire.gone()

    odd.upstream.script = play
    with (
        odd.recording(),
        httpx.Client(base_url=odd.url) as client,
        client.stream("POST", PATH, json=chat()) as answer,
    ):
        got = b""
        for data in answer.iter_raw():
            got += data
            if b"[DONE]" in got:
                break
    assert odd.tape("hello").cut == ""
    assert body_of(odd.tape("hello").pieces) == b"".join(events)


# What is not recorded


def test_lookups_and_unknown_paths_pass(odd):
    """Everything that is no request for an answer reaches the service, in any method, with its
    body, and leaves no scenario."""

    async def play(request, wire):
        if request.method == "HEAD":
            await wire.head("Content-Length: 17", "x-found: yes")
        else:
            await wire.body(f"{request.method} {request.target} {len(request.body)}")

    odd.upstream.script = play
    with odd.recording():
        assert odd.http.get("/v1/models").text == "GET /v1/models 0"
        head = odd.http.head("/v1/models")
        assert (head.headers["x-found"], head.headers["content-length"]) == ("yes", "17")
        upload = odd.http.post("/v1/files?x=1", content=b"z" * 100_000)
        assert upload.text == "POST /v1/files?x=1 100000"
        assert odd.http.put("/odd/path", content=iter([b"ab", b"c"])).text == "PUT /odd/path 3"
        assert odd.http.delete("/v1/files/1").text == "DELETE /v1/files/1 0"
    assert not list(odd.folder.glob("*.yaml"))


def test_a_base_url_with_its_version(odd):
    """The version that clients add may stand in the service's address, or not."""
    odd.upstream.script = script(*says("hi"))
    with odd.recording(upstreams={"chat": odd.upstream.url + "/api/v1/"}):
        assert odd.post(chat()).status_code == 200
    with odd.recording(upstreams={"chat": odd.upstream.url + "/openai"}):
        assert odd.post(chat()).status_code == 200
    assert [one.target for one in odd.upstream.asked] == [
        "/api/v1/chat/completions",
        "/openai/v1/chat/completions",
    ]


def test_an_agent_is_its_address(odd):
    """AG-UI agents answer wherever they like: the address given is the whole of it."""
    run = {
        "threadId": "t",
        "runId": "r",
        "messages": [{"id": "1", "role": "user", "content": "hi"}],
    }
    run |= {"tools": [], "context": [], "state": {}, "forwardedProps": {}}
    events = [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hello"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]
    odd.upstream.script = script(*[f"data: {json.dumps(event)}\n\n" for event in events])
    with odd.recording(upstreams={"agui": odd.upstream.url + "/my/agent"}):
        assert odd.http.post("/agui", json=run).status_code == 200
    assert odd.upstream.asked[0].target == "/my/agent"
    assert list(odd.scenarios()) == ["hi"]


def test_large_requests_are_refused(odd):
    """What would have to be kept is bounded, in the words of the API."""
    odd.upstream.script = script(*says("hi"))
    with odd.recording():
        object.__setattr__(odd.thread.server.options, "max_body", 1000)
        answer = odd.post(chat("x" * 2000))
    assert answer.status_code == 413
    assert not odd.upstream.asked


# The journal


def test_the_journal_tells_what_was_forwarded(odd):
    """Forwarded requests are in the journal with status and size, without credentials."""
    odd.upstream.script = script(*says("hi"))
    with odd.recording():
        sent = odd.post(chat(), authorization="Bearer secret-one").content
        (exchange,) = exchanges(odd.http)
    assert (exchange["outcome"], exchange["status"], exchange["api"]) == ("forwarded", 200, "chat")
    assert exchange["bytes_sent"] == len(sent)
    assert "secret-one" not in json.dumps(exchange)


# Modes


def test_none_only_replays(odd):
    """Nothing is asked of the service: what is not recorded is a 404."""
    odd.upstream.script = script(*says("hi"))
    with odd.recording():
        odd.post(chat())
    with odd.recording("none", odd.scenarios().values()):
        assert odd.post(chat()).status_code == 200
        assert odd.post(chat("else")).status_code == 404
    assert len(odd.upstream.asked) == 1


def test_once_records_into_an_empty_folder_only(odd):
    """The first run records everything; a later one replays, and refuses what is new."""
    odd.upstream.script = script(*says("hi"))
    with odd.recording("once"):
        assert odd.post(chat()).status_code == 200
        assert odd.post(chat("else")).status_code == 200
    with odd.recording("once", odd.scenarios().values()):
        assert odd.post(chat()).status_code == 200
        assert odd.post(chat("new")).status_code == 404
    assert len(odd.upstream.asked) == 2


def test_new_episodes_records_what_is_not_known(odd):
    """What a scenario answers is replayed; the rest is asked for, and known from then on."""
    odd.upstream.script = script(*says("hi"))
    with odd.recording("new_episodes"):
        odd.post(chat())
    with odd.recording("new_episodes", load([odd.folder])):
        assert odd.post(chat()).status_code == 200
        assert len(odd.upstream.asked) == 1
        odd.post(chat("else"))
        odd.post(
            chat(
                "more", {"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}
            )
        )
    assert len(odd.upstream.asked) == 3
    assert {name: len(one.turns) for name, one in odd.scenarios().items()} == {
        "hello": 2,
        "else": 1,
    }
    with odd.recording("new_episodes", load([odd.folder])):
        assert odd.post(chat("else")).status_code == 200
    assert len(odd.upstream.asked) == 3


def test_all_asks_again_and_overwrites(odd):
    """Every request goes to the service, and what is said anew takes the place of the old."""
    odd.upstream.script = script(*says("old"))
    with odd.recording():
        odd.post(chat())
        odd.post(
            chat(
                "more",
                {"role": "user", "content": "hello"},
                {"role": "assistant", "content": "old"},
            )
        )
    odd.upstream.script = script(*says("new"))
    with odd.recording("all"):
        odd.post(chat())
    assert list(odd.scenarios()) == ["hello"]
    assert len(odd.scenarios()["hello"].turns) == 1
    with odd.replaying(speed=0) as client:
        assert b"new" in client.post(PATH, json=chat()).content
    assert sorted(file.suffix for file in odd.folder.glob("hello*")) == [".jsonl", ".yaml"]
