"""Mistakes with messages, ends, errors and policies in AG-UI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import (
    AGUIAccumulator,
)
from examples.accumulators.values import mapping, sequence, string
from mockllm.checking import Policy
from mockllm.checking.outcome import Outcome, Usage
from mockllm.checking.probes import Delta
from tests.checking.mutants.agui_calls import AppendsToTheLastCall, LastArgsOnly
from tests.checking.mutants.common import Skips

Object = Mapping[str, Any]


class TextChunksUnknown(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        if not (kind == "text" and stage == "CHUNK"):
            super()._message(kind, stage, value)


class ChunksWithoutARoleLost(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        if not (kind == "text" and stage == "CHUNK" and value.get("role") is None):
            super()._message(kind, stage, value)


class TextOfTheFirstChunkLost(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        id = string(value.get("messageId"))
        begins = kind == "text" and stage == "CHUNK" and id not in self._messages and id
        super()._message(kind, stage, {**value, "delta": ""} if begins else value)


class NewestMessageGetsAll(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        if stage == "CONTENT" and self._messages:
            value = {**value, "messageId": list(self._messages)[-1]}
        super()._message(kind, stage, value)


class FirstMessageOnly(AGUIAccumulator):
    def outcome(self) -> Outcome:
        slots = self._answer._texts["text"]
        text = "".join(slots[min(slots)]) if slots else ""
        return replace(super().outcome(), text=text)


class MessagesOfAllRoles(AGUIAccumulator):
    def _open_message(self, id: str, role: object) -> None:
        super()._open_message(id, None)


class RoleRequired(AGUIAccumulator):
    def _open_message(self, id: str, role: object) -> None:
        super()._open_message(id, role or "user")


class TextAfterACallLost(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        called = kind == "text" and stage in ("CONTENT", "CHUNK") and self._answer._opened
        super()._message(kind, stage, {**value, "delta": ""} if called else value)


class EqualFragmentsDropped(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        before = self.__dict__.get("before")
        if stage in ("CONTENT", "CHUNK"):
            self.before = (kind, value.get("messageId"), value.get("delta"))
            if self.before == before:
                return
        super()._message(kind, stage, value)


class ResultsAreText(AGUIAccumulator):
    def _call(self, stage: str, value: Object) -> None:
        super()._call(stage, value)
        if stage == "RESULT":
            self._answer.add("text", string(value.get("content")), (self._count,))


class SnapshotIsAppended(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "MESSAGES_SNAPSHOT" and not self._answer.failed:
            for message in map(mapping, sequence(payload.get("messages"))):
                if message.get("role") == "assistant":
                    self._answer.add("text", string(message.get("content")), (self._count,))
        return super().feed(payload, event)


class SnapshotErasesReasoning(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "MESSAGES_SNAPSHOT":
            self._answer._texts["reasoning"].clear()
        return super().feed(payload, event)


class ReasoningLost(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        super()._message(kind, stage, {**value, "delta": ""} if kind == "reasoning" else value)


class ReasoningIsText(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        super()._message("text" if stage in ("CONTENT", "CHUNK") else kind, stage, value)


class ReasoningChunksUnknown(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        if not (kind == "reasoning" and stage == "CHUNK"):
            super()._message(kind, stage, value)


class ReasoningWithoutASpanLost(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        open = any(span == "reasoning" for span, _ in self._open_spans)
        if kind == "text" or open:
            super()._message(kind, stage, value)


class PrefixesDropped(AGUIAccumulator):
    def _message(self, kind: Any, stage: str, value: Object) -> None:
        delta, known = string(value.get("delta")), self.outcome().text
        dropped = kind == "text" and delta and known.startswith(delta)
        super()._message(kind, stage, {**value, "delta": ""} if dropped else value)


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


class EncryptedValuesLost(_Encrypted):
    def encrypted(self, value: Object) -> None:
        """Keeps nothing."""


class EncryptedValuesOfMessagesOnly(_Encrypted):
    def encrypted(self, value: Object) -> None:
        """Keeps those of messages."""
        if value.get("subtype") == "message":
            super().encrypted(value)


class LastEncryptedValueOnly(_Encrypted):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque[-1:]))


class RoleOfTheLastMessage(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.role = string(payload.get("role")) or self.__dict__.get("role", "assistant")
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), role=self.__dict__.get("role", "assistant"))


# Runs


class SecondRunStartsAgain(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "RUN_STARTED":
            self._answer._texts["text"].clear()
        return super().feed(payload, event)


class FirstRunEndsTheStream(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        complete, finish = self._answer.complete, self._answer.finish
        delta = super().feed(payload, event)
        if payload.get("type") == "RUN_STARTED":
            self._answer.complete, self._answer.finish = complete, finish
        return delta


class EndOfAMessageIsTheEnd(AGUIAccumulator):
    def close(self) -> None:
        open = self._calls or self._open_spans
        self._answer.complete = self._answer.complete or bool(self._messages and not open)
        super().close()


class FinishAfterAnError(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "RUN_FINISHED" and self._answer.failed:
            self._answer.failed = False
            self._answer._errors.clear()
        return super().feed(payload, event)


class ErrorsOfOpenMessagesOnly(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        closed = payload.get("type") == "RUN_ERROR" and not self._open_spans
        return None if closed else super().feed(payload, event)


class OutcomeRequired(AGUIAccumulator):
    def _finished(self, value: Object) -> None:
        super()._finished(value)
        if not value.get("outcome"):
            self._answer.finish = None


class TypeOfTheOutcomeRequired(AGUIAccumulator):
    def _finished(self, value: Object) -> None:
        if "outcome" in value:
            value["outcome"]["type"]
        super()._finished(value)


class FirstModelOnly(AGUIAccumulator):
    def _usage(self, value: Object) -> None:
        entries = sequence(value.get("usage"))[:1]
        super()._usage({**value, "usage": entries} if entries else value)


class UsageNotRead(AGUIAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, usage=outcome.usage and Usage(0, 0, 0, 0))


# Unknown events


class StateRequired(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "STATE_SNAPSHOT":
            self.state = payload.get("snapshot")
        if payload.get("type") == "STATE_DELTA":
            for operation in payload["delta"]:
                self.__dict__["state"].get(operation["path"].split("/")[-1])
        return super().feed(payload, event)


class ResultOfAnUnknownCallRaises(AGUIAccumulator):
    def _call(self, stage: str, value: Object) -> None:
        if stage == "RESULT":
            self._calls[value["toolCallId"]]
        super()._call(stage, value)


class DeltaMeansText(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = payload.get("delta")
        if isinstance(delta, list) and not self._answer.failed:
            self._answer.add("text", str(delta), (self._count,))
        return super().feed(payload, event)


class StepsNotTracked(AGUIAccumulator):
    def _span(self, kind: str, key: str, begins: bool, value: Object) -> None:
        if kind != "step":
            super()._span(kind, key, begins, value)


# Input, other streams, deltas


class AppendsToTheStart(AGUIAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if payload.get("type") == "TEXT_MESSAGE_START":
            self.start = payload
        elif payload.get("type") == "TEXT_MESSAGE_CONTENT" and "start" in self.__dict__:
            self.start["content"] = self.start.get("content", "") + string(payload.get("delta"))
        return delta


class SharesOpenCalls(AGUIAccumulator):
    _all: dict[str, Any] = {}  # noqa: RUF012 - the mistake

    def __init__(self) -> None:
        super().__init__()
        self._all.clear()
        self._calls = self._all


SKIP = Policy(malformed="skip")


class SkipsArgumentsByPosition(Skips, AppendsToTheLastCall):
    pass


class SkipsOverwrittenArguments(Skips, LastArgsOnly):
    pass


class KeepsTheStage(AGUIAccumulator):
    def pending(self) -> int:
        return len(self._answer._opened)


class KnownStartClears(AGUIAccumulator):
    def _open_message(self, id: str, role: object) -> None:
        slot = self._messages.get(id)
        if slot is not None:
            self._answer._texts["text"].pop((slot,), None)
        super()._open_message(id, role)


class FirstKindOfAnId(AGUIAccumulator):
    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[str, Any] = {}

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        id = string(value.get("messageId"))
        own = kind if stage == "CHUNK" else self._kinds.setdefault(id, kind)
        self._open_spans.discard((f"{kind} message", id))
        super()._message(own, stage, value)
        self._open_spans.discard((f"{own} message", id))


class EndClosesEveryMessage(AGUIAccumulator):
    def __init__(self) -> None:
        super().__init__()
        self._ended: set[str] = set()

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        id = string(value.get("messageId"))
        if stage == "START":
            self._ended.discard(id)
        if stage != "CONTENT" or id not in self._ended:
            super()._message(kind, stage, value)
        if stage == "END":
            self._ended |= self._messages.keys()
