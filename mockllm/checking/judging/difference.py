"""A difference between a client's outcome and the expected one, and how reports print it. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mockllm.checking.judging.values import Foreign, canonical, comparable_value
from mockllm.checking.outcome import NOT_KEPT, TEXTS, Call, NotKept, Outcome
from mockllm.core.text import shorten

_LONGEST = 100
_LONGEST_DESCRIPTION = 2000


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which an outcome is incorrect, and the invariant that it points to.

    Args:
        field: the field of the outcome; `errors` for an error where none is correct, `crash` for
            one that points to a bug, `chunk` for what was seen in the middle of the stream.
        conclusive: whether the invariant is certain, whatever the case tests: another name is
            `name-kept`, even if a quirk of ids brought it to light.
        alternatives: other invariants that the difference may point to.
        recognised: of an exception: whether its text shows what it is about.
    """

    field: str
    description: str
    invariant: str
    conclusive: bool = False
    alternatives: tuple[str, ...] = ()
    recognised: bool = False

    def __post_init__(self) -> None:
        # What a client returned stands in it: of any length, and with lone surrogates.
        object.__setattr__(self, "description", printable(self.description))

    @property
    def subject(self) -> str:
        """The field without an index: all differences of calls have the same subject."""
        return self.field.partition("[")[0]


def printable(text: str) -> str:
    """A text of limited length that every output can encode: lone surrogates are escaped."""
    short = shorten(text, _LONGEST_DESCRIPTION, mark=f"… ({len(text)} characters)")
    return short.encode("utf-8", "backslashreplace").decode()


def comparable(call: Call) -> Call:
    """The call with arguments that can be compared: an object, if they are JSON text of one,
    missing or empty."""
    arguments = call.arguments
    if arguments is None or arguments == "":
        return replace(call, arguments={})
    if isinstance(arguments, str):
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            return call
        return replace(call, arguments=comparable_value(value)) if isinstance(value, dict) else call
    if isinstance(arguments, Foreign | NotKept):
        return call
    return replace(call, arguments=comparable_value(arguments))


def call_key(call: Call) -> str:
    """Name and arguments of a call as text: equal for calls that differ only in their ids."""
    return f"{call.name} {canonical(call.arguments)}"


def calls_of(got: Any) -> tuple[Call, ...]:
    """The calls of an outcome; none where the client has no place for them."""
    return got.tool_calls if isinstance(got.tool_calls, tuple) else ()


def format_calls(calls: Sequence[Call]) -> str:
    """Calls in one line."""
    texts = (f"{c.name}({format_value(c.arguments)}) id {format_value(c.id)}" for c in calls)
    return "; ".join(texts) or "none"


def format_value(value: object) -> str:
    """A value in one line, shortened if it is long."""
    if value is None:
        return "missing"
    if isinstance(value, str) and len(value) > _LONGEST_DESCRIPTION:
        value = f"{value[:_LONGEST]}… ({len(value)} characters)"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return printable(shorten(text, _LONGEST, keep=_LONGEST - 20, tail=15))


def describe(outcome: Outcome) -> str:
    """An outcome in one line."""
    items = [
        f"{name} {format_value(getattr(outcome, name))}"
        for name in TEXTS
        if getattr(outcome, name) and getattr(outcome, name) is not NOT_KEPT
    ]
    if outcome.tool_calls and isinstance(outcome.tool_calls, tuple):
        items.append(f"calls {format_calls(outcome.tool_calls)}")
    items.append(f"finish {format_value(outcome.finish)}")
    items += [f"error {format_value(trouble.message)}" for trouble in outcome.errors]
    return ", ".join(items)
