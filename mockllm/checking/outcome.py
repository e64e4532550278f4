"""The outcome of an answer: what a client ends up with. Only data and its construction."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Call", "Outcome", "Trouble", "Usage"]

TroubleKind = Literal[
    "stream_error", "truncated", "malformed_arguments", "missing_id", "unknown_tool", "other"
]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as a client reports it.

    Args:
        arguments: the parsed value; text if the client keeps arguments that are not JSON.
        id: None if the client has no id for it.
    """

    name: str
    arguments: Any
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Numbers of tokens: `input` includes `cached`, `output` includes `reasoning`; None: not
    reported."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error that a client reports.

    Args:
        kind: what the error is about, if the client knows.
        tool: the index of the call that it is about.
        crash: whether it is an exception that points to a bug in the client (`KeyError`,
            `AttributeError`, ...) and not to a fault of the stream.
    """

    message: str
    kind: TroubleKind | None = None
    tool: int | None = None
    crash: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a client ends up with after one answer.

    Args:
        finish: why the answer ended: the value on the wire, or mockllm's neutral one.
        errors: all errors that the client reports, raised or returned.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[Call, ...] = ()
    finish: str | None = None
    usage: Usage | None = None
    errors: tuple[Trouble, ...] = ()

    @classmethod
    def of(
        cls,
        text: str | None = "",
        *,
        reasoning: str | None = "",
        refusal: str | None = "",
        tool_calls: Iterable[Any] = (),
        finish: str | None = None,
        usage: Any = None,
        errors: Iterable[Any] = (),
    ) -> Outcome:
        """An outcome from more convenient values.

        Args:
            tool_calls: `Call`s, mappings with `name`, `arguments` and `id`, or tuples (id,
                name, arguments); arguments that are text are parsed where they are JSON.
            usage: a `Usage`, or its numbers in the order of its fields.
            errors: `Trouble`s, exceptions, or messages.
        """
        return cls(
            text or "",
            reasoning or "",
            refusal or "",
            tuple(map(_call, tool_calls)),
            finish,
            usage if usage is None or isinstance(usage, Usage) else Usage(*usage),
            tuple(map(_trouble, errors)),
        )


def _call(value: Any) -> Call:
    if isinstance(value, Call):
        id, name, arguments = value.id, value.name, value.arguments
    elif isinstance(value, dict):
        id, name, arguments = value.get("id"), value["name"], value.get("arguments")
    else:
        id, name, arguments = value
    return Call(name, _arguments(arguments), id)


def _arguments(value: Any) -> Any:
    """Arguments in JSON text, parsed; text that is not JSON stays as it is."""
    if isinstance(value, str | bytes):
        try:
            return json.loads(value)
        except ValueError:
            return value if isinstance(value, str) else value.decode(errors="replace")
    return value


CRASHES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RecursionError,
    TypeError,
    UnicodeError,
)
"""Exceptions that point to a bug in the client: a user cannot act on them."""


def _trouble(value: Any) -> Trouble:
    if isinstance(value, Trouble):
        return value
    if isinstance(value, BaseException):
        message = f"{type(value).__name__}: {value}" if str(value) else type(value).__name__
        return Trouble(message, crash=isinstance(value, CRASHES))
    return Trouble(str(value))
