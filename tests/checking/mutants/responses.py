"""Responses: mistakes with items, final values and ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import ResponsesAccumulator
from examples.accumulators.answer import Slot, StagedCall
from examples.accumulators.responses import _Item
from examples.accumulators.values import mapping
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]


@mutant("id-kept", api="responses", family="call ids")
class ItemIdForCallId(ResponsesAccumulator):
    """Uses the id of the item as the id of the call; the service refuses results with it."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        ids = {item.call.id: min(item.ids) for item in self._items if item.call and item.ids}
        calls = tuple(replace(call, id=ids.get(call.id or "")) for call in outcome.tool_calls)
        return replace(outcome, tool_calls=calls)


@mutant("id-kept", api="responses", family="call identity")
class KeyedByItemId(ResponsesAccumulator):
    """Keys calls by the id of their item (`resp-item-id-rotates`)."""

    def _arguments(self, stage: str, value: Object) -> None:
        known = {id for item in self._items for id in item.ids}
        if known and value.get("item_id") and value["item_id"] not in known:
            raise ValueError(f"no item {value['item_id']!r} has begun")
        super()._arguments(stage, value)


@mutant("final-replaces", api="responses", family="final values")
class AppendsFinalText(ResponsesAccumulator):
    """Appends every final text to its deltas."""

    def _take_final(self, item: _Item, slot: Slot, kind: Any, whole: object) -> None:
        self._answer.add(kind, str(whole or ""), slot)


@mutant("final-replaces", api="responses", family="final values")
class AppendsFinalArguments(ResponsesAccumulator):
    """Appends the final arguments to their deltas."""

    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.closed:
            call.arguments += whole if isinstance(whole, str) else ""


@mutant("final-replaces", api="responses", family="final values")
class DeltasOnly(ResponsesAccumulator):
    """Reads the deltas of arguments alone (`resp-args-done-only`)."""

    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        pass


@mutant("final-replaces", api="responses", family="final values")
class AppendsToGivenArguments(ResponsesAccumulator):
    """Appends deltas to the arguments of `output_item.added` (`resp-args-in-added`)."""

    def _added(self, value: Object) -> None:
        super()._added(value)
        call = self._items[-1].call
        if call is not None:
            call.arguments = self._items[-1].initial_arguments

    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.arguments:
            super()._final_arguments(call, whole)


@mutant("final-replaces", api="responses", family="final values")
class DeltasAfterDone(ResponsesAccumulator):
    """Appends deltas after the final text (`resp-delta-after-done`)."""

    def _text_event(self, name: str, stage: str, value: Object) -> None:
        for item in self._items if stage == "delta" else ():
            item.final.clear()
        super()._text_event(name, stage, value)

    def _final_part(self, item: _Item, slot: Slot, part: Object) -> None:
        pass


