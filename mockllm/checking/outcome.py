"""The outcome of an answer: what a client ends up with. Only data and its construction."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Literal


class NotKept(Enum):
    """The type of `NOT_KEPT`."""

    NOT_KEPT = "NOT_KEPT"

    def __repr__(self) -> str:
        return self.value


NOT_KEPT: Final = NotKept.NOT_KEPT
"""The value of a field for which the client has no place. The field is not judged; None, in
contrast, is a value of the client, which is judged."""

TroubleKind = Literal[
    "stream_error", "truncated", "malformed_arguments", "missing_id", "unknown_tool", "other"
]

ErrorCause = Literal[
    "overloaded", "rate_limit", "network", "protocol", "server", "timeout", "request"
]
"""What an error is about, by the client's own types or codes."""


def is_kept(value: object) -> bool:
    """Whether a client has a place for a value."""
    return value is not NOT_KEPT


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as a client reports it.

    Args:
        arguments: the parsed value; text if the client keeps arguments that are not JSON.
        id: None if the client has no id for it.
        raw_arguments: the arguments as the client keeps them beside the parsed value, as text:
            the joined fragments. None, "" and "{}" are three values here.
    """

    name: str
    arguments: Any
    id: str | None = None
    raw_arguments: Any = NOT_KEPT


@dataclass(frozen=True, slots=True)
class Usage:
    """Numbers of tokens: `input` includes `cached` (read from a cache) and `cache_written` (written
    into one), `output` includes `reasoning`; None: not reported."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | None = None
    cache_written: int | None = None


TOKEN_COUNTS = ("input", "output", "reasoning", "cached", "cache_written")
"""The fields of `Usage`."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error that a client reports.

    Args:
        kind: what the error is about, if the client knows.
        tool: the index of the call that it is about.
        crash: whether it is an exception that points to a bug in the client (`KeyError`,
            `AttributeError`, ...) and not to a fault of the stream.
        raised: of an exception: the place that raised it, as `FILE:LINE in FUNCTION`.
        type: the class of the exception, or the code of the error; "" where it is not known.
        cause: what type or code say of the cause; None where they do not say it, NOT_KEPT where it
            is not known what they say.
    """

    message: str
    kind: TroubleKind | None = None
    tool: int | None = None
    crash: bool = False
    raised: str = ""
    type: str = ""
    cause: ErrorCause | NotKept | None = NOT_KEPT

    def __str__(self) -> str:
        return f"{self.message} ({self.raised})" if self.raised else self.message


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a client after one answer.

    Args:
        finish: why the answer ended: the value on the wire, or mockllm's neutral one.
        errors: all errors that the client reports, raised or returned. The message of an error in
            the stream contains the service's message.
        role: the role of the message: the value on the wire (`model` for Gemini), or mockllm's
            neutral `assistant`.
        model, response_id: the model and the id of the answer, as the stream has them.
        opaque: the values that a client has to send back unchanged, in any order: signatures of
            reasoning and of calls, redacted reasoning, encrypted reasoning.
        partial: whether the outcome is marked as that of an answer that is not complete; None
            where that is not known.
        handed_on: everything that the client's user saw, after replacements; None: not known.
        open_at_end: how many `tasks`, `threads`, `connections` are open after the client was
            closed; None: not known.
        answered: whether the client ended by itself before its deadline.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[Call, ...] = ()
    finish: str | None = None
    usage: Usage | None = None
    errors: tuple[Trouble, ...] = ()
    role: str | NotKept | None = NOT_KEPT
    model: str | NotKept | None = NOT_KEPT
    response_id: str | NotKept | None = NOT_KEPT
    opaque: tuple[str, ...] | NotKept | None = NOT_KEPT
    partial: bool | None = None
    handed_on: str | None = None
    open_at_end: Mapping[str, int] | None = None
    answered: bool = True

    @property
    def shown(self) -> str:
        """The text that the client's user saw, as far as that is known."""
        return self.text if self.handed_on is None else self.handed_on

    @classmethod
    def of(
        cls,
        text: str | None = "",
        *,
        reasoning: str | None = "",
        refusal: str | None = "",
        tool_calls: Iterable[Any] | None = (),
        finish: str | None = None,
        usage: Any = None,
        errors: Iterable[Any] | None = (),
        role: str | NotKept | None = NOT_KEPT,
        model: str | NotKept | None = NOT_KEPT,
        response_id: str | NotKept | None = NOT_KEPT,
        opaque: Iterable[str] | NotKept | None = NOT_KEPT,
    ) -> Outcome:
        """An outcome from more convenient values.

        Values of other types stay as they are, and the kit reports them.

        Args:
            tool_calls: `Call`s, mappings with `name`, `arguments`, `id` and, if the client keeps
                them, `raw_arguments`, or tuples (id, name, arguments); arguments that are text
                are parsed where they are JSON.
            usage: a `Usage`, or its numbers in the order of its fields, or by their names.
            errors: `Trouble`s, exceptions, or messages.
        """
        return cls(
            text or "",
            reasoning or "",
            refusal or "",
            _each(_call, tool_calls),
            finish,
            _usage(usage),
            _each(_trouble, errors),
            role,
            model,
            response_id,
            None if opaque is None else _each(lambda value: value, opaque),
        )


TEXTS = ("text", "reasoning", "refusal")
FIELDS = (*TEXTS, "tool_calls", "finish", "usage")
"""The fields of an outcome that are judged; these cannot be `NOT_KEPT`."""
LABELS = ("role", "model", "response_id", "opaque")
"""Those that can."""


def _each(convert: Callable[[Any], Any], values: Any) -> Any:
    """The converted values; what is no collection stays as it is."""
    if values is None:
        return ()
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        return values
    return tuple(map(convert, values))


def _usage(value: Any) -> Any:
    if isinstance(value, Mapping) and set(value) <= set(TOKEN_COUNTS):
        return Usage(**value)
    if isinstance(value, tuple | list) and len(value) <= len(TOKEN_COUNTS):
        return Usage(*value)
    return value


def _call(value: Any) -> Any:
    if isinstance(value, Call):
        return replace(value, arguments=parsed_arguments(value.arguments))
    if isinstance(value, dict):
        return Call(
            value.get("name"),  # type: ignore[arg-type]  # the kit reports a missing name
            parsed_arguments(value.get("arguments")),
            value.get("id"),
            value.get("raw_arguments", NOT_KEPT),
        )
    if isinstance(value, tuple | list) and len(value) == 3:
        id, name, arguments = value
        return Call(name, parsed_arguments(arguments), id)
    return value


def parsed_arguments(value: Any) -> Any:
    """Arguments in JSON text, parsed; text that is not JSON stays as it is."""
    if isinstance(value, str | bytes):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
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
        name = type(value).__name__
        text = _message(value)
        return Trouble(
            f"{name}: {text}" if text else name,
            crash=isinstance(value, CRASHES),
            raised=_raised_at(value),
        )
    return Trouble(value if isinstance(value, str) else repr(value))


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as other:  # noqa: BLE001 - a client's exception may have any `__str__`
        return f"its message raises {type(other).__name__}"


def _raised_at(error: BaseException) -> str:
    """The innermost frame of an exception, as `FILE:LINE in FUNCTION`; "" if it was not raised."""
    step = error.__traceback__
    if step is None:
        return ""
    while step.tb_next is not None:
        step = step.tb_next
    code = step.tb_frame.f_code
    file = re.split(r"[\\/]", code.co_filename)[-1]
    return f"{file}:{step.tb_lineno} in {code.co_name}"
