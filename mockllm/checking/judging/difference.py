"""A difference between what a client came to and what is right, and how such are told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mockllm.checking.outcome import Call, Outcome

__all__ = ["Difference", "comparable", "describe", "key", "listed", "shown"]

_MOST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which an outcome is not right, and the invariant that it speaks of.

    Args:
        field: of the outcome; `errors` of which none belongs in the stream, `crash` of those
            that tell of a bug, `chunk` of what was seen on the way.
        sure: whether that is so whatever the case tests: a name that is another one is
            `name-kept`, also where a quirk of ids brings it to light.
        or_else: what the same might speak of, too.
    """

    field: str
    words: str
    invariant: str
    sure: bool = False
    or_else: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        """What of the answer is wrong: all differences of calls are about the same."""
        return self.field.partition("[")[0]


def comparable(call: Call) -> Call:
    """Arguments that a client keeps as text, or leaves away where there are none, as a value."""
    if call.arguments is None or call.arguments == "":
        return replace(call, arguments={})
    if isinstance(call.arguments, str):
        try:
            value = json.loads(call.arguments)
        except ValueError:
            return call
        return replace(call, arguments=value) if isinstance(value, dict) else call
    return call


def key(call: Call) -> str:
    """What two calls that say the same have in common: all but the id."""
    return f"{call.name} {json.dumps(call.arguments, sort_keys=True)}"


def listed(calls: Sequence[Call]) -> str:
    """Calls in one line."""
    return "; ".join(f"{c.name}({shown(c.arguments)}) id {shown(c.id)}" for c in calls) or "none"


def shown(value: object) -> str:
    """A value in one line, shortened where it is long."""
    if value is None:
        return "missing"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 20]}…{text[-15:]}"


def describe(outcome: Outcome) -> str:
    """An outcome in one line."""
    told = [
        f"{name} {shown(getattr(outcome, name))}"
        for name in ("text", "reasoning", "refusal")
        if getattr(outcome, name)
    ]
    if outcome.tool_calls:
        told.append(f"calls {listed(outcome.tool_calls)}")
    told.append(f"finish {shown(outcome.finish)}")
    told += [f"error {shown(trouble.message)}" for trouble in outcome.errors]
    return ", ".join(told)
