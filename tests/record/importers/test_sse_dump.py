"""The output of `curl -N`, with or without the request beside it."""

import json

import pytest

from mockllm.core.errors import UsageError
from mockllm.play.replay.loading import loads
from mockllm.play.replay.turn_answer import turn_answer, usual_request
from mockllm.play.tapes.captured import detect_api
from mockllm.record.importers import sse_dump
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.wire.protocols import PROTOCOLS
from tests.corpus import dumps, needs_corpus

STREAMS = {
    "chat": b'data: {"model":"gpt-x","choices":[{"delta":{"content":"Hi"}}]}\n\n',
    "responses": b'data: {"type":"response.created","response":{"model":"gpt-x"}}\n\n',
    "anthropic": b'event: message_start\ndata: {"type":"message_start","message":{}}\n\n',
    "gemini": b'data: {"candidates":[],"modelVersion":"gemini-x"}\r\n\r\n',
    "agui": b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n',
}
REQUESTS = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    "responses": {"model": "m", "input": "Hi"},
    "anthropic": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    "agui": {"threadId": "t", "runId": "r", "messages": []},
}


def dump(tmp_path, data, **beside):
    path = tmp_path / "some-answer.sse"
    path.write_bytes(data)
    for name, value in beside.items():
        (tmp_path / f"{name.replace('_', '.')}.json").write_text(json.dumps(value))
    (one,) = sse_dump.read(ForeignFile(path))
    return one


@pytest.mark.parametrize("api", STREAMS)
def test_the_api_of_a_stream_without_a_request(tmp_path, api):
    """The stream decides the API. The request is made up; its user message is the name of the
    file."""
    one = dump(tmp_path, STREAMS[api])
    found = detect_api(one)
    assert found.protocol is PROTOCOLS[api]
    request = found.protocol.parse(json.loads(one.request_body), found.target, True)
    assert [m.text for m in request.messages if m.role == "user"] == ["some-answer"]
    assert request.stream
    assert one.body == STREAMS[api]
    assert one.header("content-type") == "text/event-stream"


@pytest.mark.parametrize("api", STREAMS)
def test_the_request_beside_it(tmp_path, api):
    """A request body is used unchanged, and decides the API where it can."""
    one = dump(tmp_path, STREAMS[api], request=REQUESTS[api])
    assert detect_api(one).protocol is PROTOCOLS[api]
    assert json.loads(one.request_body) == REQUESTS[api]


@pytest.mark.parametrize("name", ["request", "some-answer_request", "some-answer"])
def test_names_of_the_request(tmp_path, name):
    """The request is found under each documented name."""
    one = dump(tmp_path, b": ping\n\n", **{name: REQUESTS["chat"]})
    assert json.loads(one.request_body) == REQUESTS["chat"]


def test_the_url_of_the_request(tmp_path):
    """It is read from `meta.json`, or from a request with its URL."""
    meta = {"host": "h.example", "path": "/x/v1/chat/completions", "status": 429}
    one = dump(tmp_path, STREAMS["chat"], request=REQUESTS["chat"], meta=meta)
    assert (one.url, one.status) == ("https://h.example/x/v1/chat/completions", 429)
    sent = {"url": "https://other.example/v1/messages", "body": REQUESTS["anthropic"]}
    one = dump(tmp_path, STREAMS["anthropic"], request=sent, meta={})
    assert one.url == "https://other.example/v1/messages"
    assert json.loads(one.request_body) == REQUESTS["anthropic"]


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_with_headers(tmp_path, end):
    """The output of `curl -i` begins with status and headers, after interim responses and those of
    a proxy."""
    head = (
        b"HTTP/1.1 200 Connection established\n\nHTTP/1.1 100 Continue\n\nHTTP/2 529 \n"
        b"Content-Type: text/event-stream\nX-A: b: c\nTransfer-Encoding: chunked\n\n"
    )
    one = dump(tmp_path, head.replace(b"\n", end) + STREAMS["anthropic"])
    assert one.status == 529
    assert one.headers == (("content-type", "text/event-stream"), ("x-a", "b: c"))
    assert one.body == STREAMS["anthropic"]


