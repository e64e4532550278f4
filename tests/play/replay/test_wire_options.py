"""The options of `wire`: the same events in other bytes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mockllm.core.events import Frame
from mockllm.core.http import TimedBytes
from mockllm.core.seeded import derive, derive_int
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.compilation.encoding import _multiline, _segments
from mockllm.play.replay.loading import loads
from mockllm.wire.framing.sse import decode
from mockllm.wire.protocols import PROTOCOLS

SCENARIO = """
scenario: s
seed: 3
match: {{user: hello}}
turns:
  - reply: {{text: "abcdef", split: chars}}
    timing: {{ttft: 10us, every: 1us}}
    wire: {wire}
"""


def parts(wire: str = "{}", api: str = "chat") -> tuple[TimedBytes, ...]:
    (scenario,) = loads(SCENARIO.format(wire=wire))
    protocol = PROTOCOLS[api]
    request = protocol.parse(
        first_body(protocol, "m", "hello", ()), client_target(protocol, "m"), True
    )
    request = replace(request, stream=True)
    return Replayer().answer(Selection(scenario, 0, 0), request, protocol).chunks


def test_the_line_end() -> None:
    """That of the protocol, or the one that is written."""
    plain = parts()
    assert all(part.data.endswith(b"\n\n") and b"\r" not in part.data for part in plain)
    for name, end in (("lf", b"\n"), ("crlf", b"\r\n"), ("cr", b"\r")):
        expected = [TimedBytes(part.at, part.data.replace(b"\n", end)) for part in plain]
        assert list(parts(f"{{line_end: {name}}}")) == expected
    assert parts(api="gemini") != parts("{line_end: lf}", "gemini")
    assert parts(api="gemini") == parts("{line_end: crlf}", "gemini")


def test_the_byte_order_mark() -> None:
    """Before the first event, at its time."""
    plain = parts()
    first = TimedBytes(plain[0].at, b"\xef\xbb\xbf" + plain[0].data)
    assert parts("{bom: true}") == (first, *plain[1:])
    assert [part.at for part in parts("{bom: true}", "gemini")] == [10, 11, 12, 13, 14, 15, 15]


@pytest.mark.parametrize("every", [1, 2, 3, 100])
def test_comments(every: int) -> None:
    """A comment after every so many events, at the time of the event before it."""
    plain, expected = parts(), []
    for count, part in enumerate(plain, 1):
        expected.append(part)
        if count % every == 0:
            expected.append(TimedBytes(part.at, b": still here\n\n"))
    assert list(parts(f"{{comments: {{every: {every}, text: still here}}}}")) == expected


def test_comments_without_a_text() -> None:
    """A comment line may be empty."""
    assert [part.data for part in parts("{comments: {every: 2}}")][2::3] == [b":\n\n"] * 4


def test_data_on_several_lines() -> None:
    """The JSON of each event is indented by one; what is no JSON stays in one line."""
    plain = parts()
    spread = parts("{multiline: true}")
    assert [part.at for part in spread] == [part.at for part in plain]
    assert spread[-1].data == plain[-1].data == b"data: [DONE]\n\n"
    for one, many in zip(plain[:-1], spread[:-1], strict=True):
        (single,), (several,) = decode(one.data), decode(many.data)
        assert several.data == json.dumps(json.loads(single.data or ""), indent=1)
        assert many.data.count(b"data: ") == (several.data or "").count("\n") + 1


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ('{"a":"é"}', '{\n "a": "é"\n}'),
        ("[1,2]", "[\n 1,\n 2\n]"),
        ('{"a":"\\ud800é"}', '{\n "a": "\ud800é"\n}'),
        ('{"broken', '{"broken'),
        ('"text"', '"text"'),
        ("12", "12"),
        ("", ""),
        (None, None),
    ],
)
def test_which_data_are_spread(data: str | None, expected: str | None) -> None:
    """Objects and lists; half of a surrogate pair is the escape again when it is sent."""
    frame = Frame(data, event="e", id="i", retry=3)
    assert _multiline(frame) == Frame(expected, event="e", id="i", retry=3)


def test_segments_of_random_sizes() -> None:
    """Drawn from the seed of the answer, within the bounds, and always the same."""
    answer = parts("{segments: {random: [3, 9]}}")
    assert answer == parts("{segments: {random: [3, 9]}}")
    assert b"".join(part.data for part in answer) == b"".join(part.data for part in parts())
    sizes = {len(part.data) for part in answer}
    assert max(sizes) == 9
    assert min(sizes) <= 3
    only = [len(part.data) for part in parts("{segments: {random: [5, 5]}}")]
    assert set(only) <= {1, 2, 3, 4, 5}


def test_the_sizes_of_segments_never_change() -> None:
    """They are numbered through, so that a recording of a test can be compared byte by byte."""
    (scenario,) = loads(SCENARIO.format(wire="{}"))
    answer = parts("{segments: {random: [3, 9]}}")
    at = answer[0].at
    sizes = [len(part.data) for part in answer if part.at == at]
    seed = derive(scenario.seeded, "s", 0, length=32)
    drawn = [3 + derive_int(seed, "segment", number, below=7) for number in range(len(sizes))]
    assert sizes[:-1] == drawn[:-1]


def test_a_size_is_used_up_by_a_whole_segment_only() -> None:
    """What is due later does not count for the segment before it."""
    given = [TimedBytes(1, b"abcde"), TimedBytes(1, b"fg"), TimedBytes(2, b"hijklm")]
    assert list(_segments(given, iter([3, 9, 4, 9]))) == [
        TimedBytes(1, b"abc"),
        TimedBytes(1, b"defg"),
        TimedBytes(2, b"hijklm"),
    ]
    assert list(_segments(given, iter([7, 6, 1]))) == [
        TimedBytes(1, b"abcdefg"),
        TimedBytes(2, b"hijklm"),
    ]
    assert list(_segments([], iter([1]))) == []


def test_quirks_of_other_protocols_change_nothing() -> None:
    """And those that are of this one do."""
    assert parts("{quirks: [chat-index-missing]}", "anthropic") == parts(api="anthropic")
    assert parts("{quirks: [sse-comments]}") != parts()


def test_no_part_is_empty() -> None:
    """An empty HTTP chunk would end the body."""
    for name in ("sse-cut:eof", "sse-comments"):
        assert all(part.data for part in parts(f"{{quirks: ['{name}']}}"))
