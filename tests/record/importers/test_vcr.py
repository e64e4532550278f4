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
from mockllm.record.importers.foreign_files import ForeignFile
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
    return vcr.read(ForeignFile(path))


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
    (one,) = vcr.read(ForeignFile(tmp_path / "a.yml"))
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
    (one,) = vcr.read(ForeignFile(tmp_path / "a.yaml"))
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
    one, odd = vcr.read(ForeignFile(tmp_path / "a.yaml"))
    assert one.request_headers == one.headers == (("x-a", "b"), ("x-a", "c"), ("d", "e"))
    assert odd.request_headers == odd.headers == ()


def test_binary_texts_of_ruby(tmp_path):
    """Ruby writes `!binary` where Python writes `!!binary`."""
    text = TAGGED.replace("BODY", "!binary YWL/")
    (tmp_path / "a.yaml").write_text(text)
    assert vcr.read(ForeignFile(tmp_path / "a.yaml"))[0].request_body == b"ab\xff"


def test_halves_of_characters(tmp_path):
    """PyYAML writes half of a surrogate pair as an escape that its faster parser refuses. In a body
    it is an escape of JSON."""
    sent, got = '{"a": "\ud83d"}', '{"b": "\ud83d\ude00 \udfff"}'
    (one,) = read(tmp_path, interaction({"body": {"string": got}}, {"body": sent}))
    assert one.request_body == rb'{"a": "\ud83d"}'
    assert one.body == '{"b": "😀 \\udfff"}'.encode()


CASSETTER = """\
version: 1
interactions:
- request:
    method: POST
    uri: https://api.openai.com/v1/chat/completions
    headers: {content-type: [application/json]}
    body: {type: json, content: {model: m, messages: []}}
  response: {status: 200, headers: {}, body: {type: BODY}}
  recorded_at: '2026-01-01T00:00:00Z'
grpc_interactions: [{request: {method: /a.B/C}, response: {status_code: 0}}]
"""


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("json, content: [1, null]", b"[1,null]"),
        ('json, content: "a"', b'"a"'),
        ("json, content: null", b"null"),
        ("text, content: caf\u00e9", "caf\u00e9".encode()),
        ("binary, content: '00ff'", b"\x00\xff"),
        ("none", b""),
    ],
)
def test_bodies_of_cassetter(tmp_path, written, read):
    """cassetter names the type of each body; what it recorded of other protocols is reported."""
    path = tmp_path / "a.yaml"
    path.write_text(CASSETTER.replace("BODY", written), encoding="utf-8")
    one, *others = vcr.read(ForeignFile(path))
    assert one.body == read
    assert one.request_body == b'{"model":"m","messages":[]}'
    assert one.status == 200
    assert [other.reason for other in others] == [
        "it is no exchange over HTTP: it has 'grpc_interactions' instead of 'request' and "
        "'response'"
    ]


def test_a_list_of_requests_beside_one_of_responses(tmp_path):
    """So LangChain writes cassettes; a request too many has no response."""
    entries = [interaction(BODIES["text"]), interaction(BODIES["bytes"])]
    lists = {
        "requests": [*(one["request"] for one in entries), entries[0]["request"]],
        "responses": [one["response"] for one in entries],
    }
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(lists))
    one, other, odd = vcr.read(ForeignFile(tmp_path / "a.yaml"))
    assert one.body == other.body == STREAM.encode()
    assert odd.reason == "it has no request with its response"


def test_an_exchange_of_a_file(tmp_path):
    """So the test agent of Datadog writes them, with a mark at bodies that are no text."""
    packed = "base64:" + base64.b64encode(b"\x00\xff").decode()
    entry = interaction({"body": packed}, {"body": SENT})
    entry["request"]["url"] = entry["request"].pop("uri")
    (tmp_path / "a.json").write_text(json.dumps(entry))
    (one,) = vcr.read(ForeignFile(tmp_path / "a.json"))
    assert (one.url, one.request_body, one.body) == (URL, SENT.encode(), b"\x00\xff")


HIDDEN = "**REDACTED**"
PARTS = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize("hidden", [{}, {"content-type": HIDDEN, "content-length": HIDDEN}])
@pytest.mark.parametrize(
    ("body", "kind"), [(STREAM, "text/event-stream"), ('{"a": 1}', "application/json")]
)
def test_what_a_filter_hid_is_seen_in_the_bodies(tmp_path, hidden, body, kind):
    """LangChain's cassettes have a placeholder for the URL and for each header, or no headers."""
    entry = interaction({"body": {"string": body}}, {"uri": HIDDEN, "body": json.dumps(PARTS)})
    entry["response"]["headers"] = hidden
    (one,) = read(tmp_path, entry)
    assert one.url == URL
    assert one.header("content-type") == kind


