"""Reads what a client returned, of whatever type, into an outcome that can be compared. Pure.

A client may return anything: a list in place of text, a call without a name, NaN, an object that
contains itself. A value of a wrong type becomes a difference with a name, and never an exception of
the kit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mockllm.checking.judging.difference import Difference, comparable_value, foreign, format_value
from mockllm.checking.outcome import NOT_KEPT, TEXTS, TOKEN_COUNTS, Call, Outcome, Trouble, Usage


def with_declared_types(outcome: Outcome) -> tuple[Outcome, list[Difference]]:
    """An outcome whose fields have the declared types, and the differences of those that had not.

    A field of a wrong type gets its default, and is not compared any further.
    """
    found: list[Difference] = []
    changes: dict[str, Any] = dict(_texts(outcome, _CONTENT, found))
    changes["tool_calls"] = _calls(outcome.tool_calls, found)
    changes["errors"] = _errors(outcome.errors, found)
    changes["usage"] = _usage(outcome.usage, found)
    changes |= _texts(outcome, _LABELS, found)
    changes["opaque"] = _opaque(outcome.opaque, found)
    # Most outcomes are as declared.
    changed = {name: now for name, now in changes.items() if now is not getattr(outcome, name)}
    return replace(outcome, **changed) if changed else outcome, found


def running_parts(outcome: Outcome) -> tuple[Any, Any, Any]:
    """The parts that are compared after every chunk, with declared types: the text, the reasoning,
    and the calls. The differences are those of the whole outcome, in the end."""
    text, reasoning = _kept_text(outcome.text, ""), _kept_text(outcome.reasoning, "")
    return text, reasoning, _calls(outcome.tool_calls, [])


_ACCUMULATES = "text-accumulates"
_CONTENT = dict.fromkeys(TEXTS, _ACCUMULATES)
_LABELS = {
    "finish": "finish-and-usage",
    "role": "role-kept",
    "model": "answer-id-kept",
    "response_id": "answer-id-kept",
}
"""The fields that are texts, each with the invariant that another type breaks."""


def _texts(
    outcome: Outcome, names: Mapping[str, str], found: list[Difference]
) -> Iterator[tuple[str, Any]]:
    for name, invariant in names.items():
        value = getattr(outcome, name)
        text = _kept_text(value, "" if invariant == _ACCUMULATES else None)
        if text is value:
            continue
        yield name, text
        if text is NOT_KEPT:
            found.append(_wrong_type(name, value, "text", invariant))


def _kept_text(value: Any, missing: str | None) -> Any:
    """A text, and `missing` in place of None; `NOT_KEPT` for a value of another type."""
    if value is None:
        return missing
    return value if isinstance(value, str) else NOT_KEPT


def _wrong_type(field: str, value: Any, wanted: str, invariant: str) -> Difference:
    shown = format_value(comparable_value(value))
    description = f"{field} is of the type {type(value).__name__}, not {wanted}: {shown}"
    return Difference(field, description, invariant, conclusive=True)


def _items(value: Any) -> list[Any] | None:
    """The items of a collection; None where it is none."""
    if type(value) in (tuple, list):
        return list(value)
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | dict):
        return None
    try:
        return list(value)
    except Exception:  # noqa: BLE001 - a client's iterator may raise anything; the type is reported
        return None


def _calls(value: Any, found: list[Difference]) -> Any:
    if value is None or (type(value) is tuple and not value):  # as after most chunks
        return ()
    if value is NOT_KEPT:
        return value
    items = _items(value)
    if items is None:
        found.append(_wrong_type("tool_calls", value, "a tuple of calls", "arguments-concatenate"))
        return NOT_KEPT
    calls = []
    for index, item in enumerate(items):
        call = item if isinstance(item, Call) else _as_call(item)
        if call is None:
            field = f"tool_calls[{index}]"
            found.append(_wrong_type(field, item, "a Call", "arguments-concatenate"))
        else:
            calls.append(_declared_call(call))
    return tuple(calls) if len(calls) == len(items) else NOT_KEPT


def _as_call(item: Any) -> Call | None:
    """The call in a mapping or in a tuple (id, name, arguments), as `Outcome.of` reads it."""
    if isinstance(item, dict) or (isinstance(item, tuple | list) and len(item) == 3):
        return Outcome.of(tool_calls=[item]).tool_calls[0]
    return None


def _declared_call(call: Call) -> Call:
    """The call with values that can be compared and hashed."""
    raw = call.raw_arguments
    return Call(
        _text_or_foreign(call.name),
        comparable_value(call.arguments),
        _text_or_foreign(call.id),
        raw if raw is NOT_KEPT else _text_or_foreign(raw),
    )


def _text_or_foreign(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else foreign(value)


def _errors(value: Any, found: list[Difference]) -> Any:
    if value is None:
        return ()
    items = _items(value)
    if items is None:
        if isinstance(value, str | BaseException):
            return Outcome.of(errors=[value]).errors
        found.append(_wrong_type("errors", value, "a tuple of errors", "error-ends"))
        return ()
    return tuple(map(_trouble, items))


def _trouble(item: Any) -> Trouble:
    if isinstance(item, Trouble):
        return replace(
            item,
            message=_text(item.message),
            kind=item.kind if isinstance(item.kind, str) else None,
            tool=item.tool if type(item.tool) is int else None,
            crash=item.crash is True,
            raised=_text(item.raised),
        )
    if isinstance(item, str | BaseException):
        return Outcome.of(errors=[item]).errors[0]
    return Trouble(repr(foreign(item)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(foreign(value))


def _usage(value: Any, found: list[Difference]) -> Any:
    if value is None or value is NOT_KEPT:
        return value
    if not isinstance(value, Usage):
        found.append(_wrong_type("usage", value, "a Usage", "finish-and-usage"))
        return NOT_KEPT
    for name in TOKEN_COUNTS:
        number = comparable_value(getattr(value, name))
        if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
            found.append(
                _wrong_type(f"usage.{name}", getattr(value, name), "a number", "finish-and-usage")
            )
            return NOT_KEPT
    return value


def _opaque(value: Any, found: list[Difference]) -> Any:
    if value is None or value is NOT_KEPT:
        return value
    items = _items(value)
    if items is None or not all(isinstance(item, str) for item in items):
        found.append(_wrong_type("opaque", value, "a tuple of texts", "opaque-kept"))
        return NOT_KEPT
    return value if type(value) is tuple else tuple(items)
