"""AG-UI: more mistakes with calls and the fragments of their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import AGUIAccumulator
from examples.accumulators.values import string
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.altered import AbandonsNothing, answer_of, with_calls
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]

common(
    __name__,
    "agui",
    OneCallForEachName="Keeps calls by the name of their tool (NousResearch/hermes-agent#11863).",
    LastCallOnly="Has one variable for the call of a run.",
    CallsInTheOrderOfTheirEnds=(
        "Reports calls in the order in which they end (`agui-parallel-calls`)."
    ),
    MalformedArgsAreEmpty="Runs a call whose arguments do not parse with `{}`.",
    MalformedArgsRaise="Raises where arguments do not parse, and loses what follows.",
    CutRunsOpenCalls=(
        """Runs the calls that are open when the stream stops, if their arguments parse or are
    empty."""
    ),
)


@mutant("surface-once", api="agui", family="call identity")
class OneCallForEachMessage(AGUIAccumulator):
    """Keeps calls by `parentMessageId`, which parallel calls share."""

    def _start(self, id: str, value: Object) -> None:
        super()._start(id, value)
        self.__dict__.setdefault("parents", {})[id] = value.get("parentMessageId")

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        parents = self.__dict__.get("parents", {})
        calls = {parents.get(call.id) or call.id: call for call in outcome.tool_calls}
        return replace(outcome, tool_calls=tuple(calls.values()))


@mutant("order-by-index", api="agui", family="call order")
class CallsSortedByTheirIds(AGUIAccumulator):
    """Sorts calls by their ids, as keys of a sorted map."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = sorted(outcome.tool_calls, key=lambda call: call.id or "", reverse=True)
        return replace(outcome, tool_calls=tuple(calls))


@mutant("id-kept", api="agui", family="call ids")
class IdOfTheParent(AGUIAccumulator):
    """Reports the id of the parent message as the id of the call."""

    def _start(self, id: str, value: Object) -> None:
        super()._start(id, value)
        if id in self._calls:
            self._calls[id].id = string(value.get("parentMessageId")) or f"message-of-{id}"


@mutant("id-kept", api="agui", family="call ids")
class PrefixOfTheRun(AGUIAccumulator):
    """Adds the id of the run to the ids of calls, to make them unique (ag-ui-protocol/ag-ui#1117
    maps such ids back)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.run = string(payload.get("runId")) or self.__dict__.get("run", "run")
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return with_calls(super().outcome(), lambda call: replace(call, id=f"{self.run}:{call.id}"))


@mutant("name-kept", api="agui", family="call names")
class NamesOfChunksJoined(AGUIAccumulator):
    """Appends the name where a later chunk repeats it (open-webui/open-webui#22235)."""

    def _chunk(self, id: str, value: Object) -> None:
        known = self._calls.get(id or self._latest["call"])
        super()._chunk(id, value)
        if known is not None:
            known.name += string(value.get("toolCallName"))


@mutant("arguments-concatenate", api="agui", family="argument fragments")
class LastArgsOnly(AGUIAccumulator):
    """Assigns the delta of TOOL_CALL_ARGS, as if it were all arguments."""

    def _arguments(self, id: str, value: Object) -> None:
        if id in self._calls and value.get("delta"):
            self._calls[id].arguments = ""
        super()._arguments(id, value)


@mutant("arguments-concatenate", api="agui", family="argument fragments")
class ArgsOfTheFirstChunkLost(AGUIAccumulator):
    """Reads the first TOOL_CALL_CHUNK as a start alone."""

    def _chunk(self, id: str, value: Object) -> None:
        begins = (id or self._latest["call"]) not in self._calls
        super()._chunk(id, {**value, "delta": ""} if begins else value)


@mutant("arguments-concatenate", api="agui", family="argument fragments")
class ChunksWithoutAnIdLost(AGUIAccumulator):
    """Ignores a TOOL_CALL_CHUNK without an id, which continues the call before it."""

    def _chunk(self, id: str, value: Object) -> None:
        if id:
            super()._chunk(id, value)


@mutant("surface-once", api="agui", family="emission")
class EveryChunkIsACall(AGUIAccumulator):
    """Begins a new call with each TOOL_CALL_CHUNK that has a name."""

    def _chunk(self, id: str, value: Object) -> None:
        id = id or self._latest["call"]
        if id in self._calls and value.get("toolCallName"):
            self._end(id)
        super()._chunk(id, value)


@mutant("arguments-concatenate", api="agui", family="argument fragments")
class TrimsFragments(AGUIAccumulator):
    """Strips white space from each fragment."""

    def _arguments(self, id: str, value: Object) -> None:
        super()._arguments(id, {**value, "delta": string(value.get("delta")).strip()})


@mutant("arguments-concatenate", api="agui", family="argument fragments")
class RepeatedFragmentsDropped(AGUIAccumulator):
    """Drops a fragment that equals the one before it, as an event that was sent again
    (marmot-protocol/mdk#922 is about such events)."""

    def _arguments(self, id: str, value: Object) -> None:
        before = self.__dict__.get("before")
        self.before = (id, value.get("delta"))
        if before != self.before or id not in self._calls:
            super()._arguments(id, value)


@mutant("zero-arguments", api="agui", family="zero arguments")
class CallsWithoutArgsDropped(AGUIAccumulator):
    """Drops a call that had no TOOL_CALL_ARGS (`agui-zero-arg`)."""

    def _end(self, id: str) -> None:
        if id in self._calls and not self._calls[id].arguments:
            self._calls[id].closed = True
        super()._end(id)


@mutant("surface-once", api="agui", family="emission")
class SuccessRunsNoCalls(AGUIAccumulator):
    """Runs no calls after a run that ends with the outcome `success`
    (`agui-success-pending`, assistant-ui/assistant-ui#6500)."""

    def _finished(self, value: Object) -> None:
        super()._finished(value)
        outcome = value.get("outcome")
        if isinstance(outcome, Mapping) and outcome.get("type") == "success":
            self._answer._calls.clear()


@mutant("error-ends", api="agui", family="errors")
class ErrorRunsOpenCalls(AGUIAccumulator):
    """Runs the calls that are open when the run fails, if their arguments parse."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "RUN_ERROR":
            answer_of(self, AbandonsNothing)
        return super().feed(payload, event)


@mutant("unknown-tool", api="agui", family="unknown tools")
class UnknownToolRaises(AGUIAccumulator):
    """Looks up the tool of a call in a dictionary, and raises."""

    def offer(self, tools: tuple[str, ...]) -> None:
        """The tools of the request."""
        self.offered = {str(tool): tool for tool in tools}

    def _end(self, id: str) -> None:
        if id in self._calls and self.offered:
            self.offered[self._calls[id].name]
        super()._end(id)
