"""Compiles cases: scenarios, combined with protocols, variations and quirks. Pure.

Every case is itself a scenario of one turn, so that a failure can be saved and replayed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.decoded import decoded
from mockllm.checking.cases.expected import accepted_finish_values, outcome_of_turn
from mockllm.checking.cases.variation import PLAIN, Variation, draw, vary
from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.errors import RequestError, UsageError
from mockllm.matching.select import Selection
from mockllm.protocols import PROTOCOLS
from mockllm.quirks import QUIRKS, Quirk, find
from mockllm.quirks.base import Right
from mockllm.quirks.samples import NOT_OFFERED
from mockllm.replay.answer import HttpAnswer
from mockllm.replay.client_requests import first_request, user_text
from mockllm.replay.compile import Replayer
from mockllm.replay.resolve import resolve
from mockllm.scenario.model import Api, AutoPart, Match, Scenario, TextPart, TurnSpec, Wire

__all__ = ["CaseSpec", "case", "case_specs", "cases", "plain_cases", "quirk_cases", "single"]

Level = Literal["payloads", "bytes"]


def single(scenario: Scenario, position: int = 0) -> Scenario:
    """One turn of a scenario as a scenario of its own, which answers every request."""
    turn = scenario.turns[position]
    name = scenario.name if len(scenario.turns) == 1 else f"{scenario.name}-{position + 1}"
    answer = replace(
        turn,
        request=None,
        attempts=(),
        repeat=False,
        reply=tuple(map(_without_auto, turn.reply)),
        variants=tuple(
            (api, replace(variant, request=None, attempts=(), repeat=False))
            for api, variant in turn.variants
        ),
    )
    return replace(
        scenario,
        name=name,
        seed=scenario.seeded,
        match=Match(anything=True),
        turns=(answer,),
        restart=False,
    )


def _without_auto(part: Any) -> Any:
    """Replaces an answer made from the request by fixed text: a case is the same every time."""
    return TextPart("You said: Hello") if isinstance(part, AutoPart) else part


def case(
    scenario: Scenario,
    api: Api,
    variation: Variation = PLAIN,
    quirk: str = "",
    *,
    plain: Case | None = None,
) -> Case:
    """The case of a scenario of one turn (see `single`) over a protocol.

    Args:
        plain: the same case without variation and quirk, if it is compiled already.

    Raises:
        UsageError: the scenario does not play over the protocol, or has no stream to check.
    """
    spec = scenario.turns[0].for_api(api)
    if not scenario.plays_over(api):
        raise UsageError(f"scenario {scenario.name!r} does not play over {api}")
    if spec.http is not None:
        raise UsageError(f"turn 1 of {scenario.name!r} is an HTTP error; it has no stream")
    varied = vary(scenario, variation)
    if quirk:
        varied = _with_quirks(varied, (quirk,))
    wire = spec.wire or Wire()
    if plain is None and (quirk or wire.quirks or variation != PLAIN):
        plain = case(_with_quirks(scenario, None) if wire.quirks else scenario, api)
    elif plain is None and wire != Wire():
        # The scenario itself cuts its answer: that is a variation, too.
        plain = case(_without_wire(scenario), api)
    return _compiled(varied, api, _name(scenario, api, variation, quirk), variation, quirk, plain)


def _name(scenario: Scenario, api: str, variation: Variation, quirk: str) -> str:
    return " + ".join(filter(None, (f"{api}/{scenario.name}", str(variation), quirk)))


def _with_quirks(scenario: Scenario, quirks: tuple[str, ...] | None) -> Scenario:
    """The scenario with more quirks; None removes those it has."""

    def turn(spec: TurnSpec) -> TurnSpec:
        wire = spec.wire or Wire()
        wire = replace(wire, quirks=() if quirks is None else (*wire.quirks, *quirks))
        return replace(
            spec,
            wire=None if wire == Wire() else wire,
            variants=tuple((api, turn(variant)) for api, variant in spec.variants),
        )

    return replace(scenario, turns=tuple(map(turn, scenario.turns)))


def _without_wire(scenario: Scenario) -> Scenario:
    """The scenario without settings of how its events are written."""

    def turn(spec: TurnSpec) -> TurnSpec:
        variants = tuple((api, turn(variant)) for api, variant in spec.variants)
        return replace(spec, wire=None, variants=variants)

    return replace(scenario, turns=tuple(map(turn, scenario.turns)))


def _compiled(
    scenario: Scenario,
    api: Api,
    name: str,
    variation: Variation,
    quirk: str,
    plain: Case | None,
) -> Case:
    spec = scenario.turns[0].for_api(api)
    protocol = PROTOCOLS[api]
    prompt, model = user_text(scenario), "mock-model"
    request = first_request(protocol, scenario, prompt, model)
    answer = Replayer().answer(Selection(scenario, 0, 0), request, protocol)
    turn = resolve(scenario, 0, api, protocol.call_prefix)
    names = [
        name for name in (spec.wire.quirks if spec.wire else ()) if find(name)[0].applies_to(api)
    ]
    quirks = list(map(find, names))
    # Project first: a quirk may add a value that the protocol itself cannot carry.
    received = protocol.project(turn)
    for _, variant in quirks:
        if variant.expected is not None:
            received = variant.expected(received)
    expected = outcome_of_turn(received, spec, api)
    reaction: Right = "same"
    for name_of_quirk, (one, variant) in zip(names, quirks, strict=True):
        required = variant.right or one.right
        if required == "same" or _changes_answer(answer, scenario, name_of_quirk, request):
            reaction = required
    if reaction == "same" and expected.errors:
        reaction = "error"
    return Case(
        name=name,
        api=api,
        scenario=scenario,
        prompt=prompt,
        tools=scenario.tools,
        answer=answer,
        events=decoded(answer, api, [variant for _, variant in quirks]),
        expected=expected,
        finish_values=accepted_finish_values(received, api),
        reaction=reaction,
        invariant=quirks[-1][0].invariant if quirks else "chunking-free",
        plain=plain,
        variation=variation,
        quirk=quirk,
        ids=all(variant.ids for _, variant in quirks),
        model=model,
        body=None if plain is not None else _body(scenario, request, api),
    )


def _changes_answer(answer: HttpAnswer, scenario: Scenario, quirk: str, request: Request) -> bool:
    """Whether a quirk changed the answer: a quirk of tool calls does not change one of text."""
    without = _without(scenario, quirk)
    plain = Replayer().answer(Selection(without, 0, 0), request, PROTOCOLS[request.api])
    unchanged = plain.data, plain.headers, plain.ending
    return (answer.data, answer.headers, answer.ending) != unchanged


def _without(scenario: Scenario, quirk: str) -> Scenario:
    """The scenario without one of its quirks."""

    def turn(spec: TurnSpec) -> TurnSpec:
        assert spec.wire is not None
        others = tuple(name for name in spec.wire.quirks if name != quirk)
        return replace(
            spec,
            wire=replace(spec.wire, quirks=others),
            variants=tuple((api, turn(variant)) for api, variant in spec.variants),
        )

    return replace(scenario, turns=tuple(map(turn, scenario.turns)))


def _body(scenario: Scenario, request: Request, api: Api) -> Any:
    """The body of the answer that is not streamed; None if that is an error."""
    try:
        answer = Replayer().answer(
            Selection(scenario, 0, 0), replace(request, stream=False), PROTOCOLS[api]
        )
    except RequestError:
        return None
    return json.loads(b"".join(answer.data)) if answer.status == 200 else None


# Many cases


@dataclass(frozen=True, slots=True)
class CaseSpec:
    """A case that is not compiled yet: cheap to create, with the name of the case.

    Args:
        name, scenario, api, variation, quirk: see `Case`.
    """

    name: str
    scenario: Scenario
    api: Api
    variation: Variation = PLAIN
    quirk: str = ""

    def compile(self, plain: Case | None = None) -> Case:
        """The case; for `plain` see `case`."""
        return case(self.scenario, self.api, self.variation, self.quirk, plain=plain)


def _spec(scenario: Scenario, api: Api, variation: Variation = PLAIN, quirk: str = "") -> CaseSpec:
    return CaseSpec(_name(scenario, api, variation, quirk), scenario, api, variation, quirk)


def _plain_specs(scenarios: Iterable[Scenario], api: Api) -> Iterator[CaseSpec]:
    for scenario in scenarios:
        if not scenario.plays_over(api):
            continue
        for position, turn in enumerate(scenario.turns):
            if turn.for_api(api).http is None:
                yield _spec(single(scenario, position), api)


_KIT_SCENARIOS = (NOT_OFFERED,)
"""Scenarios of the kit, played along with the quirks: users' scenarios may have none like them."""


