"""Files without their secrets: what is reported, and what is written instead."""

from __future__ import annotations

import gzip
import json

import pytest

from mockllm.core import patterns
from mockllm.core.http import TimedBytes
from mockllm.play.replay.compilation.tape_player import is_unedited
from mockllm.play.replay.loading import loads
from mockllm.play.tapes.captured import Tape, dump_tape, load_tape
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.rules import Rules
from mockllm.record.redaction.scrub import FoundSecret, Scrubbed, scrub
from tests.play.tapes.making import UNKNOWN, Sent, changed, taped

SLOW = "(x+x+)+y"
"""A search for it takes longer than anyone waits."""

KEY = "sk-proj-" + "Ab3dEf6hIj" * 4
HIDDEN = "sk-proj-REDACTED-1" + "x" * 30


def scrubbed(**files: bytes | str) -> dict[str, Scrubbed]:
    """The files that had secrets; `__` in a name stands for a dot."""
    data = {
        name.replace("__", "."): one.encode() if isinstance(one, str) else one
        for name, one in files.items()
    }
    return {one.file: one for one in scrub(data, Redactor())}


def findings(one: Scrubbed) -> list[tuple[int, int, str]]:
    return [(found.line, found.column, found.kind) for found in one.findings]


def text(one: Scrubbed) -> str:
    assert one.content is not None
    return one.content.decode("utf-8", "surrogateescape")


def test_a_finding() -> None:
    """As compilers write positions."""
    assert str(FoundSecret("a.txt", 3, 7, "API key")) == "a.txt:3:7: API key"


def test_a_text() -> None:
    """Line and column of each secret, in order and once; lines end as they did."""
    one = scrubbed(a__txt=f"é eve@corp.io\r\n\nx {KEY} bob@corp.io\n{KEY}")["a.txt"]
    assert findings(one) == [
        (1, 3, "e-mail address"),
        (3, 3, "API key"),
        (3, 52, "e-mail address"),
        (4, 1, "API key"),
    ]
    assert {found.file for found in one.findings} == {"a.txt"}
    assert text(one) == (f"é hidden-1@mail.example\r\n\nx {HIDDEN} hidden-2@mail.example\n{HIDDEN}")


def test_files_without_secrets_are_not_listed() -> None:
    """Whatever they are."""
    plain = "scenario: a\nturns: [{reply: {text: x}}]\n"
    assert scrubbed(a__yaml=plain, b__txt="plain", c__json='{"a": "b"}', d__txt=b"\xff") == {}