def test_headers_alone(tmp_path):
    """An answer that broke off in its headers has no body."""
    one = dump(tmp_path, b"HTTP/1.1 200 OK\r\nA: b\r\n", request=REQUESTS["chat"])
    assert (one.status, one.headers, one.chunks) == (200, (("a", "b"),), ())


def test_an_answer_that_is_no_stream(tmp_path):
    """A JSON body is recognised, and so is its API."""
    one = dump(tmp_path, b'{"candidates": [], "modelVersion": "gemini-x"}')
    assert one.url.endswith("/gemini-x:generateContent")
    assert one.header("content-type") == "application/json"


(SCENARIO,) = loads("""
scenario: values
turns:
  - reply:
      - text: Hello there
      - tool: get_weather
        arguments: {city: Oslo}
        id: call_1
""")


@pytest.mark.parametrize("api", [name for name in PROTOCOLS if name != "ollama"])
def test_the_values_of_a_stream_alone(tmp_path, api):
    """Some projects, such as the AI SDK, keep the JSON values of the events, one in each line. The
    stream has the names of its events and its end again. (Ollama sends such lines itself.)"""
    protocol = PROTOCOLS[api]
    request = usual_request(SCENARIO, protocol, stream=True, fields={})
    sent = b"".join(turn_answer(SCENARIO, 0, protocol, request).data)
    frames = list(protocol.usual.decode(sent))
    path = tmp_path / "some-answer.chunks.txt"
    path.write_text("\n".join(f.data for f in frames if f.data not in (None, protocol.end_data)))
    (one,) = sse_dump.read(ForeignFile(path))
    found = list(protocol.usual.decode(one.body))
    assert [frame.data for frame in found] == [frame.data for frame in frames]
    pairs = [pair for pair in zip(frames, found, strict=True) if pair[0].data != protocol.end_data]
    names = [(frame.event, read.event) for frame, read in pairs]
    assert all(event in (None, read) for event, read in names)
    assert "some-answer" in one.request_body.decode()
    assert one.header("content-type") == protocol.usual.content_type


def test_a_stream_of_converse_without_its_beginning(tmp_path):
    """The AI SDK keeps some from their first text on; the names of events are only Converse's."""
    path = tmp_path / "text.1.chunks.txt"
    value = '{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hi"}}}'
    path.write_text(f'{value}\n{{"messageStop": {{"stopReason": "end_turn"}}}}\n')
    (one,) = sse_dump.read(ForeignFile(path))
    assert detect_api(one).protocol is PROTOCOLS["bedrock"]


def test_lines_that_are_an_answer_themselves(tmp_path):
    """Where the type of an answer is known, its lines are as they were sent."""
    lines = b'{"choices": [{"delta": {}}]}\n{"choices": []}\n'
    one = dump(tmp_path, b"HTTP/1.1 200 OK\nContent-Type: application/jsonl\n\n" + lines)
    assert one.body == lines
    one = dump(tmp_path, b'{"choices": [{"delta": {}}], "a": "\xff"}\n{"b": 1}\n')
    assert b"\xff" in one.body


def test_an_unknown_api(tmp_path):
    """It is an error that describes what to add where."""
    with pytest.raises(UsageError, match=r"some-answer\.request\.json"):
        dump(tmp_path, b"data: hello\n\n")


@pytest.mark.parametrize("text", ["{", "[]"])
def test_an_invalid_request(tmp_path, text):
    """It is an error that names the file."""
    (tmp_path / "request.json").write_text(text)
    with pytest.raises(UsageError, match=r"request\.json"):
        dump(tmp_path, STREAMS["chat"])


@needs_corpus
def test_recorded_streams_are_read_byte_for_byte():
    """Every dump of the corpus has the bytes of its file and the API of its folder."""
    assert len(dumps()) > 50
    for path in dumps():
        (one,) = sse_dump.read(ForeignFile(path))
        assert one.body == path.read_bytes()
        assert one.request_body == path.with_name("request.json").read_bytes()
        assert detect_api(one).protocol is PROTOCOLS[path.parent.parent.name]
