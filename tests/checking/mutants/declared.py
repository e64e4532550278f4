"""The declaration of a mutant: its API, its level (payloads or bytes), and what it breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from mockllm.checking import Policy
from mockllm.checking.judging.running import Level
from mockllm.checking.probes import ByteProbe, Probe
from mockllm.scenario.model import Api

__all__ = ["MUTANTS", "WATCHED", "Mutant", "mutant"]

WATCHED = Policy(intermediate=True)
_M = TypeVar("_M", bound=type[Probe] | type[ByteProbe])


@dataclass(frozen=True, slots=True)
class Mutant:
    """An accumulator with one mistake.

    Args:
        breaks: the invariants that the kit must report for it, and no others.
    """

    make: type[Probe | ByteProbe]
    breaks: frozenset[str]
    api: Api
    level: Level
    policy: Policy

    def __str__(self) -> str:
        return f"{self.api}-{self.level}-{self.make.__name__}"


MUTANTS: list[Mutant] = []
"""All mutants; a module adds its own when it is imported."""


def mutant(
    *breaks: str, api: Api, level: Level = "payloads", policy: Policy | None = None
) -> Callable[[_M], _M]:
    """Declares a class to be a mutant that breaks these invariants."""

    def declare(make: _M) -> _M:
        MUTANTS.append(Mutant(make, frozenset(breaks), api, level, policy or Policy()))
        return make

    return declare
