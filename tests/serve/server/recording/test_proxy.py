"""The recording proxy: what it forwards, and what it records."""

import gzip
import json
import socket
import threading
import zlib

import httpx
import pytest

from mockllm import ServerOptions, ServerThread
from mockllm.core.errors import UsageError
from mockllm.play.replay.loading import load
from mockllm.scenario.model import Http
from mockllm.serve.server.options import RecordOptions
from tests.cases import for_all
from tests.serve.server.recording.odd_upstream import (
    CHUNKED,
    EVENTS,
    OddUpstream,
    call,
    delta,
    finish,
    script,
    text_events,
)
from tests.serve.server.recording.recorded_server import PATH, Recording, chat, exchanges
from tests.timeouts import GIVE_UP

JSON = {"content-type": "application/json"}


def body_of(parts):
    return b"".join(part.data for part in parts)


# Forwarding


def test_the_request_passes_as_the_client_sent_it(recorder):
    """Method, path, query, body and the client's own headers reach the service. Headers for mockllm
    do not."""
    recorder.upstream.script = script(*text_events("hi"))
    with recorder.recording():
        recorder.http.post(
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
    (received,) = recorder.upstream.requests
    assert (received.method, received.target) == ("POST", PATH + "?a=1&b=%2F")
    assert received.body == b'{"model": "m",  "messages": []}'
    assert received.header("authorization") == ["Bearer secret-one"]
    assert received.header("user-agent") == ["odd/1"]
    assert received.header("accept") == ["*/*"]
    assert received.header("host") == [recorder.upstream.url.removeprefix("http://")]
    assert not received.header("x-hop")
    assert not [name for name, _ in received.headers if name.lower().startswith("x-mockllm")]


def test_the_answer_passes_as_the_service_sent_it(recorder):
    """Status, headers (repeated ones and their case, too) and body are unchanged. Headers of the
    service's own connection are removed."""

    async def play(request, wire):
        await wire.body(
            b"{}", "X-Odd-One: 1", "Set-Cookie: a=1", "Set-Cookie: b=2",
            "Keep-Alive: timeout=7", "Connection: keep-alive", status="203 Quite Right",
        )  # fmt: skip

    recorder.upstream.script = play
    with recorder.recording():
        answer = recorder.post(chat())
    assert (answer.status_code, answer.reason_phrase) == (203, "Quite Right")
    names = [name for name, _ in answer.headers.raw]
    assert b"X-Odd-One" in names
    assert b"Keep-Alive" not in names
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert answer.content == b"{}"


def test_chunks_pass_as_they_arrive(recorder):
    """The client receives each chunk before the service sends the next one."""
    seen = threading.Event()

    async def play(request, wire):
        import asyncio

        await wire.head(EVENTS, CHUNKED)
        for event in text_events("one", "two"):
            await wire.chunk(event)
            await asyncio.to_thread(seen.wait, GIVE_UP)
            seen.clear()
        await wire.end()

    recorder.upstream.script = play
    got = []
    with recorder.recording(), recorder.http.stream("POST", PATH, json=chat()) as answer:
        for data in answer.iter_raw():
            got.append(data)
            seen.set()
    assert got == text_events("one", "two")


@pytest.mark.parametrize("size", [1, 7])
def test_parts_of_every_size(recorder, size):
    """A stream that the service sends byte by byte is forwarded, recorded and replayed the same."""
    whole = b"".join(text_events("h\u00e9llo", " \U0001f600"))
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    recorder.upstream.script = script(*parts)
    with recorder.recording():
        assert recorder.post(chat()).content == whole
    assert [part.data for part in recorder.tape("hello").exchange.chunks] == parts
    with recorder.replaying(speed=0) as client:
        assert client.post(PATH, json=chat()).content == whole


def test_comments_line_ends_and_extensions(recorder):
    """CRLF, comments and chunk extensions survive; comments are on the tape."""
    stream = [b": OPENROUTER PROCESSING\r\n\r\n", f"data: {delta(0, content='x')}\r\n\r\n".encode()]

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED)
        for one in stream:
            await wire.chunk(one, extension=";odd=yes")
        await wire.chunk(f"data: {finish()}\r\n\r\ndata: [DONE]\r\n\r\n")
        await wire.end()

    recorder.upstream.script = play
    with recorder.recording():
        sent = recorder.post(chat()).content
    assert sent.startswith(b"".join(stream))
    assert body_of(recorder.tape("hello").exchange.chunks) == sent
    with recorder.replaying(speed=0) as client:
        assert client.post(PATH, json=chat()).content == sent


