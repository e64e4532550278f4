"""What an answer adds up to in a client's hands, and in plain words how two such sums differ."""

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
    """A tool call that a client came to.

    Args:
        arguments: as a value; text where the client keeps arguments that are not JSON.
        id: None where the client has none to tell.
    """

    name: str
    arguments: Any
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens: `input` includes those `cached`, `output` those of `reasoning`; None: not told."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error that a client tells.

    Args:
        kind: what it is about, where the client knows.
        tool: the index of the call that it is about.
        crash: whether it came out of the client as an exception that tells of a bug
            (`KeyError`, `AttributeError`, ...) and not of the stream.
    """

    message: str
    kind: TroubleKind | None = None
    tool: int | None = None
    crash: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a client makes of one answer.

    Args:
        finish: the client's word for why the answer ended: the wire's or the neutral one.
        errors: what the client reports as errors, whether it raises them or tells them.
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
        """An outcome from looser values.

        Args:
            tool_calls: `Call`s, mappings with `name`, `arguments` and `id`, or tuples (id,
                name, arguments); arguments that are text are parsed where they are JSON.
            usage: a `Usage`, or the numbers of one in its order.
            errors: `Trouble`s, exceptions, or words.
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
    """The value that arguments as text stand for; what is no JSON stays text."""
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
"""Exceptions that tell of a bug in the client; no user can do anything with them."""


def _trouble(value: Any) -> Trouble:
    if isinstance(value, Trouble):
        return value
    if isinstance(value, BaseException):
        words = f"{type(value).__name__}: {value}" if str(value) else type(value).__name__
        return Trouble(words, crash=isinstance(value, CRASHES))
    return Trouble(str(value))
