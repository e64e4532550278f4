"""The events of a case, which clients may change, and its bytes as an HTTP client reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.checking.cases.build import case
from mockllm.checking.cases.case import Events
from mockllm.play.quirks import find
from mockllm.play.quirks.samples import LONG_TEXT, TEXT
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=10,
)
decoded = st.lists(st.tuples(json_values, st.none() | st.text()), max_size=4)


@given(decoded)
def test_each_client_gets_new_events(values) -> None:
    """A change of the events of one client is not seen in those of another one."""
    events = Events(lambda: values)
    first = events.decoded
    assert repr(first) == repr(values)
    first.append(({"id": 2}, None))
    assert repr(events.decoded) == repr(values)


def test_a_change_deep_in_an_event_is_not_shared() -> None:
    """Copies share no value."""
    events = Events(lambda: [({"choices": [{"delta": {}}]}, None)])
    events.decoded[0][0]["choices"][0]["delta"]["content"] = "x"
    assert events.decoded == [({"choices": [{"delta": {}}]}, None)]


def test_events_are_decoded_when_they_are_needed() -> None:
    """Nothing is decoded for a client of bytes; for several clients, it is done once."""
    calls: list[int] = []
    events = Events(lambda: calls.append(1) or [("event", None)])
    assert calls == []
    assert [events.decoded for _ in range(3)] == [[("event", None)]] * 3
    assert calls == [1]


@pytest.mark.large
@for_all("api", PROTOCOLS)
@for_all("quirk", ["", "sse-huge-event:300-kb", "sse-huge-event:1-mb"])
def test_a_huge_event_comes_in_several_reads(api, quirk: str) -> None:
    """No read is longer than 16 KB, and the reads join to the bytes of the answer."""
    if quirk and not find(quirk)[0].applies_to(api):
        return
    huge = case(TEXT if quirk else LONG_TEXT, api, quirk=quirk)
    assert huge.answer.size > 300_000
    assert max(map(len, huge.chunks)) == 16 * 1024
    assert b"".join(huge.chunks) == b"".join(huge.answer.data)
