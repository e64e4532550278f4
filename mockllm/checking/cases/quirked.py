"""On which samples, and under which cuts, the kit plays a quirk. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mockllm.checking.cases.build import changes
from mockllm.checking.cases.compiled import kept
from mockllm.checking.cases.variation import PLAIN, Variation, draws
from mockllm.quirks.base import Quirk, Variant
from mockllm.quirks.samples import (
    INTERLEAVED,
    REASONING_AND_CALL,
    TEXT_AND_CALL,
    TWO_SAME,
    ZERO,
)
from mockllm.scenario.model import Api, Scenario

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


def in_events(variant: Variant) -> bool:
    """Whether a variant may show in decoded events, not only in bytes."""
    return variant.bytes is None and variant.content_type is None and variant.ending == "complete"


def samples(form: Form, api: Api) -> tuple[Scenario, ...]:
    """The samples on which a quirk is played: its own, then others that it changes."""
    first = form.quirk.sample_of(form.variant)
    more = _MORE_SAMPLES[:1] if form.quirk.name in _FEW_SAMPLES else _MORE_SAMPLES
    others = (
        sample
        for sample in more
        if sample is not first
        and (form.name, sample.name) not in _LEFT_OUT
        and changes(kept(sample, api, quirk=form.name).answer, kept(sample, api).answer)
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
