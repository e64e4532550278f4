"""No false alarm: the reference accumulators pass thousands of streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from zlib import crc32

import pytest

from examples.accumulators import REFERENCES
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking import Case, Policy, cases, examine
from mockllm.checking.cases.build import case
from mockllm.checking.cases.case import recut
from mockllm.play.quirks import QUIRKS
from mockllm.play.quirks.samples import SAMPLES
from mockllm.play.replay.loading import load, shipped_scenarios
from mockllm.scenario.model import Api
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import forget_cases

APIS = tuple(PROTOCOLS)

LEAST_RUNS = 20_000
MOST_CHUNKS = 400
BATCH = 100
"""All cases of an API at once would take some 300 MB."""
CUTS = ((), (1_000_000,), (211, 67))
"""The sizes of chunks, the first those of the server. A case is tried with one of them, which its
name chooses: a quirk has some ten samples."""
# One variation of each large scenario is enough.
LARGE = ("hundred-tools", "long-text", "unicode", "keepalive", "sample-long-text")


def _quirks(api: Api) -> Iterator[Case]:
    """Every variant of every quirk on every sample, also where it changes nothing."""
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


def _compiled(api: Api) -> Iterator[Case]:
    scenarios = load([shipped_scenarios()])
    small = [each for each in scenarios if each.name not in LARGE]
    large = [each for each in scenarios if each.name in LARGE]
    yield from cases(api, small, variations=2, quirks=False)
    yield from cases(api, large, variations=0)
    yield from _quirks(api)


def _cut(found: Case, sizes: tuple[int, ...]) -> Case:
    if not sizes:
        return found
    answer = replace(found.answer, data=tuple(recut(found.chunks, sizes)))
    return replace(found, answer=answer)


def _batches(found: Iterator[Case]) -> Iterator[list[Case]]:
    while batch := list(islice(found, BATCH)):
        yield batch
        forget_cases()


def _runs(api: Api, found: list[Case]) -> int:
    """How many cases ran, as events and as bytes, without a failure."""
    intermediate = Policy(intermediate=True)
    reports = [examine(REFERENCES[api], found, intermediate)]
    # The outcome is read after every chunk, which is quadratic in long streams.
    short = [each for each in found if len(each.chunks) <= MOST_CHUNKS]
    cut = [_cut(each, CUTS[crc32(each.name.encode()) % len(CUTS)]) for each in short]
    reports.append(examine(partial(ReferenceBytes, api), cut, intermediate, level="bytes"))
    for malformed in ("skip", "keep"):
        policy = replace(intermediate, malformed=malformed)
        accumulator = partial(REFERENCES[api], malformed=malformed)
        reports.append(examine(accumulator, [each for each in found if not each.quirk], policy))
    assert not [str(failure) for report in reports for failure in report.failures]
    return sum(report.runs for report in reports)


@pytest.mark.large
@pytest.mark.slow
def test_the_reference_accumulators_pass_every_case() -> None:
    """Thousands of streams of five protocols, with the outcome read at every step, all pass."""
    runs = sum(_runs(api, batch) for api in APIS for batch in _batches(_compiled(api)))
    assert runs >= LEAST_RUNS
