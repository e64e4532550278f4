"""Faults as text, as YAML and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm import dump, loads
from mockllm.core.errors import UsageError
from mockllm.scenario.fault_model import Fault, faults_text
from mockllm.scenario.reading.faults import FAULTS, HANDSHAKE, OF_SERVERS, parse_faults
from tests.cases import for_all
from tests.scenario.strategies import all_faults, places, socket_faults


@given(st.lists(all_faults(places) | socket_faults(), min_size=1, max_size=3).map(tuple))
def test_a_text_is_read_back(faults: tuple[Fault, ...]) -> None:
    """What a journal shows can be given to `--fault` again."""
    assert parse_faults(faults_text(faults)) == faults


@pytest.mark.parametrize(
    "text",
    [
        "cut:after=3 events,end=reset",
        "cut after=3events end=reset",
        "cut: after=3 events end=reset",
    ],
)
def test_a_text_has_the_grammar_of_all_options(text: str) -> None:
    """Spaces or commas are between the pairs, and a colon after the name or none."""
    assert faults_text(parse_faults(text)) == "cut:after=3 events,end=reset"


@for_all("name", sorted(FAULTS.keys() - OF_SERVERS - {HANDSHAKE, "duplicate", "reorder"}))
def test_yaml_is_read_back(name: str) -> None:
    """Each fault is written into a scenario and read again."""
    parameters = {"cut": "after=1 event", "drip": "rate=10", "burst": "pause=1s"}
    (fault,) = parse_faults(f"{name}:{parameters[name]}" if name in parameters else name)
    written = f"scenario: a\nturns: [{{reply: {{text: Hello}}, fault: {{{name}: null}}}}]"
    if name in parameters:
        written = written.replace("null", "{" + parameters[name].replace("=", ": ") + "}")
    (scenario,) = loads(written)
    assert scenario.turns[0].fault == (fault,)
    assert loads(dump(scenario)) == (scenario,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cutt", "there is no fault 'cutt'; did you mean 'cut'?"),
        ("cut", "cut needs one of 'after', 'inside', 'before', such as after: 3 events"),
        ("cut:after", "cut must be KEY=VALUE, such as after=3events, got 'after'"),
        ("cut:after=3", "after must be a place such as '3 events', '120 bytes' or '1.2s', got 3"),
        ("status:status=200", "status must be a whole number from 400 to 599, got 200"),
        ("drip:rate=0", "rate must be a whole number from 1 to 1000000000, got 0"),
        ("cut:after=1 event,code=999", "code must be a whole number from 1000 to 4999, got 999"),
        ("cut:after=1 event,code=1005", "code must be a code that a close frame may have"),
        ("cut:after=1 event,code=1000,end=reset", "cut ends in one way; keep 'code', or 'end'"),
        ("cut:after=1 event,reason=gone", "cut has a 'reason', which needs a 'code' beside it"),
        ("handshake", "handshake needs one of 'status', 'pause', 'code', such as status=426"),
        ("stall:for=3", "for must be a duration such as 300ms, 2s, 500us or 1m, got 3"),
        ("refuse; zzz", "there is no fault 'zzz'"),
        ("", "there is no fault ''"),
    ],
)
def test_a_wrong_text_is_explained(text: str, message: str) -> None:
    """The error has what is wrong and what there is."""
    with pytest.raises(UsageError) as failed:
        parse_faults(text)
    assert message in str(failed.value)