def test_interleaved_calls_keep_their_order(recorder):
    """The fragments of two calls that alternate are calls in the YAML, and alternate as taped."""
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
    recorder.upstream.script = script(*stream)
    with recorder.recording():
        recorder.post(chat())
    text = (recorder.folder / "hello.yaml").read_text()
    assert text.count("- tool: ") == 2
    assert "interleaved:" not in text
    with recorder.replaying(speed=0) as client:
        assert client.post(PATH, json=chat()).text == "".join(stream)


def test_compression_is_passed_on_and_undone_on_the_tape(recorder):
    """A stream whose events are compressed one by one reaches the client compressed, event by
    event. The tape has it decompressed."""
    events = text_events("one", "two")

    async def play(request, wire):
        squeeze = zlib.compressobj(wbits=31)
        await wire.head(EVENTS, CHUNKED, "Content-Encoding: gzip")
        for event in events:
            await wire.chunk(squeeze.compress(event) + squeeze.flush(zlib.Z_SYNC_FLUSH))
        await wire.chunk(squeeze.flush())
        await wire.end()

    recorder.upstream.script = play
    with recorder.recording(), recorder.http.stream("POST", PATH, json=chat()) as answer:
        raw = list(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert len(raw) == len(events) + 1
    assert gzip.decompress(b"".join(raw)) == b"".join(events)
    assert [part.data for part in recorder.tape("hello").exchange.chunks] == events
    assert "content-encoding" not in dict(recorder.tape("hello").exchange.headers)


def test_only_readable_compressions_are_requested(recorder):
    """A coding that the recorder cannot decompress is removed from `accept-encoding`; the rest
    stays."""
    recorder.upstream.script = script(*text_events("hi"))
    with recorder.recording():
        recorder.post(chat(), **{"accept-encoding": "gzip, deflate, compress;q=0.9"})
        recorder.post(chat("again"), **{"accept-encoding": "compress"})
    assert [request.header("accept-encoding") for request in recorder.upstream.requests] == [
        ["gzip, deflate"],
        ["identity"],
    ]


def test_a_folder_that_cannot_be_written_to(tmp_path):
    """The server does not start, and the error names the folder."""
    (tmp_path / "file").write_text("")
    record = RecordOptions(tmp_path / "file", {"chat": "http://127.0.0.1:1"})
    with (
        pytest.raises(UsageError, match=r"cannot record into '.*file': File exists; name a folder"),
        ServerThread((), ServerOptions(record=record)),
    ):
        raise AssertionError("it listens")


def test_without_recording_nothing_is_written(tmp_path):
    """With `none` the folder is not created."""
    record = RecordOptions(tmp_path / "new", {"chat": "http://127.0.0.1:1"}, mode="none")
    with ServerThread((), ServerOptions(record=record)) as thread:
        answer = httpx.post(f"{thread.url}/v1/chat/completions", json=chat(), timeout=GIVE_UP)
    assert answer.status_code == 404
    assert list(tmp_path.iterdir()) == []


def test_installed_packages_decompress_more(recorder):
    """The codings of the extra `compression` are requested and decompressed where it is
    installed."""
    brotli = pytest.importorskip("brotli")
    pytest.importorskip("zstandard")
    events = text_events("hi")

    async def play(request, wire):
        squeeze = brotli.Compressor()
        await wire.head(EVENTS, CHUNKED, "Content-Encoding: br")
        for event in events:
            await wire.chunk(squeeze.process(event) + squeeze.flush())
        await wire.chunk(squeeze.finish())
        await wire.end()

    recorder.upstream.script = play
    with recorder.recording():
        recorder.post(chat(), **{"accept-encoding": "br, zstd"})
    (received,) = recorder.upstream.requests
    assert received.header("accept-encoding") == ["br, zstd"]
    assert [part.data for part in recorder.tape("hello").exchange.chunks] == events


def test_trailers_pass(recorder):
    """Trailer fields after the last chunk reach the client."""

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED, "Trailer: x-checksum")
        for event in text_events("hi"):
            await wire.chunk(event)
        await wire.end("x-checksum: 0abc")

    recorder.upstream.script = play
    with recorder.recording():
        raw = raw_answer(recorder.url, chat())
    assert raw.endswith(b"0\r\nx-checksum: 0abc\r\n\r\n")
    assert b"Trailer: x-checksum" in raw


