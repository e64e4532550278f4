"""Tapes: any bytes, cut anywhere, read back; an incomplete tape is an error with its line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import ScenarioError
from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Tape, dump_tape, load_head, load_tape
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.play.tapes.making import UNKNOWN, Sent, changed, taped
from tests.strategies import json_values, texts

APIS = tuple(PROTOCOLS)

header_names = st.from_regex(r"\A[a-z0-9!#.-]{1,8}\Z")
header_values = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.just("\t"), max_size=12)
headers = st.lists(st.tuples(header_names, header_values), max_size=3).map(tuple)
reasons = st.text(st.characters(max_codepoint=255, exclude_categories=("Cc",)), max_size=9)
bodies = (
    st.binary(max_size=20)
    | texts.map(str.encode)
    | json_values.map(lambda value: json.dumps(value).encode())
    | json_values.map(lambda value: json.dumps(value, separators=(",", ":")).encode())
)
timed = st.lists(st.builds(TimedBytes, st.integers(0, 10**9), bodies), max_size=5).map(tuple)
tapes = st.builds(
    taped,
    api=st.sampled_from(APIS),
    streamed=st.booleans(),
    status=st.integers(200, 599),
    headers=headers,
    chunks=timed,
    cut=st.sampled_from(["", "client", "stalled", "upstream", "chunk", "reset"]),
    request=st.just(UNKNOWN) | st.builds(Sent, st.just("POST"), texts, headers, bodies),
    reason=st.none() | reasons,
    trailers=headers,
)
TAPE = taped(
    "chat",
    True,
    200,
    (("content-type", "text/event-stream"),),
    (TimedBytes(5, "data: é\n".encode()), TimedBytes(7, b"\n")),
    request=Sent("POST", "https://api.example.com/v1/chat/completions", (), b'{"a":1}'),
)


@given(tapes)
def test_load_is_the_inverse_of_dump(tape: Tape) -> None:
    """A loaded tape equals the one that was dumped."""
    assert load_tape(dump_tape(tape), "x.jsonl") == tape


@given(st.binary() | texts.map(str.encode), st.data())
def test_bytes_may_be_cut_anywhere(data: bytes, drawn: st.DataObject) -> None:
    """Chunks that end inside a character, or that are no text, join to the same bytes."""
    cuts = sorted(drawn.draw(st.lists(st.integers(0, len(data)), max_size=6)))
    edges = zip([0, *cuts], [*cuts, len(data)], strict=True)
    cut = tuple(TimedBytes(number, data[a:b]) for number, (a, b) in enumerate(edges))
    assert load_tape(dump_tape(changed(TAPE, chunks=cut)), "x.jsonl").exchange.chunks == cut


@given(tapes, st.data())
def test_a_truncated_tape_is_an_error(tape: Tape, drawn: st.DataObject) -> None:
    """A file that was cut anywhere is an error that names it."""
    whole = dump_tape(tape)
    at = drawn.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ScenarioError, match=r"^x\.jsonl:\d+:1: "):
        load_tape(whole[:at], "x.jsonl")


def test_a_tape_is_readable() -> None:
    """Text is text, a JSON body is JSON, and each chunk has a line; only bytes that are no text are
    in base64."""
    torn = (
        TimedBytes(5, b"data: \xc3"),
        TimedBytes(9, b"\xa9 \xe2\x80\xa8\n\n"),
        TimedBytes(11, b"data: \xc3\xa9\n\n"),
    )
    lines = dump_tape(changed(TAPE, chunks=torn)).decode().split("\n")
    assert lines == [
        '{"mockllm-tape":1,"api":"chat","streamed":true,"status":200,"cut":"","chunks":3,'
        '"headers":[["content-type","text/event-stream"]],"request":'
        '{"method":"POST","url":"https://api.example.com/v1/chat/completions","headers":[],'
        '"body":{"json":{"a":1}}}}',
        '[5,{"base64":"ZGF0YTogww=="}]',
        '[9,{"base64":"qSDigKgKCg=="}]',
        '[11,"data: é\\n\\n"]',
        "",
    ]


def test_usual_answers_need_no_more_keys() -> None:
    """Only an unusual reason phrase and trailers stand in the head, so that older versions read the
    tapes of all other answers."""
    plain, unusual = dump_tape(TAPE), changed(TAPE, reason="", trailers=(("x-sum", "1"),))
    assert b"reason" not in plain
    assert b"trailers" not in plain
    assert b'"reason":"","trailers":[["x-sum","1"]],"request"' in dump_tape(unusual)


def test_the_head_alone_can_be_read() -> None:
    """The first line has everything except the chunks, and the number of them."""
    first = dump_tape(TAPE).splitlines(keepends=True)[0]
    assert load_head(first, "x.jsonl") == (changed(TAPE, chunks=()), 2)


def broken(**changed: object) -> bytes:
    """A tape whose head has other values."""
    first, rest = dump_tape(TAPE).split(b"\n", 1)
    head = json.loads(first) | changed
    kept = {key: value for key, value in head.items() if value is not None}
    return json.dumps(kept).encode() + b"\n" + rest


CHUNK = 'must be a chunk, [microseconds, "text"] or [microseconds, {"base64": "..."}]'
LINES = dump_tape(TAPE).split(b"\n")


@for_all(
    ("data", "problem"),
    [
        (b"", "1:1: is no line of JSON: expecting value at character 1"),
        (b"\xff\n", "1:1: is no line of JSON: byte 0xff is not UTF-8"),
        (b"[" * 100_000 + b"\n", "1:1: is no line of JSON: it is nested too deeply"),
        (b"{}\n", '1:1: is no tape; one begins with {"mockllm-tape": 1, ...}'),
        (b"[1]\n", '1:1: is no tape; one begins with {"mockllm-tape": 1, ...}'),
        (
            broken(**{"mockllm-tape": 3}),
            "1:1: is a tape of version 3, and this mockllm reads 1; update mockllm, or record "
            "the tape again",
        ),
        (
            broken(api="openai"),
            f"1:1: 'api' must be one of {', '.join(APIS)}, got \"openai\"",
        ),
        (
            broken(api=["chat"]),
            f"1:1: 'api' must be one of {', '.join(APIS)}, got [\"chat\"]",
        ),
        (broken(streamed=1), "1:1: 'streamed' must be true or false, got 1"),
        (broken(status=99), "1:1: 'status' must be an HTTP status, got 99"),
        (broken(status=None), "1:1: 'status' must be an HTTP status, got nothing"),
        (broken(chunks=True), "1:1: 'chunks' must be a whole number, got true"),
        (
            broken(cut="server"),
            '1:1: \'cut\' must be one of "", "client", "stalled", "upstream", "chunk", "reset", '
            'got "server"',
        ),
        (broken(reason="€"), "1:1: 'reason' must be a reason phrase, got \"€\""),
        (broken(reason=1), "1:1: 'reason' must be a reason phrase, got 1"),
        (broken(reason="a\r\nb"), "1:1: 'reason' must be a reason phrase, got \"a\\r\\nb\""),
        (
            broken(trailers=[["x-a", "b\r\nc: d"]]),
            '1:1: \'trailers\' must be a list of [name, value], got [["x-a","b\\r\\nc: d"]]',
        ),
        (
            broken(headers=[["x-a", "b\r\nc: d"]]),
            '1:1: \'headers\' must be a list of [name, value], got [["x-a","b\\r\\nc: d"]]',
        ),
        (
            broken(headers={"x-a": "b"}),
            '1:1: \'headers\' must be a list of [name, value], got {"x-a":"b"}',
        ),
        (broken(request={"method": "POST"}), "1:1: 'request' must be {method, url, headers, body}"),
        (
            broken(request={"method": "POST", "url": "", "headers": [], "body": {"base64": "?"}}),
            "1:1: 'request' must be {method, url, headers, body}",
        ),
        (b"\n".join([LINES[0], b"[5]", LINES[2], b""]), f"2:1: {CHUNK}"),
        (b"\n".join([LINES[0], LINES[1], b'[-1,""]', b""]), f"3:1: {CHUNK}"),
        (b"\n".join([LINES[0], b'[true,""]', LINES[2], b""]), f"2:1: {CHUNK}"),
        (b"\n".join([LINES[0], b'[5,{"base64":"?"}]', LINES[2], b""]), f"2:1: {CHUNK}"),
        (b"\n".join([LINES[0], b'[5,"\\ud800"]', LINES[2], b""]), f"2:1: {CHUNK}"),
        (
            b"\n".join([LINES[0], b"[5,", LINES[2], b""]),
            "2:1: is no line of JSON: expecting value at character 4",
        ),
        (
            b"\n".join([*LINES[:2], b""]),
            "3:1: the tape ends here, with 1 of its 2 chunks complete",
        ),
        (
            b"\n".join([*LINES[:3], LINES[2], b""]),
            "4:1: the tape goes on here, after the 2 chunks that its head counts",
        ),
    ],
)
def test_a_broken_tape_is_an_error_with_its_line(data: bytes, problem: str) -> None:
    """The error has file, line, reason and what to do."""
    with pytest.raises(ScenarioError) as caught:
        load_tape(data, "x.jsonl")
    assert str(caught.value) == f"x.jsonl:{problem}"
