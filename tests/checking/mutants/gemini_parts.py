"""Mistakes with texts, signatures, ends and usage in Gemini."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import (
    GeminiAccumulator,
)
from examples.accumulators.values import count, mapping, sequence, string
from mockllm.checking.outcome import Outcome, Usage
from mockllm.checking.probes import Delta

Object = Mapping[str, Any]


def _parts(candidate: Object) -> list[Any]:
    return sequence(mapping(candidate.get("content")).get("parts"))


def _with_parts(candidate: Object, parts: list[Any]) -> Object:
    return {**candidate, "content": {**mapping(candidate.get("content")), "parts": parts}}


class FirstPartOnly(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        parts = _parts(candidate)[:1]
        super()._candidate(_with_parts(candidate, parts) if parts else candidate)


class TextOfALimitLost(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        bad = string(candidate.get("finishReason")) not in ("", "STOP")
        super()._candidate({**candidate, "content": None} if bad else candidate)


class TextNextToACallLost(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        parts = _parts(candidate)
        calls = [part for part in parts if "functionCall" in part]
        super()._candidate(_with_parts(candidate, calls) if calls else candidate)


class TextAfterACallLost(GeminiAccumulator):
    def _part(self, part: Object) -> None:
        called = self._answer._opened and not part.get("thought")
        super()._part({**part, "text": None} if called else part)


class PartsJoinedByLines(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        parts = _parts(candidate)
        joined = [
            {**part, "text": "\n" + part["text"]} if index and part.get("text") else part
            for index, part in enumerate(parts)
        ]
        super()._candidate(_with_parts(candidate, joined) if parts else candidate)


class EveryCandidateIsRead(GeminiAccumulator):
    def _chunk(self, chunk: Object) -> None:
        candidates = [{**mapping(one), "index": 0} for one in sequence(chunk.get("candidates"))]
        super()._chunk({**chunk, "candidates": candidates} if candidates else chunk)


class ThoughtsLost(GeminiAccumulator):
    def _part(self, part: Object) -> None:
        super()._part({**part, "text": None} if part.get("thought") else part)


class FirstPartDecidesOnThoughts(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        parts = _parts(candidate)
        thought = bool(parts and parts[0].get("thought"))
        same = [{**part, "thought": thought} for part in parts]
        super()._candidate(_with_parts(candidate, same) if parts else candidate)


class CodeIsText(GeminiAccumulator):
    def _part(self, part: Object) -> None:
        code = string(mapping(part.get("executableCode")).get("code"))
        output = string(mapping(part.get("codeExecutionResult")).get("output"))
        super()._part({**part, "text": code + output} if code or output else part)


class PrefixesDropped(GeminiAccumulator):
    def _part(self, part: Object) -> None:
        text, known = string(part.get("text")), self.outcome().text
        dropped = not part.get("thought") and text and known.startswith(text)
        super()._part({**part, "text": ""} if dropped else part)


class _Signatures(GeminiAccumulator):
    """Keeps the signatures of all parts in order; mutants derive from it."""

    def __init__(self) -> None:
        super().__init__()
        self.opaque: list[str] = []

    def _part(self, part: Object) -> None:
        if part.get("thoughtSignature"):
            self.signature(string(part["thoughtSignature"]), part)
        super()._part(part)

    def signature(self, value: str, part: Object) -> None:
        """Keeps the signature of a part."""
        self.opaque.append(value)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque))


class SignaturesLost(_Signatures):
    def signature(self, value: str, part: Object) -> None:
        """Keeps nothing."""


class SignatureOfTextLost(_Signatures):
    def signature(self, value: str, part: Object) -> None:
        """Keeps the signatures of calls and of text that is not empty."""
        if part.get("text") or part.get("functionCall"):
            super().signature(value, part)


class SignatureOfCallsLost(_Signatures):
    def signature(self, value: str, part: Object) -> None:
        """Keeps the signatures of text."""
        if "functionCall" not in part:
            super().signature(value, part)


class LastSignatureOnly(_Signatures):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque[-1:]))


class FirstSignatureForAllCalls(_Signatures):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        repeated = tuple(self.opaque[:1]) * max(1, len(outcome.tool_calls))
        return replace(outcome, opaque=repeated)


class SignatureForAddresses(_Signatures):
    def signature(self, value: str, part: Object) -> None:
        """Keeps the signature in another alphabet."""
        super().signature(value.replace("+", "-").replace("/", "_").rstrip("="), part)


# The answer


class RoleOfTheLastChunk(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        self.role = "assistant" if mapping(candidate.get("content")).get("role") else None
        super()._candidate(candidate)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), role=self.__dict__.get("role", "assistant"))


class ModelNotRead(GeminiAccumulator):
    def _chunk(self, chunk: Object) -> None:
        self.model = chunk.get("model")
        super()._chunk(chunk)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), model=self.__dict__.get("model"))


class IdNotRead(GeminiAccumulator):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), response_id=None)


class FirstUsageOnly(GeminiAccumulator):
    def _usage(self, usage: Object) -> None:
        if self._answer.usage is None:
            super()._usage(usage)


class ThoughtsNotInTheOutput(GeminiAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        usage = outcome.usage
        if usage is None or not usage.output:
            return outcome
        output = usage.output - (usage.reasoning or 0)
        return replace(outcome, usage=replace(usage, output=output))


class UsageOfAFinishOnly(GeminiAccumulator):
    def _chunk(self, chunk: Object) -> None:
        ends = any(mapping(one).get("finishReason") for one in sequence(chunk.get("candidates")))
        super()._chunk(chunk if ends else {**chunk, "usageMetadata": None})


class MissingUsageIsZero(GeminiAccumulator):
    def _chunk(self, chunk: Object) -> None:
        super()._chunk(chunk)
        if not chunk.get("usageMetadata") and not chunk.get("error"):
            self._answer.usage = Usage(0, 0, 0, 0)


class ToolUseTokensLeftOut(GeminiAccumulator):
    def _usage(self, usage: Object) -> None:
        super()._usage({**usage, "toolUsePromptTokenCount": None})


class EveryFinishIsStop(GeminiAccumulator):
    def _finish(self, reason: str) -> None:
        super()._finish("STOP")


class UnknownFinishRaises(GeminiAccumulator):
    def _finish(self, reason: str) -> None:
        if reason not in ("STOP", "MAX_TOKENS"):
            raise ValueError(f"unknown finish reason {reason!r}")
        super()._finish(reason)


class BlockedPromptIsNoFinish(GeminiAccumulator):
    def _chunk(self, chunk: Object) -> None:
        super()._chunk({**chunk, "promptFeedback": None})


# Errors, cut streams, unknown parts


class ErrorInAnArrayIgnored(GeminiAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return None if isinstance(payload, list) else super().feed(payload, event)


class CallsMakeItComplete(GeminiAccumulator):
    def close(self) -> None:
        self._answer.complete = self._answer.complete or bool(self._answer._calls)
        super().close()


class UnknownPartRaises(GeminiAccumulator):
    def _part(self, part: Object) -> None:
        if "functionCall" not in part:
            part["text"]
        super()._part(part)


class IndexRequired(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        candidate["index"] + 0
        super()._candidate(candidate)


class CountsRequired(GeminiAccumulator):
    def _usage(self, usage: Object) -> None:
        if count(usage.get("promptTokenCount")) is not None:
            usage["candidatesTokenCount"] + 0
        super()._usage(usage)


# Input, other streams, deltas


class ThoughtTakenOut(GeminiAccumulator):
    def _part(self, part: Object) -> None:
        super()._part(part)
        if isinstance(part, dict):
            part.pop("thought", None)


class SharesItsText(GeminiAccumulator):
    _all: list[str] = []  # noqa: RUF012 - the mistake

    def _part(self, part: Object) -> None:
        super()._part(part)
        if not part.get("thought"):
            self._all.append(string(part.get("text")))

    def outcome(self) -> Outcome:
        return replace(super().outcome(), text="".join(self._all))

    def __init__(self) -> None:
        super().__init__()
        self._all.clear()


class UnknownFinishIsStop(GeminiAccumulator):
    def _finish(self, reason: str) -> None:
        super()._finish(reason if reason in ("MAX_TOKENS", "SAFETY", "RECITATION") else "STOP")


class FirstFinishEndsTheStream(GeminiAccumulator):
    def _chunk(self, chunk: Object) -> None:
        if not self._answer.complete or chunk.get("error"):
            super()._chunk(chunk)


class AnotherIdAtTheEnd(GeminiAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if delta is None:
            return None
        calls = tuple(replace(call, id=f"passed-on-{call.id}") for call in delta.tool_calls)
        return replace(delta, tool_calls=calls)


class HandsOnLate(GeminiAccumulator):
    def __init__(self) -> None:
        super().__init__()
        self.last: Delta | None = None

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        late, self.last = self.last, super().feed(payload, event)
        return late


class UnknownFinishPassedOver(GeminiAccumulator):
    def _finish(self, reason: str) -> None:
        if not reason.startswith("KIT_"):
            super()._finish(reason)
