"""Gemini: more mistakes with text and thoughts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators import GeminiAccumulator
from examples.accumulators.values import mapping, sequence, string
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]

common(
    __name__,
    "gemini",
    TextBeforeCallsLost="Drops the text of an answer that calls tools (vercel/ai#2568).",
    FragmentsStripped="Strips white space from each fragment of text.",
    ThoughtsBeforeACallLost="Drops the thoughts of an answer that calls tools.",
)


def _parts(candidate: Object) -> list[Any]:
    return sequence(mapping(candidate.get("content")).get("parts"))


def _with_parts(candidate: Object, parts: list[Any]) -> Object:
    return {**candidate, "content": {**mapping(candidate.get("content")), "parts": parts}}


@mutant("text-accumulates", "surface-once", api="gemini", family="text")
class FirstPartOnly(GeminiAccumulator):
    """Reads `parts[0]` alone (SamSaffron/term-llm#417)."""

    def _candidate(self, candidate: Object) -> None:
        parts = _parts(candidate)[:1]
        super()._candidate(_with_parts(candidate, parts) if parts else candidate)


@mutant("text-accumulates", api="gemini", family="text")
class TextOfALimitLost(GeminiAccumulator):
    """Looks at the finish reason before the parts, and drops the text that comes with
    MAX_TOKENS, SAFETY or RECITATION (topcheer/ggcode#232)."""

    def _candidate(self, candidate: Object) -> None:
        bad = string(candidate.get("finishReason")) not in ("", "STOP")
        super()._candidate({**candidate, "content": None} if bad else candidate)


@mutant("text-accumulates", api="gemini", family="text")
class TextNextToACallLost(GeminiAccumulator):
    """Ignores text in a chunk that has a call."""

    def _candidate(self, candidate: Object) -> None:
        parts = _parts(candidate)
        calls = [part for part in parts if "functionCall" in part]
        super()._candidate(_with_parts(candidate, calls) if calls else candidate)


@mutant("text-accumulates", api="gemini", family="text")
class TextAfterACallLost(GeminiAccumulator):
    """Ignores the text after a call."""

    def _part(self, part: Object) -> None:
        called = self._answer._opened and not part.get("thought")
        super()._part({**part, "text": None} if called else part)


@mutant("text-accumulates", api="gemini", family="text")
class PartsJoinedByLines(GeminiAccumulator):
    """Joins the text parts of a chunk by line ends (FMXExpress/PasClaw#48)."""

    def _candidate(self, candidate: Object) -> None:
        parts = _parts(candidate)
        joined = [
            {**part, "text": "\n" + part["text"]} if index and part.get("text") else part
            for index, part in enumerate(parts)
        ]
        super()._candidate(_with_parts(candidate, joined) if parts else candidate)


@mutant("text-accumulates", api="gemini", family="text")
class EveryCandidateIsRead(GeminiAccumulator):
    """Joins the texts of all candidates."""

    def _chunk(self, chunk: Object) -> None:
        candidates = [{**mapping(one), "index": 0} for one in sequence(chunk.get("candidates"))]
        super()._chunk({**chunk, "candidates": candidates} if candidates else chunk)


@mutant("text-accumulates", api="gemini", family="reasoning")
class ThoughtsLost(GeminiAccumulator):
    """Ignores parts with `thought`."""

    def _part(self, part: Object) -> None:
        super()._part({**part, "text": None} if part.get("thought") else part)


@mutant("text-accumulates", api="gemini", family="reasoning")
class FirstPartDecidesOnThoughts(GeminiAccumulator):
    """Treats all parts of a chunk as thoughts if the first is one
    (open-telemetry/opentelemetry-ebpf-instrumentation#2530)."""

    def _candidate(self, candidate: Object) -> None:
        parts = _parts(candidate)
        thought = bool(parts and parts[0].get("thought"))
        same = [{**part, "thought": thought} for part in parts]
        super()._candidate(_with_parts(candidate, same) if parts else candidate)


@mutant("text-accumulates", api="gemini", family="text")
class CodeIsText(GeminiAccumulator):
    """Adds code that the service runs, and its output, to the text."""

    def _part(self, part: Object) -> None:
        code = string(mapping(part.get("executableCode")).get("code"))
        output = string(mapping(part.get("codeExecutionResult")).get("output"))
        super()._part({**part, "text": code + output} if code or output else part)


@mutant("text-accumulates", api="gemini", family="text")
class PrefixesDropped(GeminiAccumulator):
    """Drops a fragment that is the beginning of the text so far (cacheplane/threadplane#751)."""

    def _part(self, part: Object) -> None:
        text, known = string(part.get("text")), self.outcome().text
        dropped = not part.get("thought") and text and known.startswith(text)
        super()._part({**part, "text": ""} if dropped else part)
