"""Mistakes that several APIs have in common.

Each is a class whose methods come before those of the accumulator of an API.
"""

from __future__ import annotations

import html
import json
from dataclasses import replace
from typing import Any

from examples.accumulators.answer import Answer
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta
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


class OneCallForEachName:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = {call.name: call for call in outcome.tool_calls}
        return replace(outcome, tool_calls=tuple(calls.values()))


class OneCallForEachId:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = {call.id: call for call in outcome.tool_calls}
        return replace(outcome, tool_calls=tuple(calls.values()))


class FirstCallOnly:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=outcome.tool_calls[:1])


class LastCallOnly:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=outcome.tool_calls[-1:])


class LastCallFirst:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=outcome.tool_calls[::-1])


class IndexesSortedAsText:
    def outcome(self) -> Outcome:
        pairs = sorted(self._answer._calls, key=lambda pair: str(pair[0][0]))
        return replace(super().outcome(), tool_calls=tuple(call for _, call in pairs))


class CallsInTheOrderOfTheirEnds:
    def outcome(self) -> Outcome:
        calls = tuple(call for _, call in self._answer._calls)
        return replace(super().outcome(), tool_calls=calls)


class MalformedArgsAreEmpty(_WithAnswer):
    answer = MalformedIsEmpty


class MalformedArgsRaise(_WithAnswer):
    answer = MalformedRaises


class CutRunsOpenCalls:
    def close(self) -> None:
        answer_of(self, AbandonsNothing)
        super().close()


# Arguments


class BigIntegersThroughFloat:
    def outcome(self) -> Outcome:
        return with_leaves(super().outcome(), through_float)


class HtmlUnescaped:
    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), html.unescape)


class NewLinesRemoved:
    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), lambda text: text.replace("\n", " "))


class SingleQuotesReplaced(_WithAnswer):
    answer = rewriting_arguments(lambda text: text.replace("'", '"'))


class BooleansAsText:
    def outcome(self) -> Outcome:
        return with_leaves(
            super().outcome(), lambda leaf: str(leaf) if isinstance(leaf, bool) else leaf
        )


class BooleansAsNumbers:
    def outcome(self) -> Outcome:
        return with_leaves(
            super().outcome(), lambda leaf: int(leaf) if isinstance(leaf, bool) else leaf
        )


class NullArgumentsDropped:
    def outcome(self) -> Outcome:
        def changed(arguments: dict[str, Any]) -> dict[str, Any]:
            return {key: value for key, value in arguments.items() if value is not None}

        return with_arguments(super().outcome(), changed)


class NestedAsText:
    def outcome(self) -> Outcome:
        def changed(arguments: dict[str, Any]) -> dict[str, Any]:
            return {
                key: json.dumps(value) if isinstance(value, dict | list) else value
                for key, value in arguments.items()
            }

        return with_arguments(super().outcome(), changed)


class RawIsEncodedAgain:
    def outcome(self) -> Outcome:
        def changed(call: Call) -> Call:
            return replace(call, raw_arguments=json.dumps(call.arguments, indent=1))

        return with_calls(super().outcome(), changed)


# Text, reasoning and refusals


class TextBeforeCallsLost:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text="") if outcome.tool_calls else outcome


class FragmentsStripped(_WithAnswer):
    answer = rewriting_fragments("text", str.strip)


class TextTrimmed:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.text.strip())


class RefusalIsText:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.text + outcome.refusal, refusal="")


class ReasoningIsText:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.reasoning + outcome.text, reasoning="")


class ReasoningBeforeACallLost:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, reasoning="") if outcome.tool_calls else outcome


# Ends, usage, errors and deltas


class TextMakesItComplete:
    def close(self) -> None:
        self._answer.complete = self._answer.complete or self._answer.has("text")
        super().close()


class MessageOfTheErrorLost(_WithAnswer):
    answer = rewriting_errors(lambda text: text.rpartition("(")[2].rstrip(")"))


class TotalIsTheOutput:
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        usage = outcome.usage
        if usage is None:
            return outcome
        total = (usage.input or 0) + (usage.output or 0)
        return replace(outcome, usage=replace(usage, output=total))


class HandsOnTheSum:
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        return delta and replace(delta, text=self.outcome().text)


# Other policies than the default


class FailsInSilence:
    def __init__(self) -> None:
        super().__init__(malformed="fail")

    def outcome(self) -> Outcome:
        return failed(super().outcome(), "malformed_arguments", errors=(), tool_calls=())


class UnknownToolDropsAllCalls:
    def offer(self, tools: tuple[str, ...]) -> None:
        """The tools of the request."""
        self.offered = set(map(str, tools))

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        known = all(call.name in self.offered for call in outcome.tool_calls)
        return outcome if known or not self.offered else replace(outcome, tool_calls=())


class WholeNumbersLoseTheirPoint:
    def outcome(self) -> Outcome:
        return with_leaves(
            super().outcome(),
            lambda leaf: int(leaf) if isinstance(leaf, float) and leaf.is_integer() else leaf,
        )
