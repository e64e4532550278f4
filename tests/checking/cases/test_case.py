"""The events of a case, which clients may change, and its bytes as an HTTP client reads them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mockllm.checking.cases.case import Events, decoded_once
from mockllm.checking.cases.compile import case
from mockllm.protocols import PROTOCOLS
from mockllm.quirks.samples import LONG_TEXT, TEXT
from tests.cases import for_all

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=10,
)
decoded = st.lists(st.tuples(json_values, st.none() | st.text()), max_size=4)


def _events(values: list[tuple[object, str | None]]) -> Events:
    return Events(decoded_once(lambda: values))


@given(decoded)
def test_untouched_events_need_no_restoring(values) -> None:
    """Events that no client changed count as unchanged, NaN and lone surrogates included."""
    events = _events(values)
    assert repr(events.decoded) == repr(values)
    assert not events.restore()


def test_a_change_is_reported_once_and_undone() -> None:
    """`restore` reports a change deep in an event, and the next client gets the original."""
    events = _events([({"choices": [{"delta": {}}]}, None)])
    events.decoded[0][0]["choices"][0]["delta"]["content"] = "x"
    assert events.restore()
    assert events.decoded == [({"choices": [{"delta": {}}]}, None)]
    assert not events.restore()


def test_copies_share_no_value() -> None:
    """A change of the events of one client is not seen in those of another."""
    events = _events([({"id": 1}, "message")])
    copy = events.copy()
    events.decoded[0][0]["id"] = 2
    assert copy.decoded == [({"id": 1}, "message")]
    assert not copy.restore()


def test_events_are_decoded_when_they_are_needed() -> None:
    """Nothing is decoded for a client of bytes; for several clients, it is done once."""
    calls: list[int] = []
    events = Events(decoded_once(lambda: calls.append(1) or [("event", None)]))
    copies = [events.copy() for _ in range(3)]
    assert calls == []
    assert [copy.decoded for copy in copies] == [[("event", None)]] * 3
    assert calls == [1]


@for_all("api", PROTOCOLS)
@for_all("quirk", ["", "sse-huge-event:300-kb", "sse-huge-event:1-mb"])
def test_a_huge_event_comes_in_several_reads(api, quirk: str) -> None:
    """No read is longer than 16 KB, and the reads join to the bytes of the answer."""
    huge = case(TEXT if quirk else LONG_TEXT, api, quirk=quirk)
    assert huge.answer.size > 300_000
    assert max(map(len, huge.chunks)) == 16 * 1024
    assert b"".join(huge.chunks) == b"".join(huge.answer.data)
