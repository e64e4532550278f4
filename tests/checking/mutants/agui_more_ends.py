"""AG-UI: more mistakes with opaque values, runs, usage, errors and unknown events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import AGUIAccumulator
from examples.accumulators.values import sequence, string
from mockllm.checking.outcome import Outcome, Usage
from mockllm.checking.probes import Delta
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]

common(
    __name__,
    "agui",
    MessageOfTheErrorLost="Reports the code of an error without its message.",
    TotalIsTheOutput="Reads `totalTokens` as the output.",
    HandsOnTheSum="Passes on all text so far for each event.",
)


class _Encrypted(AGUIAccumulator):
    """Keeps encrypted values in order; mutants derive from it."""

    def __init__(self) -> None:
        super().__init__()
        self.opaque: list[str] = []

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "REASONING_ENCRYPTED_VALUE":
            self.encrypted(payload)
        return super().feed(payload, event)

    def encrypted(self, value: Object) -> None:
        """Keeps the encrypted value of an event."""
        self.opaque.append(string(value.get("encryptedValue")))

    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque))


@mutant("opaque-kept", api="agui", family="opaque values")
class EncryptedValuesLost(_Encrypted):
    """Ignores REASONING_ENCRYPTED_VALUE."""

    def encrypted(self, value: Object) -> None:
        """Keeps nothing."""


@mutant("opaque-kept", api="agui", family="opaque values")
class EncryptedValuesOfMessagesOnly(_Encrypted):
    """Ignores the encrypted values of calls."""

    def encrypted(self, value: Object) -> None:
        """Keeps those of messages."""
        if value.get("subtype") == "message":
            super().encrypted(value)


@mutant("opaque-kept", api="agui", family="opaque values")
class LastEncryptedValueOnly(_Encrypted):
    """Has one variable for the encrypted values of a run."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque[-1:]))


@mutant("role-kept", api="agui", family="role and ids of the answer")
class RoleOfTheLastMessage(AGUIAccumulator):
    """Reports the role of the message that began last, which may be one of reasoning."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.role = string(payload.get("role")) or self.__dict__.get("role", "assistant")
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), role=self.__dict__.get("role", "assistant"))


# Runs


@mutant("text-accumulates", api="agui", family="text")
class SecondRunStartsAgain(AGUIAccumulator):
    """Clears the text at each RUN_STARTED; one stream may have several runs."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "RUN_STARTED":
            self._answer._texts["text"].clear()
        return super().feed(payload, event)


@mutant("truncated-is-not-complete", api="agui", family="cut streams")
class FirstRunEndsTheStream(AGUIAccumulator):
    """Keeps the end of the first run while a second one goes on."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        complete, finish = self._answer.complete, self._answer.finish
        delta = super().feed(payload, event)
        if payload.get("type") == "RUN_STARTED":
            self._answer.complete, self._answer.finish = complete, finish
        return delta


@mutant("truncated-is-not-complete", api="agui", family="cut streams")
class EndOfAMessageIsTheEnd(AGUIAccumulator):
    """Treats a stream as complete if its last message has ended (ag-ui-protocol/ag-ui#2300)."""

    def close(self) -> None:
        open = self._calls or self._open_spans
        self._answer.complete = self._answer.complete or bool(self._messages and not open)
        super().close()


@mutant("error-ends", api="agui", family="errors")
class FinishAfterAnError(AGUIAccumulator):
    """Reads RUN_FINISHED after RUN_ERROR as the end of a good run
    (agentscope-ai/agentscope-java#2642)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "RUN_FINISHED" and self._answer.failed:
            self._answer.failed = False
            self._answer._errors.clear()
        return super().feed(payload, event)


@mutant("error-ends", api="agui", family="errors")
class ErrorsOfOpenMessagesOnly(AGUIAccumulator):
    """Shows an error inside the open message, and drops it if there is none."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        closed = payload.get("type") == "RUN_ERROR" and not self._open_spans
        return None if closed else super().feed(payload, event)


@mutant("finish-and-usage", api="agui", family="finish")
class OutcomeRequired(AGUIAccumulator):
    """Reports no end where RUN_FINISHED has no outcome, which is optional."""

    def _finished(self, value: Object) -> None:
        super()._finished(value)
        if not value.get("outcome"):
            self._answer.finish = None


@mutant("null-tolerant", api="agui", family="null and absent")
class TypeOfTheOutcomeRequired(AGUIAccumulator):
    """Raises where the outcome of RUN_FINISHED is null."""

    def _finished(self, value: Object) -> None:
        if "outcome" in value:
            value["outcome"]["type"]
        super()._finished(value)


@mutant("finish-and-usage", api="agui", family="usage")
class FirstModelOnly(AGUIAccumulator):
    """Reads the first entry of the usage alone; there is one for each model."""

    def _usage(self, value: Object) -> None:
        entries = sequence(value.get("usage"))[:1]
        super()._usage({**value, "usage": entries} if entries else value)


@mutant("finish-and-usage", api="agui", family="usage")
class UsageNotRead(AGUIAccumulator):
    """Does not read the usage of RUN_FINISHED, and reports zeros."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, usage=outcome.usage and Usage(0, 0, 0, 0))


# Unknown events


@mutant("unknown-event", api="agui", family="unknown events")
class StateRequired(AGUIAccumulator):
    """Applies STATE_DELTA to a state that no snapshot has set, and raises."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "STATE_SNAPSHOT":
            self.state = payload.get("snapshot")
        if payload.get("type") == "STATE_DELTA":
            for operation in payload["delta"]:
                self.__dict__["state"].get(operation["path"].split("/")[-1])
        return super().feed(payload, event)


@mutant("unknown-event", api="agui", family="unknown events")
class ResultOfAnUnknownCallRaises(AGUIAccumulator):
    """Looks up the call of TOOL_CALL_RESULT among the open ones, and raises."""

    def _call(self, stage: str, value: Object) -> None:
        if stage == "RESULT":
            self._calls[value["toolCallId"]]
        super()._call(stage, value)


@mutant("unknown-event", api="agui", family="unknown events")
class DeltaMeansText(AGUIAccumulator):
    """Reads the `delta` of every event as text, also a list of operations."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = payload.get("delta")
        if isinstance(delta, list) and not self._answer.failed:
            self._answer.add("text", str(delta), (self._count,))
        return super().feed(payload, event)


@mutant("truncated-is-not-complete", api="agui", family="unknown events")
class StepsNotTracked(AGUIAccumulator):
    """Does not notice that a step is open at the end of the run."""

    def _span(self, kind: str, key: str, begins: bool, value: Object) -> None:
        if kind != "step":
            super()._span(kind, key, begins, value)


# Input, other streams, deltas


@mutant("input-untouched", api="agui", family="modified input")
class AppendsToTheStart(AGUIAccumulator):
    """Appends deltas to the event that began the message."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if payload.get("type") == "TEXT_MESSAGE_START":
            self.start = payload
        elif payload.get("type") == "TEXT_MESSAGE_CONTENT" and "start" in self.__dict__:
            self.start["content"] = self.start.get("content", "") + string(payload.get("delta"))
        return delta


@mutant("stage-empties", api="agui", family="shared state")
class SharesOpenCalls(AGUIAccumulator):
    """Keeps the open calls in a dictionary of the class, and clears it when a stream begins
    (assistant-ui/assistant-ui#6857 is about state that runs share)."""

    _all: dict[str, Any] = {}  # noqa: RUF012 - the mistake

    def __init__(self) -> None:
        super().__init__()
        self._all.clear()
        self._calls = self._all
