"""The kit's own scenarios as bytes: both readings of a stream agree, and the body with them."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.checking.cases.build import case
from mockllm.checking.cases.scenarios import Variation, single
from mockllm.checking.material import kit_scenarios
from mockllm.core.turn import ToolCall, Turn
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.decoding import decode_turn
from tests.cases import for_all
from tests.checking.reference.playing import by_bytes, cut_at, differences

pytestmark = pytest.mark.slow

ODD = Variation(line_end="cr", bom=True, multiline=True, comments=1, group=3, cut=(1, 7, 3))

every_scenario = for_all(
    ("api", "scenario"),
    [
        pytest.param(api, single(scenario, position), id=f"{api}-{scenario.name}-{position}")
        for api in PROTOCOLS
        for scenario in kit_scenarios(api)
        for position in range(len(scenario.turns))
    ],
)


@every_scenario
def test_the_bytes_of_a_stream_may_be_cut_and_written_in_any_way(
    api: str, scenario: Scenario
) -> None:
    """The outcome is the same from whole bytes, from short reads, and with other line ends."""
    plain = case(scenario, api)
    data = b"".join(plain.chunks)
    whole = by_bytes(api, [data]).full
    assert by_bytes(api, cut_at(data, range(0, len(data), 7))).full == whole
    odd = case(scenario, api, ODD, plain=plain)
    assert by_bytes(api, odd.chunks).full == whole


@every_scenario
def test_decoder_and_reference_read_the_same(api: str, scenario: Scenario) -> None:
    """Text, calls, finish, usage and errors agree; a body has what its stream has."""
    one = case(scenario, api)
    data = b"".join(one.chunks)
    turn, _ = decode_turn(PROTOCOLS[api], PROTOCOLS[api].usual.decode(data))
    assert not differences(turn, api, by_bytes(api, [data]).outcome)
    if one.body is not None and turn.error is None:
        assert content(PROTOCOLS[api].decode_body(one.body)) == content(turn)


def content(turn: Turn) -> tuple[Any, ...]:
    """The content of a turn, without its fragments; arguments are values where they are JSON."""
    calls = [(call.name, call.id, arguments(call)) for call in turn.tool_calls]
    return turn.text, turn.reasoning, turn.refusal, calls, turn.finish, turn.usage


def arguments(call: ToolCall) -> Any:
    try:
        return call.parse_arguments()
    except ValueError:
        return call.arguments
