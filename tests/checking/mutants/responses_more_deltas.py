"""Responses: more mistakes in what is passed on during the stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from examples.accumulators import ResponsesAccumulator
from examples.accumulators.values import mapping, sequence, string
from mockllm.checking.probes import Delta, Fragment
from tests.checking.mutants.declared import WATCHED, mutant


@mutant("delta-is-fragment", api="responses", policy=WATCHED, family="deltas")
class HandsOnArgumentsSoFar(ResponsesAccumulator):
    """Passes on all arguments so far for each fragment (elizaOS/eliza#16973)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if payload.get("type") != "response.function_call_arguments.delta":
            return delta
        call = self._item("function_call", payload).call
        if call is None:
            return delta
        fragment = Fragment(call.arguments, call.id, call.name, call.number)
        return replace(delta or Delta(), tool=(fragment,))


@mutant("delta-is-fragment", api="responses", policy=WATCHED, family="deltas")
class HandsOnFinalArguments(ResponsesAccumulator):
    """Passes on the fragments, and then the final arguments as one more fragment
    (Soju06/codex-lb#284, lidge-jun/opencodex#361)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        type = string(payload.get("type"))
        if not type.startswith("response.function_call_arguments."):
            return delta
        call = self._item("function_call", payload).call
        text = string(payload.get("delta")) or string(payload.get("arguments"))
        if call is None or not text:
            return delta
        return replace(delta or Delta(), tool=(Fragment(text, call.id, call.name, call.number),))


@mutant("delta-is-fragment", api="responses", policy=WATCHED, family="deltas")
class HandsOnFinalReasoning(ResponsesAccumulator):
    """Passes on the reasoning once more when its item ends."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        item = mapping(payload.get("item"))
        ended = payload.get("type") == "response.output_item.done"
        if not ended or item.get("type") != "reasoning":
            return delta
        parts = [mapping(part).get("text") for part in sequence(item.get("summary"))]
        return Delta(reasoning="".join(map(string, parts)))


@mutant("surface-once", api="responses", policy=WATCHED, family="deltas")
class HandsOnCallsTwice(ResponsesAccumulator):
    """Passes on a call when its arguments end, and again when its item ends
    (microsoft/agent-framework#7486)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        item = mapping(payload.get("item"))
        if payload.get("type") != "response.output_item.done" or delta is not None:
            return delta
        calls = [call for call in self.outcome().tool_calls if call.id == item.get("call_id")]
        return Delta(tool_calls=tuple(calls)) if calls else None
