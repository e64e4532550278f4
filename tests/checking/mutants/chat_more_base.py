"""What the mutants of Chat Completions share: reading entries, and changing outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import ChatAccumulator
from examples.accumulators.values import mapping, sequence
from mockllm.checking.outcome import Call, Outcome

__all__ = ["ChangedCalls", "Object", "entries", "function", "with_arguments", "with_values"]

Object = Mapping[str, Any]


def entries(delta: Object) -> list[dict[str, Any]]:
    """The entries of `tool_calls` of a delta, copied."""
    return [dict(mapping(entry)) for entry in sequence(delta.get("tool_calls"))]


def function(entry: Object) -> Object:
    """The `function` of an entry; empty if it is null or absent."""
    return mapping(entry.get("function"))


def with_arguments(entry: Object, change: Callable[[str], str]) -> Object:
    """The entry with changed arguments, if they are text."""
    arguments = function(entry).get("arguments")
    if not isinstance(arguments, str):
        return entry
    return {**entry, "function": {**function(entry), "arguments": change(arguments)}}


def with_values(value: Any, change: Callable[[Any], Any]) -> Any:
    """A JSON value with each string, number, boolean and null in it changed."""
    if isinstance(value, dict):
        return {key: with_values(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_values(inner, change) for inner in value]
    return change(value)


class ChangedCalls(ChatAccumulator):
    """Reports its calls changed by a subclass."""

    def changed(self, call: Call) -> Call:
        """The call as the mutant reports it."""
        return call

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=tuple(map(self.changed, outcome.tool_calls)))
