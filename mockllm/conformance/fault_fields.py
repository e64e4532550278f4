"""The fields of messages that only cases with faults have. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mockllm.conformance.message_errors import ErrorKind, InvalidMessageError

__all__ = [
    "ANSWER_FIELDS",
    "NOTHING",
    "FaultFields",
    "ReportedError",
    "read_declared",
    "read_earlier",
    "read_fault_fields",
]

ANSWER_FIELDS = frozenset({"partial", "handed_on", "earlier", "left"})
"""The fields of an answer."""

_LEFT = ("tasks", "threads", "connections")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ReportedError:
    """An error that a client reports.

    Args:
        type: the class of the exception or the code of the error; "" where it is not known.
        kind: what type or code say of the cause; None where they do not say it.
        has_kind: whether the runner knows kinds at all.
    """

    message: str
    type: str = ""
    kind: ErrorKind | None = None
    has_kind: bool = False


@dataclass(frozen=True, slots=True)
class FaultFields:
    """What an answer says about a fault. None: the answer has no such field.

    Args:
        partial: whether what is handed on is marked as incomplete.
        handed_on: everything that the user saw, after replacements.
        left: how many of `tasks`, `threads`, `connections` are open after the client was closed.
        raw: the whole answer, as it came.
    """

    partial: bool | None = None
    handed_on: str | None = None
    errors: tuple[ReportedError, ...] = ()
    left: Mapping[str, int] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)


NOTHING = FaultFields()
"""Of an answer without such fields."""


def read_fault_fields(value: Mapping[str, Any]) -> FaultFields:
    """The fields of an answer, without `earlier`.

    Raises:
        InvalidMessageError: a field has another type.
    """
    partial, handed_on = value.get("partial"), value.get("handed_on")
    if partial is not None and not isinstance(partial, bool):
        raise InvalidMessageError(f"partial: must be true or false, not {partial!r:.80}")
    if handed_on is not None and not isinstance(handed_on, str):
        raise InvalidMessageError(f"handed_on: must be a text or null, not {handed_on!r:.80}")
    return FaultFields(
        partial=partial,
        handed_on=handed_on if handed_on is not None or "handed_on" not in value else "",
        errors=tuple(_reported(one) for one in _troubles(value)),
        left=_left(value.get("left")),
        raw={name: one for name, one in value.items() if name != "id"},
    )


def read_earlier(
    value: Mapping[str, Any], read: Callable[[Mapping[str, Any]], _T]
) -> tuple[_T, ...]:
    """The answers in `earlier`.

    Raises:
        InvalidMessageError: it is no list of answers.
    """
    found = value.get("earlier")
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InvalidMessageError(f"earlier: must be a list of outcomes, not {found!r:.80}")
    return tuple(read(one) for one in found)


def _left(value: Any) -> Mapping[str, int] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not value.keys() <= set(_LEFT):
        raise InvalidMessageError(f"left: must be an object with {', '.join(_LEFT)}")
    for name, number in value.items():
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise InvalidMessageError(f"left.{name}: must be a whole number, not {number!r:.80}")
    return value


def _troubles(value: Mapping[str, Any]) -> list[Any]:
    """The errors of an answer, a crash first; `messages` has checked their form."""
    crash = value.get("crash")
    return [*([] if crash is None else [crash]), *(value.get("errors") or ())]


def _reported(value: Any) -> ReportedError:
    if isinstance(value, str):
        return ReportedError(value)
    return ReportedError(
        value["message"], value.get("type") or "", value.get("kind"), "kind" in value
    )


def read_declared(value: Any) -> Mapping[str, Any]:
    """The settings that a client declares in its hello, by name; only those that it gives.

    Raises:
        InvalidMessageError: a setting is unknown, or has another type.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidMessageError(f"resilience: must be an object, not {value!r:.80}")
    for name, one in value.items():
        wanted = _DECLARED.get(name)
        if wanted is None:
            known = ", ".join(_DECLARED)
            raise InvalidMessageError(f"resilience.{name}: there is no such setting, only {known}")
        if not wanted[1](one):
            raise InvalidMessageError(f"resilience.{name}: must be {wanted[0]}, not {one!r:.80}")
    return value


def _is_number(value: Any) -> bool:
    return value is None or (
        isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    )


def _is_count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


_DECLARED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "tries": ("a whole number from 1, or null", _is_count),
    "idle_timeout": ("seconds, or null", _is_number),
    "longest_wait": ("seconds, or null", _is_number),
    "final_errors": ("a list of texts", _are_texts),
}
