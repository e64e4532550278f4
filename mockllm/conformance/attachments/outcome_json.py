"""Outcomes as runners write them in JSON, and back. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from mockllm.checking.outcome import (
    FIELDS,
    LABELS,
    NOT_KEPT,
    TEXTS,
    TOKEN_COUNTS,
    Call,
    ErrorCause,
    Outcome,
    Trouble,
    Usage,
    is_kept,
)

CAN_LACK = frozenset({*FIELDS, *LABELS})
"""The fields that a client may have no place for."""

_KNOWN = {"id", *CAN_LACK, "errors", "crash", "partial", "handed_on", "earlier", "left"}
_OPEN = ("tasks", "threads", "connections")
_CAUSES = get_args(ErrorCause)


class InvalidMessageError(ValueError):
    """A line that is no message of the protocol; the text begins with the name of the field."""


def checked(value: Any, where: str, is_right: Callable[[Any], bool], wanted: str) -> Any:
    """The value of a field."""
    if not is_right(value):
        raise InvalidMessageError(f"{where}: must be {wanted}, not {value!r:.80}")
    return value


def is_text(value: Any) -> bool:
    """Whether a value is a text or null."""
    return isinstance(value, str | None)


def is_count(value: Any, least: int = 0) -> bool:
    """Whether a value is a whole number that is not too small."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool | None)


def _are_texts(value: Any) -> bool:
    return value is None or _is_list_of(value, str)


def _are_objects(value: Any) -> bool:
    return value is None or _is_list_of(value, dict)


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def read_outcome(value: Mapping[str, Any]) -> Outcome:
    """The outcome of an answer. Fields that are absent have their default."""
    _refuse_others(value, _KNOWN, "", "an answer")
    fields: dict[str, Any] = {}
    for name in TEXTS:
        fields[name] = checked(value.get(name), name, is_text, "a text or null") or ""
    for name in ("finish", "role", "model", "response_id"):
        given = checked(value.get(name), name, is_text, "a text or null")
        fields[name] = given if name in value or name == "finish" else NOT_KEPT
    opaque = checked(value.get("opaque"), "opaque", _are_texts, "a list of texts") or ()
    handed_on = checked(value.get("handed_on"), "handed_on", is_text, "a text or null")
    return Outcome(
        tool_calls=tuple(_calls(value.get("tool_calls"))),
        usage=_usage(value.get("usage")),
        errors=tuple(_errors(value)),
        opaque=tuple(opaque) if "opaque" in value else NOT_KEPT,
        partial=checked(value.get("partial"), "partial", _is_flag, "true or false"),
        handed_on=(handed_on or "") if "handed_on" in value else None,
        open_at_end=_open_at_end(value.get("left")),
        **fields,
    )


def earlier_values(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The answers to earlier requests of a case."""
    return list(checked(value.get("earlier"), "earlier", _are_objects, "a list of outcomes") or ())


def _refuse_others(value: Mapping[str, Any], known: Iterable[str], where: str, owner: str) -> None:
    unknown = sorted(value.keys() - set(known))
    if unknown:
        raise InvalidMessageError(f"{where}{unknown[0]}: there is no such field in {owner}")


def _list(value: Any, where: str) -> list[Any]:
    return list(checked(value, where, lambda it: isinstance(it, list | None), "a list") or ())


def _calls(value: Any) -> Iterable[Call]:
    for index, item in enumerate(_list(value, "tool_calls")):
        yield _call(item, f"tool_calls[{index}]")


def _call(value: Any, where: str) -> Call:
    checked(value, where, lambda it: isinstance(it, dict), "an object")
    _refuse_others(value, ("id", "name", "arguments", "raw_arguments"), f"{where}.", "a call")
    names = {
        name: checked(value.get(name), f"{where}.{name}", is_text, "a text")
        for name in ("id", "name")
    }
    arguments = value.get("arguments")
    raw = value.get("raw_arguments", arguments if isinstance(arguments, str) else NOT_KEPT)
    call = {**names, "arguments": arguments, "raw_arguments": raw}
    return Outcome.of(tool_calls=[call]).tool_calls[0]


def _usage(value: Any) -> Usage | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not value.keys() <= set(TOKEN_COUNTS):
        known = ", ".join(TOKEN_COUNTS)
        raise InvalidMessageError(f"usage: must be null or an object with {known}")
    for name, count in value.items():
        checked(count, f"usage.{name}", _is_token_count, "a whole number")
    return Usage(**value)


def _is_token_count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _open_at_end(value: Any) -> Mapping[str, int] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not value.keys() <= set(_OPEN):
        raise InvalidMessageError(f"left: must be an object with {', '.join(_OPEN)}")
    for name, number in value.items():
        checked(number, f"left.{name}", is_count, "a whole number")
    return value


def _errors(value: Mapping[str, Any]) -> Iterable[Trouble]:
    """The errors of an answer, a crash first."""
    if value.get("crash") is not None:
        yield _trouble(value["crash"], "crash", crash=True)
    for index, item in enumerate(_list(value.get("errors"), "errors")):
        yield _trouble(item, f"errors[{index}]")


def _trouble(value: Any, where: str, *, crash: bool = False) -> Trouble:
    if isinstance(value, str):
        return Trouble(value, crash=crash)
    if not _is_error(value):
        wanted = 'a text, or an object with the texts "message" and "raised"'
        raise InvalidMessageError(f"{where}: must be {wanted}, not {value!r:.80}")
    cause = value.get("kind")
    if cause is not None and cause not in _CAUSES:
        known = ", ".join(_CAUSES)
        raise InvalidMessageError(
            f"{where}.kind: must be null or one of {known}, not {cause!r:.80}"
        )
    return Trouble(
        value["message"],
        crash=crash,
        raised=value.get("raised", ""),
        type=checked(value.get("type"), f"{where}.type", is_text, "a text") or "",
        cause=cause if "kind" in value else NOT_KEPT,
    )


def _is_error(value: Any) -> bool:
    if not isinstance(value, dict) or not value.keys() <= {"message", "raised", "type", "kind"}:
        return False
    return isinstance(value.get("message"), str) and isinstance(value.get("raised", ""), str)


# To JSON


def as_json(outcome: Outcome, absent: frozenset[str] = frozenset()) -> dict[str, Any]:
    """An outcome in the form of an answer, without `id`; the inverse of `read_outcome`."""
    value: dict[str, Any] = {
        "text": outcome.text,
        "reasoning": outcome.reasoning,
        "refusal": outcome.refusal,
        "finish": outcome.finish,
        "tool_calls": [_call_json(call) for call in outcome.tool_calls],
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
    return {name: item for name, item in value.items() if name not in absent}


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
    if usage is None:
        return None
    counts = {name: getattr(usage, name) for name in TOKEN_COUNTS}
    return {name: count for name, count in counts.items() if count is not None}
