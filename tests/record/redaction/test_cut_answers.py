"""Secrets in answers that arrive in parts: where they are cut changes nothing."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured
from mockllm.record.redaction.redact import Redactor

KEY = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2"
MAIL = "ada.lovelace@corp.io"
PASSWORD = "correct-horse-7-battery"
words = st.sampled_from(
    [
        "and then ",
        "it was ",
        KEY,
        KEY[:9],
        KEY[9:],
        MAIL,
        MAIL[:5],
        MAIL[5:],
        KEY.replace("k", "\\u006b"),
        base64.b64encode(f"the key is {KEY} now".encode()).decode(),
        MAIL.replace("@", "%40"),
        json.dumps({"password": PASSWORD}),
        PASSWORD,
        "é",
        "😀",
        "\r",
        "\n",
        "x" * 300,
        "lorem ipsum " * 40,
    ]
)
LONG = ["lorem ipsum " * 400, 'a "quoted" word, not long\n' * 2500]
texts = st.one_of(
    st.lists(words, min_size=1, max_size=6).map("".join),
    st.lists(words, min_size=1, max_size=6).map("".join),
    st.tuples(words, st.sampled_from(LONG), words).map("".join),
)
line_ends = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def chat_streams(draw):
    """Event streams whose texts are cut anywhere, and in several items."""
    end = draw(line_ends)
    out = []
    for index, text in enumerate(draw(st.lists(texts, min_size=1, max_size=3))):
        cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
        for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True):
            delta = {"type": "d", "index": index, "delta": {"text": text[start:stop]}}
            ascii_ = draw(st.booleans())
            out.append(f"data: {json.dumps(delta, ensure_ascii=ascii_)}{end}{end}")
            if draw(st.booleans()):
                out.append(f": {draw(texts).splitlines()[:1]}{end}")
    start = draw(st.sampled_from(["", "\ufeff", f"event: x{end}", f"hello{end}"]))
    return start + "".join(out) + draw(st.sampled_from(["", f"data: [DONE]{end}{end}"]))


bodies = st.one_of(
    chat_streams(),
    texts,
    texts.map(lambda text: json.dumps({"content": text, "password": PASSWORD})),
    st.lists(texts, max_size=3).map(lambda all_: "\n".join(json.dumps({"a": t}) for t in all_)),
    st.tuples(texts, st.integers(1, 40)).map(lambda t: json.dumps({"content": t[0]})[: -t[1]]),
)


def exchange(chunks, request=b"{}"):
    return Captured(
        "POST",
        "https://api.example/v1/chat/completions",
        (("authorization", f"Bearer {PASSWORD}"),),
        request,
        200,
        (("content-type", "text/event-stream"),),
        tuple(TimedBytes(at, data) for at, data in enumerate(chunks)),
    )


def cut(data, cuts):
    places = sorted({min(len(data), at) for at in cuts})
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


cuts = st.one_of(
    st.lists(st.integers(0, 80000), max_size=8), st.integers(1, 9).map(lambda n: range(0, 5000, n))
)


@given(bodies, cuts, st.sampled_from([b"{}", json.dumps({"user": MAIL}).encode()]))
def test_where_a_body_is_cut_changes_nothing(body, cuts, request):
    """The bytes after redaction are the same for every splitting of the answer."""
    data = body.encode()
    whole = Redactor().exchange(exchange([data], request))
    parts = Redactor().exchange(exchange(cut(data, cuts), request))
    assert parts.body == whole.body
    assert len(parts.chunks) == len(cut(data, cuts))
    assert parts.request_body == whole.request_body


@given(st.binary(max_size=200), cuts)
def test_bytes_that_are_no_text(data, cuts):
    """Bytes that are no UTF-8 stay as they are, wherever they are cut."""
    assert Redactor().exchange(exchange(cut(data, cuts))).body == data


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 3, 17, 4096])
def test_a_secret_that_is_cut_everywhere_is_found(size):
    """A key in the fragments of a stream, cut over events and over chunks, is replaced, also where
    it came before anything showed that it is a secret."""
    text = f"{PASSWORD} {'lorem ipsum ' * 1000} my password: {PASSWORD!r}, and {KEY}"
    events = "".join(
        f"data: {json.dumps({'choices': [{'delta': {'content': text[at : at + 7]}}]})}\n\n"
        for at in range(0, len(text), 7)
    ).encode()
    chunks = [events[at : at + size] for at in range(0, len(events), size)]
    clean = Redactor().exchange(exchange(chunks))
    joined = "".join(
        json.loads(line[6:])["choices"][0]["delta"]["content"]
        for line in clean.body.decode().split("\n\n")
        if line
    )
    assert PASSWORD not in joined
    assert KEY not in joined
    assert joined.count("REDACTED-") == 3
    assert len(clean.chunks) == len(chunks)
    assert all(chunk.data for chunk in clean.chunks)


@pytest.mark.parametrize("inside", ['{"a": "%s"}', 'data: {"id": "%s"}\n\n', "%s"])
def test_a_long_string_that_is_a_document(inside):
    """A document in a string of a JSON answer is searched again, too, when the end of the answer
    shows a secret."""
    long = inside % ("and so on, " * 8000 + PASSWORD)
    body = json.dumps({"content": long, "password": PASSWORD}).encode()
    clean = Redactor().exchange(exchange(cut(body, range(0, len(body), 999)), b"{}")).body
    assert PASSWORD.encode() not in clean
