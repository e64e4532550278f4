"""AG-UI: more mistakes with messages and reasoning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import AGUIAccumulator
from examples.accumulators.values import mapping, sequence, string
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]

common(
    __name__,
    "agui",
    TextBeforeCallsLost="Drops the text of a run that calls tools (vercel/ai#2568).",
    FragmentsStripped="Strips white space from each fragment of text.",
    ReasoningBeforeACallLost="Drops the reasoning of a run that calls tools.",
)


@mutant("text-accumulates", api="agui", family="text")
class TextChunksUnknown(AGUIAccumulator):
    """Ignores TEXT_MESSAGE_CHUNK."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        if not (kind == "text" and stage == "CHUNK"):
            super()._message(kind, stage, value)


@mutant("text-accumulates", api="agui", family="text")
class ChunksWithoutARoleLost(AGUIAccumulator):
    """Ignores text chunks without a role, which continue a message (vibrantlabsai/ragas#3023)."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        if not (kind == "text" and stage == "CHUNK" and value.get("role") is None):
            super()._message(kind, stage, value)


@mutant("text-accumulates", api="agui", family="text")
class TextOfTheFirstChunkLost(AGUIAccumulator):
    """Reads the first TEXT_MESSAGE_CHUNK as a start alone (TanStack/ai#244)."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        id = string(value.get("messageId"))
        begins = kind == "text" and stage == "CHUNK" and id not in self._messages and id
        super()._message(kind, stage, {**value, "delta": ""} if begins else value)


@mutant("text-accumulates", api="agui", family="text")
class NewestMessageGetsAll(AGUIAccumulator):
    """Appends every delta to the message that began last; messages may overlap."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        if stage == "CONTENT" and self._messages:
            value = {**value, "messageId": list(self._messages)[-1]}
        super()._message(kind, stage, value)


@mutant("text-accumulates", api="agui", family="text")
class FirstMessageOnly(AGUIAccumulator):
    """Reads the first text message of a run; another one may follow a call."""

    def outcome(self) -> Outcome:
        slots = self._answer._texts["text"]
        text = "".join(slots[min(slots)]) if slots else ""
        return replace(super().outcome(), text=text)


@mutant("text-accumulates", api="agui", family="text")
class MessagesOfAllRoles(AGUIAccumulator):
    """Reads the messages of every role as the answer, also those of the user."""

    def _open_message(self, id: str, role: object) -> None:
        super()._open_message(id, None)


@mutant("null-tolerant", api="agui", family="null and absent")
class RoleRequired(AGUIAccumulator):
    """Ignores messages whose start has no role; `assistant` is the default."""

    def _open_message(self, id: str, role: object) -> None:
        super()._open_message(id, role or "user")


@mutant("text-accumulates", api="agui", family="text")
class TextAfterACallLost(AGUIAccumulator):
    """Ignores the text after a call."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        called = kind == "text" and stage in ("CONTENT", "CHUNK") and self._answer._opened
        super()._message(kind, stage, {**value, "delta": ""} if called else value)


@mutant("text-accumulates", api="agui", family="text")
class EqualFragmentsDropped(AGUIAccumulator):
    """Drops a delta that equals the one before it, as an event that was sent again."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        before = self.__dict__.get("before")
        if stage in ("CONTENT", "CHUNK"):
            self.before = (kind, value.get("messageId"), value.get("delta"))
            if self.before == before:
                return
        super()._message(kind, stage, value)


@mutant("text-accumulates", api="agui", family="text")
class ResultsAreText(AGUIAccumulator):
    """Adds the content of TOOL_CALL_RESULT to the text."""

    def _call(self, stage: str, value: Object) -> None:
        super()._call(stage, value)
        if stage == "RESULT":
            self._answer.add("text", string(value.get("content")), (self._count,))


@mutant("final-replaces", api="agui", family="final values")
class SnapshotIsAppended(AGUIAccumulator):
    """Adds the messages of MESSAGES_SNAPSHOT to those that were streamed
    (microsoft/agent-framework#7807)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "MESSAGES_SNAPSHOT" and not self._answer.failed:
            for message in map(mapping, sequence(payload.get("messages"))):
                if message.get("role") == "assistant":
                    self._answer.add("text", string(message.get("content")), (self._count,))
        return super().feed(payload, event)


@mutant("text-accumulates", api="agui", family="reasoning")
class SnapshotErasesReasoning(AGUIAccumulator):
    """Drops reasoning at MESSAGES_SNAPSHOT, which seldom has it (ag-ui-protocol/ag-ui#1370)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "MESSAGES_SNAPSHOT":
            self._answer._texts["reasoning"].clear()
        return super().feed(payload, event)


@mutant("text-accumulates", api="agui", family="reasoning")
class ReasoningLost(AGUIAccumulator):
    """Ignores REASONING_MESSAGE events."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        super()._message(kind, stage, {**value, "delta": ""} if kind == "reasoning" else value)


@mutant("text-accumulates", api="agui", family="reasoning")
class ReasoningIsText(AGUIAccumulator):
    """Adds reasoning to the text."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        super()._message("text" if stage in ("CONTENT", "CHUNK") else kind, stage, value)


@mutant("text-accumulates", api="agui", family="reasoning")
class ReasoningChunksUnknown(AGUIAccumulator):
    """Ignores REASONING_MESSAGE_CHUNK (microsoft/agent-framework-go#936)."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        if not (kind == "reasoning" and stage == "CHUNK"):
            super()._message(kind, stage, value)


@mutant("text-accumulates", api="agui", family="reasoning")
class ReasoningWithoutASpanLost(AGUIAccumulator):
    """Requires REASONING_START before reasoning, although it may be missing."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        open = any(span == "reasoning" for span, _ in self._open_spans)
        if kind == "text" or open:
            super()._message(kind, stage, value)


@mutant("text-accumulates", api="agui", family="text")
class PrefixesDropped(AGUIAccumulator):
    """Drops a delta that is the beginning of the text so far (cacheplane/threadplane#751)."""

    def _message(self, kind: Any, stage: str, value: Object) -> None:
        delta, known = string(value.get("delta")), self.outcome().text
        dropped = kind == "text" and delta and known.startswith(delta)
        super()._message(kind, stage, {**value, "delta": ""} if dropped else value)
