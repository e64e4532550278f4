"""Scenarios times protocols times variations and quirks: the cases that a client goes through.

A case is itself a scenario of one turn; whatever a case shows can be written down and played.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.decoded import decoded
from mockllm.checking.cases.expected import finish_words, outcome_of_turn
from mockllm.checking.cases.variation import PLAIN, Variation, draw, vary
from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.errors import RequestError, UsageError
from mockllm.matching.select import Pick
from mockllm.protocols import PROTOCOLS
from mockllm.quirks import QUIRKS, Quirk, find
from mockllm.quirks.samples import NOT_OFFERED
from mockllm.replay.answer import Answer
from mockllm.replay.client_requests import first_request, user_text
from mockllm.replay.compile import Replayer
from mockllm.replay.resolve import resolve
from mockllm.scenario.model import (
    Api,
    AutoPart,
    Match,
    Scenario,
    TextPart,
    TurnSpec,
    Wire,
)

__all__ = ["Plan", "case", "cases", "plain_cases", "plans", "quirk_cases", "single"]

Level = Literal["payloads", "bytes"]


def single(scenario: Scenario, position: int = 0) -> Scenario:
    """One turn of a scenario as a scenario of its own, which answers anything."""
    turn = scenario.turns[position]
    name = scenario.name if len(scenario.turns) == 1 else f"{scenario.name}-{position + 1}"
    answer = replace(
        turn,
        request=None,
        attempts=(),
        repeat=False,
        reply=tuple(map(_said, turn.reply)),
        variants=tuple(
            (api, replace(each, request=None, attempts=(), repeat=False))
            for api, each in turn.variants
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


def _said(part: Any) -> Any:
    """Answers that are made from the request say something fixed in a case."""
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
        plain: the same without variation and quirk, where it is known.

    Raises:
        UsageError: the scenario does not play over the protocol, or has no stream to check.
    """
    spec = scenario.turns[0].for_api(api)
    if not scenario.plays_over(api):
        raise UsageError(f"scenario {scenario.name!r} does not play over {api}")
    if spec.http is not None:
        raise UsageError(f"turn 1 of {scenario.name!r} is an HTTP error; it has no stream")
    told = vary(scenario, variation)
    if quirk:
        told = _with_quirks(told, (quirk,))
    own = spec.wire or Wire()
    if plain is None and (quirk or own.quirks or variation != PLAIN):
        plain = case(_with_quirks(scenario, None) if own.quirks else scenario, api)
    elif plain is None and own != Wire():
        # A scenario may cut its answer itself, which is a variation of it.
        plain = case(_bare(scenario), api)
    return _compiled(told, api, _name(scenario, api, variation, quirk), variation, quirk, plain)


def _name(scenario: Scenario, api: str, variation: Variation, quirk: str) -> str:
    return " + ".join(filter(None, (f"{api}/{scenario.name}", str(variation), quirk)))


def _with_quirks(scenario: Scenario, quirks: tuple[str, ...] | None) -> Scenario:
    """A scenario with further quirks; None takes away those it has."""

    def turn(spec: TurnSpec) -> TurnSpec:
        wire = spec.wire or Wire()
        wire = replace(wire, quirks=() if quirks is None else (*wire.quirks, *quirks))
        return replace(
            spec,
            wire=None if wire == Wire() else wire,
            variants=tuple((api, turn(each)) for api, each in spec.variants),
        )

    return replace(scenario, turns=tuple(map(turn, scenario.turns)))


def _bare(scenario: Scenario) -> Scenario:
    """A scenario that leaves to the protocol how its events are written."""

    def turn(spec: TurnSpec) -> TurnSpec:
        variants = tuple((api, turn(each)) for api, each in spec.variants)
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
    answer = Replayer().answer(Pick(scenario, 0, 0), request, protocol)
    turn = resolve(scenario, 0, api, protocol.call_prefix)
    named = [
        name for name in (spec.wire.quirks if spec.wire else ()) if find(name)[0].applies_to(api)
    ]
    quirks = list(map(find, named))
    # What the protocol cannot say is gone before a quirk adds a word that is not its own.
    meant = protocol.project(turn)
    for _, variant in quirks:
        if variant.meaning is not None:
            meant = variant.meaning(meant)
    expected = outcome_of_turn(meant, spec, api)
    right = "same"
    for told, (one, variant) in zip(named, quirks, strict=True):
        wants = variant.right or one.right
        if wants == "same" or _shows(answer, scenario, told, request):
            right = wants
    if right == "same" and expected.errors:
        right = "error"
    return Case(
        name=name,
        api=api,
        scenario=scenario,
        prompt=prompt,
        tools=scenario.tools,
        answer=answer,
        events=decoded(answer, api, [variant for _, variant in quirks]),
        expected=expected,
        finishes=finish_words(meant, api),
        right=right,  # type: ignore[arg-type]
        invariant=quirks[-1][0].invariant if quirks else "chunking-free",
        plain=plain,
        variation=variation,
        quirk=quirk,
        ids=all(variant.ids for _, variant in quirks),
        model=model,
        body=None if plain is not None else _body(scenario, request, api),
    )