def _quirk_specs(api: Api, quirks: Iterable[Quirk]) -> Iterator[CaseSpec]:
    for quirk in quirks:
        if not quirk.applies_to(api):
            continue
        for variant in quirk.variants:
            name = f"{quirk.name}:{variant.name}" if variant.name else quirk.name
            yield _spec(quirk.sample, api, quirk=name)


def plain_cases(scenarios: Iterable[Scenario], api: Api) -> Iterator[Case]:
    """Every streamed turn of the scenarios that play over a protocol, unchanged."""
    return (spec.compile() for spec in _plain_specs(scenarios, api))


def quirk_cases(api: Api, quirks: Iterable[Quirk] | None = None) -> Iterator[Case]:
    """Every variant of the quirks (default: all) of a protocol, on its sample."""
    plain: dict[str, Case] = {}
    for spec in _quirk_specs(api, QUIRKS.values() if quirks is None else quirks):
        sample = spec.scenario
        if sample.name not in plain:
            plain[sample.name] = case(sample, api)
        yield spec.compile(plain[sample.name])


def case_specs(
    api: Api,
    scenarios: Iterable[Scenario] = (),
    *,
    variations: int = 25,
    quirks: bool = True,
    seed: str = "0",
    level: Level = "bytes",
) -> Iterator[CaseSpec]:
    """The cases that `cases` gives for the same arguments, in the same order, not compiled.

    Raises:
        UsageError: there is no such API.
    """
    plain_specs = list(_plain_specs(scenarios, _checked(api)))
    yield from plain_specs
    for plain in plain_specs:
        yield from _varied_specs(plain, variations, seed, level)
    if quirks:
        yield from _plain_specs(_KIT_SCENARIOS, api)
        for spec in _quirk_specs(api, QUIRKS.values()):
            if level == "bytes" or spec.compile().events is not None:
                yield spec