def test_a_hidden_url_of_no_known_api(tmp_path):
    """It is reported; the type of an answer that shows none stays unknown."""
    answer = {"body": {"string": b"\x89PNG"}, "headers": {"content-type": HIDDEN}}
    one, other = read(
        tmp_path,
        interaction(answer, {"uri": HIDDEN, "body": "x"}),
        interaction(answer, {"uri": "https://x.example/", "body": "x"}),
    )
    assert one.reason == f"'{HIDDEN}' is no URL of a service"
    assert other.headers == ()


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


OBJECTS = {
    "!!python/object/apply:os.system [touch owned, x]": "!!python/object/apply:os.system, which",
    "!!python/object:os.x {a: b}": "!!python/object:os.x, which names a Python object, and none is",
    "!!python/name:antigravity.fly ''": "!!python/name:antigravity.fly, which names",
    "!ruby/object:Gem {name: x}": "!ruby/object:Gem, which is not plain YAML",
    "!odd [a, b]": "!odd, which is not plain YAML",
    "!!binary a": "is not plain YAML: failed to decode base64",
    "!!float x": "is not plain YAML: could not convert",
}


@pytest.mark.parametrize("text", OBJECTS)
def test_objects_are_never_built(tmp_path, monkeypatch, text):
    """A tag that names an object costs its entry, with the line of the tag; the others are read."""
    path = tmp_path / "old.yaml"
    whole = TAGGED.replace("BODY", text) + TAGGED.replace("BODY", "x").partition("\n")[2]
    path.write_text(whole.replace("version: 1\n", ""))
    monkeypatch.chdir(tmp_path)
    one, other = vcr.read(ForeignFile(path))
    assert one.reason.startswith("line 6:11 ")
    assert OBJECTS[text] in one.reason
    assert other.request_body == b"x"
    assert not (tmp_path / "owned").exists()
    assert "antigravity" not in sys.modules


TEXTS = {
    "!!python/object/apply:http.HTTPMethod [ab]": b"ab",
    "!!python/object/new:multidict._multidict.istr [ab]": b"ab",
    "!!python/unicode ab": b"ab",
    "!ruby/symbol ab": b"ab",
    "!ruby/sym ab": b"ab",
    "!ruby/string:ActiveSupport::SafeBuffer ab": b"ab",
    "!ruby/string:Safe {str: ab, '@html_safe': true}": b"ab",
    "!str:Safe {str: ab, '@html_safe': true}": b"ab",
    "!ruby/hash:ActiveSupport::HashWithIndifferentAccess {a: b}": b'{"a":"b"}',
    "!ruby/array:Pages [a, b]": b'["a","b"]',
    "! ''": b"",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_tag_whose_content_is_a_text_is_that_text(tmp_path, text):
    """So are those of Python's enumerations and of Ruby's subclasses of String read."""
    path = tmp_path / "a.yaml"
    path.write_text(TAGGED.replace("BODY", text))
    assert vcr.read(ForeignFile(path))[0].request_body == TEXTS[text]


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
    "interactions: [{? [a] : b}]": "is not YAML: a key is a list or a mapping",
    "interactions: [{<<: a}]": "is not YAML: '<<' merges what is no mapping",
    "interactions: " + "[" * 200_000: "nested too deeply|nesting depth",  # by the version of PyYAML
    "- " * 200_000: "nested too deeply",
    '{"interactions": ' + "[" * 50000: "nested too deeply",
}


@pytest.mark.parametrize("text", INVALID, ids=range(len(INVALID)))
def test_files_that_are_no_cassette(tmp_path, text):
    """It is an error that names the file and the reason."""
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=INVALID[text]) as caught:
        vcr.read(ForeignFile(path))
    assert "x.yaml" in str(caught.value)


def test_aliases_are_bounded(tmp_path):
    """Aliases of aliases, which would fill the memory, are refused first."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join([*lines, "interactions: []"]))
    with pytest.raises(UsageError, match="aliases expand to more than"):
        vcr.read(ForeignFile(path))


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
