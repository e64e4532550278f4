"""The items that the kit's cases play."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mockllm.checking.cases.build import case
from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import forms
from mockllm.checking.cases.scenarios import single
from mockllm.checking.material import kit_scenarios
from mockllm.play.quirks import QUIRKS
from mockllm.wire.protocols import PROTOCOLS
from tools.coverage.tree import Tree


@dataclass(frozen=True, slots=True)
class Played:
    """What cases play.

    Args:
        items: by item, the first case that plays it; those without a quirk come first.
        unlisted: the same for what the SDK's types do not list.
        cases: how many cases there are.
    """

    items: dict[str, str]
    unlisted: dict[str, str]
    cases: int


def played(api: str, tree: Tree) -> Played:
    """The items of an API that the kit's cases play: its scenarios, then its quirks."""
    found: dict[str, str] = {}
    count = 0
    for case_ in _cases(api):
        count += 1
        for event in _events(case_):
            for item in tree.played(event):
                found.setdefault(item, case_.name)
    unlisted = {item.removeprefix("+"): name for item, name in found.items() if item[0] == "+"}
    return Played({k: v for k, v in found.items() if k[0] != "+"}, unlisted, count)


def _cases(api: str) -> Iterator[Case]:
    samples: dict[str, Case] = {}
    for scenario in kit_scenarios(api):
        for position, _ in enumerate(scenario.turns):
            yield case(single(scenario, position), api)
    quirks = list(forms(api, QUIRKS.values()))
    for form in quirks:
        sample = form.quirk.sample_of(form.variant)
        if sample.name not in samples:
            samples[sample.name] = case(sample, api)
            yield samples[sample.name]
    for form in quirks:
        # Changes of bytes do not change the decoded events.
        if form.variant.frames is not None:
            sample = form.quirk.sample_of(form.variant)
            yield case(sample, api, quirk=form.name, plain=samples[sample.name])


def _events(one: Case) -> Iterator[Any]:
    """The decoded events, also of a case that has some that are not JSON."""
    if one.events is not None:
        yield from (value for value, _ in one.events.decoded)
        return
    for frame in PROTOCOLS[one.api].usual.decode(b"".join(one.answer.data)):
        try:
            yield json.loads(frame.data or "")
        except ValueError:
            continue
