"""Laws of redaction: what holds for all texts, however they are cut."""

import json

from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.timed_bytes import TimedBytes
from mockllm.redaction.redact import Redactor, Rules
from mockllm.tapes.captured import Captured

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
words = st.one_of(st.sampled_from(SECRETS), st.text(max_size=12), st.sampled_from(' "\n\\%/@:={}'))
texts = st.lists(words, max_size=8).map("".join)
cuts = st.lists(st.integers(0, 400), max_size=12)


def cut(text, places):
    """A text in pieces."""
    ends = sorted({min(place, len(text)) for place in places} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def chat(fragments):
    """A stream of chat chunks, one for each fragment."""
    frames = [{"choices": [{"index": 0, "delta": {"content": one}}]} for one in fragments]
    return "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + "data: [DONE]\n\n"


def said(stream):
    """What the deltas of such a stream add up to."""
    frames = [json.loads(line[6:]) for line in stream.split("\n\n")[:-2]]
    return [frame["choices"][0]["delta"]["content"] for frame in frames]


def captured(chunks, body=b"{}", **more):
    """An exchange."""
    pieces = tuple(TimedBytes(7 * index, chunk) for index, chunk in enumerate(chunks))
    given = {"request_headers": (), "headers": (), **more}
    return Captured(
        "POST", "https://api.openai.com/v1/chat/completions", request_body=body, status=200,
        chunks=pieces, **given,
    )  # fmt: skip


@given(texts)
def test_idempotent(text):
    """What is redacted has nothing more to redact."""
    redactor = Redactor(RULES)
    once = redactor.text(text)
    assert redactor.text(once) == once
    assert redactor.found(once) == ()


@given(st.dictionaries(st.text(max_size=8), texts, max_size=4))
def test_json_stays_json(value):
    """A JSON document stays one, with the same names, whatever secrets are in its strings."""
    written = json.dumps(value)
    clean = json.loads(Redactor().text(written))
    assert len(clean) == len(value)
    assert Redactor().json(value).keys() == clean.keys()


@given(texts, cuts)
def test_stream_says_the_same_however_it_is_cut(text, places):
    """The joined text of a stream does not depend on how it was cut into deltas, and no delta
    that said something says nothing."""
    whole = said(Redactor(RULES).text(chat([text])))
    fragments = cut(text, places)
    pieces = said(Redactor(RULES).text(chat(fragments)))
    assert "".join(pieces) == "".join(whole)
    assert [bool(piece) for piece in pieces] == [bool(fragment) for fragment in fragments]


@given(texts, cuts)
def test_chunks_are_kept(text, places):
    """There are as many chunks as before, at the same times, none of them empty, and their
    bytes are those of the stream in one chunk."""
    body = chat(cut(text, places)).encode()
    chunks = [body[start : start + 37] for start in range(0, len(body), 37)]
    clean = Redactor(RULES).captured(captured(chunks))
    assert [piece.at for piece in clean.chunks] == [7 * index for index in range(len(chunks))]
    assert all(piece.data for piece in clean.chunks)
    assert clean.body == Redactor(RULES).captured(captured([body])).body


harmless = st.text(
    st.characters(exclude_characters="@", exclude_categories=["Cs"]), max_size=40
).filter(lambda text: not any(sign in text for sign in ("sk-", "://", "=", ":")))


@given(st.lists(harmless, max_size=6), st.binary(max_size=60))
def test_nothing_changes_where_there_is_no_secret(fragments, data):
    """Not a byte changes, of streams, of JSON, of anything."""
    body = json.dumps({"messages": fragments}).encode()
    for chunks in ([chat(fragments).encode()], [data]):
        exchange = captured(chunks, body)
        assert Redactor().captured(exchange) == exchange


@given(texts)
def test_patterns_find_both(text):
    """The pattern of a text finds the text as it was and as it is redacted."""
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
