"""The errors in messages of runners. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from mockllm.checking.outcome import Trouble

__all__ = ["ErrorKind", "InvalidMessageError", "error_json", "read_crash", "read_errors"]

ErrorKind = Literal[
    "overloaded", "rate_limit", "network", "protocol", "server", "timeout", "request"
]
"""What an error is about, by the client's own types or codes."""

_KINDS = get_args(ErrorKind)
_FIELDS = ("type", "kind")


class InvalidMessageError(ValueError):
    """A line that is no message of the protocol; the text begins with the name of the field."""


def read_errors(value: Any) -> list[Trouble]:
    """The errors of an answer.

    Raises:
        InvalidMessageError: they are no errors.
    """
    if not isinstance(value, list | None):
        raise InvalidMessageError(f"errors: must be a list, not {value!r:.80}")
    return [_trouble(one, f"errors[{index}]") for index, one in enumerate(value or ())]


def read_crash(value: Any) -> list[Trouble]:
    """The exception of an answer that points to a bug of the client, if there is one.

    Raises:
        InvalidMessageError: it is no error.
    """
    return [] if value is None else [_trouble(value, "crash", crash=True)]


def _trouble(value: Any, where: str, *, crash: bool = False) -> Trouble:
    if isinstance(value, str):
        return Trouble(value, crash=crash)
    if isinstance(value, dict) and value.keys() <= {"message", "raised", *_FIELDS}:
        message, raised = value.get("message"), value.get("raised", "")
        if isinstance(message, str) and isinstance(raised, str):
            _check(value, where)
            return Trouble(message, crash=crash, raised=raised)
    raise InvalidMessageError(
        f'{where}: must be a text, or an object with the texts "message" and "raised", '
        f"not {value!r:.80}"
    )


def _check(value: Mapping[str, Any], where: str) -> None:
    """Checks `type` and `kind` of an error.

    Raises:
        InvalidMessageError: one has another type, or there is no such kind.
    """
    if not isinstance(value.get("type"), str | None):
        raise InvalidMessageError(f"{where}.type: must be a text, not {value['type']!r:.80}")
    kind = value.get("kind")
    if kind is not None and kind not in _KINDS:
        known = ", ".join(_KINDS)
        raise InvalidMessageError(f"{where}.kind: must be null or one of {known}, not {kind!r:.80}")


def error_json(trouble: Trouble) -> str | dict[str, str]:
    """An error in the form of an answer."""
    if not trouble.raised:
        return trouble.message
    return {"message": trouble.message, "raised": trouble.raised}
