"""Recordings of nock."""

import gzip
import json

import pytest

from mockllm.core.errors import UsageError
from mockllm.record.importers import nock
from mockllm.record.importers.foreign_files import ForeignFile

URL = "https://api.openai.com/v1/chat/completions"
STREAM = 'data: {"a":"h\u00e9"}\n\ndata: [DONE]\n\n'
JSON = ["Content-Type", "application/json"]


def entry(**fields):
    return {
        "scope": "https://api.openai.com:443",
        "method": "POST",
        "path": "/v1/chat/completions",
        "body": {"model": "m", "n": 1},
        "status": 200,
        "response": {"id": "x"},
        "rawHeaders": JSON,
        "responseIsBinary": False,
        **fields,
    }


def read(tmp_path, *entries):
    (tmp_path / "a.json").write_text(json.dumps(entries))
    return nock.read(ForeignFile(tmp_path / "a.json"))


def test_an_exchange(tmp_path):
    """The scope without its usual port is the host; parsed bodies are JSON again."""
    (one,) = read(tmp_path, entry(reqheaders={"X-A": ["b"]}))
    assert (one.method, one.url, one.status) == ("POST", URL, 200)
    assert one.request_headers == (("x-a", "b"),)
    assert one.request_body == b'{"model":"m","n":1}'
    assert one.headers == (("content-type", "application/json"),)
    assert one.body == b'{"id":"x"}'


def test_bodies(tmp_path):
    """Texts are texts, digits are bytes where nock says so, and a list of them is a compressed
    body."""
    packed = gzip.compress(b'{"a":1}').hex()
    found = read(
        tmp_path,
        entry(response=STREAM, body=""),
        entry(response="00ff", responseIsBinary=True),
        entry(
            response=[packed[:10], packed[10:]],
            rawHeaders=[*JSON, "Content-Encoding", "gzip"],
        ),
        entry(response=["00", "ff"]),
        entry(response="", headers={"a": ["b", "c"]}, rawHeaders=None, path="/v1/x?y=1"),
    )
    assert [one.plain().body for one in found] == [
        STREAM.encode(), b"\x00\xff", b'{"a":1}', b'["00","ff"]', b""
    ]  # fmt: skip
    assert found[0].request_body == b""
    assert found[4].url == "https://api.openai.com/v1/x?y=1"


def test_the_headers_of_older_versions(tmp_path):
    """They are a mapping."""
    old = entry(headers={"a": ["b", "c"]})
    del old["rawHeaders"]
    assert read(tmp_path, old)[0].headers == (("a", "b"), ("a", "c"))


def test_what_is_no_exchange(tmp_path):
    """Each has its reason, and does not cost the others."""
    found = read(
        tmp_path,
        entry(),
        {"scope": "x"},
        entry(response="xy", responseIsBinary=True),
        entry(status="204"),
        entry(scope="/api/"),
    )
    assert [one.reason for one in found[1:]] == [
        "it has no 'scope' with its 'method' and 'path'",
        "the body is not hexadecimal as it says: non-hexadecimal number found in fromhex() arg at "
        "position 0",
        "the answer has no status",
        "'/api/:///v1/chat/completions' is no URL of a service",
    ]
    assert found[2].request == f"POST {URL}"
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(UsageError, match="is no recording of nock"):
        nock.read(ForeignFile(tmp_path / "a.json"))
