"""Recordings of Go's httprr."""

import gzip
import json

import pytest

from mockllm.record.importers import httprr
from mockllm.record.importers.file_formats import detect
from mockllm.record.importers.foreign_files import ForeignFile

URL = "https://api.openai.com/v1/chat/completions"
SENT = '{"model":"m"}'
STREAM = 'data: {"a":"h\u00e9"}\n\ndata: [DONE]\n\n'


def request(body=SENT, head=f"POST {URL} HTTP/1.1", end="\r\n"):
    lines = (head, "Host: api.openai.com", f"Content-Length: {len(body)}", "X-A: b", "", "")
    return end.join(lines) + body


def answer(body=STREAM, head="HTTP/2.0 200 OK", end="\r\n", more="Content-Type: text/event-stream"):
    return end.join((head, more, "", "")) + body


def read(tmp_path, *exchanges, tail=b""):
    data = b"httprr trace v1\n"
    for sent, got in exchanges:
        sent, got = (part if isinstance(part, bytes) else part.encode() for part in (sent, got))
        data += b"%d %d\n%b%b" % (len(sent), len(got), sent, got)
    path = tmp_path / "a.httprr"
    path.write_bytes(data + tail)
    assert detect(ForeignFile(path)) == "httprr"
    return httprr.read(ForeignFile(path))


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_exchanges(tmp_path, end):
    """Request, status, headers and body are those of the recording; scrubbed lines end in `\\n`."""
    one, two = read(tmp_path, (request(end=end), answer(end=end)), (request(), answer("")))
    assert (one.method, one.url, one.status) == ("POST", URL, 200)
    assert one.request_headers == (
        ("host", "api.openai.com"), ("content-length", str(len(SENT))), ("x-a", "b")
    )  # fmt: skip
    assert one.headers == (("content-type", "text/event-stream"),)
    assert (one.request_body, one.body) == (SENT.encode(), STREAM.encode())
    assert (two.body, two.source) == (b"", f"{tmp_path / 'a.httprr'}#2")


def test_bodies_in_chunks_and_compressed(tmp_path):
    """Chunks of HTTP/1.1 are joined; a compressed body stays as it was sent."""
    chunked = "Transfer-Encoding: chunked\r\nContent-Type: application/json"
    packed = gzip.compress(b'{"a": 1}')
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\r\n"
    one, two = read(
        tmp_path,
        (request(), answer('5\r\n{"a":\r\n3;x=y\r\n 1}\r\n0\r\n\r\n', more=chunked)),
        (request(), head + packed),
    )
    assert one.headers == (("content-type", "application/json"),)
    assert [json.loads(read.plain().body) for read in (one, two)] == [{"a": 1}] * 2


def test_what_is_no_exchange(tmp_path):
    """Each has its reason; nothing after the place where a recording is cut off is read."""
    odd = [(request(head="odd"), answer()), (request(), "odd"), (request(), answer(head="HTTP/2"))]
    local = (request(head="POST /v1/x HTTP/1.1"), answer())
    for tail in (b"9 9\nabc", b"abc"):
        good, *others = read(tmp_path, (request(), answer()), *odd, local, tail=tail)
        assert good.body == STREAM.encode()
        assert [other.reason for other in others] == [
            *["it has no request with its response"] * 3,
            "'/v1/x' is no URL of a service",
            "it is cut off, or its sizes are wrong",
        ]
    assert others[3].request == "POST /v1/x"
