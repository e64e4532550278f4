"""What differs from run to run is replaced before it is compared."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mockllm.play.replay.loading import loads
from mockllm.scenario.dump import dump
from mockllm.scenario.ignoring import (
    NAMES,
    differing,
    flaw_of,
    normal_text,
    normal_value,
    with_ignored,
)
from tests.cases import for_all
from tests.strategies import json_values

uuids = st.uuids(allow_nil=True).map(str) | st.uuids(version=4).map(lambda uuid: uuid.hex)
moments = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31))
times = moments.map(lambda time: time.isoformat() + "Z") | moments.map(
    lambda time: time.strftime("%a, %d %b %Y %H:%M:%S GMT")
)
generated = uuids | times
pieces = st.lists(generated | st.text(max_size=9) | st.sampled_from(["1", "-", "T"]), max_size=6)
kinds = st.lists(st.sampled_from([*NAMES, "$..id", "/run-[0-9]+/"]), min_size=1).map(tuple)


@given(kinds, pieces.map("".join) | json_values)
def test_ignoring_is_idempotent(ignore: tuple[str, ...], value: Any) -> None:
    """A value without what is ignored has nothing more that is ignored."""
    once = normal_value(ignore, value)
    assert normal_value(ignore, once) == once


@given(
    st.text(alphabet="abc xyz.,:;()", max_size=20),
    st.tuples(uuids, uuids) | st.tuples(times, times),
)
def test_generated_values_do_not_count(before: str, values: tuple[str, str]) -> None:
    """Two texts with other UUIDs or times at the same place are equal, if nothing else differs."""
    one, other = (normal_text(("uuid", "timestamp"), f"{before} <{value}> end") for value in values)
    assert one == other
    assert one != normal_text(("uuid", "timestamp"), f"{before}! <{values[0]}> end")


@for_all(
    ("kind", "text"),
    [
        ("uuid", "0189b0f0-0000-7000-8000-0123456789ab"),
        ("uuid", "00000000-0000-0000-0000-000000000000"),
        ("uuid", "D9428888-122B-11E1-B85C-61CD3CBB3210"),
        ("uuid", "d9428888122b41e1b85c61cd3cbb3210"),
        ("timestamp", "2026-11-26T11:06:48"),
        ("timestamp", "2026-11-26 11:06"),
        ("timestamp", "2026-11-26T11:06:48.123456+01:00"),
        ("timestamp", "2026-11-26T11:06:48,5Z"),
        ("timestamp", "2026-11-26 11:06:48 UTC"),
        ("timestamp", "20261126T110648Z"),
        ("timestamp", "Thu, 26 Nov 2026 11:06:48 GMT"),
        ("timestamp", "26 Nov 2026 11:06:48 +0100"),
        ("timestamp", "Thu Nov  5 11:06:48 2026"),
        ("date", "2026-11-26"),
        ("date", "November 26, 2026"),
        ("date", "Thursday, November 26, 2026"),
        ("date", "26 November 2026"),
        ("date", "Nov 5, 2026"),
    ],
)
def test_what_a_kind_is(kind: str, text: str) -> None:
    """All of it is replaced, beside any punctuation."""
    for around in ("{}", "at {}.", "({})", '"{}"', "id_{}_x", "a\n{}\n"):
        assert normal_text((kind,), around.format(text)) == around.format(f"<{kind}>")


@for_all(
    ("kind", "text"),
    [
        ("uuid", "0cc175b9c0f131a8b1c3e2ac9d1a9b24"),  # MD5 with the bits of version 3
        ("uuid", "d9428888122b41e1b85c61cd3cbb3210d9428888122b41e1b85c61cd3cbb3210"),  # SHA-256
        ("uuid", "xd9428888-122b-11e1-b85c-61cd3cbb3210"),
        ("timestamp", "2026-11-26"),
        ("timestamp", "11:06:48"),
        ("timestamp", "2026-13-26T11:06:48Z"),
        ("timestamp", "1764155208"),
        ("date", "2026-11-32"),
        ("date", "may 2026"),
        ("date", "12026-11-26"),
    ],
)
def test_what_a_kind_is_not(kind: str, text: str) -> None:
    """Digests, other numbers and parts of words stay."""
    assert normal_text((kind,), text) == text


@for_all(
    ("name", "value", "is_time"),
    [
        ("created_at", 1764155208, True),
        ("createdAt", 1764155208123, True),
        ("timestamp", 1764155208.25, True),
        ("ts", "1764155208", True),
        ("start_time_ms", 1764155208123, True),
        ("updated", 1764155208, True),
        ("seed", 1764155208, False),
        ("max_tokens", 1764155208, False),
        ("timestamp", 5, False),
        ("timestamp", True, False),
        ("flat", 1764155208, False),
        ("costs", 1764155208, False),
    ],
)
def test_numbers_are_times_by_their_names(name: str, value: Any, is_time: bool) -> None:
    """Seconds and milliseconds since 1970 count as times where their field is named so."""
    found = normal_value(("timestamp",), {name: value})
    assert found == {name: "<timestamp>" if is_time else value}


def test_paths_and_patterns() -> None:
    """What stands at a path is left out, whatever it is; an item of a list leaves its place."""
    body = {"metadata": {"run": 1}, "items": [{"id": 7, "x": "run-12"}, "b"], "id": "z"}
    ignore = ("$.metadata", "$.items[*].id", "$.items[1]", "/run-\\d+/")
    assert normal_value(ignore, body) == {"items": [{"x": "<ignored>"}, None], "id": "z"}


def test_what_differs() -> None:
    """The fewest kinds are named; none where anything else differs."""
    uuids = ["0189b0f0-0000-7000-8000-0123456789ab", "0189b0f0-0000-7000-8000-0123456789ac"]
    one, other = ({"a": f"{uuid} at 2026-11-26T11:06:{n}0Z"} for n, uuid in enumerate(uuids))
    assert differing(one, other) == ("uuid", "timestamp")
    assert differing({"a": uuids[0]}, {"a": uuids[1]}) == ("uuid",)
    assert differing({"a": uuids[0]}, {"a": "b"}) is None
    assert differing(one, one) is None


@given(st.text(max_size=12) | st.sampled_from(["uuid", "/a/", "$.a"]))
def test_what_can_be_ignored_is_normalised(part: str) -> None:
    """Whatever has no flaw can be applied; whatever has one says so."""
    flaw = flaw_of(part)
    if flaw is None:
        assert isinstance(normal_text((part,), "text"), str)
    else:
        assert re.match("must be|is no path|is a reg|has ", flaw)


TEXT = """\
scenario: a
match:
  user: {equals: at 2026-11-26T11:06:48Z}
  ignore: [timestamp, $.metadata, '/run-\\d+/']
turns:
- reply: {text: hi}
- request:
    user: later
  reply: {text: ho}
"""


def test_every_condition_of_a_scenario_ignores_it() -> None:
    """`ignore` stands once, in `match`, and is dumped as it was written."""
    (scenario,) = loads(TEXT)
    assert scenario.match is not None
    assert scenario.match.user is not None
    request = scenario.turns[1].request
    assert request is not None
    assert request.user is not None
    ignored = ("timestamp", "$.metadata", "/run-\\d+/")
    assert {scenario.match.user.ignore, request.user.ignore, request.ignore} == {ignored}
    assert dump(scenario).count("ignore:") == 1
    assert loads(dump(scenario)) == (scenario,)
    assert with_ignored(scenario, ("timestamp",)) == scenario
