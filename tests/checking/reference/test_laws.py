"""Laws of the reference accumulators: any turn, over every protocol, cut anywhere."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from examples.accumulators import REFERENCES
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import ByteProbe, Probe
from mockllm.core.turn import Text, Turn, Usage
from mockllm.wire.protocols import PROTOCOLS
from tests.checking.reference.playing import (
    Run,
    by_bytes,
    by_events,
    cut_at,
    differences,
    payloads,
    sent,
)
from tests.strategies import fragments, parts, tool_calls, turns

APIS = sorted(REFERENCES)
every_api = pytest.mark.parametrize("api", APIS)
few = settings(max_examples=20)


def sendable(turn: Turn, api: str) -> Turn:
    """The turn; discards one whose calls share an id, which AG-UI cannot distinguish."""
    ids = [call.id for call in turn.tool_calls]
    assume(api != "agui" or len(set(ids)) == len(ids))
    return turn


@pytest.mark.slow
@every_api
@few
@given(turn=turns(), data=st.data())
def test_bytes_cut_anywhere_give_the_projected_turn(api, turn, data):
    """The outcome of any turn, in bytes cut anywhere, is that of its projection."""
    stream = sent(sendable(turn, api), api)
    offsets = data.draw(st.lists(st.integers(0, len(stream)), max_size=12))
    run = by_bytes(api, cut_at(stream, offsets))
    assert not differences(PROTOCOLS[api].project(turn), api, run.outcome)
    assert run.pending == 0


@pytest.mark.slow
@every_api
@few
@given(turn=turns())
def test_events_and_single_bytes_give_the_same_outcome(api, turn):
    """Whole events and single bytes give equal outcomes, and the events are not changed."""
    stream = sent(sendable(turn, api), api)
    events = payloads(stream, api)
    before = copy.deepcopy(events)
    run = by_events(api, events)
    assert run.outcome == by_bytes(api, cut_at(stream, range(1, len(stream)))).outcome
    assert events == before


@pytest.mark.slow
@every_api
@few
@example(turn=Turn((), "stop", Usage(0, 0, cached=1)))  # an end with this count alone
@given(turn=turns(st.one_of(parts, tool_calls(well_formed=False)), endings=False))
def test_malformed_arguments_affect_no_other_call(api, turn):
    """The other calls are correct, and an error names the call with malformed arguments."""
    projected = PROTOCOLS[api].project(sendable(turn, api))
    assume(projected.error is None)  # that of Interactions, where an answer is blocked
    outcome = by_bytes(api, [sent(turn, api)]).outcome
    assert not differences(projected, api, outcome)
    for trouble in outcome.errors:
        assert any(call.name in trouble.message for call in projected.tool_calls)


@pytest.mark.slow
@every_api
@few
@given(turn=turns(tool_calls(well_formed=False), endings=False))
def test_policies_differ_in_malformed_calls_only(api, turn):
    """`skip` drops malformed calls without an error, and `keep` has them with their raw text."""
    assume(PROTOCOLS[api].project(turn).error is None)  # as above
    stream = sent(sendable(turn, api), api)
    reported, skipped, kept = (
        by_bytes(api, [stream], malformed=policy).outcome for policy in ("error", "skip", "keep")
    )
    assert skipped.errors == kept.errors == ()
    assert skipped.tool_calls == reported.tool_calls
    projected = [(c.name, c.id) for c in PROTOCOLS[api].project(turn).tool_calls]
    assert [(c.name, c.id if projected[0][1] else "") for c in kept.tool_calls] == projected
    assert [c for c in kept.tool_calls if isinstance(c.arguments, dict)] == [*skipped.tool_calls]


def grown(run: Run, name: str) -> bool:
    """Whether a text only ever grows at its end."""
    values = [getattr(outcome, name) for outcome in [*run.outcomes, run.outcome]]
    return all(after.startswith(before) for before, after in pairwise(values))


@pytest.mark.slow
@every_api
@few
@given(turn=turns())
def test_deltas_join_to_the_final_outcome(api, turn):
    """Deltas join to the final text and reasoning; each call surfaces once and stays."""
    ids = [call.id for call in turn.tool_calls]
    assume(len(set(ids)) == len(ids))
    run = by_events(api, payloads(sent(turn, api), api))
    if not turn.order:  # with an order, texts of several blocks grow at once
        assert run.text == run.outcome.text
        assert run.reasoning == run.outcome.reasoning
        assert grown(run, "text")
        assert grown(run, "reasoning")
    assert sorted(map(repr, run.calls)) == sorted(map(repr, run.outcome.tool_calls))
    for before, after in pairwise([*run.outcomes, run.outcome]):
        assert [call for call in after.tool_calls if call in before.tool_calls] == [
            *before.tool_calls
        ]


@pytest.mark.slow
@every_api
@few
@given(
    turn=turns(st.one_of(st.builds(Text, fragments), tool_calls()), endings=False), data=st.data()
)
def test_a_cut_stream_is_truncated_or_complete(api, turn, data):
    """A stream without its end is an error, and has no call that was not sent whole."""
    stream = sent(sendable(turn, api), api)
    whole = by_bytes(api, [stream]).outcome
    offset = data.draw(st.integers(0, len(stream)))
    cut = by_bytes(api, [stream[:offset]]).outcome
    assert [trouble.kind for trouble in cut.errors] in ([], ["truncated"])
    assert whole.text.startswith(cut.text) or turn.order
    assert all(call in whole.tool_calls for call in cut.tool_calls)
    if not cut.errors:
        assert cut.finish == whole.finish
        assert (cut.text, cut.tool_calls) == (whole.text, whole.tool_calls)


@every_api
def test_an_empty_stream_is_truncated(api):
    """An empty stream is an error, with and without bytes."""
    for run in (by_events(api, []), by_bytes(api, []), by_bytes(api, [b""])):
        assert [trouble.kind for trouble in run.outcome.errors] == ["truncated"]
        assert run.outcome == Outcome(errors=run.outcome.errors)


@every_api
def test_the_references_fulfil_the_probe_protocols(api):
    """Each implements every protocol of probes, the optional ones included."""
    assert isinstance(REFERENCES[api](), Probe)
    assert isinstance(ReferenceBytes(api), ByteProbe)
    for probe in (REFERENCES[api](), ReferenceBytes(api)):
        assert callable(probe.close)
        assert callable(probe.pending)