def test_a_pattern_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file could not be searched, and is not written; the others are."""
    monkeypatch.setattr(patterns, "LIMIT", 0.02)
    number = "1" * 200
    files = {
        "slow.yaml": f"a: {'x' * 3000}@corp.io\n".encode(),
        "slow.txt": f"{'x' * 3000}@corp.io".encode(),
        "number.json": f'{{"a": {number}}}'.encode(),
        "quick.txt": b"eve@corp.io",
    }
    made = {one.file: one for one in scrub(files, Redactor(Rules(patterns=(SLOW,))))}
    for name in ("slow.yaml", "slow.txt"):
        (finding,) = made[name].findings
        assert made[name].content is None
        assert "cannot be searched: it is not known which secrets it has" in finding.kind
        assert SLOW in finding.kind
    assert text(made["quick.txt"]) == "hidden-1@mail.example"
    assert "number.json" not in made


def test_bytes_that_are_no_utf_8_stay() -> None:
    """In any file."""
    one = scrubbed(a__txt=b"\xff eve@corp.io \xfe")["a.txt"]
    assert one.content == b"\xff hidden-1@mail.example \xfe"


def test_a_secret_has_one_placeholder_in_all_files() -> None:
    """YAML comes first, because people read it; a secret that one file shows is one in all."""
    made = scrubbed(
        a__txt=f"bob@corp.io {KEY} no-one-knows-this-one-99",
        b__yaml="a: eve@corp.io\n",
        c__json='{"password": "no-one-knows-this-one-99"}',
        d__yml="a: bob@corp.io\n",
    )
    assert list(made) == ["b.yaml", "d.yml", "a.txt", "c.json"]
    assert text(made["b.yaml"]) == "a: hidden-1@mail.example\n"
    assert text(made["d.yml"]) == "a: hidden-2@mail.example\n"
    assert text(made["c.json"]) == '{"password": "REDACTED-2xxxxxxxxxxxxxxxxxxxxxx"}'
    assert text(made["a.txt"]) == (
        f"hidden-2@mail.example {HIDDEN} REDACTED-2xxxxxxxxxxxxxxxxxxxxxx"
    )
    assert findings(made["a.txt"])[-1][2] == "known secret"


def test_numbers_that_are_there_are_not_given_again() -> None:
    """Placeholders of an earlier run belong to other secrets."""
    made = scrubbed(a__txt="REDACTED-4", b__txt='{"password": "hunter22"}')
    assert text(made["b.txt"]) == '{"password": "REDACTED-5"}'


YAML = f"""\
a: x # eve@corp.io
b: {KEY}
split: ['{KEY[:20]}', "{KEY[20:]}"]
c: eve@corp.io
"""


def test_yaml() -> None:
    """Values with the place of their scalar, then comments; fragments are joined."""
    one = scrubbed(a__yaml=YAML)["a.yaml"]
    assert findings(one) == [
        (1, 8, "e-mail address"),
        (2, 4, "API key"),
        (3, 9, "API key"),
        (4, 4, "e-mail address"),
    ]
    expected = YAML.replace("eve@corp.io", "hidden-1@mail.example").replace(
        f"b: {KEY}", f"b: {HIDDEN}"
    )
    expected = expected.replace(KEY[:20], HIDDEN[:20]).replace(KEY[20:], HIDDEN[20:])
    assert text(one) == expected


def test_yaml_that_is_none() -> None:
    """It is searched as any other text."""
    one = scrubbed(a__yaml="a: [ eve@corp.io")["a.yaml"]
    assert (text(one), findings(one)) == (
        "a: [ hidden-1@mail.example",
        [(1, 6, "e-mail address")],
    )


# Tapes


EVENTS = (("content-type", "text/event-stream"), ("content-length", "200"))
URL = "https://odd.test/v1/chat?alt=sse"


def frames(*texts: str) -> tuple[TimedBytes, ...]:
    events = [{"choices": [{"index": 0, "delta": {"content": one}}]} for one in texts]
    return tuple(
        TimedBytes(n * 10, f"data: {json.dumps(event)}\n\n".encode())
        for n, event in enumerate(events)
    )


def tape(
    *texts: str,
    url: str = URL,
    headers: tuple[tuple[str, str], ...] = (),
    body: bytes = b"{}",
    answer: tuple[tuple[str, str], ...] = EVENTS,
) -> Tape:
    request = Sent("POST", url, headers, body)
    return taped("chat", True, 200, answer, frames(*texts), request=request)


def of_tape(one: Tape) -> tuple[list[tuple[int, int, str]], Tape] | None:
    """What is found in a tape, and the tape that is written instead."""
    made = scrubbed(a__jsonl=dump_tape(one))
    if not made:
        return None
    content = made["a.jsonl"].content
    assert content is not None
    return findings(made["a.jsonl"]), load_tape(content, "a.jsonl")


def test_a_tape_without_secrets() -> None:
    """It is not listed."""
    assert of_tape(tape("plain")) is None
    assert of_tape(changed(tape("plain"), request=UNKNOWN)) is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"url": f"{URL}&sig=abc45678"}, (1, 1, "URL of the request")),
        ({"headers": (("user-agent", "eve@corp.io"),)}, (1, 1, "headers of the request")),
        ({"body": b'{"a": "eve@corp.io"}'}, (1, 1, "body of the request")),
        ({"answer": (*EVENTS, ("x-own-key", "v"))}, (1, 1, "headers of the answer")),
    ],
)
def test_secrets_in_the_first_line_of_a_tape(
    change: dict[str, object], expected: tuple[int, int, str]
) -> None:
    """One finding for the line, which says where the first of them is."""
    found = of_tape(tape("plain", **change))  # type: ignore[arg-type]
    assert found is not None
    assert found[0] == [expected]
    assert found[1].exchange.chunks == frames("plain")


def test_a_tape_with_several_secrets() -> None:
    """The first finding of each line; what is written has none of them."""
    full = tape(
        "plain",
        " a eve@corp.io ",
        "bob@corp.io",
        url=f"{URL}&sig=abc45678",
        headers=(("user-agent", "eve@corp.io"), ("authorization", "x")),
        body=b'{"a": "bob@corp.io"}',
        answer=(*EVENTS, ("x-own-key", "v")),
    )
    found = of_tape(full)
    assert found is not None
    assert found[0] == [(1, 1, "URL of the request"), (3, 1, "body of the answer")]
    exchange = found[1].exchange
    sent = exchange.method, exchange.url, exchange.request_headers, exchange.request_body
    assert sent == Sent(
        "POST",
        f"{URL}&sig=REDACTED-1",
        (("user-agent", "hidden-2@mail.example"),),
        b'{"a": "hidden-1@mail.example"}',
    )
    assert found[1].exchange.headers[0] == EVENTS[0]
    assert found[1].exchange.headers[2] == ("x-own-key", "REDACTED")
    assert found[1].exchange.chunks == frames(
        "plain", " a hidden-2@mail.example ", "hidden-1@mail.example"
    )
    assert dict(found[1].exchange.headers)["content-length"] == str(
        sum(len(chunk.data) for chunk in found[1].exchange.chunks)
    )


def test_a_tape_without_a_request() -> None:
    """Its answer is searched all the same, and it gets no request."""
    found = of_tape(changed(tape("eve@corp.io"), request=UNKNOWN))
    assert found is not None
    assert found[0] == [(2, 1, "body of the answer")]
    assert not found[1].exchange.method


def test_a_tape_that_was_compressed() -> None:
    """It is written without compression, and its lines are no longer the same."""
    data = b"".join(frame.data for frame in frames("eve@corp.io"))
    packed = gzip.compress(data)
    answer = (("content-type", "text/event-stream"), ("content-encoding", "gzip"))
    chunks = (TimedBytes(0, packed[:10]), TimedBytes(1, packed[10:]), TimedBytes(2, b""))
    found = of_tape(changed(tape(answer=answer), chunks=chunks))
    assert found is not None
    assert found[0] == [(2, 1, "body of the answer, which was compressed")]
    assert b"hidden-1@mail.example" in b"".join(chunk.data for chunk in found[1].exchange.chunks)
    assert "content-encoding" not in dict(found[1].exchange.headers)


def test_a_tape_that_cannot_be_searched() -> None:
    """It is reported and stays as it is; a file that is no tape is searched as text."""
    answer = (("content-encoding", "odd"),)
    one = scrubbed(a__jsonl=dump_tape(tape("eve@corp.io", answer=answer)))["a.jsonl"]
    assert one.content is None
    ((line, column, kind),) = findings(one)
    assert (line, column) == (1, 1)
    assert kind.startswith("cannot be searched: a.jsonl: the body is compressed as 'odd'")
    broken = scrubbed(a__jsonl=b'{"mockllm-tape": 1}\n')["a.jsonl"]
    assert (broken.content, findings(broken)[0][:2]) == (None, (1, 1))
    lines = scrubbed(a__jsonl=b'{"a": "eve@corp.io"}\n{"a": 1}\n')["a.jsonl"]
    assert findings(lines) == [(1, 8, "e-mail address")]


def test_a_turn_stays_what_its_tape_decodes_to() -> None:
    """Equal secrets get equal placeholders, so that the tape is still played."""
    written = """\
