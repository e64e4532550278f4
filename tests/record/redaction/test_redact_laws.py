"""Laws of redaction, which hold for all texts, however they are cut."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.rules import Rules
from tests.record.redaction.secrets import found_in

SECRETS = (
    "sk-proj-Ab3dEfGh1jKlMn0pQrStUv",
    "alice.wonder@corp-mail.io",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "Bearer abcdef0123456789",
    "https://joe:s3cr3tpw@db.host/x",
    "password = 'letmein99'",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "acme-4711",
)
RULES = Rules(patterns=(r"acme-\d+",))
parts = st.one_of(st.sampled_from(SECRETS), st.text(max_size=12), st.sampled_from(' "\n\\%/@:={}'))
texts = st.lists(parts, max_size=8).map("".join)
cuts = st.lists(st.integers(0, 400), max_size=12)


def cut(text, positions):
    """A text in parts."""
    ends = sorted({min(position, len(text)) for position in positions} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def chat(fragments):
    """A stream of chat chunks, one for each fragment."""
    frames = [{"choices": [{"index": 0, "delta": {"content": fragment}}]} for fragment in fragments]
    return "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + "data: [DONE]\n\n"


def deltas(stream):
    """The joined text of the deltas of such a stream."""
    frames = [json.loads(line[6:]) for line in stream.split("\n\n")[:-2]]
    return [frame["choices"][0]["delta"]["content"] for frame in frames]


def captured(chunks, body=b"{}", **more):
    """An exchange."""
    timed = tuple(TimedBytes(7 * index, chunk) for index, chunk in enumerate(chunks))
    given = {"request_headers": (), "headers": (), **more}
    return Captured(
        "POST", "https://api.openai.com/v1/chat/completions", request_body=body, status=200,
        chunks=timed, **given,
    )  # fmt: skip


@given(texts)
def test_idempotent(text):
    """Redacting redacted text changes nothing."""
    redactor = Redactor(RULES)
    once = redactor.text(text)
    assert redactor.text(once) == once
    assert found_in(redactor, once) == ()


@given(st.dictionaries(st.text(max_size=8), texts, max_size=4))
def test_json_stays_json(value):
    """A JSON document stays one with the same names, whatever secrets are in its strings."""
    written = json.dumps(value)
    clean = json.loads(Redactor().text(written))
    assert len(clean) == len(value)
    assert Redactor().json(value).keys() == clean.keys()


@given(texts, cuts)
def test_stream_text_does_not_depend_on_cuts(text, positions):
    """The joined text of a stream does not depend on how it was cut into deltas, and no delta
    that had text becomes empty."""
    whole = deltas(Redactor(RULES).text(chat([text])))
    fragments = cut(text, positions)
    clean = deltas(Redactor(RULES).text(chat(fragments)))
    assert "".join(clean) == "".join(whole)
    assert [bool(one) for one in clean] == [bool(fragment) for fragment in fragments]


@given(texts, cuts)
def test_chunks_are_kept(text, positions):
    """The number and the times of the chunks are the same, none is empty, and their bytes are those
    of the stream in one chunk."""
    body = chat(cut(text, positions)).encode()
    chunks = [body[start : start + 37] for start in range(0, len(body), 37)]
    clean = Redactor(RULES).exchange(captured(chunks))
    assert [chunk.at for chunk in clean.chunks] == [7 * index for index in range(len(chunks))]
    assert all(chunk.data for chunk in clean.chunks)
    assert clean.body == Redactor(RULES).exchange(captured([body])).body


harmless = st.text(
    st.characters(exclude_characters="@", exclude_categories=["Cs"]), max_size=40
).filter(lambda text: not any(sign in text for sign in ("sk-", "://", "=", ":")))


@given(st.lists(harmless, max_size=6), st.binary(max_size=60))
def test_bytes_without_secrets_are_unchanged(fragments, data):
    """Streams, JSON and other bodies stay byte for byte."""
    body = json.dumps({"messages": fragments}).encode()
    for chunks in ([chat(fragments).encode()], [data]):
        exchange = captured(chunks, body)
        assert Redactor().exchange(exchange) == exchange


@given(texts)
@example("alice.wonder@corp-mail.ioacme-4711")
@example(
    "AIzaSyA1234567890abcdefghijklmnopqrstuvsk-proj-Ab3dEfGh1jKlMn0pQrStUv:"
    "alice.wonder@corp-mail.iosk-proj-Ab3dEfGh1jKlMn0pQrStUv"
)
def test_patterns_find_both(text):
    """The pattern of a text matches the original and the redacted text."""
    import re

    redactor = Redactor(RULES)
    pattern = redactor.pattern(text)
    clean = redactor.text(text)
    if pattern is None:
        assert clean == text
        return
    assert re.search(pattern, text)
    assert re.search(pattern, clean)
    assert redactor.pattern(clean) == pattern
