"""Compiles many cases: scenarios and quirks, combined with a protocol and variations. Pure.

`case_specs` lists the cases, `cases` compiles them; `Form` is a quirk as the kit plays it. `build`
compiles one case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count as count_from
from itertools import islice

from mockllm.checking.cases.build import cached_case, case, case_name, changes
from mockllm.checking.cases.case import Case, Level
from mockllm.checking.cases.scenarios import PLAIN, Variation, answer_size, draws, singles, vary
from mockllm.checking.material import kit_scenarios
from mockllm.core.errors import UsageError
from mockllm.play.quirks import QUIRKS
from mockllm.play.quirks.base import Quirk, Variant
from mockllm.play.quirks.samples import (
    INTERLEAVED,
    NOT_OFFERED,
    REASONING_AND_CALL,
    TEXT_AND_CALL,
    TWO_SAME,
    ZERO,
)
from mockllm.scenario.model import Api, Scenario
from mockllm.scenario.part_model import AnyPart, ToolPart, members
from mockllm.wire.protocols import PROTOCOLS


@dataclass(frozen=True, slots=True)
class CaseSpec:
    """A case that is not compiled yet: cheap to create, with the name of the case."""

    name: str
    scenario: Scenario
    api: Api
    variation: Variation = PLAIN
    quirk: str = ""

    def compile(self) -> Case:
        """The case, compiled once in a process, as long as there is memory for it."""
        return cached_case(self.scenario, self.api, self.variation, self.quirk)


def _spec(scenario: Scenario, api: Api, variation: Variation = PLAIN, quirk: str = "") -> CaseSpec:
    return CaseSpec(case_name(scenario, api, variation, quirk), scenario, api, variation, quirk)


def case_specs(
    api: Api,
    scenarios: Iterable[Scenario] = (),
    *,
    variations: int = 25,
    quirks: bool = True,
    seed: str = "0",
    level: Level = "bytes",
) -> Iterator[CaseSpec]:
    """The cases that `cases` gives for the same arguments, in the same order, not compiled."""
    check_api(api)
    users = list(_plain_specs(scenarios, api))
    yield from _with_variations(users, variations, seed, level)
    if not quirks:
        return
    used = {spec.scenario.name for spec in users}
    kit = (_with_unused_name(scenario, used) for scenario in (NOT_OFFERED, *kit_scenarios(api)))
    kit_specs = list(_plain_specs(kit, api))
    yield from _with_variations(kit_specs, min(variations, _KIT_VARIATIONS), seed, level)
    for form in forms(api, QUIRKS.over(api)):
        yield from _quirk_specs(form, api, used, variations, seed, level)


_KIT_VARIATIONS = 4
"""The kit's scenarios are small: more variations of them find nothing new."""


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
        variations: how many of each turn, drawn from the seed; of the kit's own scenarios and
            samples, only the first few.
        quirks: whether the kit's own scenarios follow, and the quirks of the protocol, each on
            several samples.
        level: `payloads` leaves out quirks that do not show in decoded events.
    """
    specs = case_specs(api, scenarios, variations=variations, quirks=quirks, seed=seed, level=level)
    return (spec.compile() for spec in specs)


def plain_cases(scenarios: Iterable[Scenario], api: Api) -> Iterator[Case]:
    """Every streamed turn of the scenarios that play over a protocol, unchanged."""
    return (spec.compile() for spec in _plain_specs(scenarios, api))


def plain_forms(listed: Sequence[Case]) -> list[Case]:
    """The plain forms of cases that are no cases themselves: those of the samples of quirks."""
    names = {case.name for case in listed}
    forms = {case.plain.name: case.plain for case in listed if case.plain is not None}
    return [form for name, form in forms.items() if name not in names]


def check_api(api: str, *, over_http: bool = False) -> None:
    """Checks that there is an API.

    Args:
        over_http: whether it has to answer over HTTP, as whole clients are led to a base URL.

    Raises:
        UsageError: there is none of this name, or it has only WebSockets.
    """
    if api not in PROTOCOLS:
        raise UsageError(f"there is no API {api!r}; there are: {', '.join(PROTOCOLS)}")
    if over_http and PROTOCOLS.addresses[api].is_socket:
        raise UsageError(
            f"the API {api!r} has only WebSockets, and whole clients are checked over HTTP; check "
            "its accumulator, with --level payloads or AccumulatorSuite"
        )


def _plain_specs(scenarios: Iterable[Scenario], api: Api) -> Iterator[CaseSpec]:
    """Every turn of the scenarios that is no error, by itself; nobody would open its gates."""
    for scenario in scenarios:
        if not scenario.plays_over(api):
            continue
        for alone in singles(scenario.without_gates(), api):
            if alone.turns[0].for_api(api).http is None:
                yield _spec(alone, api)


def _with_variations(
    plain: Sequence[CaseSpec], count: int, seed: str, level: Level
) -> Iterator[CaseSpec]:
    """Plain cases, then different variations of each."""
    yield from plain
    for spec in plain:
        drawn = islice(draws(seed, spec.name, payloads=level == "payloads"), _DRAWS * count)
        different = _different(spec, drawn)
        for variation in islice(different, _variations_of(spec.scenario, count)):
            yield _spec(spec.scenario, spec.api, variation)


_DRAWS = 3
"""So many variations are drawn for one that is played: a short answer has few different ones."""


def _different(spec: CaseSpec, variations: Iterable[Variation]) -> Iterator[Variation]:
    """The variations that cut an answer in different ways."""
    found: set[object] = set()
    for variation in variations:
        varied = vary(spec.scenario, variation).turns[0].for_api(spec.api)
        splits = tuple(map(repr, varied.reply))
        key = splits, replace(variation, split=())
        if key not in found:
            found.add(key)
            yield variation


_LONG = 3000
"""The size of an answer, in characters, from which on it is cut in fewer ways."""


def _variations_of(scenario: Scenario, count: int) -> int:
    """The number of variations of an answer: a fifth of a long one.

    A hundred calls, or a text of ten pages, take as long as all short answers together, and each
    variation of them has as many cuts as twenty of a short one.
    """
    return count if answer_size(scenario.turns[0].reply) < _LONG else -(-count // 5)


def _quirk_specs(
    form: Form, api: Api, used: set[str], variations: int, seed: str, level: Level
) -> Iterator[CaseSpec]:
    """A quirk on several samples, then under a few cuts, each on one of the samples."""
    if level == "payloads" and not form.variant.in_events:
        return
    played = [_with_unused_name(sample, used) for sample in samples(form, api)]
    found = [_spec(sample, api, quirk=form.name) for sample in played]
    drawn = cuts(form, variations, seed, payloads=level == "payloads")
    for number, variation in enumerate(drawn):
        found.append(_spec(played[number % len(played)], api, variation, form.name))
    for spec in found:
        if level == "bytes" or cached_case(spec.scenario, api, spec.variation, form.name).events:
            yield spec


def _with_unused_name(scenario: Scenario, used: set[str]) -> Scenario:
    """A scenario of the kit, with another name if a scenario of the user has its name."""
    if scenario.name not in used:
        return scenario
    names = (f"{scenario.name}-{number}" for number in count_from(2))
    return replace(scenario, name=next(name for name in names if name not in used))


def simple_form(given: Case) -> Case | None:
    """The answer of a case with its parts one after the other, each in one fragment; None where
    that is the case itself."""
    plain = given.plain or given
    turns = tuple(
        replace(turn, reply=tuple(map(_simple_part, members(turn.reply))))
        for turn in plain.scenario.turns
    )
    scenario = replace(plain.scenario, turns=turns)
    if scenario == plain.scenario:
        return None
    return case(replace(scenario, name=f"{scenario.name}-simple"), given.api)


def _simple_part(part: AnyPart) -> AnyPart:
    return replace(part, split=None) if isinstance(part, ToolPart) else part


# Samples and cuts of quirks


_MORE_SAMPLES = (TWO_SAME, TEXT_AND_CALL, REASONING_AND_CALL, ZERO, INTERLEAVED)
"""Besides the sample of a quirk, where it changes something in them."""

_MOST_CUTS = 3

_LEFT_OUT = {
    (
        "chat-index-missing:empty-id",
        TWO_SAME.name,
    ): "without index and id, a second call of a tool looks like a fragment that repeats the name",
}
"""Pairs of quirk and sample whose correct outcome no client can know, each with the reason."""

_FEW_SAMPLES = {"sse-huge-event": "an event of 1 MB takes milliseconds; one more sample shows it"}
"""Quirks that are played on one more sample only, each with the reason."""

_NOT_CUT = {
    "sse-huge-event": "it arrives in reads of 16 KB; smaller ones would take seconds",
    "sse-chunk-boundaries": "it is a cut itself",
    "sse-utf8-split": "it is a cut itself",
}
"""Quirks that are played without further cuts, each with the reason."""


@dataclass(frozen=True, slots=True)
class Form:
    """A quirk as the kit plays it."""

    name: str
    quirk: Quirk
    variant: Variant


def forms(api: str, quirks: Iterable[Quirk]) -> Iterator[Form]:
    """The variants of quirks that change something of their own in the streams of an API."""
    for quirk in quirks:
        if quirk.applies_to(api):
            for variant in quirk.variants:
                if variant.changes(api):
                    name = f"{quirk.name}:{variant.name}" if variant.name else quirk.name
                    yield Form(name, quirk, variant)


def samples(form: Form, api: Api) -> tuple[Scenario, ...]:
    """The samples on which a quirk is played: its own, then others that it changes."""
    first = form.quirk.sample_of(form.variant)
    more = _MORE_SAMPLES[:1] if form.quirk.name in _FEW_SAMPLES else _MORE_SAMPLES
    others = (
        sample
        for sample in more
        if sample is not first
        and (form.name, sample.name) not in _LEFT_OUT
        and changes(
            cached_case(sample, api, quirk=form.name).answer, cached_case(sample, api).answer
        )
    )
    return (first, *others)


def cuts(form: Form, count: int, seed: str, *, payloads: bool) -> Iterator[Variation]:
    """Variations for a quirk: other fragments and groups and, of bytes, other chunks."""
    if form.quirk.name in _NOT_CUT:
        return
    found = {PLAIN: None}
    for drawn in draws(seed, form.name, payloads=payloads):
        # A quirk that chooses its writes is void when they are cut again.
        cut = () if form.variant.writes else drawn.cut
        found[Variation(split=drawn.split, group=drawn.group, cut=cut)] = None
        if len(found) > min(count, _MOST_CUTS):
            break
    del found[PLAIN]
    yield from found