scenario: s
turns:
  - {reply: {text: to eve@corp.io}, finish: none, usage: none, recorded: s.1.jsonl}
"""
    (before,) = loads(written)
    taped = tape("to eve", "@corp.io")
    assert is_unedited(before, 0, taped)
    made = scrubbed(s__yaml=written, s__1__jsonl=dump_tape(taped))
    content = made["s.1.jsonl"].content
    assert content is not None
    (after,) = loads(text(made["s.yaml"]))
    assert after != before
    assert is_unedited(after, 0, load_tape(content, "s.1.jsonl"))


def test_rules_of_a_user_hold_for_files() -> None:
    """Patterns and paths."""
    rules = Rules(("Zq[0-9]+",), ("$.a",))
    (one,) = scrub({"a.json": b'{"a": "x", "b": "Zq12"}'}, Redactor(rules))
    assert text(one) == '{"a": "REDACTED-1", "b": "REDACTED-2"}'
    assert findings(one) == [(1, 8, "JSON path"), (1, 18, "pattern")]


def test_the_length_of_a_tape_that_was_cut() -> None:
    """It changes by as much as its body does, for the rest is not there."""
    found = of_tape(changed(tape("eve@corp.io"), cut="upstream"))
    assert found is not None
    more = len("hidden-1@mail.example") - len("eve@corp.io")
    assert dict(found[1].exchange.headers)["content-length"] == str(200 + more)
    assert found[1].exchange.cut == "upstream"
