"""The kit's own scenarios: the reference accumulators and the decoders get the expected outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mockllm.checking.cases.build import case
from mockllm.checking.cases.case import Case
from mockllm.checking.cases.scenarios import PLAIN, Variation, single
from mockllm.checking.material import kit_scenarios
from mockllm.checking.outcome import NOT_KEPT, Call, Outcome, Usage
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.decoding import decode_turn
from tests.cases import for_all
from tests.checking.reference.playing import Run, by_events

VARIATIONS = (PLAIN, Variation(split=(1,)), Variation(split=(2, 1), group=2), Variation(group=3))
SCENARIOS = [
    pytest.param(api, scenario, id=f"{api}-{scenario.name}")
    for api in PROTOCOLS
    for scenario in kit_scenarios(api)
]
every_scenario = for_all(("api", "scenario"), SCENARIOS)


def played(one: Case) -> Run:
    assert one.events is not None
    return by_events(one.api, one.events.decoded, malformed="keep")


def as_judged(got: Outcome, expected: Outcome, finish_values: frozenset[str]) -> Outcome:
    """The outcome with the expected value for each field that is not judged."""
    values: dict[str, Any] = {"usage": _usage(got.usage, expected.usage)}
    for name in ("role", "model", "response_id", "opaque"):
        if getattr(expected, name) is NOT_KEPT:
            values[name] = NOT_KEPT
    if expected.role is None:  # the stream has none: a client may know it all the same
        values["role"] = None
    if got.finish in finish_values:
        values["finish"] = expected.finish
    calls = zip(got.tool_calls, expected.tool_calls, strict=True)
    values["tool_calls"] = tuple(_call(call, other) for call, other in calls)
    values["errors"] = expected.errors  # compared by their kinds
    return replace(got, **values)


def _usage(got: Usage | None, expected: Usage | None) -> Usage | None:
    """Counts that the stream has not are not judged, and counts of nothing are none."""
    if got is None or expected is None:
        return expected if expected is None else got
    names = ("input", "output", "reasoning", "cached", "cache_written")
    left_out = {name: getattr(expected, name) for name in names if getattr(got, name) is None}
    return replace(got, **left_out)


def _call(got: Call, expected: Call) -> Call:
    raw = NOT_KEPT if expected.raw_arguments is NOT_KEPT else got.raw_arguments
    return replace(got, id=expected.id and got.id, raw_arguments=raw)


@pytest.mark.slow
@every_scenario
def test_the_reference_gets_the_expected_outcome(api: str, scenario: Scenario) -> None:
    """Every field is the expected one, however the answer is cut."""
    for position in range(len(scenario.turns)):
        for variation in VARIATIONS:
            one = case(single(scenario, position), api, variation)
            got, expected = played(one).full, one.expected
            assert as_judged(got, expected, one.finish_values) == expected
            # The policy keeps calls with malformed arguments, without an error.
            kinds = [error.kind for error in expected.errors if error.tool is None]
            assert [error.kind for error in got.errors] == kinds


@pytest.mark.slow
@every_scenario
def test_the_decoder_gets_the_expected_outcome(api: str, scenario: Scenario) -> None:
    """Text, reasoning, refusal and calls of the neutral turn are the expected ones."""
    for position in range(len(scenario.turns)):
        one = case(single(scenario, position), api)
        turn, _ = decode_turn(PROTOCOLS[api], PROTOCOLS[api].usual.decode(b"".join(one.chunks)))
        expected = one.expected
        assert (turn.text, turn.reasoning, turn.refusal) == (
            expected.text,
            expected.reasoning,
            expected.refusal,
        )
        wanted = [(call.name, call.arguments) for call in expected.tool_calls]
        # What custom tools get is no JSON, and is not judged.
        calls = [call for call in turn.tool_calls if not call.custom]
        found = [(call.name, _arguments(call.arguments)) for call in calls]
        # A turn that is cut, or ends in an error, keeps the calls that were open; clients abandon
        # them.
        assert (found if turn.finish else found[: len(wanted)]) == wanted


def _arguments(text: str) -> Any:
    """The arguments as a client reports them: other JSON than an object stays text."""
    value = Outcome.of(tool_calls=[("id", "name", text)]).tool_calls[0].arguments
    return value if isinstance(value, dict) else text


@pytest.mark.slow
@every_scenario
def test_fragments_of_arguments_join_to_the_raw_arguments(api: str, scenario: Scenario) -> None:
    """The fragments that a reference passes on are those of its calls, unless final arguments
    contradicted them."""
    for position in range(len(scenario.turns)):
        run = played(case(single(scenario, position), api))
        for call in run.full.tool_calls:
            sent = "".join(part.arguments for part in run.tool if part.id == call.id)
            if isinstance(call.raw_arguments, str) and scenario.name not in CONTRADICTED:
                assert sent == call.raw_arguments


CONTRADICTED = {"kit-responses-other-arguments"}


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_every_stream_has_one_model_and_one_id(api: str) -> None:
    """Model and id of the answer are judged in each scenario, those of frames among them; the role
    where it is sent."""
    for scenario in kit_scenarios(api):
        expected = case(single(scenario), api).expected
        assert expected.role in ("assistant", None), scenario.name
        assert expected.model == "mock-model", scenario.name
        assert expected.response_id is not NOT_KEPT, scenario.name
