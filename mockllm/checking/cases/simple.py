"""The simplest form of a case, to see what a difference depends on. Pure."""

from __future__ import annotations

from dataclasses import replace

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import case as compile_case
from mockllm.scenario.model import AnyPart, InterleavedPart, ParallelPart, ToolPart


def simple_form(case: Case) -> Case | None:
    """The answer of a case with its parts one after the other, each in one fragment; None where
    that is the case itself."""
    plain = case.plain or case
    turns = tuple(
        replace(turn, reply=tuple(part for one in turn.reply for part in _simple_parts(one)))
        for turn in plain.scenario.turns
    )
    scenario = replace(plain.scenario, turns=turns)
    if scenario == plain.scenario:
        return None
    return compile_case(replace(scenario, name=f"{scenario.name}-simple"), case.api)


def _simple_parts(part: AnyPart) -> tuple[AnyPart, ...]:
    match part:
        case ParallelPart(calls=calls):
            return tuple(replace(call, split=None) for call in calls)
        case InterleavedPart(parts=parts):
            return tuple(simple for one in parts for simple in _simple_parts(one))
        case ToolPart():
            return (replace(part, split=None),)
        case _:
            return (part,)
