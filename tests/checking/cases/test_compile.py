"""Many cases: their names, their order, and the scenarios of the kit among them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mockllm.checking.cases.compile import case_specs, cases
from mockllm.checking.cases.scenarios import PLAIN, single
from mockllm.checking.material import kit_scenarios
from mockllm.core.errors import UsageError
from mockllm.play.quirks.samples import NOT_OFFERED, TEXT, TWO_SAME
from mockllm.play.replay.loading import load, loads, shipped_scenarios
from mockllm.scenario.model import Scenario
from mockllm.scenario.part_model import TextPart
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

APIS = tuple(PROTOCOLS)
LEVELS = ("payloads", "bytes")
SOME = load([shipped_scenarios()])[:2]

every_api = for_all("api", APIS)
every_level = for_all("level", LEVELS)


def _names(api, scenarios=(), **options) -> list[str]:
    return [spec.name for spec in case_specs(api, scenarios, **options)]


def with_text(scenario: Scenario, text: str) -> Scenario:
    (turn,) = scenario.turns
    return replace(scenario, turns=(replace(turn, reply=(TextPart(text),)),))


def test_gates_of_a_users_scenario_are_open() -> None:
    """In a case nobody opens them."""
    held = loads("{scenario: s, turns: [{reply: [one, {gate: a}, two], gate: b}]}")
    plain = loads("{scenario: s, turns: [{reply: [one, two]}]}")
    given, same = (next(iter(cases("chat", some, quirks=False))) for some in (held, plain))
    assert given.name == "chat/s"
    assert (given.scenario, given.payloads) == (same.scenario, same.payloads)


@pytest.mark.slow
@pytest.mark.parametrize("api", ["responses", "anthropic", "agui"])
def test_variations_of_one_answer_differ(api) -> None:
    """No two variations give the same events where every fragment is an event: a repeated one
    finds nothing new. Fragments that are joined again may be those of another variation."""
    streams: dict[tuple[str, ...], str] = {}
    for case in cases(api, load([shipped_scenarios()]), variations=6, level="payloads"):
        if case.quirk or case.variation == PLAIN or case.variation.group:
            continue
        assert case.plain is not None
        key = (case.plain.name, repr(case.payloads))
        assert key not in streams, (case.name, streams[key])
        streams[key] = case.name


@pytest.mark.slow
@every_level
@every_api
def test_specs_have_the_names_and_the_order_of_the_cases(api, level) -> None:
    """Specs and cases correspond one to one, and no two cases have the same name. A spec compiles
    to the bytes and the outcome of its case."""
    specs = list(case_specs(api, SOME, variations=2, level=level))
    compiled = list(cases(api, SOME, variations=2, level=level))
    names = [spec.name for spec in specs]
    assert names == [case.name for case in compiled]
    assert len(set(names)) == len(names)
    for spec, case in list(zip(specs, compiled, strict=True))[::10]:
        again = spec.compile()
        assert (again.chunks, again.expected) == (case.chunks, case.expected)
    for case in compiled:
        assert (case.plain is None) == (case.variation == PLAIN and not case.quirk)
        assert level == "bytes" or case.events is not None


def test_an_unknown_api_is_an_error() -> None:
    """The message lists the APIs that there are."""
    with pytest.raises(UsageError, match="there is no API 'chats'; there are: chat, responses"):
        list(case_specs("chats"))


@pytest.mark.slow
@every_api
def test_the_kit_plays_its_own_scenarios_along(api) -> None:
    """Its scenarios come plain and in up to four variations, if quirks are wanted."""
    wanted = [single(scenario, 0).name for scenario in (NOT_OFFERED, *kit_scenarios(api))]
    names = _names(api, variations=25)
    for name in wanted:
        assert f"{api}/{name}" in names
        varied = [one for one in names if one.startswith(f"{api}/{name}~")]
        assert 1 <= len(varied) <= 4
    assert _names(api, variations=0)[: len(wanted)] == [f"{api}/{name}" for name in wanted]
    assert _names(api, quirks=False) == []


@pytest.mark.slow
@every_level
def test_a_scenario_of_the_user_keeps_its_name(level) -> None:
    """A scenario of the kit gets another name if the user's has it; both are played."""
    first = kit_scenarios("chat")[0]
    users = [with_text(one, "Mine") for one in (TWO_SAME, single(first, 0), NOT_OFFERED)]
    compiled = {case.name: case for case in cases("chat", users, variations=1, level=level)}
    assert len(compiled) == len(_names("chat", users, variations=1, level=level))
    for user in users:
        assert compiled[f"chat/{user.name}"].expected.text == "Mine"
    kits = compiled[f"chat/{first.name}-2"]
    assert kits.expected.text != "Mine"
    quirked = compiled["chat/sample-two-same-2+chat-index-all-zero"]
    assert [call.id for call in quirked.expected.tool_calls] == ["call_A1", "call_C3"]
    assert quirked.plain is not None
    assert quirked.plain.expected.tool_calls == quirked.expected.tool_calls


def test_variations_of_a_turn_differ() -> None:
    """Each variation is another one, even of the few that payloads allow."""
    names = _names("chat", [TEXT], variations=25, quirks=False, level="payloads")
    assert len(set(names)) == len(names) == 26
