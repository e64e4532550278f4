"""Whoever is right is never blamed: the reference accumulators through thousands of streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from mockllm.checking import Case, Policy, cases, examine
from mockllm.checking.cases.case import recut
from mockllm.checking.cases.compile import case
from mockllm.checking.reference import REFERENCES
from mockllm.checking.reference.lines import ReferenceBytes
from mockllm.quirks import QUIRKS
from mockllm.quirks.samples import SAMPLES
from mockllm.replay.loading import load
from mockllm.scenario.model import APIS, Api
from mockllm.scenario.shipped import shipped_scenarios

LEAST_RUNS = 20_000
MOST_CHUNKS = 400
CUTS = ((1_000_000,), (61, 17))
# Of what is large, once is enough.
LARGE = ("hundred-tools", "long-text", "unicode", "keepalive", "sample-long-text")


def _quirks(api: Api) -> Iterator[Case]:
    """Every form of every quirk on every sample, also on those that it has nothing to change in."""
    names = [
        f"{quirk.name}:{variant.name}" if variant.name else quirk.name
        for quirk in QUIRKS.values()
        for variant in quirk.variants
        if api in quirk.apis
    ]
    for sample in SAMPLES.values():
        if sample.name not in LARGE:
            plain = case(sample, api)
            yield plain
            yield from (case(sample, api, quirk=name, plain=plain) for name in names)


def _compiled(api: Api) -> list[Case]:
    scenarios = load([shipped_scenarios()])
    small = [each for each in scenarios if each.name not in LARGE]
    large = [each for each in scenarios if each.name in LARGE]
    found = list(cases(api, small, variations=4, quirks=False))
    found += cases(api, large, variations=0)
    return [*found, *_quirks(api)]


def _cut(found: Case, sizes: tuple[int, ...]) -> Case:
    answer = replace(found.answer, data=tuple(recut(found.chunks, sizes)))
    return replace(found, answer=answer)


def _runs(api: Api) -> int:
    """Through all of them, as events and as bytes, which are compiled once and cut anew."""
    found, watched = _compiled(api), Policy(intermediate=True)
    reports = [examine(REFERENCES[api], found, watched)]
    by_bytes = partial(ReferenceBytes, api)
    # Looking at a client thousands of times in one stream shows nothing more.
    few = [each for each in found if len(each.chunks) <= MOST_CHUNKS]
    reports.append(examine(by_bytes, few, watched, level="bytes"))
    for sizes in CUTS:
        cut = [_cut(each, sizes) for each in found if each.answer.size < 100_000]
        reports.append(examine(by_bytes, cut, watched, level="bytes"))
    for malformed in ("skip", "keep"):
        policy = replace(watched, malformed=malformed)
        made = partial(REFERENCES[api], malformed=malformed)
        reports.append(examine(made, [each for each in found if not each.quirk], policy))
    assert not [str(failure) for report in reports for failure in report.failures]
    return sum(report.runs for report in reports)


@pytest.mark.slow
def test_who_is_right_is_never_blamed() -> None:
    """Twenty thousand streams of five protocols, watched at every step, and no failure."""
    assert sum(_runs(api) for api in APIS) >= LEAST_RUNS
