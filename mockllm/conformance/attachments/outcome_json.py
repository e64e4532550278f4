"""Outcomes as runners write them in JSON, and back; the form of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.checking.judging.difference import calls_of
from mockllm.checking.outcome import (
    LABELS,
    NOT_KEPT,
    TEXTS,
    TOKEN_COUNTS,
    Call,
    Outcome,
    Trouble,
    Usage,
    is_kept,
)
from mockllm.conformance.forms import form_problem


class InvalidMessageError(ValueError):
    """A line that is no message of the protocol; the text begins with the name of the field."""


def check_message(value: Mapping[str, Any], kind: str) -> None:
    """Checks the form of a message by `runner.schema.json`.

    Args:
        kind: its name among the `$defs` there.

    Raises:
        InvalidMessageError: it has another form.
    """
    problem = form_problem(value, "runner", kind)
    if problem:
        raise InvalidMessageError(problem)


def read_outcome(value: Mapping[str, Any]) -> Outcome:
    """The outcome of an answer of the right form. Fields that are absent have their default."""
    texts: dict[str, Any] = {name: value.get(name) or "" for name in TEXTS}
    labels: dict[str, Any] = {name: value.get(name, NOT_KEPT) for name in LABELS}
    if is_kept(labels["opaque"]):
        labels["opaque"] = tuple(labels["opaque"] or ())
    usage = value.get("usage")
    return Outcome(
        tool_calls=Outcome.of(tool_calls=map(_call, value.get("tool_calls") or ())).tool_calls,
        finish=value.get("finish"),
        usage=None if usage is None else Usage(**usage),
        errors=tuple(_errors(value)),
        partial=value.get("partial"),
        handed_on=(value["handed_on"] or "") if "handed_on" in value else None,
        open_at_end=value.get("left"),
        **texts,
        **labels,
    )


def _call(value: Mapping[str, Any]) -> dict[str, Any]:
    """A call with its arguments as text, too, where the client has them so."""
    arguments = value.get("arguments")
    raw = arguments if isinstance(arguments, str) else NOT_KEPT
    return {"raw_arguments": raw, **value}


def _errors(value: Mapping[str, Any]) -> list[Trouble]:
    """The errors of an answer, a crash first."""
    crash = value.get("crash")
    return [
        *([] if crash is None else [_trouble(crash, crash=True)]),
        *map(_trouble, value.get("errors") or ()),
    ]


def _trouble(value: str | Mapping[str, Any], *, crash: bool = False) -> Trouble:
    if isinstance(value, str):
        return Trouble(value, crash=crash)
    return Trouble(
        value["message"],
        crash=crash,
        raised=value.get("raised", ""),
        type=value.get("type") or "",
        cause=value.get("kind", NOT_KEPT),
    )


# To JSON


def as_json(outcome: Outcome, absent: frozenset[str] = frozenset()) -> dict[str, Any]:
    """An outcome in the form of an answer, without `id`; the inverse of `read_outcome`."""
    value: dict[str, Any] = {
        "text": outcome.text,
        "reasoning": outcome.reasoning,
        "refusal": outcome.refusal,
        "finish": outcome.finish,
        "tool_calls": [_call_json(call) for call in calls_of(outcome)],
        "usage": _usage_json(outcome.usage),
        "errors": [_error_json(error) for error in outcome.errors if not error.crash],
    }
    for name in LABELS:
        kept = getattr(outcome, name)
        if is_kept(kept):
            value[name] = list(kept or ()) if name == "opaque" else kept
    crashes = [_error_json(error) for error in outcome.errors if error.crash]
    if crashes:
        value["crash"], *more = crashes
        value["errors"] = [*more, *value["errors"]]
    said = {
        "partial": outcome.partial,
        "handed_on": outcome.handed_on,
        "left": outcome.open_at_end,
    }
    value |= {name: item for name, item in said.items() if item is not None}
    return {name: item for name, item in value.items() if name not in absent and is_kept(item)}


def _error_json(error: Trouble) -> str | dict[str, Any]:
    """An error in the form of an answer."""
    more: dict[str, Any] = {"raised": error.raised, "type": error.type}
    said = {name: text for name, text in more.items() if text}
    if is_kept(error.cause):
        said["kind"] = error.cause
    return {"message": error.message, **said} if said else error.message


def _call_json(call: Call) -> dict[str, Any]:
    value: dict[str, Any] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    if isinstance(call.raw_arguments, str) and not isinstance(call.arguments, str):
        # As it was accumulated, which is what the reader of an answer parses.
        value["arguments"] = call.raw_arguments
    elif is_kept(call.raw_arguments) and call.raw_arguments != call.arguments:
        value["raw_arguments"] = call.raw_arguments
    return value


def _usage_json(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None or not is_kept(usage):
        return None
    counts = {name: getattr(usage, name) for name in TOKEN_COUNTS}
    return {name: count for name, count in counts.items() if count is not None}
