"""Compiled cases, kept for the whole process: suites of one API share them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any

from mockllm.checking.cases.build import case
from mockllm.checking.cases.case import Case
from mockllm.checking.cases.variation import PLAIN, Variation
from mockllm.protocols import PROTOCOLS
from mockllm.quirks import find
from mockllm.scenario.model import Api, Scenario

_MOST_CASES = 4096
"""More than one API has at both levels together, with 25 variations of the shipped scenarios."""

_MOST_SCENARIOS = 4096
_digests: dict[int, tuple[Scenario, str]] = {}


@dataclass(frozen=True, slots=True)
class _Key:
    """What a case depends on.

    Args:
        digest: stands for the scenario, which cannot be hashed.
        objects: the protocol and the quirks: tests replace them.
    """

    digest: str
    api: Api
    variation: Variation
    quirk: str
    objects: tuple[int, ...]
    scenario: Scenario = field(compare=False)
    # Objects that are alive keep their `id`.
    alive: tuple[object, ...] = field(compare=False)


def kept(scenario: Scenario, api: Api, variation: Variation = PLAIN, quirk: str = "") -> Case:
    """A case of a scenario of one turn (see `build.case`), compiled once."""
    found = _objects(scenario, api, quirk)
    ids = tuple(map(id, found))
    return _compiled(_Key(_digest(scenario), api, variation, quirk, ids, scenario, found))


@lru_cache(maxsize=_MOST_CASES)
def _compiled(key: _Key) -> Case:
    is_plain = not key.quirk and key.variation == PLAIN
    plain = None if is_plain else kept(key.scenario, key.api)
    return case(key.scenario, key.api, key.variation, key.quirk, plain=plain)


def _objects(scenario: Scenario, api: Api, quirk: str) -> tuple[object, ...]:
    wire = scenario.turns[0].for_api(api).wire
    names = (*(wire.quirks if wire else ()), *filter(None, [quirk]))
    found: list[Any] = [PROTOCOLS[api]]
    for name in names:
        found += find(name)
    return tuple(found)


def _digest(scenario: Scenario) -> str:
    """The same for scenarios that are the same in every respect, the order of keys included."""
    known = _digests.get(id(scenario))
    if known is not None:
        return known[1]
    if len(_digests) >= _MOST_SCENARIOS:
        _digests.clear()
    digest = sha256(repr(scenario).encode(errors="surrogatepass")).hexdigest()
    _digests[id(scenario)] = scenario, digest
    return digest