def raw_answer(url, body):
    """The bytes of an answer as they are on the wire."""
    host, port = url.removeprefix("http://").split(":")
    content = json.dumps(body).encode()
    head = f"POST {PATH} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
    with socket.create_connection((host, int(port)), timeout=GIVE_UP) as sock:
        sock.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        raw = b""
        while data := sock.recv(65536):
            raw += data
    return raw


def test_a_slow_client_slows_the_service(recorder):
    """The recorder does not read ahead of the client, beyond what buffers hold."""
    part = b"x" * 65536
    count = 1000
    written = []
    stuck = threading.Event()

    async def play(request, wire):
        import asyncio

        await wire.head(CHUNKED)
        for _ in range(count):
            wire.writer.write(b"10000\r\n%b\r\n" % part)
            try:
                await asyncio.wait_for(wire.writer.drain(), 0.5)
            except TimeoutError:
                stuck.set()
                await wire.writer.drain()
            written.append(1)
        await wire.end()

    recorder.upstream.script = play
    with (
        recorder.recording(max_recorded=1000),
        recorder.http.stream("GET", "/v1/files/1/content") as answer,
    ):
        parts = answer.iter_raw()
        size = len(next(parts))
        assert stuck.wait(GIVE_UP)
        assert len(written) < count
        size += sum(map(len, parts))
    assert size == count * len(part)


# Errors


def test_errors_pass_and_are_recorded(recorder):
    """A 429 keeps its status, `retry-after` and body, and is replayed with them."""
    error = {"error": {"message": "Slow down", "type": "requests", "param": None, "code": "rate"}}

    async def play(request, wire):
        await wire.body(
            json.dumps(error), "Content-Type: application/json", "Retry-After: 2",
            "x-ratelimit-remaining-requests: 0", status="429 Too Many Requests",
        )  # fmt: skip

    recorder.upstream.script = play
    with recorder.recording():
        answer = recorder.post(chat())
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "2"
    assert answer.json() == error
    (turn,) = recorder.scenarios()["hello"].turns
    assert isinstance(turn.http, Http)
    assert (turn.http.status, turn.http.retry_after) == (429, 2_000_000)
    assert turn.http.error.message == "Slow down"
    with recorder.replaying() as client:
        again = client.post(PATH, json=chat())
    assert (again.status_code, again.headers["retry-after"], again.json()) == (429, "2", error)


def test_a_page_in_place_of_an_error(recorder):
    """A gateway's HTML page is forwarded and replayed unchanged."""
    page = "<html><h1>502 Bad Gateway</h1></html>"

    async def play(request, wire):
        await wire.body(page, "Content-Type: text/html", status="500 Internal Server Error")

    recorder.upstream.script = play
    with recorder.recording():
        answer = recorder.post(chat())
    assert (answer.status_code, answer.text) == (500, page)
    with recorder.replaying() as client:
        again = client.post(PATH, json=chat())
    assert (again.status_code, again.text, again.headers["content-type"]) == (
        500,
        page,
        "text/html",
    )


