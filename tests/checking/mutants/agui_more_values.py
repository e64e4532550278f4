"""AG-UI: more mistakes with the values of arguments, and with what is passed on for calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import AGUIAccumulator
from examples.accumulators.values import string
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta, Fragment
from tests.checking.mutants.altered import with_calls
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import WATCHED, mutant

Object = Mapping[str, Any]

common(
    __name__,
    "agui",
    BigIntegersThroughFloat="Reads integers as floating-point numbers (earendil-works/pi#8943).",
    HtmlUnescaped="Unescapes HTML entities in arguments, as a browser does with text.",
    SingleQuotesReplaced=(
        "Replaces single quotes by double ones before it parses (NousResearch/atropos#478)."
    ),
    NullArgumentsDropped="Drops arguments that are null.",
    NestedAsText="Encodes nested objects and arrays a second time, as text.",
    BooleansAsText="Turns booleans into text.",
    RawIsEncodedAgain="Keeps the parsed arguments encoded again, not the text of the fragments.",
    FirstCallOnly="Stops at the end of the first call (ag-ui-protocol/ag-ui#1346).",
)


@mutant("raw-arguments-kept", api="agui", family="raw arguments")
class RawIsTheWordNull(AGUIAccumulator):
    """Keeps `null` as the text of the arguments of a call that has none."""

    def outcome(self) -> Outcome:
        def changed(call: Call) -> Call:
            return call if call.arguments else replace(call, raw_arguments="null")

        return with_calls(super().outcome(), changed)


# What is passed on during the stream


@mutant("surface-complete", api="agui", policy=WATCHED, family="emission")
class SurfacesAtTheStart(AGUIAccumulator):
    """Reports a call at TOOL_CALL_START, with no arguments (ag-ui-protocol/ag-ui#136)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if payload.get("type") == "TOOL_CALL_END":
            return delta and replace(delta, tool_calls=())
        if payload.get("type") != "TOOL_CALL_START" or self._answer.failed:
            return delta
        call = Call(string(payload.get("toolCallName")), {}, string(payload.get("toolCallId")))
        return replace(delta or Delta(), tool_calls=(call,))


@mutant("surface-once", api="agui", policy=WATCHED, family="deltas")
class HandsOnCallsAgainAtTheEnd(AGUIAccumulator):
    """Passes on each call at its end, and all of them again at RUN_FINISHED
    (ag-ui-protocol/ag-ui#643)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        calls = self.outcome().tool_calls
        if payload.get("type") == "RUN_FINISHED" and calls and not self._answer.failed:
            return replace(delta or Delta(), tool_calls=calls)
        return delta


@mutant("delta-is-fragment", api="agui", policy=WATCHED, family="deltas")
class HandsOnArgumentsSoFar(AGUIAccumulator):
    """Passes on all arguments so far for each TOOL_CALL_ARGS."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        call = self._calls.get(string(payload.get("toolCallId")))
        if call is None or not payload.get("delta"):
            return delta
        fragment = Fragment(call.arguments, call.id, call.name, call.number)
        return replace(delta or Delta(), tool=(fragment,))


@mutant("surface-once", api="agui", family="emission")
class ResultsRequired(AGUIAccumulator):
    """Reports a call when its TOOL_CALL_RESULT has come, which a call for the client never has
    (ag-ui-protocol/ag-ui#2577)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "TOOL_CALL_RESULT":
            self.__dict__.setdefault("answered", set()).add(payload.get("toolCallId"))
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        answered = self.__dict__.get("answered", set())
        calls = tuple(call for call in outcome.tool_calls if call.id in answered)
        return replace(outcome, tool_calls=calls)


@mutant("arguments-concatenate", api="agui", family="call identity")
class ArgumentsOfOtherIdsIgnored(AGUIAccumulator):
    """Passes over arguments for a call that is not open, and runs the open call without them
    (`agui-args-wrong-id`, microsoft/agent-framework#6342)."""

    def _arguments(self, id: str, value: Object) -> None:
        if id in self._calls:
            super()._arguments(id, value)
