"""VCR cassettes in every form that vcrpy and the tools on top of it write."""

import base64
import gzip
import json
import sys
import textwrap

import pytest
import yaml

from mockllm.core.errors import UsageError
from mockllm.core.http import TimedBytes
from mockllm.record.importers import foreign_files, vcr
from mockllm.record.importers.reading import Unread

URL = "https://api.openai.com/v1/chat/completions"
STREAM = (
    'data: {"choices":[{"delta":{"content":"h\u00e9\u4f60\U0001f600"}}]}\r\n\r\ndata: [DONE]\n\n'
)
SENT = '{"model": "m", "messages": []}'


def interaction(response, request=None, **headers):
    sent = {"body": SENT, "headers": {"Content-Type": ["application/json"]}, **(request or {})}
    answered = {"headers": {"Content-Type": ["text/event-stream"], **headers}, **response}
    return {
        "request": {"method": "POST", "uri": URL, **sent},
        "response": {"status": {"code": 200, "message": "OK"}, **answered},
    }


def read(tmp_path, *entries, name="cassette.yaml"):
    cassette = {"interactions": list(entries), "version": 1}
    path = tmp_path / name
    path.write_text(yaml.dump(cassette) if name.endswith("yaml") else json.dumps(cassette))
    return vcr.read(path)


BODIES = {
    "text": {"body": {"string": STREAM}},
    "bytes": {"body": {"string": STREAM.encode()}},
    "base64": {"body": {"base64_string": base64.encodebytes(STREAM.encode()).decode()}},
    "plain": {"body": STREAM},
    "httpx": {"content": STREAM, "status": None, "status_code": 200},
    "encoding": {"body": {"encoding": "UTF-8", "string": STREAM}},
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(tmp_path, name):
    """Every form of a body is read as its bytes, in one chunk at time 0."""
    (one,) = read(tmp_path, interaction(BODIES[name]))
    assert one.chunks == (TimedBytes(0, STREAM.encode()),)
    assert (one.status, one.method, one.url) == (200, "POST", URL)
    assert one.request_body == SENT.encode()
    assert one.source == f"{tmp_path / 'cassette.yaml'}#1"


@pytest.mark.parametrize("name", sorted(set(BODIES) - {"bytes"}))
def test_cassettes_in_json(tmp_path, name):
    """A cassette in JSON gives the same exchanges as in YAML."""
    entry = interaction(BODIES[name])
    (as_yaml,) = read(tmp_path, entry)
    (as_json,) = read(tmp_path, entry, name="cassette.json")
    assert as_json.body == as_yaml.body
    assert as_json.headers == as_yaml.headers


@pytest.mark.parametrize(
    ("written", "reason"),
    [("OK", None), ("Right", "Right"), ("", None), (None, None), ("a\nb", None), (7, None)],
)
def test_reason_phrases(tmp_path, written, reason):
    """An unusual reason phrase is kept; the usual one, none, and what can be none are not."""
    response = {"body": {"string": STREAM}, "status": {"code": 200, "message": written}}
    (one,) = read(tmp_path, interaction(response))
    assert one.reason == reason


def test_compressed_bodies(tmp_path):
    """A body that is stored compressed is read unchanged, and decompresses."""
    packed = gzip.compress(STREAM.encode())
    (one,) = read(
        tmp_path, interaction({"body": {"string": packed}}, **{"Content-Encoding": "gzip"})
    )
    assert one.body == packed
    assert one.plain().body == STREAM.encode()


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "deflate"])
def test_a_header_that_contradicts_the_body(tmp_path, encoding):
    """A body that is stored decompressed beside its `content-encoding` is text."""
    headers = {"Content-Encoding": [encoding], "Content-Length": ["7"]}
    (one,) = read(tmp_path, interaction({"body": {"string": STREAM}}, **headers))
    assert one.headers == (("content-type", "text/event-stream"),)
    assert one.plain().body == STREAM.encode()


def test_a_compressed_request(tmp_path):
    """A compressed request is decompressed."""
    sent = {"body": gzip.compress(SENT.encode()), "headers": {"Content-Encoding": ["gzip"]}}
    (one,) = read(tmp_path, interaction({"body": {"string": STREAM}}, sent))
    assert one.request_body == SENT.encode()


def test_parsed_bodies(tmp_path):
    """A body that a project's serialiser parsed is JSON again, in its order, dates included."""
    text = """\
        interactions:
        - request:
            method: POST
            uri: https://api.anthropic.com/v1/messages
            headers: {x-a: [1, b]}
            parsed_body: {stream: false, model: m, since: 2024-01-01, nothing: null}
          response:
            status: {code: 200, message: OK}
            headers: {content-type: application/json}
            parsed_body: {type: message, content: [{type: text, text: "h\u00e9"}]}
        version: 1
        """
    (tmp_path / "a.yml").write_text(textwrap.dedent(text))
    (one,) = vcr.read(tmp_path / "a.yml")
    sent = {"stream": False, "model": "m", "since": "2024-01-01", "nothing": None}
    assert list(json.loads(one.request_body).items()) == list(sent.items())
    assert json.loads(one.body)["content"][0]["text"] == "h\u00e9"
    assert one.request_headers == (("x-a", "1"), ("x-a", "b"))
    assert one.headers == (("content-type", "application/json"),)