@pytest.mark.parametrize("stream", [True, False])
def test_an_error_with_status_200(recorder, stream):
    """A 200 whose body is an error object is replayed unchanged, and the recording names the
    error."""
    error = {"error": {"message": "No credits", "code": 402}}

    async def play(request, wire):
        await wire.body(json.dumps(error), "Content-Type: application/json")

    recorder.upstream.script = play
    with recorder.recording():
        assert recorder.post(chat(stream=stream)).json() == error
    assert recorder.lines[0].outcome == "partial"
    assert "No credits" in (recorder.folder / "hello.yaml").read_text()
    with recorder.replaying() as client:
        again = client.post(PATH, json=chat(stream=stream))
    assert (again.status_code, again.json()) == (200, error)


def test_redirects_are_forwarded(recorder):
    """A redirect is forwarded, not followed, and not recorded."""

    async def play(request, wire):
        await wire.body("", "Location: https://elsewhere.test/", status="307 Temporary Redirect")

    recorder.upstream.script = play
    with recorder.recording():
        answer = recorder.post(chat())
    assert (answer.status_code, answer.headers["location"]) == (307, "https://elsewhere.test/")
    assert recorder.lines[0].outcome == "skipped"
    assert load_or_nothing(recorder) == {}


def load_or_nothing(recorder):
    return recorder.scenarios() if list(recorder.folder.glob("*.yaml")) else {}


def test_an_unreachable_service(recorder):
    """The client gets a 502 in its API's shape that names the option to set; nothing is
    recorded."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    with recorder.recording(upstreams={"chat": url}):
        answer = recorder.post(chat())
        missing = recorder.http.post("/v1/messages", json={})
    assert answer.status_code == missing.status_code == 502
    assert "--upstream chat=URL" in answer.json()["error"]["message"]
    assert missing.json()["type"] == "error"
    assert "--upstream anthropic=URL" in missing.json()["error"]["message"]
    assert not list(recorder.folder.glob("*.yaml"))


# Broken streams


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_service_that_breaks_off(recorder, how):
    """The bytes before the break reach the client, then its connection breaks. The recording is
    marked as cut, and its replay breaks at the same byte."""
    events = text_events("one", "two")[:2]

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED)
        for event in events:
            await wire.chunk(event)
        if how == "reset":
            await wire.writer.drain()
            wire.reset()
        else:
            wire.writer.close()

    recorder.upstream.script = play
    with recorder.recording():
        if how == "closed":
            assert read_broken(recorder.http) == b"".join(events)
        else:
            assert b"".join(events).startswith(read_broken(recorder.http))
    cut, line = ("upstream", "cut") if how == "closed" else ("reset", "reset")
    assert recorder.tape("hello").exchange.cut == cut
    assert f"{line} by the upstream" in recorder.descriptions[0]
    if how == "closed":
        assert body_of(recorder.tape("hello").exchange.chunks) == b"".join(events)
        with recorder.replaying(speed=0) as client:
            assert read_broken(client) == b"".join(events)


def read_broken(client):
    """The bytes before the connection breaks; fails if it does not."""
    got = b""
    try:
        with client.stream("POST", PATH, json=chat()) as answer:
            for data in answer.iter_raw():
                got += data
    except httpx.TransportError:
        return got
    raise AssertionError("the answer was whole")


def test_a_body_that_is_shorter_than_its_length(recorder):
    """A body that ends before its Content-Length is an error for the client, and is recorded as
    cut."""

    async def play(request, wire):
        await wire.head("Content-Type: application/json", "Content-Length: 100")
        await wire.raw('{"id": "x", ')
        wire.writer.close()

    recorder.upstream.script = play
    with recorder.recording(), pytest.raises(httpx.TransportError):
        recorder.post(chat(stream=False))
    assert recorder.tape("hello").exchange.cut == "upstream"


def test_a_client_that_leaves(recorder):
    """The part that has arrived is recorded and marked as cut, and the service's connection is
    closed."""
    events = text_events("one", "two")
    noticed = threading.Event()

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED)
        await wire.chunk(events[0])
        await wire.closed_by_peer()
        noticed.set()

    recorder.upstream.script = play
    with recorder.recording():
        with (
            httpx.Client(base_url=recorder.url, timeout=GIVE_UP) as client,
            client.stream("POST", PATH, json=chat()) as answer,
        ):
            assert next(answer.iter_raw()) == events[0]
        assert noticed.wait(GIVE_UP)
    assert recorder.tape("hello").exchange.cut == "client"
    assert [part.data for part in recorder.tape("hello").exchange.chunks] == [events[0]]


def test_a_client_that_leaves_at_the_end_mark(recorder):
    """A client that leaves after `[DONE]` has the whole answer: the recording is not cut."""
    events = text_events("one")

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED)
        for event in events:
            await wire.chunk(event)
        await wire.closed_by_peer()

    recorder.upstream.script = play
    with (
        recorder.recording(),
        httpx.Client(base_url=recorder.url, timeout=GIVE_UP) as client,
        client.stream("POST", PATH, json=chat()) as answer,
    ):
        got = b""
        for data in answer.iter_raw():
            got += data
            if b"[DONE]" in got:
                break
    assert recorder.tape("hello").exchange.cut == ""
    assert body_of(recorder.tape("hello").exchange.chunks) == b"".join(events)


# Addresses


def test_a_base_url_with_its_version(recorder):
    """The version that clients add to the path may be part of the upstream's URL."""
    recorder.upstream.script = script(*text_events("hi"))
    with recorder.recording(upstreams={"chat": recorder.upstream.url + "/api/v1/"}):
        assert recorder.post(chat()).status_code == 200
    with recorder.recording(upstreams={"chat": recorder.upstream.url + "/openai"}):
        assert recorder.post(chat()).status_code == 200
    assert [request.target for request in recorder.upstream.requests] == [
        "/api/v1/chat/completions",
        "/openai/v1/chat/completions",
    ]


