"""Changes to outcomes, arguments and fragments that mistakes in several APIs have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from examples.accumulators.answer import Answer, Slot, StagedCall, TextKind
from mockllm.checking.outcome import Call, Outcome

Change = Callable[[Any], Any]

SHARED: list[list[Any] | dict[Any, Any]] = []
"""What mutants keep from one stream to the next."""


def forget_streams() -> None:
    """Clears what mutants keep from one stream to the next."""
    for values in SHARED:
        values.clear()


def leaves(value: Any, change: Change) -> Any:
    """A JSON value with every value in it changed that is neither an object nor an array."""
    if isinstance(value, dict):
        return {key: leaves(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [leaves(item, change) for item in value]
    return change(value)


def strings(value: Any, change: Callable[[str], Any]) -> Any:
    """A JSON value with every string in it changed."""
    return leaves(value, lambda leaf: change(leaf) if isinstance(leaf, str) else leaf)


def with_calls(outcome: Outcome, change: Callable[[Call], Call]) -> Outcome:
    """An outcome with every call changed."""
    return replace(outcome, tool_calls=tuple(map(change, outcome.tool_calls)))


def with_arguments(outcome: Outcome, change: Change) -> Outcome:
    """An outcome with the arguments of every call changed, if they are an object."""

    def changed(call: Call) -> Call:
        parsed = isinstance(call.arguments, dict)
        return replace(call, arguments=change(call.arguments)) if parsed else call

    return with_calls(outcome, changed)


def with_leaves(outcome: Outcome, change: Change) -> Outcome:
    """An outcome with the values in the arguments of every call changed."""
    return with_arguments(outcome, lambda arguments: leaves(arguments, change))


def with_strings(outcome: Outcome, change: Callable[[str], Any]) -> Outcome:
    """An outcome with the strings in the arguments of every call changed."""
    return with_arguments(outcome, lambda arguments: strings(arguments, change))


def failed(outcome: Outcome, kind: str, **fields: Any) -> Outcome:
    """An outcome with other values of fields, if it has an error of this kind."""
    has = any(error.kind == kind for error in outcome.errors)
    return replace(outcome, **fields) if has else outcome


def with_errors(outcome: Outcome, kind: str, **fields: Any) -> Outcome:
    """An outcome with other values of fields in its errors of this kind."""
    errors = tuple(
        replace(error, **fields) if error.kind == kind else error for error in outcome.errors
    )
    return replace(outcome, errors=errors)


def through_float(value: Any) -> Any:
    """A number as a language without integers has it; other values as they are."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return int(float(value)) if whole and abs(value) < 10**300 else value


def answer_of(accumulator: Any, answer: type[Answer]) -> None:
    """Gives an accumulator another class of answer, one with a mistake."""
    accumulator._answer.__class__ = answer


def rewriting_arguments(change: Callable[[str], str]) -> type[Answer]:
    """An answer that changes the text of arguments before it parses them, and keeps the text
    itself as it was."""

    class Rewriting(Answer):
        def surface(self, call: StagedCall) -> None:
            if not call.closed:
                self.__dict__.setdefault("texts", {})[call.number] = call.arguments
                call.arguments = change(call.arguments)
            super().surface(call)

        def _emit(self, call: StagedCall, arguments: Any) -> None:
            call.arguments = self.__dict__.get("texts", {}).get(call.number, call.arguments)
            super()._emit(call, arguments)

    return Rewriting


def rewriting_fragments(kind: TextKind, change: Callable[[str], str]) -> type[Answer]:
    """An answer that changes each fragment, and each final value, of a kind of text."""

    class Rewriting(Answer):
        def add(self, kind_: TextKind, fragment: str, slot: Slot = ()) -> None:
            super().add(kind_, change(fragment) if kind_ == kind else fragment, slot)

    return Rewriting


def rewriting_errors(change: Callable[[str], str]) -> type[Answer]:
    """An answer that changes the messages of errors in the stream."""

    class Rewriting(Answer):
        def fail(self, message: str, kind: Any = "stream_error") -> None:
            super().fail(change(message), kind)

    return Rewriting


class AbandonsNothing(Answer):
    """An answer whose open calls come out when the stream breaks, if their arguments parse."""

    def _abandon(self) -> None:
        for call in self.open_calls():
            self.surface(call)
        super()._abandon()


class MalformedIsEmpty(Answer):
    """An answer in which arguments that do not parse become an empty object."""

    def reject(self, call: StagedCall, reason: str) -> None:
        call.closed = True
        self._emit(call, {})


class MalformedRaises(Answer):
    """An answer in which arguments that do not parse end the reading of the stream."""

    def reject(self, call: StagedCall, reason: str) -> None:
        call.closed = True
        raise ValueError(f"{call} {reason}")


def closing_brackets(arguments: str) -> str:
    """JSON text that was cut, with the quotes and brackets that it lacks."""
    open: list[str] = []
    quoted = escaped = False
    for character in arguments:
        if escaped:
            escaped = False
        elif quoted:
            escaped, quoted = character == "\\", character != '"'
        elif character == '"':
            quoted = True
        elif character in "{[":
            open.append("}" if character == "{" else "]")
        elif character in "}]" and open:
            open.pop()
    return arguments + ('"' if quoted else "") + "".join(reversed(open))
