"""AG-UI: mistakes with calls that are open, and with the end of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from examples.accumulators import AGUIAccumulator
from mockllm.checking.probes import Delta
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]


@mutant("arguments-concatenate", api="agui", family="call identity")
class AppendsToTheLastCall(AGUIAccumulator):
    """Appends arguments to the call that began last (`agui-parallel-calls`,
    `agui-args-wrong-id`)."""

    def _arguments(self, id: str, value: Object) -> None:
        super()._arguments(list(self._calls)[-1] if self._calls else id, value)


# It no longer notices that a dropped call has not ended.
@mutant("surface-once", "truncated-is-not-complete", api="agui", family="emission")
class OneCallAtATime(AGUIAccumulator):
    """Drops a call that begins while another is open (`agui-parallel-calls`)."""

    def _call(self, stage: str, value: Object) -> None:
        dropped = self.__dict__.setdefault("dropped", set())
        if stage == "START" and self._calls:
            dropped.add(value["toolCallId"])
        if value.get("toolCallId") not in dropped:
            super()._call(stage, value)


@mutant("surface-once", api="agui", family="argument fragments")
class ChunksUnknown(AGUIAccumulator):
    """Ignores TOOL_CALL_CHUNK, which is a start and arguments in one
    (`agui-chunk-interleave`)."""

    def _chunk(self, id: str, value: Object) -> None:
        pass


@mutant("truncated-is-not-complete", api="agui", family="cut streams")
class NoEndNeeded(AGUIAccumulator):
    """Treats calls and messages that are open at the end of the run as complete
    (`agui-open-call-at-finish`)."""

    def _finished(self, value: Object) -> None:
        self._open_spans.clear()
        for id in list(self._calls):
            self._end(id)
        super()._finished(value)


@mutant("truncated-is-not-complete", api="agui", family="cut streams")
class EndOfInputIsTheEnd(AGUIAccumulator):
    """Treats a stream that stops as a run that has finished (`agui-no-run-finished`)."""

    def close(self) -> None:
        self._answer.complete = True
        super().close()


@mutant("zero-arguments", api="agui", family="zero arguments")
class ParsesEmptyArguments(AGUIAccumulator):
    """Parses arguments that were never sent (`agui-zero-arg`)."""

    def _end(self, id: str) -> None:
        if id in self._calls:
            self._calls[id].arguments = self._calls[id].arguments or json.loads("")
        super()._end(id)


@mutant("text-accumulates", api="agui", family="null and absent")
class EmptyDeltaRefused(AGUIAccumulator):
    """Raises on an empty delta (`agui-empty-delta`)."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        if stage == "CONTENT" and not value["delta"]:
            raise ValueError("delta must not be empty")
        super()._message(kind, stage, value)


@mutant("text-accumulates", api="agui", family="text")
class LastMessageOnly(AGUIAccumulator):
    """Starts again with every message; an answer may have several."""

    def _open_message(self, id: str, role: object) -> None:
        self._answer._texts["text"].clear()
        super()._open_message(id, role)


@mutant("unknown-event", api="agui", family="unknown events")
class UnknownEventRaises(AGUIAccumulator):
    """Raises on unknown events (`agui-unknown-event`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        known = ("RUN_", "TEXT_", "TOOL_", "REASONING_", "STATE_", "STEP_", "MESSAGES_", "CUSTOM")
        if not payload.get("type", "RUN_").startswith((*known, "RAW", "ACTIVITY_")):
            raise ValueError(f"unknown event {payload['type']!r}")
        return super().feed(payload, event)


@mutant("surface-once", api="agui", family="null and absent")
class ParentMakesAMessage(AGUIAccumulator):
    """Requires the parent message of a call, and drops the call without it
    (`agui-phantom-parent`)."""

    def _start(self, id: str, value: Object) -> None:
        parent = value.get("parentMessageId")
        super()._start(id, value)
        if parent is not None and parent not in self._messages and self._messages:
            self._calls[id].closed = True


@mutant("finish-and-usage", api="agui", family="usage")
class FirstUsageOnly(AGUIAccumulator):
    """Ignores the usage of a run that finishes with an outcome (`agui-success-pending`)."""

    def _usage(self, value: Object) -> None:
        super()._usage({**value, "usage": None} if value.get("outcome") else value)


@mutant("error-ends", api="agui", family="errors")
class RunErrorIsAnEnd(AGUIAccumulator):
    """Treats RUN_ERROR as the end of a successful run."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "RUN_ERROR":
            payload = {"type": "RUN_FINISHED"}
            self._open_spans.clear()
        return super().feed(payload, event)