def test_the_url_of_an_agent_is_used_unchanged(recorder):
    """AG-UI has no fixed path: a run is sent to the upstream's URL itself."""
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
    recorder.upstream.script = script(*[f"data: {json.dumps(event)}\n\n" for event in events])
    with recorder.recording(upstreams={"agui": recorder.upstream.url + "/my/agent"}):
        assert recorder.http.post("/agui", json=run).status_code == 200
    assert recorder.upstream.requests[0].target == "/my/agent"
    assert list(recorder.scenarios()) == ["hi"]


def test_large_requests_are_refused(recorder):
    """A body beyond `max_body` is a 413 and is not forwarded."""
    recorder.upstream.script = script(*text_events("hi"))
    with recorder.recording():
        object.__setattr__(recorder.thread.server.options, "max_body", 1000)
        answer = recorder.post(chat("x" * 2000))
    assert answer.status_code == 413
    assert not recorder.upstream.requests


# The journal


def test_forwarded_requests_are_in_the_journal(recorder):
    """They have status and size, and no credentials."""
    recorder.upstream.script = script(*text_events("hi"))
    with recorder.recording():
        sent = recorder.post(chat(), authorization="Bearer secret-one").content
        (exchange,) = exchanges(recorder.http)
    assert (exchange["outcome"], exchange["status"], exchange["api"]) == ("forwarded", 200, "chat")
    assert exchange["bytes_sent"] == len(sent)
    assert "secret-one" not in json.dumps(exchange)


# Modes


def test_none_only_replays(recorder):
    """Nothing is forwarded: a request without a recording is a 404."""
    recorder.upstream.script = script(*text_events("hi"))
    with recorder.recording():
        recorder.post(chat())
    with recorder.recording("none", recorder.scenarios().values()):
        assert recorder.post(chat()).status_code == 200
        assert recorder.post(chat("else")).status_code == 404
    assert len(recorder.upstream.requests) == 1


def test_once_records_into_an_empty_folder_only(recorder):
    """The first run records every request; a later one replays, and refuses unknown requests."""
    recorder.upstream.script = script(*text_events("hi"))
    with recorder.recording("once"):
        assert recorder.post(chat()).status_code == 200
        assert recorder.post(chat("else")).status_code == 200
    with recorder.recording("once", recorder.scenarios().values()):
        assert recorder.post(chat()).status_code == 200
        assert recorder.post(chat("new")).status_code == 404
    assert len(recorder.upstream.requests) == 2


