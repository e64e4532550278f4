"""Mistakes with items, their fragments and final values in Responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import (
    ResponsesAccumulator,
)
from examples.accumulators.answer import Slot, StagedCall, parsed
from examples.accumulators.responses import _Item
from examples.accumulators.values import count, mapping, string
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.altered import (
    AbandonsNothing,
    answer_of,
    closing_brackets,
    rewriting_arguments,
    with_calls,
    with_leaves,
    with_strings,
)

Object = Mapping[str, Any]


class ItemIdForCallId(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        ids = {item.call.id: min(item.ids) for item in self._items if item.call and item.ids}
        calls = tuple(replace(call, id=ids.get(call.id or "")) for call in outcome.tool_calls)
        return replace(outcome, tool_calls=calls)


class KeyedByItemId(ResponsesAccumulator):
    def _arguments(self, stage: str, value: Object) -> None:
        known = {id for item in self._items for id in item.ids}
        if known and value.get("item_id") and value["item_id"] not in known:
            raise ValueError(f"no item {value['item_id']!r} has begun")
        super()._arguments(stage, value)


class AppendsFinalText(ResponsesAccumulator):
    def _take_final(self, item: _Item, slot: Slot, kind: Any, whole: object) -> None:
        self._answer.add(kind, str(whole or ""), slot)


class AppendsFinalArguments(ResponsesAccumulator):
    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.closed:
            call.arguments += whole if isinstance(whole, str) else ""


class DeltasOnly(ResponsesAccumulator):
    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        pass


class AppendsToGivenArguments(ResponsesAccumulator):
    def _added(self, value: Object) -> None:
        super()._added(value)
        call = self._items[-1].call
        if call is not None:
            call.arguments = self._items[-1].initial_arguments

    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.arguments:
            super()._final_arguments(call, whole)


class DeltasAfterDone(ResponsesAccumulator):
    def _text_event(self, name: str, stage: str, value: Object) -> None:
        for item in self._items if stage == "delta" else ():
            item.final.clear()
        super()._text_event(name, stage, value)

    def _final_part(self, item: _Item, slot: Slot, part: Object) -> None:
        pass


class GoesOnAfterTheEnd(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if self._answer.complete and str(payload.get("type")).endswith("text.delta"):
            self._answer.add("text", payload["delta"], (0,))
        return super().feed(payload, event)


class FinalOutputOnly(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        ends = ("completed", "incomplete", "failed", "error")
        ending = payload.get("type", "error").endswith(ends)
        return super().feed(payload, event) if ending else None


class ReasoningByItemId(ResponsesAccumulator):
    def _text_event(self, name: str, stage: str, value: Object) -> None:
        if name.startswith("reasoning"):
            first = self.__dict__.setdefault("first", value.get("item_id"))
            if value.get("item_id") != first or stage == "done":
                return
        super()._text_event(name, stage, value)

    def _final_part(self, item: _Item, slot: Slot, part: Object) -> None:
        if item.type != "reasoning":
            super()._final_part(item, slot, part)


class LastItemGetsAll(ResponsesAccumulator):
    def _arguments(self, stage: str, value: Object) -> None:
        if self._items:
            value = {**value, "output_index": self._items[-1].index, "item_id": None}
        super()._arguments(stage, value)

    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.arguments:
            super()._final_arguments(call, whole)


class ItemsByArrival(ResponsesAccumulator):
    def _open(self, type: str, index: int) -> _Item:
        item = super()._open(type, index)
        if item.call is not None:
            item.call.position = (0, item.call.number)
        return item


class DoneMakesACall(ResponsesAccumulator):
    def _item_done(self, value: Object) -> None:
        super()._item_done(value)
        item = mapping(value.get("item"))
        calls = self.__dict__.setdefault("calls", [])
        if item.get("type") == "function_call" and item.get("call_id") in calls:
            self._answer._calls.append(self._answer._calls[-1])
        calls.append(item.get("call_id"))


class ParsesEmptyArguments(ResponsesAccumulator):
    def _surface(self, item: _Item) -> None:
        if item.call is not None and not item.call.closed:
            item.initial_arguments = item.initial_arguments or item.call.arguments or json.loads("")
        super()._surface(item)


class SequenceNumberRequired(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if str(payload.get("type")).startswith("response.") and not self._answer.complete:
            payload["sequence_number"]
        return super().feed(payload, event)


class ItemIdRequired(ResponsesAccumulator):
    def _added(self, value: Object) -> None:
        if value["item"]["id"] is None:
            raise TypeError("the id of an item is None")
        super()._added(value)


class UnknownEventRaises(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if not str(payload.get("type", "error")).startswith(("response.", "error")):
            raise ValueError(f"unknown event {payload['type']!r}")
        return super().feed(payload, event)


class UnknownItemRaises(ResponsesAccumulator):
    def _added(self, value: Object) -> None:
        if value["item"]["type"] not in ("message", "reasoning", "function_call"):
            raise KeyError(value["item"]["type"])
        super()._added(value)


class FlatErrorOnly(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "error" and "message" not in payload:
            self._answer.complete = True
        return super().feed(payload, event)


class FailedIsAnEnd(ResponsesAccumulator):
    def _end(self, status: str, response: Object) -> None:
        super()._end("completed" if status == "failed" else status, {**response, "error": None})


class IncompleteIsAnError(ResponsesAccumulator):
    def _end(self, status: str, response: Object) -> None:
        super()._end("failed" if status == "incomplete" else status, response)


class IncompleteIsCompleted(ResponsesAccumulator):
    def _end(self, status: str, response: Object) -> None:
        super()._end("completed", {**response, "incomplete_details": None})


class EndOfInputIsTheEnd(ResponsesAccumulator):
    def close(self) -> None:
        self._answer.complete = True
        super().close()


class IndexIsAPosition(ResponsesAccumulator):
    def _arguments(self, stage: str, value: Object) -> None:
        self._items[count(value.get("output_index")) or 0]
        super()._arguments(stage, value)


class ArgumentsDoneRequired(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        ended = self.__dict__.get("ended", set())
        outcome = super().outcome()
        calls = tuple(call for call in outcome.tool_calls if call.id in ended)
        return replace(outcome, tool_calls=calls)

    def _arguments(self, stage: str, value: Object) -> None:
        super()._arguments(stage, value)
        call = self._item("function_call", value).call
        if stage == "done" and call is not None:
            self.__dict__.setdefault("ended", set()).add(call.id)


class CallsOfTheFinalResponseOnly(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        final = self.__dict__.get("final", set())
        calls = tuple(call for call in outcome.tool_calls if call.id in final)
        return replace(outcome, tool_calls=calls)

    def _fill_from_response(self, output: list[Any]) -> None:
        super()._fill_from_response(output)
        self.final = {mapping(item).get("call_id") for item in output}


class CallForEachItemId(ResponsesAccumulator):
    def _item_done(self, value: Object) -> None:
        fields = mapping(value.get("item"))
        known = {id for item in self._items for id in item.ids}
        super()._item_done(value)
        new = known and string(fields.get("id")) not in {*known, ""}
        if new and fields.get("type") == "function_call" and self._answer._calls:
            self._answer._calls.append(self._answer._calls[-1])


class HostedToolsAreCalls(ResponsesAccumulator):
    def _item_done(self, value: Object) -> None:
        item = mapping(value.get("item"))
        type = string(item.get("type"))
        if type.endswith("_call") and type != "function_call":
            name = string(item.get("name")) or type
            call = self._answer.open(0, id=string(item.get("id")), name=name)
            self._answer.surface(call)
        super()._item_done(value)


class IdOfTheItemIfThereIsOne(ResponsesAccumulator):
    def _identify(self, item: _Item, fields: Object) -> None:
        if item.call is not None and fields.get("id") and fields.get("status") == "completed":
            item.call.id = string(fields["id"])
        super()._identify(item, fields)


class BothIdsJoined(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        items = {item.call.id: item.ids for item in self._items if item.call}
        return with_calls(
            super().outcome(),
            lambda call: replace(
                call, id="|".join([call.id or "", *sorted(items.get(call.id or "", ()))])
            ),
        )


# Arguments


class TrimsFragments(ResponsesAccumulator):
    def _arguments(self, stage: str, value: Object) -> None:
        delta = string(value.get("delta")).strip()
        super()._arguments(stage, {**value, "delta": delta, "arguments": None})

    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.arguments:
            super()._final_arguments(call, whole)


class DeltasBeforeFinalArguments(ResponsesAccumulator):
    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.arguments:
            super()._final_arguments(call, whole)


class DifferenceRaises(ResponsesAccumulator):
    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.closed and call.arguments and whole and whole != call.arguments:
            raise ValueError("the final arguments do not match the deltas")
        super()._final_arguments(call, whole)


class EmptyFinalArgumentsReplace(ResponsesAccumulator):
    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.closed and isinstance(whole, str):
            call.arguments = whole


class EmptyFinalTextReplaces(ResponsesAccumulator):
    def _take_final(self, item: _Item, slot: Slot, kind: Any, whole: object) -> None:
        if isinstance(whole, str) and not whole:
            self._answer._texts[kind].pop(slot, None)
        super()._take_final(item, slot, kind, whole)


class TextOfEveryDone(ResponsesAccumulator):
    def _take_final(self, item: _Item, slot: Slot, kind: Any, whole: object) -> None:
        streamed = self.__dict__.setdefault("streamed", set())
        if slot in streamed:
            super()._take_final(item, slot, kind, whole)
        else:
            self._answer.add(kind, string(whole), slot)

    def _text_event(self, name: str, stage: str, value: Object) -> None:
        before = {slot for slots in self._answer._texts.values() for slot in slots}
        super()._text_event(name, stage, value)
        if stage == "delta":
            after = {slot for slots in self._answer._texts.values() for slot in slots}
            self.__dict__.setdefault("streamed", set()).update(after - before)


class IncompleteItemsRun(ResponsesAccumulator):
    def _end(self, status: str, response: Object) -> None:
        for item in self._items:
            if status == "incomplete" and item.call is not None and not item.call.closed:
                item.call.arguments = closing_brackets(item.call.arguments) or "{}"
                if parsed(item.call.arguments) is not None:
                    self._surface(item)
        super()._end(status, response)


class FirstObjectOnly(ResponsesAccumulator):
    def __init__(self) -> None:
        super().__init__()
        answer_of(self, rewriting_arguments(_first_object))


def _first_object(text: str) -> str:
    try:
        return json.dumps(json.JSONDecoder().raw_decode(text)[0])
    except (ValueError, RecursionError):
        return text


class CallsWithoutArgumentsDropped(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = tuple(call for call in outcome.tool_calls if call.arguments)
        return replace(outcome, tool_calls=calls)


class ErrorRunsOpenCalls(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type", "error") in ("error", "response.failed"):
            answer_of(self, AbandonsNothing)
        return super().feed(payload, event)


class LiteralsOfPythonReplaced(ResponsesAccumulator):
    def __init__(self) -> None:
        super().__init__()
        answer_of(self, rewriting_arguments(_without_python))


def _without_python(text: str) -> str:
    return text.replace("True", "true").replace("False", "false").replace("None", "null")


class FractionsCutOff(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        return with_leaves(
            super().outcome(), lambda leaf: int(leaf) if isinstance(leaf, float) else leaf
        )


class OnlyAsciiKept(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        return with_strings(
            super().outcome(), lambda text: text.encode("ascii", "replace").decode()
        )


class RawIsDoubled(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        texts = {call.id: call.arguments for call in self._answer._opened}

        def changed(call: Call) -> Call:
            return replace(call, raw_arguments=2 * texts.get(call.id or "", ""))

        return with_calls(super().outcome(), changed)


# Text, reasoning and refusal


class FirstPartOnly(ResponsesAccumulator):
    def _text_event(self, name: str, stage: str, value: Object) -> None:
        if not value.get("content_index"):
            super()._text_event(name, stage, value)

    def _final_part(self, item: _Item, slot: Any, part: Object) -> None:
        if not (item.type == "message" and slot[-1]):
            super()._final_part(item, slot, part)


class PartsOverwritten(ResponsesAccumulator):
    def _text_event(self, name: str, stage: str, value: Object) -> None:
        if name == "output_text":
            value = {**value, "content_index": 0}
        super()._text_event(name, stage, value)

    def _final_part(self, item: _Item, slot: Any, part: Object) -> None:
        super()._final_part(item, (*slot[:-1], 0) if item.type == "message" else slot, part)


class FirstMessageOnly(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        slots = self._answer._texts["text"]
        first = [slot for slot in sorted(slots) if slot[:2] == min(slots)[:2]]
        text = "".join(fragment for slot in first for fragment in slots[slot])
        return replace(outcome, text=text)


class RefusalLost(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), refusal="")


class FirstSummaryOnly(ResponsesAccumulator):
    def _text_event(self, name: str, stage: str, value: Object) -> None:
        if not value.get("summary_index"):
            super()._text_event(name, stage, value)

    def _final_part(self, item: _Item, slot: Any, part: Object) -> None:
        if not (part.get("type") == "summary_text" and slot[-1]):
            super()._final_part(item, slot, part)


class LastSummaryOnly(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        slots = self._answer._texts["reasoning"]
        return replace(super().outcome(), reasoning="".join(slots[max(slots)]) if slots else "")


class SummariesOnly(ResponsesAccumulator):
    def _text_event(self, name: str, stage: str, value: Object) -> None:
        if name != "reasoning_text":
            super()._text_event(name, stage, value)

    def _final_part(self, item: _Item, slot: Any, part: Object) -> None:
        if part.get("type") != "reasoning_text":
            super()._final_part(item, slot, part)


class MessagesByArrival(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        slots = self._answer._texts["text"]
        ordered = sorted(slots, key=lambda slot: (slot[1], slot))
        text = "".join(fragment for slot in ordered for fragment in slots[slot])
        return replace(super().outcome(), text=text)


class HandsOnFinalText(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        done = payload.get("type") == "response.output_text.done"
        return Delta(payload["text"]) if done else delta


class CustomCallsBreak(ResponsesAccumulator):
    def _added(self, value: Object) -> None:
        if value["item"]["type"] == "custom_tool_call":
            value["item"]["arguments"]
        super()._added(value)


class CustomInputIsText(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "response.custom_tool_call_input.delta":
            self._answer.add("text", payload["delta"], (payload["output_index"],))
        return super().feed(payload, event)
