"""Redaction: which values are secrets, and what replaces them."""

import gzip
import json
import zlib
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import UsageError, WireError
from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.rules import Rules, rules_from
from tests.cases import for_all
from tests.record.redaction.secrets import kept_headers, kept_url

KEY = "sk-proj-" + "Ab3dEf6hIj" * 4


def exchange(
    body=b"{}",
    reply=b"{}",
    *,
    request_headers=(),
    headers=(),
    url="https://api.openai.com/v1",
    **more,
):
    """An exchange with these chunks, or one chunk."""
    chunks = (reply,) if isinstance(reply, bytes) else reply
    timed = tuple(TimedBytes(index, chunk) for index, chunk in enumerate(chunks))
    sent = tuple(request_headers)
    return Captured("POST", url, sent, body, 200, tuple(headers), timed, **more)


def sse(*frames):
    """An event stream."""
    return "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames).encode()


def delta(text, index=0):
    """A chat chunk."""
    return {"choices": [{"index": index, "delta": {"content": text}}]}


@for_all(
    "text",
    [
        "Der schnelle braune Fuchs: 100% sicher, a@b, @home, x = 5; key: value",
        "550e8400-e29b-41d4-a716-446655440000",
        "gpt-4o-mini-2024-07-18 claude-sonnet-4-5-20250929 gemini-2.5-flash xai-grok-4 hf_model",
        "call_abc123DEF456ghi789JKL012 toolu_01X9wcHKKAZD9tBC711xipPa srvtoolu_01AbCdEfGhIjKl",
        "resp_68a1b2c3d4e5f60718293a4b5c6d7e8f chatcmpl-9aBcDeFgHiJkLmNoPqRsTuVwXyZ01 msg_01AbCdE",
        "fp_44709d6fcb req_011CQmr5w8jFYzLHBdq8TxyE file-AbCdEfGhIjKlMnOpQrStUv vs_68a1b2c3",
        "gAAAAABoVx3k9Qm0Jx7w_pQ2R8sT4uV6wX8yZ0aB2cD4eF6gH8iJ0kL2mN4oP6qR8sT0uV2wX4yZ6==",
        '{"signature":"EpwICpkIAXLI2nxlU6gsWZaZHRYkX1orzuM8vSUFwaAt1JRxECzK5+/w==","type":"thinking"}',
        '{"token":" unbelievable2024","bytes":[32],"logprob":-0.01}',
        '{"type":"object","properties":{"password":{"type":"string"},"api_key":{"type":"string"}}}',
        "api_key=os.environ['OPENAI_API_KEY'] password: string max_tokens: 4096 next_token = None",
        "git clone git@github.com:owner/name.git && cat icon@2x.png react@18.2.0",
        "a task-management-system-for-everybody, disk-encryption-at-rest-and-in-transit",
        "Bearer tokens and basic authentication are explained at https://docs.example.com/a:b?c=d",
    ],
)
def test_ordinary_text_stays(text):
    """Prose, code, names of models, identifiers and signatures are no secrets."""
    redactor = Redactor()
    assert redactor.text(text) == text
    assert redactor.json({"content": text}) == {"content": text}
    assert redactor.pattern(text) is None


@for_all(
    ("text", "clean"),
    [
        ("mail a.b+c@corp.co.uk!", "mail hidden-1@mail.example!"),
        ("Mail A@Corp.io or a@corp.io", "Mail hidden-1@mail.example or hidden-1@mail.example"),
        (r'{"a":"one\ntwo@corp.io"}', r'{"a":"one\nhidden-1@mail.example"}'),
        (r'{"a":"two\u0040corp.io"}', '{"a":"hidden-1@mail.example"}'),
        ("?to=two%40corp.io&x=1", "?to=hidden-1@mail.example&x=1"),
        ("redis://:s3cret@db:6379/0", "redis://:REDACTED-1@db:6379/0"),
        ('{"password":"hunter2"}', '{"password":"REDACTED-1"}'),
        ('{"args":"{\\"pwd\\":\\"hunter2\\"}"}', '{"args":"{\\"pwd\\":\\"REDACTED-1\\"}"}'),
        ("api-key: 0123456789abcdef", "api-key: REDACTED-1xxxxxx"),
        (f"{KEY}.", f"sk-proj-REDACTED-1{'x' * 30}."),
        ("sk-ant-api03-Ab3dEf6hIj", "sk-ant-REDACTED-1" + "x" * 15),
        ("the key is sk-Ab3dEf6hI", "the key is sk-REDACTED-1"),
    ],
)
def test_placeholders(text, clean):
    """A placeholder has the kind and the number of the secret; the text around it stays."""
    assert Redactor().text(text) == clean


