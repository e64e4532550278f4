"""HTTP archives, as browsers and proxies save them."""

import base64
import gzip
import json
from pathlib import Path

import pytest
import yaml

from mockllm.core.errors import UsageError
from mockllm.record.importers import har
from mockllm.record.importers.batch import import_files
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.importers.reading import Unread
from mockllm.record.recording.store.folder import Folder

URL = "https://api.anthropic.com/v1/messages?beta=true"
STREAM = 'event: message_start\ndata: {"type":"message_start"}\n\n'
SENT = '{"model":"m","h":"h\u00e9"}'


def entry(content=None, post=None, **response):
    return {
        "startedDateTime": "2026-01-02T03:04:05.500Z",
        "request": {
            "method": "post",
            "url": URL,
            "headers": [{"name": "Anthropic-Version", "value": "2023-06-01"}],
            "postData": post or {"mimeType": "application/json", "text": SENT},
        },
        "response": {
            "status": 200,
            "headers": [{"name": "Content-Type", "value": "text/event-stream"}],
            "content": content or {"mimeType": "text/event-stream", "text": STREAM},
            **response,
        },
        "timings": {"wait": 400, "receive": 1200},
    }


def read(tmp_path, *entries, creator="browser"):
    path = tmp_path / "a.har"
    log = {"version": "1.2", "creator": {"name": creator}, "entries": entries}
    path.write_text(json.dumps({"log": log}))
    return har.read(ForeignFile(path))


def test_an_archive_in_yaml(tmp_path):
    """A persister of Polly.js may write it so. Its file is called `recording.har` in a folder with
    the name of the recording, which names the scenario."""
    path = tmp_path / "asks_twice_123" / "recording.har.yaml"
    path.parent.mkdir()
    log = {"_recordingName": "asks twice", "creator": {"name": "Polly.JS"}, "entries": [entry()]}
    path.write_text(yaml.safe_dump({"log": log}))
    (one,) = import_files([tmp_path], Folder(tmp_path / "out"))
    assert (one.line.outcome, one.line.scenario) == ("neutral", "asks-twice-123")


def base64_of(data):
    return {"text": base64.b64encode(data).decode(), "encoding": "base64"}


def test_an_exchange(tmp_path):
    """Request, answer and start time are those of the archive."""
    (one,) = read(tmp_path, entry())
    assert (one.method, one.url, one.status) == ("POST", URL, 200)
    assert one.request_headers == (("anthropic-version", "2023-06-01"),)
    assert one.request_body == SENT.encode()
    assert one.headers == (("content-type", "text/event-stream"),)
    assert (one.body, [part.at for part in one.chunks]) == (STREAM.encode(), [0])
    assert one.at == 1767323045.5
    assert one.source.endswith("a.har#1")


def test_base64(tmp_path):
    """Bodies in base64 are decoded, in requests and answers."""
    post = {"mimeType": "application/json", **base64_of(SENT.encode())}
    (one,) = read(tmp_path, entry(base64_of(STREAM.encode()), post))
    assert (one.body, one.request_body) == (STREAM.encode(), SENT.encode())


@pytest.mark.parametrize(
    ("written", "reason"),
    [("OK", None), ("Right", "Right"), ("", None), (None, None), ("a\nb", None), (7, None)],
)
def test_reason_phrases(tmp_path, written, reason):
    """An unusual reason phrase is kept; the usual one, none, and what can be none are not."""
    (one,) = read(tmp_path, entry(statusText=written))
    assert one.reason == reason


def test_bodies_that_browsers_decompressed(tmp_path):
    """The archive holds text together with a `content-encoding`; it is read as text."""
    headers = [
        {"name": "content-encoding", "value": "br"},
        {"name": "content-length", "value": "9"},
    ]
    (one,) = read(tmp_path, entry(headers=headers))
    assert (one.headers, one.plain().body) == ((), STREAM.encode())


def test_bodies_that_are_still_compressed(tmp_path):
    """Some proxies archive the compressed bytes."""
    headers = [{"name": "content-encoding", "value": "gzip"}]
    (one,) = read(tmp_path, entry(base64_of(gzip.compress(STREAM.encode())), headers=headers))
    assert one.plain().body == STREAM.encode()


def test_forms(tmp_path):
    """A form without its text is built from its fields."""
    post = {
        "mimeType": "application/x-www-form-urlencoded",
        "params": [{"name": "a", "value": "b c"}],
    }
    (one,) = read(tmp_path, entry(post=post))
    assert one.request_body == b"a=b+c"


UNREAD = {
    "no request with its response": {},
    "without the bodies of answers": entry({"size": 3}),
    "no answer came: net::ERR_FAILED": entry(status=0, _error="net::ERR_FAILED"),
    "it is a stream, and the archive has none of its bytes": entry(
        {"mimeType": "text/event-stream", "text": ""}
    ),
    "not base64": entry({"text": "%", "encoding": "base64"}),
}


@pytest.mark.parametrize("message", UNREAD)
def test_entries_that_are_no_exchange(tmp_path, message):
    """Each is reported with its reason, and the others are imported."""
    unread, good = read(tmp_path, UNREAD[message], entry())
    assert isinstance(unread, Unread)
    assert message in unread.reason
    assert good.source.endswith("#2")


def test_an_archive_of_mitmproxy():
    """`mitmdump -nr` wrote it of the flows of a reverse proxy before a small server: a stream, an
    answer in gzip, one to a request in gzip, a list of models, a stream that broke off (twice),
    and a WebSocket."""
    entries = har.read(ForeignFile(Path(__file__).with_name("mitmproxy-11.0.2.har")))
    broken = [number for number, one in enumerate(entries) if isinstance(one, Unread)]
    assert broken == [4, 5]
    stream, packed, unpacked, models, _, _, upgraded = entries
    assert stream.body.endswith(b"data: [DONE]\n\n")
    assert json.loads(packed.body) == json.loads(unpacked.body)
    assert json.loads(unpacked.request_body)["messages"][0]["content"] == "Packed?"
    assert json.loads(models.body) == {"object": "list", "data": []}
    assert upgraded.status == 101


@pytest.mark.parametrize("text", ["[]", '{"log": {}}', "{", "\x00"])
def test_files_that_are_no_archive(tmp_path, text):
    """It is an error that names the file."""
    path = tmp_path / "a.har"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"a\.har"):
        har.read(ForeignFile(path))


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("encoding", ["base64", None])
def test_polly_keeps_chunks(tmp_path, encoding, chunks):
    """Polly.js writes a compressed body as a list of chunks, in base64 or (before version 5) hex.
    Another archive with such a text has the text."""
    data = gzip.compress(STREAM.encode())
    size = -(-len(data) // chunks)
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    texts = [base64.b64encode(one).decode() if encoding else one.hex() for one in parts]
    content = {"text": json.dumps(texts)} | ({"encoding": encoding} if encoding else {})
    headers = [{"name": "Content-Encoding", "value": "gzip"}]
    one_entry = entry(content, headers=headers)
    (one,) = read(tmp_path, one_entry, creator="Polly.JS")
    assert one.plain().body == STREAM.encode()
    (other,) = read(tmp_path, one_entry)
    assert isinstance(other, Unread) or other.body == json.dumps(texts).encode()


@pytest.mark.parametrize("text", ["[]", "[1]", '["abc", "ab"]', "plain", "[", '["zz"]'])
def test_polly_keeps_plain_texts(tmp_path, text):
    """A text that is no list of chunks is the body."""
    (one,) = read(tmp_path, entry({"text": text}), creator="Polly.JS")
    assert one.body == text.encode()
