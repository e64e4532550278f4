"""Mistakes that several APIs have in common. `common` makes the mutants of an API from them.

Each is a class whose methods come before those of an accumulator.
"""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from examples.accumulators import REFERENCES, Reference
from examples.accumulators.answer import Answer
from mockllm.checking import Policy
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta
from mockllm.scenario.model import Api
from tests.checking.mutants.altered import (
    AbandonsNothing,
    MalformedIsEmpty,
    MalformedRaises,
    answer_of,
    failed,
    rewriting_arguments,
    rewriting_errors,
    rewriting_fragments,
    through_float,
    with_arguments,
    with_calls,
    with_leaves,
    with_strings,
)
from tests.checking.mutants.declared import WATCHED, mutant

_M = TypeVar("_M", bound=type)


@dataclass(frozen=True, slots=True)
class _Mistake:
    methods: type
    breaks: str
    family: str
    policy: Policy | None


_MISTAKES: dict[str, _Mistake] = {}


def _mistake(
    breaks: str, *also: str, family: str, policy: Policy | None = None
) -> Callable[[_M], _M]:
    """Declares a mistake, with the other names that its mutants have."""

    def declare(methods: _M) -> _M:
        found = _Mistake(methods, breaks, family, policy)
        _MISTAKES.update(dict.fromkeys((methods.__name__, *also), found))
        return methods

    return declare


def common(module: str, api: Api, **docstrings: str) -> None:
    """Declares mutants of an API, with their names and docstrings, as classes of a module."""
    accumulator: type[Reference] = REFERENCES[api]
    for name, docstring in docstrings.items():
        mistake = _MISTAKES[name]
        attributes = {"__doc__": docstring, "__module__": module, "__qualname__": name}
        make: Any = type(name, (mistake.methods, accumulator), attributes)
        mutant(mistake.breaks, api=api, policy=mistake.policy, family=mistake.family)(make)
        # Processes hand mutants to each other by the names of their classes.
        setattr(sys.modules[module], name, make)


class Skips:
    """Leaves out the calls whose arguments do not parse."""

    def __init__(self) -> None:
        super().__init__(malformed="skip")


class _WithAnswer:
    """Has another class of answer."""

    answer: type[Answer]

    def __init__(self) -> None:
        super().__init__()
        answer_of(self, self.answer)


# Calls


@_mistake("surface-once", family="call identity")
class OneCallForEachName:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = {call.name: call for call in outcome.tool_calls}
        return replace(outcome, tool_calls=tuple(calls.values()))


@_mistake("surface-once", family="call identity")
class FirstCallOnly:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=outcome.tool_calls[:1])


@_mistake("surface-once", "OneVariableForTheCall", family="call identity")
class LastCallOnly:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=outcome.tool_calls[-1:])


@_mistake("order-by-index", "ReversesCalls", family="call order")
class LastCallFirst:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=outcome.tool_calls[::-1])


@_mistake("order-by-index", family="call order")
class IndexesSortedAsText:
    def outcome(self) -> Outcome:
        pairs = sorted(self._answer._calls, key=lambda pair: str(pair[0][0]))
        return replace(super().outcome(), tool_calls=tuple(call for _, call in pairs))


@_mistake("order-by-index", family="call order")
class CallsInTheOrderOfTheirEnds:
    def outcome(self) -> Outcome:
        calls = tuple(call for _, call in self._answer._calls)
        return replace(super().outcome(), tool_calls=calls)


@_mistake(
    "malformed-contained",
    "MalformedArgumentsAreEmpty",
    "MalformedInputIsEmpty",
    family="malformed arguments",
)
class MalformedArgsAreEmpty(_WithAnswer):
    answer = MalformedIsEmpty


@_mistake("malformed-contained", "MalformedInputRaises", family="malformed arguments")
class MalformedArgsRaise(_WithAnswer):
    answer = MalformedRaises


@_mistake("truncated-is-not-complete", family="cut streams")
class CutRunsOpenCalls:
    def close(self) -> None:
        answer_of(self, AbandonsNothing)
        super().close()


# Arguments


@_mistake("arguments-concatenate", family="argument values")
class BigIntegersThroughFloat:
    def outcome(self) -> Outcome:
        return with_leaves(super().outcome(), through_float)


@_mistake("arguments-concatenate", family="argument values")
class HtmlUnescaped:
    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), html.unescape)