def _checked(api: Api) -> Api:
    if api not in PROTOCOLS:
        raise UsageError(f"there is no API {api!r}; there are: {', '.join(PROTOCOLS)}")
    return api


def _varied_specs(
    plain: CaseSpec | Case, count: int, seed: str, level: Level
) -> Iterator[CaseSpec]:
    for number in range(count):
        variation = draw(derive(seed, plain.name, number), payloads=level == "payloads")
        yield _spec(plain.scenario, plain.api, variation)


def cases(
    api: Api,
    scenarios: Iterable[Scenario] = (),
    *,
    variations: int = 25,
    quirks: bool = True,
    seed: str = "0",
    level: Level = "bytes",
) -> Iterator[Case]:
    """The cases for a client of a protocol, the plain ones first.

    Args:
        variations: how many of each turn, drawn from the seed.
        quirks: whether the quirks of the protocol follow, each on its sample.
        level: `payloads` leaves out quirks that do not show in decoded events.

    Raises:
        UsageError: there is no such API.
    """
    plain = list(plain_cases(scenarios, _checked(api)))
    yield from plain
    for one in plain:
        for spec in _varied_specs(one, variations, seed, level):
            yield spec.compile(one)
    if quirks:
        yield from plain_cases(_KIT_SCENARIOS, api)
        for one in quirk_cases(api):
            if one.events is not None or level == "bytes":
                yield one