TAGGED = """\
interactions:
- request:
    method: !!python/unicode POST
    uri: https://api.openai.com/v1/files
    headers: {}
    body: BODY
  response: {status: {code: 200}, headers: {}, body: {string: !!python/str "{}"}}
version: 1
"""
TAGGED_BODIES = {
    "a file": ("!!python/object/new:_io.BytesIO {state: !!python/tuple [!!binary Yf8=, 0, null]}"),
    "an iterator": "!!python/object/apply:builtins.iter {args: [[!!binary YQ==, !!binary /w==]]}",
}


@pytest.mark.parametrize("name", TAGGED_BODIES)
def test_tags_that_vcrpy_writes(tmp_path, name):
    """The few tags of Python that vcrpy writes itself are read as the data that they hold: for
    requests, the body that was sent from a file or an iterator."""
    (tmp_path / "a.yaml").write_text(TAGGED.replace("BODY", TAGGED_BODIES[name]))
    (one,) = vcr.read(tmp_path / "a.yaml")
    assert one.method == "POST"
    assert one.request_body == b"a\xff"
    assert one.body == b"{}"


@pytest.mark.parametrize("module", ["multidict", "multidict._multidict", "multidict._multidict_py"])
def test_headers_of_aiohttp(tmp_path, module):
    """vcrpy leaves names of headers, and with some clients all headers, as objects of multidict.
    The texts and pairs that they hold are read, and nothing of multidict is called."""
    tag = f"!!python/object/apply:{module}"
    name = f"{tag}.istr [X-A]"
    pairs = f"[[!!python/tuple [{name}, b], !!python/tuple [X-A, c], !!python/tuple [d, e]]]"
    text = textwrap.dedent(
        f"""\
        interactions:
        - request: {{method: GET, uri: "https://x.example/", headers: {{? {name} : [b, c], d: e}}}}
          response: {{status: {{code: 200}}, headers: {tag}.CIMultiDict {pairs}, body: ""}}
        - request: {{method: GET, uri: "https://x.example/", headers: {tag}.MultiDict []}}
          response: {{status: {{code: 200}}, headers: {tag}.CIMultiDict [[odd, [1]]], body: ""}}
        """
    )
    (tmp_path / "a.yaml").write_text(text)
    one, odd = vcr.read(tmp_path / "a.yaml")
    assert one.request_headers == one.headers == (("x-a", "b"), ("x-a", "c"), ("d", "e"))
    assert odd.request_headers == odd.headers == ()
    (tmp_path / "a.yaml").write_text(text.replace(".istr", ".upstr"))
    with pytest.raises(UsageError, match="none is ever built"):
        vcr.read(tmp_path / "a.yaml")


def test_binary_texts_of_ruby(tmp_path):
    """Ruby writes `!binary` where Python writes `!!binary`."""
    text = TAGGED.replace("BODY", "!binary YWL/")
    (tmp_path / "a.yaml").write_text(text)
    assert vcr.read(tmp_path / "a.yaml")[0].request_body == b"ab\xff"


def test_halves_of_characters(tmp_path):
    """PyYAML writes half of a surrogate pair as an escape that its faster parser refuses. In a body
    it is an escape of JSON."""
    sent, got = '{"a": "\ud83d"}', '{"b": "\ud83d\ude00 \udfff"}'
    (one,) = read(tmp_path, interaction({"body": {"string": got}}, {"body": sent}))
    assert one.request_body == rb'{"a": "\ud83d"}'
    assert one.body == '{"b": "😀 \\udfff"}'.encode()


def test_methods_queries_and_forms_are_exact(tmp_path):
    """Any method, the query and a body of several binary parts are read as they were sent."""
    form = b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n\x00\xff\r\n--x--\r\n'
    response = {"body": {"string": "{}"}}
    url = "https://api.openai.com/v1/files?limit=2&after=%20"
    found = read(
        tmp_path,
        *(interaction(response, {"method": name, "uri": url, "body": form}) for name in METHODS),
    )
    assert [(one.method, one.url, one.request_body) for one in found] == [
        (name, url, form) for name in METHODS
    ]


METHODS = ("POST", "PUT", "PATCH", "DELETE")


def test_recordings_that_are_not_of_http(tmp_path):
    """Some projects record another protocol into the form of a cassette; the reason shows it."""
    (one,) = read(tmp_path, {"request_sample": {"raw": b"\n"}, "response_sample": {}})
    assert one.reason == (
        "it is no exchange over HTTP: it has 'request_sample', 'response_sample' instead of "
        "'request' and 'response'"
    )


