"""The reference accumulators against what is sent: any turn, over every protocol, cut anywhere."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import ByteProbe, Closing, Probe, Staging
from mockllm.checking.reference import REFERENCES
from mockllm.checking.reference.lines import ReferenceBytes
from mockllm.core.turn import Text, Turn
from mockllm.protocols import PROTOCOLS
from tests.checking.reference_playing import (
    Record,
    by_bytes,
    by_events,
    cut_at,
    payloads,
    sent,
    wrong,
)
from tests.strategies import fragments, parts, tool_calls, turns

APIS = sorted(REFERENCES)
every_api = pytest.mark.parametrize("api", APIS)
few = settings(max_examples=20)


def sendable(turn: Turn, api: str) -> Turn:
    """The turn, unless the protocol has no way to tell its calls from each other."""
    ids = [call.id for call in turn.tool_calls]
    assume(api != "agui" or len(set(ids)) == len(ids))
    return turn


@pytest.mark.slow
@every_api
@few
@given(turn=turns(), data=st.data())
def test_bytes_add_up_to_the_turn_however_they_are_cut(api, turn, data):
    """Any turn, in bytes cut anywhere, gives what the protocol can say of it."""
    stream = sent(sendable(turn, api), api)
    places = data.draw(st.lists(st.integers(0, len(stream)), max_size=12))
    record = by_bytes(api, cut_at(stream, places))
    assert not wrong(PROTOCOLS[api].project(turn), api, record.outcome)
    assert record.pending == 0


@pytest.mark.slow
@every_api
@few
@given(turn=turns())
def test_events_and_single_bytes_add_up_to_the_same(api, turn):
    """The largest pieces and the smallest give one result, and leave what is fed as it is."""
    stream = sent(sendable(turn, api), api)
    events = payloads(stream, api)
    before = copy.deepcopy(events)
    record = by_events(api, events)
    assert record.outcome == by_bytes(api, cut_at(stream, range(1, len(stream)))).outcome
    assert events == before


@pytest.mark.slow
@every_api
@few
@given(turn=turns(st.one_of(parts, tool_calls(well_formed=False)), endings=False))
def test_malformed_arguments_harm_no_other_call(api, turn):
    """Whatever the arguments of a call are, all else is right, and the error names the call."""
    meant = PROTOCOLS[api].project(sendable(turn, api))
    outcome = by_bytes(api, [sent(turn, api)]).outcome
    assert not wrong(meant, api, outcome)
    for trouble in outcome.errors:
        assert any(call.name in trouble.message for call in meant.tool_calls)


@pytest.mark.slow
@every_api
@few
@given(turn=turns(tool_calls(well_formed=False), endings=False))
def test_policies_differ_in_malformed_calls_only(api, turn):
    """`skip` says nothing of them, and `keep` has them with their text in their places."""
    stream = sent(sendable(turn, api), api)
    reported, skipped, kept = (
        by_bytes(api, [stream], malformed=policy).outcome for policy in ("error", "skip", "keep")
    )
    assert skipped.errors == kept.errors == ()
    assert skipped.tool_calls == reported.tool_calls
    meant = [(c.name, c.id) for c in PROTOCOLS[api].project(turn).tool_calls]
    assert [(c.name, c.id if meant[0][1] else "") for c in kept.tool_calls] == meant
    assert [c for c in kept.tool_calls if isinstance(c.arguments, dict)] == [*skipped.tool_calls]


def grown(record: Record, name: str) -> bool:
    """Whether words only ever grow at their end."""
    values = [getattr(outcome, name) for outcome in [*record.outcomes, record.outcome]]
    return all(after.startswith(before) for before, after in pairwise(values))


@pytest.mark.slow
@every_api
@few
@given(turn=turns())
def test_what_is_handed_on_is_what_there_is_in_the_end(api, turn):
    """The deltas of a stream join to its words; calls surface once each, as they will stay."""
    ids = [call.id for call in turn.tool_calls]
    assume(len(set(ids)) == len(ids))
    record = by_events(api, payloads(sent(turn, api), api))
    if not turn.order:  # otherwise texts grow side by side
        assert record.text == record.outcome.text
        assert record.reasoning == record.outcome.reasoning
        assert grown(record, "text")
        assert grown(record, "reasoning")
    assert sorted(map(repr, record.calls)) == sorted(map(repr, record.outcome.tool_calls))
    for before, after in pairwise([*record.outcomes, record.outcome]):
        assert [call for call in after.tool_calls if call in before.tool_calls] == [
            *before.tool_calls
        ]


@pytest.mark.slow
@every_api
@few
@given(
    turn=turns(st.one_of(st.builds(Text, fragments), tool_calls()), endings=False), data=st.data()
)
def test_a_stream_cut_anywhere_is_never_taken_for_a_whole_one(api, turn, data):
    """Where the end is missing, that is told, and no call comes out that was not sent whole."""
    stream = sent(sendable(turn, api), api)
    whole = by_bytes(api, [stream]).outcome
    place = data.draw(st.integers(0, len(stream)))
    cut = by_bytes(api, [stream[:place]]).outcome
    assert [trouble.kind for trouble in cut.errors] in ([], ["truncated"])
    assert whole.text.startswith(cut.text) or turn.order
    assert all(call in whole.tool_calls for call in cut.tool_calls)
    if not cut.errors:
        assert cut.finish == whole.finish
        assert (cut.text, cut.tool_calls) == (whole.text, whole.tool_calls)


@every_api
def test_nothing_at_all_is_a_cut_stream(api):
    """An empty stream is an error, with and without bytes."""
    for record in (by_events(api, []), by_bytes(api, []), by_bytes(api, [b""])):
        assert [trouble.kind for trouble in record.outcome.errors] == ["truncated"]
        assert record.outcome == Outcome(errors=record.outcome.errors)


@every_api
def test_references_are_probes_of_the_kit(api):
    """They fit every protocol that the kit asks of a client."""
    assert isinstance(REFERENCES[api](), Probe)
    assert isinstance(ReferenceBytes(api), ByteProbe)
    for probe in (REFERENCES[api](), ReferenceBytes(api)):
        assert isinstance(probe, Closing)
        assert isinstance(probe, Staging)
