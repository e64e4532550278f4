"""A difference between a client's outcome and the expected one, how reports print it, and values of
any type as values that can be compared. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mockllm.checking.outcome import NOT_KEPT, TEXTS, Call, NotKept, Outcome
from mockllm.core.text import shorten
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.values import json_object

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
        value = json_object(arguments)
        return call if value is None else replace(call, arguments=comparable_value(value))
    if isinstance(arguments, Foreign | NotKept):
        return call
    return replace(call, arguments=comparable_value(arguments))


def call_key(call: Call) -> str:
    """Name and arguments of a call as text: equal for calls that differ only in their ids."""
    return f"{call.name} {canonical(call.arguments)}"


def calls_of(got: Any) -> tuple[Call, ...]:
    """The calls of an outcome; none where the client has no place for them."""
    return got.tool_calls if isinstance(got.tool_calls, tuple) else ()


def complete_finishes(api: str) -> set[str]:
    """The reasons of an answer that is complete: the neutral ones, and those of an API."""
    values = PROTOCOLS[api].finish_values
    neutral = ("stop", "tool_calls")
    return {*neutral, *(value for name in neutral for value in values.get(name, ()))}


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


# Values of any type, since a client may return anything


_DEEPEST = 100
_LONGEST_REPR = 200
_MOST_BITS = 14_000
"""Python writes no integer of more than 4300 digits (`sys.int_info.default_max_str_digits`)."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A value that JSON cannot hold: an object, NaN, a value that contains itself."""

    text: str

    def __repr__(self) -> str:
        return self.text


def comparable_value(value: Any, depth: int = 0) -> Any:
    """A value in the types of JSON; what JSON cannot hold becomes `Foreign`."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        bits = value.bit_length()
        return value if bits < _MOST_BITS else Foreign(f"an integer of {bits} bits")
    if isinstance(value, float):
        return value if math.isfinite(value) else Foreign(str(value))
    if depth > _DEEPEST:
        return Foreign("a value nested too deeply")
    try:
        return _collection(value, depth + 1)
    except Exception:  # noqa: BLE001 - a client's collection may raise anything when it is read
        return foreign(value)


def _collection(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else repr(foreign(key)): comparable_value(item, depth)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [comparable_value(item, depth) for item in value]
    return foreign(value)


def foreign(value: Any) -> Foreign:
    """A value that JSON cannot hold, by its `repr`."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - the repr of a client's object may raise anything
        text = f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
    return Foreign(text[:_LONGEST_REPR])


def canonical(value: Any) -> str:
    """A comparable value as text: equal for equal JSON values, and for these only.

    `1` and `1.0` are one number in JSON; `1` and `true` are two values, although Python compares
    them as equal.
    """
    return json.dumps(_numbers(value), sort_keys=True, default=lambda it: ["not JSON", repr(it)])


def canonical_text(text: str) -> str:
    """JSON text in the form of `canonical`; a text that is no JSON as it is."""
    try:
        return canonical(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(_numbers, value))
    return value
