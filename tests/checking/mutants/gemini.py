"""Gemini: mistakes with calls without ids, and chunks without parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators import GeminiAccumulator
from examples.accumulators.values import mapping, sequence
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]


@mutant("surface-once", api="gemini", family="call identity")
class KeyedByName(GeminiAccumulator):
    """Keys calls by the name of their tool, and so keeps the last call of each
    (`gem-same-name-no-id`)."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = {call.name: call for call in outcome.tool_calls}
        return Outcome(**{**_fields(outcome), "tool_calls": tuple(calls.values())})


@mutant("missing-id", api="gemini", family="call ids")
class NameIsTheId(GeminiAccumulator):
    """Uses the name of the tool as the id of the call (`gem-same-name-no-id`)."""

    def _call(self, value: Object) -> None:
        super()._call({**value, "id": value.get("id") or value.get("name")})


@mutant("zero-arguments", api="gemini", family="null and absent")
class ArgsRequired(GeminiAccumulator):
    """Raises where a call has no `args` (`gem-args-absent`)."""

    def _call(self, value: Object) -> None:
        if "partialArgs" not in value and "willContinue" not in value and value.get("name"):
            dict(value["args"])
        super()._call(value)


@mutant("text-accumulates", "opaque-kept", api="gemini", family="text")
class TextOfTheFinishLost(GeminiAccumulator):
    """Ignores text in the chunk with the finish reason (`gem-stop-for-tools`)."""

    def _candidate(self, candidate: Object) -> None:
        calls = [part for part in _parts(candidate) if "text" not in part]
        content = {"parts": calls}
        super()._candidate(
            {**candidate, "content": content} if candidate.get("finishReason") else candidate
        )


# Whether a call is in that chunk also depends on how chunks are joined.
@mutant("surface-once", api="gemini", family="emission")
class CallOfTheFinishLost(GeminiAccumulator):
    """Ignores calls in the chunk with the finish reason (`gem-stop-for-tools`)."""

    def _candidate(self, candidate: Object) -> None:
        texts = [
            part for part in _parts(candidate) if not mapping(part.get("functionCall")).get("args")
        ]
        content = {"parts": texts}
        super()._candidate(
            {**candidate, "content": content} if candidate.get("finishReason") else candidate
        )


@mutant("surface-once", api="gemini", family="finish")
class CallsByFinish(GeminiAccumulator):
    """Drops the calls where the finish reason is STOP, which Gemini also sends for calls
    (`gem-stop-for-tools`)."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = () if outcome.finish == "STOP" else outcome.tool_calls
        return Outcome(**{**_fields(outcome), "tool_calls": calls})


@mutant(
    "arguments-concatenate",
    "id-kept",
    "error-ends",
    "truncated-is-not-complete",
    api="gemini",
    family="argument fragments",
)
class PartialArgsUnknown(GeminiAccumulator):
    """Reports a call for every fragment of one (`gem-partial-args`)."""

    def _call(self, value: Object) -> None:
        super()._call({"name": value.get("name") or "unknown", "args": value.get("args")})


@mutant("malformed-contained", api="gemini", family="malformed arguments")
class ArgsOfAString(GeminiAccumulator):
    """Accepts arguments that are a string (`gem-args-string`)."""

    def _call(self, value: Object) -> None:
        args = value.get("args")
        super()._call({**value, "args": {"value": args}} if isinstance(args, str) else value)


@mutant("null-tolerant", api="gemini", family="null and absent")
class PartsRequired(GeminiAccumulator):
    """Raises where a candidate has no parts (`gem-empty-candidate`)."""

    def _candidate(self, candidate: Object) -> None:
        candidate["content"]["parts"][0]
        super()._candidate(candidate)


@mutant("text-accumulates", api="gemini", family="reasoning")
class ThoughtsAreText(GeminiAccumulator):
    """Adds thoughts to the text."""

    def _part(self, part: Object) -> None:
        super()._part({**part, "thought": False})


@mutant("finish-and-usage", api="gemini", family="usage")
class SumsUsage(GeminiAccumulator):
    """Adds up counts that are already cumulative (`usage-cumulative`)."""

    def _usage(self, usage: Object) -> None:
        before = self.__dict__.get("sum", 0)
        self.__dict__["sum"] = before + usage.get("candidatesTokenCount", 0)
        super()._usage({**usage, "candidatesTokenCount": self.__dict__["sum"]})


@mutant("error-ends", api="gemini", family="errors")
class ErrorIsAnEnd(GeminiAccumulator):
    """Treats an error as the end of the answer."""

    def _chunk(self, chunk: Object) -> None:
        if chunk.get("error"):
            self._answer.complete = True
        else:
            super()._chunk(chunk)


@mutant("truncated-is-not-complete", api="gemini", family="cut streams")
class EndOfInputIsTheEnd(GeminiAccumulator):
    """Treats a stream that stops as complete (`gem-no-finish`)."""

    def close(self) -> None:
        self._answer.complete = True
        super().close()


@mutant("stage-empties", api="gemini", family="shared state")
class SharesCalls(GeminiAccumulator):
    """Keeps one list of calls for all streams, and clears it when the next one begins."""

    _all: list[Any] = []  # noqa: RUF012 - the mistake

    def __init__(self) -> None:
        super().__init__()
        self._all.clear()

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        self._all.extend(sequence(list(delta.tool_calls) if delta else []))
        return delta

    def outcome(self) -> Outcome:
        return Outcome(**{**_fields(super().outcome()), "tool_calls": tuple(self._all)})


def _parts(candidate: Object) -> list[Any]:
    return sequence(mapping(candidate.get("content")).get("parts"))


def _fields(outcome: Outcome) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in Outcome.__dataclass_fields__}
