"""AG-UI: mistakes with calls that are open, and with the end of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mockllm.checking.probes import Delta
from mockllm.checking.reference import AGUIAccumulator
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]


@mutant("arguments-concatenate", api="agui")
class AppendsToTheLastCall(AGUIAccumulator):
    """Appends arguments to the call that began last (`agui-parallel-calls`,
    `agui-args-wrong-id`)."""

    def _arguments(self, id: str, value: Object) -> None:
        super()._arguments(list(self._calls)[-1] if self._calls else id, value)


# With the call that it drops, it loses sight of whether that has ended.
@mutant("surface-once", "truncated-is-not-complete", api="agui")
class OneCallAtATime(AGUIAccumulator):
    """Drops a call that begins while another is open (`agui-parallel-calls`)."""

    def _call(self, stage: str, value: Object) -> None:
        dropped = self.__dict__.setdefault("dropped", set())
        if stage == "START" and self._calls:
            dropped.add(value["toolCallId"])
        if value.get("toolCallId") not in dropped:
            super()._call(stage, value)


@mutant("arguments-concatenate", api="agui")
class ChunksUnknown(AGUIAccumulator):
    """Passes over TOOL_CALL_CHUNK, which is a start and arguments in one
    (`agui-chunk-interleave`)."""

    def _chunk(self, id: str, value: Object) -> None:
        pass


@mutant("truncated-is-not-complete", api="agui")
class NoEndNeeded(AGUIAccumulator):
    """Takes calls and messages that are open at the end of the run for complete
    (`agui-open-call-at-finish`)."""

    def _finished(self, value: Object) -> None:
        self._open.clear()
        for id in list(self._calls):
            self._end(id)
        super()._finished(value)


@mutant("truncated-is-not-complete", api="agui")
class EndOfInputIsTheEnd(AGUIAccumulator):
    """Takes a stream that stops for a run that has finished (`agui-no-run-finished`)."""

    def close(self) -> None:
        self._answer.complete = True
        super().close()


@mutant("zero-arguments", api="agui")
class ParsesEmptyArguments(AGUIAccumulator):
    """Has `json.loads` read arguments that never came (`agui-zero-arg`)."""

    def _end(self, id: str) -> None:
        if id in self._calls:
            self._calls[id].arguments = self._calls[id].arguments or json.loads("")
        super()._end(id)


@mutant("text-accumulates", api="agui")
class EmptyDeltaRefused(AGUIAccumulator):
    """Takes an empty delta for a mistake of the server's (`agui-empty-delta`)."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        if stage == "CONTENT" and not value["delta"]:
            raise ValueError("delta must not be empty")
        super()._message(kind, stage, value)


@mutant("text-accumulates", api="agui")
class LastMessageOnly(AGUIAccumulator):
    """Begins anew with every message; an answer may have several."""

    def _open_message(self, id: str, role: object) -> None:
        self._answer._words["text"].clear()
        super()._open_message(id, role)


@mutant("unknown-event", api="agui")
class UnknownEventRaises(AGUIAccumulator):
    """Breaks on events that it does not know (`agui-unknown-event`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        known = ("RUN_", "TEXT_", "TOOL_", "REASONING_", "STATE_", "STEP_", "MESSAGES_", "CUSTOM")
        if not payload.get("type", "RUN_").startswith((*known, "RAW", "ACTIVITY_")):
            raise ValueError(f"unknown event {payload['type']!r}")
        return super().feed(payload, event)


@mutant("surface-once", api="agui")
class ParentMakesAMessage(AGUIAccumulator):
    """Wants the message that a call is part of, and drops the call without it
    (`agui-phantom-parent`)."""

    def _start(self, id: str, value: Object) -> None:
        parent = value.get("parentMessageId")
        super()._start(id, value)
        if parent is not None and parent not in self._messages and self._messages:
            self._calls[id].settled = True


@mutant("finish-and-usage", api="agui")
class FirstUsageOnly(AGUIAccumulator):
    """Takes no usage where the run is not over (`agui-success-pending`)."""

    def _usage(self, value: Object) -> None:
        super()._usage({**value, "usage": None} if value.get("outcome") else value)


@mutant("error-ends", api="agui")
class RunErrorIsAnEnd(AGUIAccumulator):
    """Takes RUN_ERROR for the end of a run like any other."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "RUN_ERROR":
            payload = {"type": "RUN_FINISHED"}
            self._open.clear()
        return super().feed(payload, event)