@_mistake("arguments-concatenate", family="argument values")
class NewLinesRemoved:
    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), lambda text: text.replace("\n", " "))


@_mistake("arguments-concatenate", family="argument values")
class SingleQuotesReplaced(_WithAnswer):
    answer = rewriting_arguments(lambda text: text.replace("'", '"'))


@_mistake("arguments-concatenate", family="argument values")
class BooleansAsText:
    def outcome(self) -> Outcome:
        return with_leaves(
            super().outcome(), lambda leaf: str(leaf) if isinstance(leaf, bool) else leaf
        )


@_mistake("arguments-concatenate", family="argument values")
class BooleansAsNumbers:
    def outcome(self) -> Outcome:
        return with_leaves(
            super().outcome(), lambda leaf: int(leaf) if isinstance(leaf, bool) else leaf
        )


@_mistake("arguments-concatenate", family="argument values")
class NullArgumentsDropped:
    def outcome(self) -> Outcome:
        def changed(arguments: dict[str, Any]) -> dict[str, Any]:
            return {key: value for key, value in arguments.items() if value is not None}

        return with_arguments(super().outcome(), changed)


@_mistake("arguments-concatenate", family="argument values")
class NestedAsText:
    def outcome(self) -> Outcome:
        def changed(arguments: dict[str, Any]) -> dict[str, Any]:
            return {
                key: json.dumps(value) if isinstance(value, dict | list) else value
                for key, value in arguments.items()
            }

        return with_arguments(super().outcome(), changed)


@_mistake("raw-arguments-kept", family="raw arguments")
class RawIsEncodedAgain:
    def outcome(self) -> Outcome:
        def changed(call: Call) -> Call:
            return replace(call, raw_arguments=json.dumps(call.arguments, indent=1))

        return with_calls(super().outcome(), changed)


# Text, reasoning and refusals


@_mistake("text-accumulates", "CallErasesText", family="text")
class TextBeforeCallsLost:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text="") if outcome.tool_calls else outcome


@_mistake("text-accumulates", "TextFragmentsStripped", family="text")
class FragmentsStripped(_WithAnswer):
    answer = rewriting_fragments("text", str.strip)


@_mistake("text-accumulates", "FinalTextStripped", family="text")
class TextTrimmed:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.text.strip())


@_mistake("text-accumulates", family="text")
class RefusalIsText:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.text + outcome.refusal, refusal="")


@_mistake("text-accumulates", family="reasoning")
class ReasoningIsText:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.reasoning + outcome.text, reasoning="")


@_mistake(
    "text-accumulates",
    "CallErasesReasoning",
    "ThinkingBeforeACallLost",
    "ThoughtsBeforeACallLost",
    family="reasoning",
)
class ReasoningBeforeACallLost:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, reasoning="") if outcome.tool_calls else outcome


# Ends, usage, errors and deltas


@_mistake("truncated-is-not-complete", family="cut streams")
class TextMakesItComplete:
    def close(self) -> None:
        self._answer.complete = self._answer.complete or self._answer.has("text")
        super().close()


@_mistake("error-ends", "StatusOfTheErrorOnly", family="errors")
class MessageOfTheErrorLost(_WithAnswer):
    answer = rewriting_errors(lambda text: text.rpartition("(")[2].rstrip(")"))


@_mistake("finish-and-usage", family="usage")
class TotalIsTheOutput:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        usage = outcome.usage
        if usage is None:
            return outcome
        total = (usage.input or 0) + (usage.output or 0)
        return replace(outcome, usage=replace(usage, output=total))


@_mistake("delta-is-fragment", family="deltas", policy=WATCHED)
class HandsOnTheSum:
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        return delta and replace(delta, text=self.outcome().text)


# Other policies than the default


@_mistake("malformed-contained", family="malformed arguments", policy=Policy(malformed="fail"))
class FailsInSilence:
    def __init__(self) -> None:
        super().__init__(malformed="fail")

    def outcome(self) -> Outcome:
        return failed(super().outcome(), "malformed_arguments", errors=(), tool_calls=())


@_mistake("unknown-tool", family="unknown tools", policy=Policy(unknown_tool="skip"))
class UnknownToolDropsAllCalls:
    def offer(self, tools: tuple[str, ...]) -> None:
        """The tools of the request."""
        self.offered = set(map(str, tools))

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        known = all(call.name in self.offered for call in outcome.tool_calls)
        return outcome if known or not self.offered else replace(outcome, tool_calls=())
