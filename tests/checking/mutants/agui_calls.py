"""Mistakes with calls, arguments and their values in AG-UI."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import AGUIAccumulator
from examples.accumulators.values import string
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta, Fragment
from tests.checking.mutants.altered import AbandonsNothing, answer_of, with_calls

Object = Mapping[str, Any]


class AppendsToTheLastCall(AGUIAccumulator):
    def _arguments(self, id: str, value: Object) -> None:
        super()._arguments(list(self._calls)[-1] if self._calls else id, value)


class OneCallAtATime(AGUIAccumulator):
    def _call(self, stage: str, value: Object) -> None:
        dropped = self.__dict__.setdefault("dropped", set())
        if stage == "START" and self._calls:
            dropped.add(value["toolCallId"])
        if value.get("toolCallId") not in dropped:
            super()._call(stage, value)


class ChunksUnknown(AGUIAccumulator):
    def _chunk(self, id: str, value: Object) -> None:
        pass


class NoEndNeeded(AGUIAccumulator):
    def _finished(self, value: Object) -> None:
        self._open_spans.clear()
        for id in list(self._calls):
            self._end(id)
        super()._finished(value)


class EndOfInputIsTheEnd(AGUIAccumulator):
    def close(self) -> None:
        self._answer.complete = True
        super().close()


class ParsesEmptyArguments(AGUIAccumulator):
    def _end(self, id: str) -> None:
        if id in self._calls:
            self._calls[id].arguments = self._calls[id].arguments or json.loads("")
        super()._end(id)


class EmptyDeltaRefused(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        if stage == "CONTENT" and not value["delta"]:
            raise ValueError("delta must not be empty")
        super()._message(kind, stage, value)


class LastMessageOnly(AGUIAccumulator):
    def _open_message(self, id: str, role: object) -> None:
        self._answer._texts["text"].clear()
        super()._open_message(id, role)


class UnknownEventRaises(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        known = ("RUN_", "TEXT_", "TOOL_", "REASONING_", "STATE_", "STEP_", "MESSAGES_", "CUSTOM")
        if not payload.get("type", "RUN_").startswith((*known, "RAW", "ACTIVITY_")):
            raise ValueError(f"unknown event {payload['type']!r}")
        return super().feed(payload, event)


class ParentMakesAMessage(AGUIAccumulator):
    def _start(self, id: str, value: Object) -> None:
        parent = value.get("parentMessageId")
        super()._start(id, value)
        if parent is not None and parent not in self._messages and self._messages:
            self._calls[id].closed = True


class FirstUsageOnly(AGUIAccumulator):
    def _usage(self, value: Object) -> None:
        super()._usage({**value, "usage": None} if value.get("outcome") else value)


class RunErrorIsAnEnd(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "RUN_ERROR":
            payload = {"type": "RUN_FINISHED"}
            self._open_spans.clear()
        return super().feed(payload, event)


class OneCallForEachMessage(AGUIAccumulator):
    def _start(self, id: str, value: Object) -> None:
        super()._start(id, value)
        self.__dict__.setdefault("parents", {})[id] = value.get("parentMessageId")

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        parents = self.__dict__.get("parents", {})
        calls = {parents.get(call.id) or call.id: call for call in outcome.tool_calls}
        return replace(outcome, tool_calls=tuple(calls.values()))


class CallsSortedByTheirIds(AGUIAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = sorted(outcome.tool_calls, key=lambda call: call.id or "", reverse=True)
        return replace(outcome, tool_calls=tuple(calls))


class IdOfTheParent(AGUIAccumulator):
    def _start(self, id: str, value: Object) -> None:
        super()._start(id, value)
        if id in self._calls:
            self._calls[id].id = string(value.get("parentMessageId")) or f"message-of-{id}"


class PrefixOfTheRun(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.run = string(payload.get("runId")) or self.__dict__.get("run", "run")
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return with_calls(super().outcome(), lambda call: replace(call, id=f"{self.run}:{call.id}"))


class NamesOfChunksJoined(AGUIAccumulator):
    def _chunk(self, id: str, value: Object) -> None:
        known = self._calls.get(id or self._latest["call"])
        super()._chunk(id, value)
        if known is not None:
            known.name += string(value.get("toolCallName"))


class LastArgsOnly(AGUIAccumulator):
    def _arguments(self, id: str, value: Object) -> None:
        if id in self._calls and value.get("delta"):
            self._calls[id].arguments = ""
        super()._arguments(id, value)


class ArgsOfTheFirstChunkLost(AGUIAccumulator):
    def _chunk(self, id: str, value: Object) -> None:
        begins = (id or self._latest["call"]) not in self._calls
        super()._chunk(id, {**value, "delta": ""} if begins else value)


class ChunksWithoutAnIdLost(AGUIAccumulator):
    def _chunk(self, id: str, value: Object) -> None:
        if id:
            super()._chunk(id, value)


class EveryChunkIsACall(AGUIAccumulator):
    def _chunk(self, id: str, value: Object) -> None:
        id = id or self._latest["call"]
        if id in self._calls and value.get("toolCallName"):
            self._end(id)
        super()._chunk(id, value)


class TrimsFragments(AGUIAccumulator):
    def _arguments(self, id: str, value: Object) -> None:
        super()._arguments(id, {**value, "delta": string(value.get("delta")).strip()})


class RepeatedFragmentsDropped(AGUIAccumulator):
    def _arguments(self, id: str, value: Object) -> None:
        before = self.__dict__.get("before")
        self.before = (id, value.get("delta"))
        if before != self.before or id not in self._calls:
            super()._arguments(id, value)


class CallsWithoutArgsDropped(AGUIAccumulator):
    def _end(self, id: str) -> None:
        if id in self._calls and not self._calls[id].arguments:
            self._calls[id].closed = True
        super()._end(id)


class SuccessRunsNoCalls(AGUIAccumulator):
    def _finished(self, value: Object) -> None:
        super()._finished(value)
        outcome = value.get("outcome")
        if isinstance(outcome, Mapping) and outcome.get("type") == "success":
            self._answer._calls.clear()


class ErrorRunsOpenCalls(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "RUN_ERROR":
            answer_of(self, AbandonsNothing)
        return super().feed(payload, event)


class UnknownToolRaises(AGUIAccumulator):
    def offer(self, tools: tuple[str, ...]) -> None:
        """The tools of the request."""
        self.offered = {str(tool): tool for tool in tools}

    def _end(self, id: str) -> None:
        if id in self._calls and self.offered:
            self.offered[self._calls[id].name]
        super()._end(id)


class RawIsTheWordNull(AGUIAccumulator):
    def outcome(self) -> Outcome:
        def changed(call: Call) -> Call:
            return call if call.arguments else replace(call, raw_arguments="null")

        return with_calls(super().outcome(), changed)


# What is passed on during the stream


class SurfacesAtTheStart(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if payload.get("type") == "TOOL_CALL_END":
            return delta and replace(delta, tool_calls=())
        if payload.get("type") != "TOOL_CALL_START" or self._answer.failed:
            return delta
        call = Call(string(payload.get("toolCallName")), {}, string(payload.get("toolCallId")))
        return replace(delta or Delta(), tool_calls=(call,))


class HandsOnCallsAgainAtTheEnd(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        calls = self.outcome().tool_calls
        if payload.get("type") == "RUN_FINISHED" and calls and not self._answer.failed:
            return replace(delta or Delta(), tool_calls=calls)
        return delta


class HandsOnArgumentsSoFar(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        call = self._calls.get(string(payload.get("toolCallId")))
        if call is None or not payload.get("delta"):
            return delta
        fragment = Fragment(call.arguments, call.id, call.name, call.number)
        return replace(delta or Delta(), tool=(fragment,))


class ResultsRequired(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "TOOL_CALL_RESULT":
            self.__dict__.setdefault("answered", set()).add(payload.get("toolCallId"))
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        answered = self.__dict__.get("answered", set())
        calls = tuple(call for call in outcome.tool_calls if call.id in answered)
        return replace(outcome, tool_calls=calls)


class ArgumentsOfOtherIdsIgnored(AGUIAccumulator):
    def _arguments(self, id: str, value: Object) -> None:
        if id in self._calls:
            super()._arguments(id, value)


class ReplayedStartClears(AGUIAccumulator):
    def _start(self, id: str, value: Object) -> None:
        if id in self._calls:
            self._calls[id].arguments = ""
        else:
            super()._start(id, value)


class ReplayedCallRunsAgain(AGUIAccumulator):
    def _start(self, id: str, value: Object) -> None:
        if id not in self._calls:
            self._called.discard(id)
            super()._start(id, value)


class ReplayedStartIsACall(AGUIAccumulator):
    def _start(self, id: str, value: Object) -> None:
        before = self._calls.pop(id, None)
        if before is not None:
            self._answer.surface(before)
        self._called.discard(id)
        super()._start(id, value)


# Messages and spans


class EndOfTextRequired(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        super()._message(kind, stage, value)
        if stage == "END":
            self.__dict__.setdefault("ended", set()).add(value.get("messageId"))

    def outcome(self) -> Outcome:
        ended = self.__dict__.get("ended", set())
        slots = {self._messages[id] for id in ended if id in self._messages}
        texts = self._answer._texts["text"]
        kept = (texts[slot] for slot in sorted(texts) if slot[0] in slots)
        return replace(super().outcome(), text="".join(map("".join, kept)))


class StepsAreText(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "STEP_STARTED":
            self._answer.add("text", string(payload.get("stepName")), (0,))
        return super().feed(payload, event)


class CustomEventRaises(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "CUSTOM":
            raise ValueError(f"no handler for CUSTOM {payload.get('name')}")
        return super().feed(payload, event)


class LongNamesCut(AGUIAccumulator):
    def outcome(self) -> Outcome:
        return with_calls(super().outcome(), lambda call: replace(call, name=call.name[:8]))


class OldThinkingUnknown(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        old = string(payload.get("type")).startswith("THINKING_")
        return None if old else super().feed(payload, event)


class HandsOnTextTwice(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        return delta and replace(delta, text=delta.text * 2)