def test_same_secret_same_placeholder():
    """A secret has one placeholder in request and reply, in every encoding; another secret has
    another one."""
    text = f"{KEY} and bob@corp.io and eve@corp.io"
    body = json.dumps({"messages": [{"content": text}]}).encode()
    reply = sse(*[delta(text[at : at + 3]) for at in range(0, len(text), 3)])
    clean = Redactor().exchange(exchange(body, reply))
    content = json.loads(clean.request_body)["messages"][0]["content"]
    events = [json.loads(line[6:]) for line in clean.body.decode().split("\n\n")[:-1]]
    assert content == "".join(event["choices"][0]["delta"]["content"] for event in events)
    assert "hidden-1@mail.example and hidden-2@mail.example" in content


def test_secrets_known_by_their_name_only():
    """A value that only a header, the query or a field marks as secret is replaced everywhere."""
    token, password = "Zq8x0Vb2Nm4Kl6Jh", "correct7horse"
    body = json.dumps({"login": {"password": password}, "q": f"say {token}"}).encode()
    reply = sse(delta(f"You said {token[:9]}"), delta(f"{token[9:]} and {password}."))
    headers = [("x-api-key", token), ("content-type", "application/json")]
    clean = Redactor().exchange(exchange(body, reply, request_headers=headers))
    assert clean.request_headers == (("content-type", "application/json"),)
    left = repr(clean)
    assert token not in left
    assert token[:9] not in left
    assert password not in left


def test_words_of_headers_and_parameters_stay_in_bodies():
    """The name of a model, of a field and of an account in another name, and the URLs of prose."""
    realm = "https://auth.docker.test/v2/token/of/a/service"
    answer = {
        "model": "gpt-5.2-chat",
        "inferenceProviderMapping": {"live": "gpt-5.2-chat"},
        "text": f"see {realm}/more and https://github.test/acme-corp/acme-corp-tools-for-all",
    }
    reply = json.dumps(answer).encode()
    headers = [
        ("x-ratelimit-key", "gpt-5.2-chat"),
        ("www-authenticate", f'Bearer realm="{realm}",service="registry.docker.test"'),
        ("openai-organization", "acme-corp-tools-for-1"),
    ]
    url = "https://h.test/v1?expand=inferenceProviderMapping&of=inferenceProviderMapping"
    assert Redactor().exchange(exchange(reply=reply, headers=headers, url=url)).body == reply


def test_a_model_is_never_known_from_elsewhere():
    """Nor is the name of a field, even where a key has the same value; in a text it is replaced."""
    name = "house-model-of-the-team-7"
    reply = json.dumps({"model": name, name: [name]}).encode()
    headers = [("x-api-key", name)]
    clean = json.loads(Redactor().exchange(exchange(reply=reply, request_headers=headers)).body)
    assert clean["model"] == name
    assert name not in clean[name]
    streamed = sse({"model": name}, {"model": name})
    clean = Redactor().exchange(exchange(reply=streamed, request_headers=headers))
    assert clean.body == streamed


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("openai-organization", "acme-prod-7781", True),
        ("x-tenant", "acme-prod-7781", True),
        ("x-title", "acme-prod-7781", False),
        ("x-title", "Bearer Zq8x0Vb2Nm4Kl6Jh", True),
        ("x-api-key", "abc12345", True),
        ("x-api-key", "abc1234", False),
        ("x-api-key", "abcdefgh", False),
    ],
)
def test_values_of_headers_in_bodies(name, value, found):
    """A credential or customer id in a header is replaced in bodies too, from 8 characters on if it
    could not be a word."""
    word = value.rpartition(" ")[2]
    reply = f"You are {word}, I see.".encode()
    clean = Redactor().exchange(exchange(reply=reply, request_headers=[(name, value)]))
    assert (word.encode() not in clean.body) is found