@mutant("final-replaces", api="responses", family="final values")
class GoesOnAfterTheEnd(ResponsesAccumulator):
    """Appends deltas after the terminal event (`resp-after-completed`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if self._answer.complete and str(payload.get("type")).endswith("text.delta"):
            self._answer.add("text", payload["delta"], (0,))
        return super().feed(payload, event)


@mutant("text-accumulates", "opaque-kept", api="responses", family="final values")
class FinalOutputOnly(ResponsesAccumulator):
    """Reads the answer of `response.completed` alone, whose output may be empty
    (`resp-completed-output-empty`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        ends = ("completed", "incomplete", "failed", "error")
        ending = payload.get("type", "error").endswith(ends)
        return super().feed(payload, event) if ending else None


@mutant("text-accumulates", api="responses", family="reasoning")
class ReasoningByItemId(ResponsesAccumulator):
    """Keeps only the reasoning of the first item id (`resp-reasoning-ids`)."""

    def _text_event(self, name: str, stage: str, value: Object) -> None:
        if name.startswith("reasoning"):
            first = self.__dict__.setdefault("first", value.get("item_id"))
            if value.get("item_id") != first or stage == "done":
                return
        super()._text_event(name, stage, value)

    def _final_part(self, item: _Item, slot: Slot, part: Object) -> None:
        if item.type != "reasoning":
            super()._final_part(item, slot, part)


@mutant("arguments-concatenate", api="responses", family="call identity")
class LastItemGetsAll(ResponsesAccumulator):
    """Appends every fragment to the item that began last (`resp-interleaved`)."""

    def _arguments(self, stage: str, value: Object) -> None:
        if self._items:
            value = {**value, "output_index": self._items[-1].index, "item_id": None}
        super()._arguments(stage, value)

    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.arguments:
            super()._final_arguments(call, whole)


@mutant("order-by-index", api="responses", family="call order")
class ItemsByArrival(ResponsesAccumulator):
    """Reports calls in the order in which they began (`resp-output-index`)."""

    def _open(self, type: str, index: int) -> _Item:
        item = super()._open(type, index)
        if item.call is not None:
            item.call.position = (0, item.call.number)
        return item


@mutant("surface-once", "missing-id", api="responses", family="emission")
class DoneMakesACall(ResponsesAccumulator):
    """Reports a call for every `output_item.done`, also a repeated one (`resp-dup-done`)."""

    def _item_done(self, value: Object) -> None:
        super()._item_done(value)
        item = mapping(value.get("item"))
        calls = self.__dict__.setdefault("calls", [])
        if item.get("type") == "function_call" and item.get("call_id") in calls:
            self._answer._calls.append(self._answer._calls[-1])
        calls.append(item.get("call_id"))


@mutant("zero-arguments", api="responses", family="zero arguments")
class ParsesEmptyArguments(ResponsesAccumulator):
    """Parses arguments that are empty text (`resp-zero-arg`)."""

    def _surface(self, item: _Item) -> None:
        if item.call is not None and not item.call.closed:
            item.initial_arguments = item.initial_arguments or item.call.arguments or json.loads("")
        super()._surface(item)


@mutant("null-tolerant", api="responses", family="null and absent")
class SequenceNumberRequired(ResponsesAccumulator):
    """Raises where an event has no sequence number (`resp-required-missing`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if str(payload.get("type")).startswith("response.") and not self._answer.complete:
            payload["sequence_number"]
        return super().feed(payload, event)


@mutant("null-tolerant", api="responses", family="null and absent")
class ItemIdRequired(ResponsesAccumulator):
    """Raises where the id of an item is null (`resp-item-id-null`)."""

    def _added(self, value: Object) -> None:
        if value["item"]["id"] is None:
            raise TypeError("the id of an item is None")
        super()._added(value)


@mutant("unknown-event", api="responses", family="unknown events")
class UnknownEventRaises(ResponsesAccumulator):
    """Raises on unknown events (`resp-keepalive`, `resp-unknown-event`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if not str(payload.get("type", "error")).startswith(("response.", "error")):
            raise ValueError(f"unknown event {payload['type']!r}")
        return super().feed(payload, event)


@mutant("unknown-event", api="responses", family="unknown events")
class UnknownItemRaises(ResponsesAccumulator):
    """Raises on unknown items (`resp-unknown-event`)."""

    def _added(self, value: Object) -> None:
        if value["item"]["type"] not in ("message", "reasoning", "function_call"):
            raise KeyError(value["item"]["type"])
        super()._added(value)


@mutant("error-ends", api="responses", family="errors")
class FlatErrorOnly(ResponsesAccumulator):
    """Reads the documented shape of an error, and treats any other as the end of the answer
    (`resp-error-shape`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "error" and "message" not in payload:
            self._answer.complete = True
        return super().feed(payload, event)


@mutant("error-ends", api="responses", family="errors")
class FailedIsAnEnd(ResponsesAccumulator):
    """Treats `response.failed` as a successful end (`resp-error-shape`)."""

    def _end(self, status: str, response: Object) -> None:
        super()._end("completed" if status == "failed" else status, {**response, "error": None})


@mutant("finish-and-usage", api="responses", family="finish")
class IncompleteIsAnError(ResponsesAccumulator):
    """Treats an answer at its token limit as failed (`resp-incomplete`)."""

    def _end(self, status: str, response: Object) -> None:
        super()._end("failed" if status == "incomplete" else status, response)


@mutant("finish-and-usage", "error-ends", api="responses", family="finish")
class IncompleteIsCompleted(ResponsesAccumulator):
    """Reports every end as `completed` (`resp-incomplete`)."""

    def _end(self, status: str, response: Object) -> None:
        super()._end("completed", {**response, "incomplete_details": None})


@mutant("truncated-is-not-complete", api="responses", family="cut streams")
class EndOfInputIsTheEnd(ResponsesAccumulator):
    """Treats a stream that stops as complete (`resp-no-terminal`)."""

    def close(self) -> None:
        self._answer.complete = True
        super().close()
