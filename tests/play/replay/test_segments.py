"""TCP segments: the same bytes, cut to size, at the times of their events."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, groupby

from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.http import TimedBytes
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.compilation.encoding import _segments
from mockllm.play.replay.loading import loads
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

SCENARIO = """
scenario: timed
match: {{user: hello}}
turns:
  - reply: {{text: "abcdefghijklmnop", split: chars}}
    timing: {{ttft: 20ms, every: 10ms}}
    wire: {wire}
"""


def parts(api: str, wire: str = "{}") -> tuple[TimedBytes, ...]:
    """The body of a streamed answer: its segments, or an event each without segments."""
    (scenario,) = loads(SCENARIO.format(wire=wire))
    protocol = PROTOCOLS[api]
    body = first_body(protocol, "m", "hello", ())
    request = protocol.parse(body, client_target(protocol, "m"), True)
    request = replace(request, stream=True)
    return Replayer().answer(Selection(scenario, 0, 0), request, protocol).chunks


def by_time(body: tuple[TimedBytes, ...]) -> dict[int, bytes]:
    """The bytes that are due at each time."""
    grouped = groupby(body, key=lambda part: part.at)
    return {at: b"".join(part.data for part in found) for at, found in grouped}


@for_all("api", PROTOCOLS)
@for_all("segments", ["1", "100000", "[40, 1, 7]", "{random: [1, 50]}"])
def test_segments_never_mix_due_times(api: str, segments: str) -> None:
    """However long a segment may be, it has no byte of an event that is due at another time."""
    events = by_time(parts(api))
    assert len(events) >= 16
    assert by_time(parts(api, f"{{segments: {segments}}}")) == events


def test_the_sizes_repeat() -> None:
    """A segment has its size, or ends where the next event is due later."""
    sizes = cycle([40, 1, 7])
    size = next(sizes)
    found = iter(parts("chat", "{segments: [40, 1, 7]}"))
    for at, data in by_time(parts("chat")).items():
        while data:
            assert next(found) == TimedBytes(at, data[:size])
            whole, data = len(data) >= size, data[size:]
            size = next(sizes) if whole else size
    assert next(found, None) is None


timed_parts = st.lists(st.tuples(st.integers(0, 3), st.binary(min_size=1, max_size=9)), max_size=12)


@given(timed_parts, st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_segments_are_the_same_bytes(
    timed_parts: list[tuple[int, bytes]], sizes: list[int]
) -> None:
    """For each time the bytes are the same, and no segment is empty or too long."""
    given_parts = [TimedBytes(at, data) for at, data in sorted(timed_parts, key=lambda one: one[0])]
    cut = list(_segments(given_parts, iter(sizes * 100)))
    assert by_time(tuple(cut)) == by_time(tuple(given_parts))
    assert all(0 < len(part.data) <= max(sizes) for part in cut)
