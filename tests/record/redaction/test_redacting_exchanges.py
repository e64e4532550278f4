"""Exchanges without their secrets: rules, bodies, lengths, and conversations that go on."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from mockllm.core.errors import UsageError
from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured
from mockllm.record.redaction import redact as module
from mockllm.record.redaction.placeholders import Placeholders
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.rules import Rules, rules_from
from tests.record.redaction.secrets import found_in, kept_headers

URL = "https://api.openai.com/v1/responses"
EVE, BOB = "eve@corp.io", "bob@corp.io"


def exchange(
    body: bytes = b"{}",
    reply: bytes = b"{}",
    *,
    sent: tuple[tuple[str, str], ...] = (),
    headers: tuple[tuple[str, str], ...] = (),
    url: str = URL,
    cut: str = "",
) -> Captured:
    chunks = (TimedBytes(0, reply[:20]), TimedBytes(5, reply[20:]))
    return Captured("POST", url, sent, body, 200, headers, chunks, cut, source="x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "placeholder",
    [
        "<OPENAI_ACCESS_TOKEN>",
        "[ACCESS_TOKEN_OF_THE_TEST]",
        "{{OPENAI_ACCESS_TOKEN_OF_US}}",
        "SCRUBBED_SECRET_ACCESS_KEY",
        "ya29.FILTERED_ACCESS_TOKEN_XXX",
    ],
)
def test_a_placeholder_of_another_recorder_is_no_secret(placeholder: str) -> None:
    """In a header, in a field and in a text; a pattern of the user finds it nevertheless."""
    reply = json.dumps({"secretAccessKey": placeholder, "error": f"Wrong key: {placeholder}."})
    sent = (("authorization", f"Bearer {placeholder}"),)
    given = exchange(reply=reply.encode(), sent=sent)
    assert Redactor().exchange(given).body == given.body
    pattern = Redactor(Rules((re.escape(placeholder),)))
    assert placeholder.encode() not in pattern.exchange(given).body


# Rules


def file_with(path: Path, text: str) -> Path:
    file = path / "mockllm.toml"
    file.write_text(text)
    return file


def test_the_rules_of_a_file_and_of_options(tmp_path: Path) -> None:
    """Those of the file come first; names of headers are in lower case."""
    file = file_with(
        tmp_path, '[redact]\npatterns = ["a+"]\njson_paths = ["$.a"]\nheaders = ["X-One"]\n'
    )
    assert rules_from(file, ["b+"], ["$.b"]) == Rules(("a+", "b+"), ("$.a", "$.b"), ("x-one",))
    assert rules_from(None, ["b+"]) == Rules(("b+",))
    assert rules_from() == Rules((), (), ())
    assert rules_from(file_with(tmp_path, "[other]\nx = 1\n")) == Rules()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[redact", "{file} must be a TOML file: "),
        ("redact = 5", "{file}: `redact` must be a table, [redact]"),
        (
            "[redact]\nz = 1\npattern = 2",
            "{file}: [redact] has 'pattern'; what it may have is headers, json_paths, keep, "
            "kinds, patterns; did you mean 'patterns'?",
        ),
        ("[redact]\npatterns = 5", "{file}: [redact] patterns must be a list of strings, got 5"),
        (
            "[redact]\njson_paths = [5]",
            "{file}: [redact] json_paths must be a list of strings, got [5]",
        ),
        ('[redact]\nheaders = "x"', "{file}: [redact] headers must be a list of strings, got 'x'"),
        (
            '[redact]\npatterns = ["("]',
            "{file}: [redact] patterns: '(' must be a regular expression of Python; missing )",
        ),
        (
            '[redact]\npatterns = ["a*"]',
            "{file}: [redact] patterns: 'a*' matches the empty text too; a secret has a character",
        ),
        ('[redact]\njson_paths = ["a"]', "{file}: [redact] json_paths: 'a' is no path "),
    ],
)
def test_rules_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    """The file and what is wrong in it."""
    file = file_with(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        rules_from(file)
    assert str(caught.value).startswith(message.format(file=file))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """And one that is no text."""
    with pytest.raises(UsageError, match="must be a TOML file"):
        rules_from(tmp_path / "none.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="must be a TOML file"):
        rules_from(tmp_path / "b.toml")


@pytest.mark.parametrize("pattern", ["(", "a{99999999999}", "((a" * 5, "((a{1000}){1000}){1000}"])
def test_a_pattern_that_cannot_be_read(pattern: str) -> None:
    """The redactor refuses it as well."""
    with pytest.raises(UsageError, match=re.escape(repr(pattern))):
        Redactor(Rules((pattern,)))


# Texts, headers, URLs


def test_texts_and_values() -> None:
    """A text without secrets is the same object; a value stays a value."""
    redactor = Redactor()
    value = {"a": "plain", "n": 1}
    assert redactor.json(value) is value
    assert redactor.json({"a": EVE, "é": [f"ü {BOB}"], "n": 1}) == {
        "a": "hidden-1@mail.example",
        "é": ["ü hidden-2@mail.example"],
        "n": 1,
    }
    assert redactor.text(f"{EVE} {EVE} {BOB}") == (
        "hidden-1@mail.example hidden-1@mail.example hidden-2@mail.example"
    )
    assert [one.kind for one in found_in(redactor, f"{EVE} x")] == ["e-mail address"]


def test_each_text_is_numbered_from_one() -> None:
    """But not with numbers that it has already."""
    redactor = Redactor()
    assert redactor.text(EVE) == redactor.text(BOB) == "hidden-1@mail.example"
    assert redactor.text(f"hidden-3@mail.example {EVE}") == (
        "hidden-3@mail.example hidden-4@mail.example"
    )


def test_headers_by_themselves() -> None:
    """A secret in one of them is one in all."""
    redactor = Redactor(Rules(headers=("x-mine",)))
    pairs = [("user-agent", f"a {EVE}"), ("x-mine", f"b {EVE}"), ("x-other", "c")]
    hidden = "hidden-1@mail.example"
    assert kept_headers(redactor, pairs) == (
        ("user-agent", f"a {hidden}"),
        ("x-mine", f"b {hidden}"),
    )
    assert kept_headers(redactor, iter(pairs), reply=True) == (
        ("user-agent", f"a {hidden}"),
        ("x-mine", f"b {hidden}"),
        ("x-other", "c"),
    )


def test_a_pattern_for_a_text() -> None:
    """It finds the text as it was and as it is now; None where nothing is hidden."""
    redactor = Redactor()
    pattern = redactor.pattern(f"ask {EVE} (now)")
    assert pattern is not None
    for text in (f"ask {EVE} (now)", redactor.text(f"ask {EVE} (now)")):
        assert re.search(pattern, text)
    assert redactor.pattern("ask (now)") is None


# Exchanges


def test_secrets_are_numbered_by_their_place() -> None:
    """URL, request, answer, headers."""
    one = exchange(
        b'{"a": "x1@corp.io"}',
        b'{"a": "x2@corp.io", "b": "x1@corp.io"}',
        sent=(("user-agent", "x3@corp.io"),),
        headers=(("server", "x4@corp.io"),),
        url=f"{URL}?sig=abc45678",
    )
    clean = Redactor().exchange(one)
    assert clean.url == f"{URL}?sig=REDACTED-1"
    assert clean.request_body == b'{"a": "hidden-1@mail.example"}'
    assert clean.body == b'{"a": "hidden-2@mail.example", "b": "hidden-1@mail.example"}'
    assert clean.request_headers == (("user-agent", "hidden-3@mail.example"),)
    assert clean.headers == (("server", "hidden-4@mail.example"),)
    assert [chunk.at for chunk in clean.chunks] == [0, 5]


def test_an_exchange_without_secrets_stays_as_it_is() -> None:
    """Its bodies are the same bytes, compressed if they were, and its headers stay."""
    packed = gzip.compress(b'{"a": "plain"}')
    coding = (("content-encoding", "gzip"), ("content-length", "5"))
    one = exchange(packed, packed, sent=coding, headers=(*coding, ("x-other", "y")))
    clean = Redactor().exchange(one)
    assert (clean.request_body, clean.chunks) == (one.request_body, one.chunks)
    assert clean.request_headers == coding
    assert clean.headers == (*coding, ("x-other", "y"))


def test_a_compressed_request_with_a_secret() -> None:
    """It is no longer compressed, and has its new length."""
    packed = gzip.compress(json.dumps({"a": EVE}).encode())
    for coding in ("gzip", " GZIP "):
        sent = (("content-encoding", coding), ("content-length", "5"), ("accept", "x"))
        clean = Redactor().exchange(exchange(packed, sent=sent))
        assert clean.request_body == b'{"a": "hidden-1@mail.example"}'
        assert clean.request_headers == (("content-length", "30"), ("accept", "x"))


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
def test_a_request_that_is_not_compressed(coding: str) -> None:
    """Some clients say so in a header, which stays."""
    sent = (("content-encoding", coding), ("accept", "x"))
    clean = Redactor().exchange(exchange(json.dumps({"a": EVE}).encode(), sent=sent))
    assert clean.request_body == b'{"a": "hidden-1@mail.example"}'
    assert clean.request_headers == sent


@pytest.mark.parametrize(("cut", "length"), [("", "30"), ("upstream", "110"), ("client", "110")])
def test_the_length_of_an_answer(cut: str, length: str) -> None:
    """That of the new body; of an answer that was cut it changes by as much."""
    one = exchange(
        b"{}", json.dumps({"a": EVE}).encode(), headers=(("content-length", "100"),), cut=cut
    )
    clean = Redactor().exchange(one)
    assert clean.body == b'{"a": "hidden-1@mail.example"}'
    assert clean.headers == (("content-length", length),)


def test_the_length_of_a_compressed_answer_that_was_cut() -> None:
    """Its length without the cut is not known."""
    packed = gzip.compress(json.dumps({"a": EVE}).encode())
    headers = (("content-encoding", "gzip"), ("content-length", "100"), ("server", "x"))
    clean = Redactor().exchange(exchange(b"{}", packed, headers=headers, cut="upstream"))
    assert b"hidden-1@mail.example" in clean.body
    assert clean.headers == (("server", "x"),)


def test_bytes_that_are_no_utf_8_stay() -> None:
    """In request and answer."""
    clean = Redactor().exchange(exchange(b"\xff eve@corp.io", b"\xfe bob@corp.io \xfd"))
    assert clean.request_body == b"\xff hidden-1@mail.example"
    assert clean.body == b"\xfe hidden-2@mail.example \xfd"


def test_placeholders_of_others() -> None:
    """Exchanges that belong together share them."""
    placeholders = Placeholders()
    placeholders.give(BOB)
    clean = Redactor().exchange(exchange(f"{BOB} {EVE}".encode()), placeholders)
    assert clean.request_body == b"hidden-1@mail.example hidden-2@mail.example"
    assert placeholders.known == (BOB, EVE)


# Conversations


def response(id: str, text: str) -> bytes:
    return json.dumps({"id": id, "object": "response", "text": text}).encode()


def asking(text: str, **fields: object) -> bytes:
    return json.dumps({"input": text, **fields}).encode()


def after(redactor: Redactor, **fields: object) -> str:
    """What a request that continues gets in place of Bob."""
    clean = redactor.exchange(exchange(asking(BOB, **fields), response("resp_9", "x")))
    return str(json.loads(clean.request_body)["input"])


def begun(id: str = "resp_1", **fields: object) -> Redactor:
    """A redactor that has seen an exchange in which Eve was first and Bob second."""
    redactor = Redactor()
    redactor.exchange(exchange(asking(f"{EVE} {BOB}", **fields), response(id, "x")))
    return redactor


def test_a_request_that_continues_has_the_same_placeholders() -> None:
    """Of an answer by its id, of a conversation by its name; other requests begin anew."""
    again = "hidden-2@mail.example"
    new = "hidden-1@mail.example"
    assert after(begun(), previous_response_id="resp_1") == again
    assert after(begun(), previous_response_id="resp_2") == new
    assert after(begun()) == new
    assert after(begun(), previous_response_id=5) == new
    assert after(begun(id="other_1"), previous_response_id="other_1") == new
    assert after(begun(conversation="conv_1"), conversation="conv_1") == again
    assert after(begun(conversation="conv_1"), conversation={"id": "conv_1"}) == again
    assert after(begun(conversation={"id": "conv_1"}), conversation="conv_1") == again
    assert after(begun(conversation={"id": "conv_1"}), conversation={"name": "conv_1"}) == new
    assert after(begun(conversation="conv_1"), conversation="conv_2") == new
    assert after(Redactor(), previous_response_id="resp_1") == new


def test_what_is_added_later_is_not_known_earlier() -> None:
    """Two requests that continue the same answer get the same number for different secrets."""
    redactor = begun()
    texts = []
    for name in ("x@corp.io", "y@corp.io"):
        clean = redactor.exchange(
            exchange(asking(name, previous_response_id="resp_1"), response("resp_2", "x"))
        )
        texts.append(json.loads(clean.request_body)["input"])
    assert texts == ["hidden-3@mail.example"] * 2


def test_only_the_first_id_of_an_answer_counts() -> None:
    """Others may be those of earlier answers; those far into a body are not looked for."""
    redactor = Redactor()
    body = response("resp_1", "x") + b' {"id": "resp_2"}'
    redactor.exchange(exchange(asking(f"{EVE} {BOB}"), body))
    assert list(redactor._kept) == ["resp_1"]
    redactor = Redactor()
    redactor.exchange(exchange(asking(EVE), b" " * 65536 + response("resp_1", "x")))
    assert list(redactor._kept) == []
    redactor.exchange(exchange(asking("plain"), response("resp_1", "x")))
    assert list(redactor._kept) == []


def test_answers_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are forgotten first."""
    monkeypatch.setattr(module, "_MOST_KEPT", 2)
    redactor = Redactor()
    for number in range(4):
        redactor.exchange(exchange(asking(EVE), response(f"resp_{number}", "x")))
        assert len(redactor._kept) == min(2, number + 1)
    assert list(redactor._kept) == ["resp_2", "resp_3"]


@pytest.mark.parametrize("body", [b"no json", b"[]", b'"x"', b"[" * 1_000_000])
def test_a_request_that_is_no_object_continues_nothing(body: bytes) -> None:
    """Even if it has the name of the field in it."""
    redactor = begun()
    clean = redactor.exchange(exchange(body + b' "previous_response_id" "conversation" x@corp.io'))
    assert clean.request_body.endswith(b"hidden-1@mail.example")