def test_headers():
    """Only the request headers on the list are kept. Reply headers that are not known to be
    harmless become `REDACTED`."""
    redactor = Redactor(Rules(headers=("x-trace",)))
    request = (("authorization", "Bearer x"), ("openai-organization", "acme"), ("x-trace", "1"))
    assert kept_headers(redactor, request) == (("x-trace", "1"),)
    reply = (
        ("content-type", "text/event-stream"),
        ("set-cookie", "__cf_bm=abc; path=/"),
        ("openai-organization", "acme"),
        ("x-ratelimit-remaining-tokens", "149999"),
        ("retry-after", "2"),
    )
    clean = dict(kept_headers(redactor, reply, reply=True))
    assert clean["set-cookie"] == clean["openai-organization"] == "REDACTED"
    assert [clean[name] for name, _ in (reply[0], reply[3], reply[4])] == [
        "text/event-stream",
        "149999",
        "2",
    ]


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://h/v1/models?key=Abc123def456", "https://h/v1/models?key=REDACTED-1xxxxxx"),
        ("https://h/v1/m:streamGenerateContent?alt=sse&key=kLm4nOp5", "…?alt=sse&key=REDACTED-1"),
        ("https://h/x?api-version=2024-10-21&limit=20", "…?api-version=2024-10-21&limit=20"),
        ("https://h/x?who=Somebody%20Else&key=pear", "…?who=Somebody%20Else&key=pear"),
        ("https://joe:pw@h/v1", "https://h/v1"),
        ("https://h/v1/projects/acme-prod/locations/eu", "https://h/v1/projects/REDACTED-1/locations/eu"),
    ],
)  # fmt: skip
def test_urls(url, clean):
    """User, password, account ids and secret values of parameters are removed; words stay."""
    expected = clean.replace("…", url.partition("?")[0])
    assert kept_url(url) == expected
    assert kept_url(expected) == expected


def test_json_paths_and_patterns():
    """Configured paths and patterns hide texts, numbers and nested values, and nothing else."""
    rules = Rules(patterns=(r"cust-(\d+)",), json_paths=("$.user", "$..address", "$.tags[*].id"))
    value = {
        "user": "joe",
        "n": 5,
        "to": {"address": {"street": "Main St 1", "zip": 12345}},
        "tags": [{"id": "t1", "name": "x"}],
        "text": "for cust-4711",
    }
    assert Redactor(rules).json(value) == {
        "user": "REDACTED-1",
        "n": 5,
        "to": {"address": {"street": "REDACTED-2", "zip": 0}},
        "tags": [{"id": "REDACTED-3", "name": "x"}],
        "text": "for cust-REDACTED-4",
    }


def test_numbers_that_a_pattern_finds():
    """A secret number becomes 0, so that it stays a number."""
    assert (
        Redactor(Rules(patterns=(r"\d{16}",))).text('{"card": 4111111111111111}') == '{"card": 0}'
    )


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_bodies(encoding):
    """A secret in a compressed body is replaced; the body is then uncompressed, with its length. A
    body without secrets is unchanged."""
    pack = gzip.compress if encoding == "gzip" else zlib.compress
    headers = [
        ("content-encoding", encoding),
        ("content-length", "5"),
        ("content-type", "text/plain"),
    ]
    packed = pack(f"it is {KEY}".encode())
    clean = Redactor().exchange(
        exchange(pack(KEY.encode()), packed, request_headers=headers, headers=headers)
    )
    assert clean.request_body.startswith(b"sk-proj-REDACTED-1")
    assert clean.body.startswith(b"it is sk-proj-REDACTED-1")
    for pairs, body in ((clean.request_headers, clean.request_body), (clean.headers, clean.body)):
        assert dict(pairs) == {"content-length": str(len(body)), "content-type": "text/plain"}
    harmless = exchange(reply=pack(b"nothing"), headers=headers)
    assert Redactor().exchange(harmless) == harmless


def test_unknown_compression():
    """A body that cannot be searched is refused."""
    with pytest.raises(WireError, match="compressed as 'compress', which mockllm cannot read"):
        Redactor().exchange(exchange(reply=b"\x0b", headers=[("content-encoding", "compress")]))


def test_content_length_of_an_answer_that_was_cut():
    """It stays the length of the whole answer."""
    reply = b'{"content":"' + KEY.encode()
    captured = exchange(reply=reply, headers=[("content-length", "1000")], cut="upstream")
    clean = Redactor().exchange(captured)
    assert clean.header("content-length") == str(1000 + len(clean.body) - len(reply))