def _shows(answer: Answer, scenario: Scenario, quirk: str, request: Request) -> bool:
    """Whether a quirk changed anything: one of tool calls leaves a text as it is."""
    without = _without(scenario, quirk)
    plain = Replayer().answer(Pick(without, 0, 0), request, PROTOCOLS[request.api])
    return (answer.data, answer.headers, answer.ending) != (
        plain.data,
        plain.headers,
        plain.ending,
    )


def _without(scenario: Scenario, quirk: str) -> Scenario:
    """A scenario without one of its quirks."""

    def turn(spec: TurnSpec) -> TurnSpec:
        assert spec.wire is not None
        left = tuple(name for name in spec.wire.quirks if name != quirk)
        return replace(
            spec,
            wire=replace(spec.wire, quirks=left),
            variants=tuple((api, turn(each)) for api, each in spec.variants),
        )

    return replace(scenario, turns=tuple(map(turn, scenario.turns)))


def _body(scenario: Scenario, request: Request, api: Api) -> Any:
    """The answer that is not streamed; None for one that is an error."""
    try:
        answer = Replayer().answer(
            Pick(scenario, 0, 0), replace(request, stream=False), PROTOCOLS[api]
        )
    except RequestError:
        return None
    return json.loads(b"".join(answer.data)) if answer.status == 200 else None


# Many of them


@dataclass(frozen=True, slots=True)
class Plan:
    """A case that is not compiled yet: cheap to make and to name.

    Args:
        name, scenario, api, variation, quirk: as those of the case.
    """

    name: str
    scenario: Scenario
    api: Api
    variation: Variation = PLAIN
    quirk: str = ""

    def case(self, plain: Case | None = None) -> Case:
        """The case; `plain` as in `case`."""
        return case(self.scenario, self.api, self.variation, self.quirk, plain=plain)


def _plan(scenario: Scenario, api: Api, variation: Variation = PLAIN, quirk: str = "") -> Plan:
    return Plan(_name(scenario, api, variation, quirk), scenario, api, variation, quirk)


def _plain_plans(scenarios: Iterable[Scenario], api: Api) -> Iterator[Plan]:
    for scenario in scenarios:
        if not scenario.plays_over(api):
            continue
        for position, turn in enumerate(scenario.turns):
            if turn.for_api(api).http is None:
                yield _plan(single(scenario, position), api)


_OF_THE_KIT = (NOT_OFFERED,)
"""What the scenarios of users cannot be counted on to have; played along with the quirks."""


def _quirk_plans(api: Api, quirks: Iterable[Quirk]) -> Iterator[Plan]:
    for quirk in quirks:
        if not quirk.applies_to(api):
            continue
        for variant in quirk.variants:
            name = f"{quirk.name}:{variant.name}" if variant.name else quirk.name
            yield _plan(quirk.sample, api, quirk=name)


def plain_cases(scenarios: Iterable[Scenario], api: Api) -> Iterator[Case]:
    """Every streamed turn of the scenarios that play over a protocol, as it is."""
    return (plan.case() for plan in _plain_plans(scenarios, api))


def quirk_cases(api: Api, quirks: Iterable[Quirk] | None = None) -> Iterator[Case]:
    """Every variant of the quirks (default: all) of a protocol, on its sample."""
    plain: dict[str, Case] = {}
    for plan in _quirk_plans(api, QUIRKS.values() if quirks is None else quirks):
        sample = plan.scenario
        if sample.name not in plain:
            plain[sample.name] = case(sample, api)
        yield plan.case(plain[sample.name])


def plans(
    api: Api,
    scenarios: Iterable[Scenario] = (),
    *,
    variations: int = 25,
    quirks: bool = True,
    seed: str = "0",
    level: Level = "bytes",
) -> Iterator[Plan]:
    """What `cases` gives for the same arguments, in the same order, not compiled."""
    plains = list(_plain_plans(scenarios, _known(api)))
    yield from plains
    for plain in plains:
        yield from _variations(plain.scenario, plain, variations, seed, level)
    if quirks:
        yield from _plain_plans(_OF_THE_KIT, api)
        for plan in _quirk_plans(api, QUIRKS.values()):
            if level == "bytes" or plan.case().events is not None:
                yield plan


def _known(api: Api) -> Api:
    if api not in PROTOCOLS:
        raise UsageError(f"there is no API {api!r}; there are: {', '.join(PROTOCOLS)}")
    return api


def _variations(
    scenario: Scenario, plain: Plan | Case, count: int, seed: str, level: Level
) -> Iterator[Plan]:
    for number in range(count):
        drawn = draw(derive(seed, plain.name, number), payloads=level == "payloads")
        yield _plan(scenario, plain.api, drawn)


def cases(
    api: Api,
    scenarios: Iterable[Scenario] = (),
    *,
    variations: int = 25,
    quirks: bool = True,
    seed: str = "0",
    level: Level = "bytes",
) -> Iterator[Case]:
    """The cases that a client of a protocol goes through, the plain ones first.

    Args:
        variations: of each turn, drawn from the seed.
        quirks: whether the quirks of the protocol follow, each on its sample.
        level: `payloads` leaves out what does not show in decoded events.
    """
    plains = list(plain_cases(scenarios, _known(api)))
    yield from plains
    for plain in plains:
        for plan in _variations(plain.scenario, plain, variations, seed, level):
            yield plan.case(plain)
    if quirks:
        yield from plain_cases(_OF_THE_KIT, api)
        for each in quirk_cases(api):
            if each.events is not None or level == "bytes":
                yield each