def test_new_episodes_records_unknown_requests(recorder):
    """A request that a scenario matches is replayed; another one is forwarded and recorded."""
    recorder.upstream.script = script(*text_events("hi"))
    with recorder.recording("new_episodes"):
        recorder.post(chat())
    with recorder.recording("new_episodes", load([recorder.folder])):
        assert recorder.post(chat()).status_code == 200
        assert len(recorder.upstream.requests) == 1
        recorder.post(chat("else"))
        recorder.post(
            chat(
                "more", {"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}
            )
        )
    assert len(recorder.upstream.requests) == 3
    assert {name: len(one.turns) for name, one in recorder.scenarios().items()} == {
        "hello": 2,
        "else": 1,
    }
    with recorder.recording("new_episodes", load([recorder.folder])):
        assert recorder.post(chat("else")).status_code == 200
    assert len(recorder.upstream.requests) == 3


def test_all_forwards_again_and_overwrites(recorder):
    """Every request is forwarded, and the new answer replaces the recorded one."""
    recorder.upstream.script = script(*text_events("old"))
    with recorder.recording():
        recorder.post(chat())
        recorder.post(
            chat(
                "more",
                {"role": "user", "content": "hello"},
                {"role": "assistant", "content": "old"},
            )
        )
    recorder.upstream.script = script(*text_events("new"))
    with recorder.recording("all"):
        recorder.post(chat())
    assert list(recorder.scenarios()) == ["hello"]
    assert len(recorder.scenarios()["hello"].turns) == 1
    with recorder.replaying(speed=0) as client:
        assert b"new" in client.post(PATH, json=chat()).content
    assert sorted(file.suffix for file in recorder.folder.glob("hello*")) == [".jsonl", ".yaml"]


_HALF = r"\ud83d"
HALVES = {
    "text": '{"model": "m", "messages": [{"role": "user", "content": "cut HALF"}]}',
    "system": '{"model": "m", "messages": [{"role": "system", "content": "HALF"},'
    ' {"role": "user", "content": "hi"}]}',
    "model": '{"model": "HALF", "messages": [{"role": "user", "content": "hi"}]}',
    "tool": '{"model": "m", "messages": [{"role": "user", "content": "hi"}],'
    ' "tools": [{"type": "function", "function": {"name": "HALF"}}]}',
    "key": '{"model": "m", "messages": [{"role": "user", "content": "hi"}], "HALF": 1}',
    "route": '{"q": "HALF", "HALF": ["HALF"]}',
}
ANSWERED = json.dumps({"choices": [{"message": {"role": "assistant", "content": "so \ud83d"}}]})


@for_all("apart", [True, False])
def test_half_a_character_is_recorded_as_it_came(tmp_path, apart):
    """JSON can have half of a surrogate pair wherever it has a text. What is written can be read,
    the request finds its recording again, and the answer has the same bytes; another half is
    another text."""
    sent = {where: body.replace("HALF", _HALF).encode() for where, body in HALVES.items()}
    paths = {where: "/v1/odd" if where == "route" else PATH for where in sent}
    with OddUpstream() as upstream:
        recorder = Recording(tmp_path / str(apart), upstream)

        async def plain(request, wire):
            await wire.body(ANSWERED.encode(), "Content-Type: application/json")

        upstream.script = plain
        with recorder.recording(apart=apart):
            answers = [
                recorder.http.post(paths[where], content=body, headers=JSON)
                for where, body in sent.items()
            ]
    assert [line.outcome for line in recorder.lines] == ["neutral"] * len(sent)
    assert not any(line.not_found or line.lost for line in recorder.lines)
    with recorder.replaying(speed=0) as client:
        for (where, body), recorded in zip(sent.items(), answers, strict=True):
            played = client.post(paths[where], content=body, headers=JSON)
            assert played.content == recorded.content == ANSWERED.encode(), where
        other = sent["text"].replace(_HALF.encode(), rb"\ude00")
        assert client.post(PATH, content=other, headers=JSON).status_code == 404
        assert len(exchanges(client)) == len(sent) + 1