@for_all("at", range(1, 70, 3))
def test_streams_that_break_off(at):
    """A secret at the end of a stream that breaks off is hidden, wherever it is cut."""
    body = sse(delta("the key is " + KEY[:9]), delta(KEY[9:]))
    body = body[: len(body) - at]
    clean = Redactor().exchange(
        exchange(reply=body, cut="upstream", request_headers=[("x-api-key", KEY)])
    )
    assert not any(KEY[n : n + 12].encode() in clean.body for n in range(len(KEY) - 11))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_frames_stay(end):
    """Line ends, comments, event names and data of several lines are unchanged."""
    lines = [
        "\ufeff: ping bob@corp.io",
        "event: chunk",
        'data: {"delta":',
        f'data: "{KEY}"}}',
        "",
        "",
    ]
    text = end.join(lines)
    clean = Redactor().exchange(exchange(reply=text.encode())).body.decode()
    expected = text.replace("bob@corp.io", "hidden-1@mail.example")
    assert clean == expected.replace(KEY, "sk-proj-REDACTED-1" + "x" * 30)


def test_invalid_utf8():
    """Bytes that are not UTF-8 are searched too, and stay."""
    clean = Redactor().exchange(exchange(reply=(b"\xff\xfe" + KEY.encode(), b"\x80\xf0")))
    assert clean.body.startswith(b"\xff\xfesk-proj-REDACTED-1x")
    assert clean.chunks[1].data.endswith(b"\x80\xf0")


def test_conversations_that_the_service_keeps():
    """A request that continues an answer by its id has the same placeholders as that answer."""
    first = exchange(b'{"input":"bob@corp.io, eve@corp.io"}', b'{"id":"resp_1"}')
    second = exchange(
        b'{"input":"eve@corp.io?","previous_response_id":"resp_1"}', b'{"id":"resp_2"}'
    )
    redactor = Redactor()
    redactor.exchange(first)
    assert b"hidden-2@mail.example?" in redactor.exchange(second).request_body
    assert b"hidden-1@mail.example?" in Redactor().exchange(second).request_body


def test_patterns_for_matching():
    """The pattern of a redacted text matches the real text, and no other."""
    import re

    pattern = Redactor().pattern("Mail bob@corp.io about 3 (three) things")
    assert pattern is not None
    assert re.search(pattern, "Mail eve@x.org about 3 (three) things")
    assert not re.search(pattern, "Mail eve@x.org about 4 (three) things")


def test_rules_from_a_file(tmp_path):
    """The rules of the table [redact] and of the options are combined."""
    file = tmp_path / "mockllm.toml"
    file.write_text(
        "[redact]\npatterns = ['a-\\d+']\njson_paths = ['$.user']\nheaders = ['X-Trace']\n"
    )
    rules = rules_from(file, ["b"], ["$.c"])
    assert rules == Rules(("a-\\d+", "b"), ("$.user", "$.c"), ("x-trace",))
    assert rules_from() == Rules()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[redact", "TOML"),
        ("redact = 1", "table"),
        (
            "[redact]\npattern = []",
            "'pattern'; what it may have is headers, json_paths, keep, kinds, patterns; "
            "did you mean 'patterns'?",
        ),
        ("[redact]\npatterns = 'a'", "list of strings"),
        ("[redact]\npatterns = ['(']", "regular expression"),
        ("[redact]\npatterns = ['a*']", "the empty text"),
        ("[redact]\njson_paths = ['user']", "no path that is known here"),
        ("[redact]\njson_paths = ['$.a[?(@.b)]']", "no path that is known here"),
    ],
)
def test_rules_that_cannot_be_read(tmp_path, text, message):
    """A mistake is reported with the correct form."""
    file = tmp_path / "mockllm.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        rules_from(file)
    assert message in str(caught.value)


@given(
    st.sampled_from(["access_token", "client_secret", "api_key", "password", "sig"]),
    st.text("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNP", min_size=12, max_size=30),
    st.sampled_from(["", "&state=1", "&scope=all&x=y", "&next", "#end"]),
    st.integers(0, 2),
)
def test_a_secret_of_a_url_that_is_a_parameter_of_another(name, letters, rest, depth):
    """Whatever follows the secret, and however often the inner URL is encoded."""
    secret = f"{letters[:6]}7{letters[6:]}94"
    inner = f"https://a.example/cb?{name}={secret}{rest}"
    for _ in range(depth):
        inner = f"https://b.example/?redirect={quote(inner, safe='')}&y=2"
    for text in (inner, f'{{"url": "{inner}"}}'):
        assert secret not in Redactor().text(text)
