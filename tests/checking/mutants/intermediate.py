"""All APIs: mistakes that show during a stream, and not in its final outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from examples.accumulators import (
    AGUIAccumulator,
    AnthropicAccumulator,
    ChatAccumulator,
    GeminiAccumulator,
    ResponsesAccumulator,
)
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.declared import WATCHED, mutant


@mutant("delta-is-fragment", api="chat", policy=WATCHED, family="deltas")
class HandsOnTheSum(ChatAccumulator):
    """Reports all text so far as the delta of each chunk."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        return None if delta is None else replace(delta, text=self.outcome().text)


@mutant("delta-is-fragment", api="anthropic", policy=WATCHED, family="deltas")
class HandsOnTheThoughtsSoFar(AnthropicAccumulator):
    """Reports all thinking so far as the delta of each event."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        return delta and replace(delta, reasoning=self.outcome().reasoning)


@mutant("delta-first", api="gemini", policy=WATCHED, family="deltas")
class HandsOnLate(GeminiAccumulator):
    """Reports a fragment one chunk late."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Delta | None = None

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        late, self.last = self.last, super().feed(payload, event)
        return late


@mutant("delta-is-fragment", api="responses", policy=WATCHED, family="deltas")
class HandsOnFinalText(ResponsesAccumulator):
    """Reports the final text once more, after all its deltas."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        done = payload.get("type") == "response.output_text.done"
        return Delta(payload["text"]) if done else delta


@mutant("surface-once", api="chat", policy=WATCHED, family="emission")
class SurfacesTwice(ChatAccumulator):
    """Reports the calls when they are complete, and once more with the usage."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        again = self._answer.complete and delta is None
        return Delta(tool_calls=self.outcome().tool_calls) if again else delta


@mutant("surface-once", api="anthropic", family="emission")
class StoppedAndFinished(AnthropicAccumulator):
    """Collects calls when their block stops, and once more at the end."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = outcome.tool_calls * (2 if self._stopped else 1)
        return replace(outcome, tool_calls=calls)


@mutant("surface-complete", api="anthropic", policy=WATCHED, family="emission")
class SurfacesAtTheStart(AnthropicAccumulator):
    """Reports a call when its block begins, with the `{}` of the start
    (`anth-input-in-start`)."""

    def _start(self, index: int | None, block: Any) -> None:
        super()._start(index, block)
        call = self._blocks[index].call
        if call is not None:
            self._answer.surface(call)


@mutant("text-accumulates", api="chat", policy=WATCHED, family="deltas")
class ForgetsInBetween(ChatAccumulator):
    """Shows the latest fragment as the text until the stream is over."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        parts = self._answer._texts["text"].get((), [])
        return outcome if outcome.finish or not parts else replace(outcome, text=parts[-1])


@mutant("stage-empties", api="agui", policy=WATCHED, family="deltas")
class KeepsTheStage(AGUIAccumulator):
    """Keeps calls in the stage after they have surfaced."""

    def pending(self) -> int:
        return len(self._answer._opened)