def test_a_request_that_is_not_compressed_as_declared(tmp_path):
    """It is reported, and not read as other bytes."""
    packed = gzip.compress(b"")[:10] + b"\xff\xff"
    sent = {"body": packed, "headers": {"Content-Encoding": ["gzip"]}}
    (one,) = read(tmp_path, interaction({"body": {"string": STREAM}}, sent))
    assert isinstance(one, Unread)
    assert "content-encoding is gzip" in one.reason


def test_several_exchanges(tmp_path):
    """All exchanges are read in order; an invalid one is reported, and the others are read."""
    bad = interaction({"body": {"base64_string": "%"}})
    headless = interaction({"body": {"string": ""}, "status": None})
    entries = (interaction(BODIES["text"]), {"request": {}}, bad, headless)
    good, *others = read(tmp_path, *entries, interaction({"body": {"string": None}}))
    assert good.body
    assert others.pop().chunks == ()
    assert [one.source.rpartition("#")[2] for one in others] == ["2", "3", "4"]
    assert [type(one) for one in others] == [Unread] * 3
    assert "not base64" in others[1].reason
    assert others[1].request == f"POST {URL}"


def test_python_objects_are_never_built(tmp_path, monkeypatch):
    """A tag that names a Python object is an error, and nothing is imported."""
    path = tmp_path / "old.yaml"
    path.write_text("interactions:\n- request: !!python/object/apply:os.system [touch owned]\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"old.yaml:2:12: has the tag !!python/object/apply"):
        vcr.read(path)
    assert not (tmp_path / "owned").exists()
    path.write_text("interactions:\n- !!python/name:antigravity.fly ''\n")
    with pytest.raises(UsageError, match="none is ever built"):
        vcr.read(path)
    assert "antigravity" not in sys.modules


INVALID = {
    "interactions: [": "is not YAML",
    "interactions: 5": "no list of 'interactions'",
    "- a": "no list of 'interactions'",
    "": "no list of 'interactions'",
    "interactions: []\nversion: 3": "a cassette of version 3",
    '{"interactions": [': "x.yaml:1:19: is not JSON",
    "interactions: !odd []": "is not plain YAML",
    "interactions: [\x00]": "is not YAML",
    "interactions: &a [*a]": "an alias contains itself",
    "interactions: *a": "x.yaml:1:15: is not YAML: there is no anchor for the alias 'a'",
    "interactions: []\n---\ninteractions: []": "x.yaml:2:1: is not YAML: .* one document",
    "interactions: [{? [a] : b}]": "is not plain YAML: a key is a list or a mapping",
    "interactions: [{<<: a}]": "is not plain YAML: '<<' merges what is no mapping",
    "interactions: " + "[" * 200_000: "nested too deeply",
    "- " * 200_000: "nested too deeply",
    '{"interactions": ' + "[" * 50000: "nested too deeply",
}


@pytest.mark.parametrize("text", INVALID, ids=range(len(INVALID)))
def test_files_that_are_no_cassette(tmp_path, text):
    """It is an error that names the file and the reason."""
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=INVALID[text]) as caught:
        vcr.read(path)
    assert "x.yaml" in str(caught.value)


def test_aliases_are_bounded(tmp_path):
    """Aliases of aliases, which would fill the memory, are refused first."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join([*lines, "interactions: []"]))
    with pytest.raises(UsageError, match="aliases expand to more than"):
        vcr.read(path)


def test_anchors_are_read(tmp_path):
    """A value that PyYAML wrote once and refers to by an alias is read at both positions."""
    headers = {"Content-Type": ["text/event-stream"]}
    entry = interaction(BODIES["text"])
    entry["request"]["headers"] = entry["response"]["headers"] = headers
    assert "&id001" in yaml.dump([entry])
    (one,) = read(tmp_path, entry)
    assert one.headers == one.request_headers


def test_values_of_yaml(tmp_path):
    """A value is what YAML 1.1 says that it is, but a date is text; a mapping may merge others."""
    text = "{a: 1, b: 1.5, c: .inf, d: ~, e: on, f: '1', g: 0x10, h: 2001-01-01, i: =, j: 1_0.5}"
    path = tmp_path / "values.yaml"
    merged = "base: &b {a: 0, x: y}\nother: &o {x: z}\nall: {<<: [*b, *o], q: %s}"
    path.write_text(merged % text)
    value = foreign_files.yaml_value(path.read_bytes(), path)["all"]
    assert (value["a"], value["x"]) == (0, "y")
    assert list(value["q"].values()) == [
        1, 1.5, float("inf"), None, True, "1", 16, "2001-01-01", "=", 10.5,
    ]  # fmt: skip


def test_large_files_are_refused(tmp_path, monkeypatch):
    """A file beyond the bound is not read at all."""
    monkeypatch.setattr(foreign_files, "MAX_FILE", 10)
    with pytest.raises(UsageError, match="at most 10 are read"):
        read(tmp_path, interaction(BODIES["text"]))
