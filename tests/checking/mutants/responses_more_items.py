"""Responses: more mistakes with items, calls, and final values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import ResponsesAccumulator
from examples.accumulators.answer import Slot, StagedCall, parsed
from examples.accumulators.responses import _Item
from examples.accumulators.values import count, mapping, string
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.altered import (
    AbandonsNothing,
    answer_of,
    closing_brackets,
    rewriting_arguments,
    with_calls,
)
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]

common(
    __name__,
    "responses",
    OneCallForEachName="Keeps calls by the name of their tool (NousResearch/hermes-agent#11863).",
    OneVariableForTheCall="""Keeps the current call in one variable, and reports the last one only
    (vellum-ai/vellum-assistant#25848).""",
    FirstCallOnly="Stops to read calls after the first one.",
    IndexesSortedAsText="Sorts the indexes as text: 10 comes before 2.",
    CallsInTheOrderOfTheirEnds=(
        "Reports calls in the order in which they end (`resp-interleaved`; "
        "huggingface/smolagents#2605\n    sorts them by index)."
    ),
    MalformedArgumentsAreEmpty="Runs a call whose arguments do not parse with `{}`.",
    CutRunsOpenCalls=(
        """Runs the calls that are open when the stream stops, if their arguments parse or are
    empty."""
    ),
)


@mutant("order-by-index", api="responses", family="call identity")
class IndexIsAPosition(ResponsesAccumulator):
    """Uses `output_index` as a position in a list of the items that have begun
    (`resp-output-index`, BerriAI/litellm#36375)."""

    def _arguments(self, stage: str, value: Object) -> None:
        self._items[count(value.get("output_index")) or 0]
        super()._arguments(stage, value)


@mutant("surface-once", api="responses", family="emission")
class ArgumentsDoneRequired(ResponsesAccumulator):
    """Runs calls at `function_call_arguments.done`, and never runs a call without it
    (`resp-args-done-only`, anomalyco/opencode#45081)."""

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


@mutant("surface-once", api="responses", family="emission")
class CallsOfTheFinalResponseOnly(ResponsesAccumulator):
    """Reads calls from `response.completed` alone, whose output may be empty
    (bytedance/deer-flow#1928, NVIDIA-NeMo/Switchyard#777)."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        final = self.__dict__.get("final", set())
        calls = tuple(call for call in outcome.tool_calls if call.id in final)
        return replace(outcome, tool_calls=calls)

    def _fill_from_response(self, output: list[Any]) -> None:
        super()._fill_from_response(output)
        self.final = {mapping(item).get("call_id") for item in output}


@mutant("surface-once", api="responses", family="emission")
class CallForEachItemId(ResponsesAccumulator):
    """Reports one more call where the id of the item has changed at its end
    (`resp-item-id-rotates`, open-webui/open-webui#29630)."""

    def _item_done(self, value: Object) -> None:
        fields = mapping(value.get("item"))
        known = {id for item in self._items for id in item.ids}
        super()._item_done(value)
        new = known and string(fields.get("id")) not in {*known, ""}
        if new and fields.get("type") == "function_call" and self._answer._calls:
            self._answer._calls.append(self._answer._calls[-1])


@mutant("unknown-event", api="responses", family="emission")
class HostedToolsAreCalls(ResponsesAccumulator):
    """Reports calls of tools that the service runs itself, such as `web_search_call`."""

    def _item_done(self, value: Object) -> None:
        item = mapping(value.get("item"))
        type = string(item.get("type"))
        if type.endswith("_call") and type != "function_call":
            name = string(item.get("name")) or type
            call = self._answer.open(0, id=string(item.get("id")), name=name)
            self._answer.surface(call)
        super()._item_done(value)


@mutant("id-kept", api="responses", family="call ids")
class IdOfTheItemIfThereIsOne(ResponsesAccumulator):
    """Prefers the id of the item in `output_item.done` (openai/openai-dotnet#418)."""

    def _identify(self, item: _Item, fields: Object) -> None:
        if item.call is not None and fields.get("id") and fields.get("status") == "completed":
            item.call.id = string(fields["id"])
        super()._identify(item, fields)


@mutant("id-kept", api="responses", family="call ids")
class BothIdsJoined(ResponsesAccumulator):
    """Joins `call_id` and the id of the item by `|`, and forgets to split them."""

    def outcome(self) -> Outcome:
        items = {item.call.id: item.ids for item in self._items if item.call}
        return with_calls(
            super().outcome(),
            lambda call: replace(
                call, id="|".join([call.id or "", *sorted(items.get(call.id or "", ()))])
            ),
        )


# Arguments


@mutant("arguments-concatenate", api="responses", family="argument fragments")
class TrimsFragments(ResponsesAccumulator):
    """Strips white space from each fragment, and trusts the fragments more than the end."""

    def _arguments(self, stage: str, value: Object) -> None:
        delta = string(value.get("delta")).strip()
        super()._arguments(stage, {**value, "delta": delta, "arguments": None})

    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.arguments:
            super()._final_arguments(call, whole)


@mutant("final-replaces", api="responses", family="final values")
class DeltasBeforeFinalArguments(ResponsesAccumulator):
    """Ignores final arguments if there were deltas (`resp-delta-after-done`)."""

    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.arguments:
            super()._final_arguments(call, whole)


@mutant("final-replaces", api="responses", family="final values")
class DifferenceRaises(ResponsesAccumulator):
    """Raises if the final arguments are not the joined deltas (MoonshotAI/kimi-code#1455)."""

    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.closed and call.arguments and whole and whole != call.arguments:
            raise ValueError("the final arguments do not match the deltas")
        super()._final_arguments(call, whole)


@mutant("final-replaces", api="responses", family="final values")
class EmptyFinalArgumentsReplace(ResponsesAccumulator):
    """Replaces arguments by a final value that is empty (`resp-zero-arg`)."""

    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        if not call.closed and isinstance(whole, str):
            call.arguments = whole


@mutant("final-replaces", api="responses", family="final values")
class EmptyFinalTextReplaces(ResponsesAccumulator):
    """Replaces text by a final value that is empty or missing."""

    def _take_final(self, item: _Item, slot: Slot, kind: Any, whole: object) -> None:
        if isinstance(whole, str) and not whole:
            self._answer._texts[kind].pop(slot, None)
        super()._take_final(item, slot, kind, whole)


@mutant("final-replaces", api="responses", family="final values")
class TextOfEveryDone(ResponsesAccumulator):
    """Appends the text of each `done` event where no delta came: of the text, of its part, and
    of its item."""

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


@mutant("surface-complete", api="responses", family="emission")
class IncompleteItemsRun(ResponsesAccumulator):
    """Runs a call that the token limit cut off, with the brackets that it lacks
    (14790897/MiqroForge-Desktop#1100)."""

    def _end(self, status: str, response: Object) -> None:
        for item in self._items:
            if status == "incomplete" and item.call is not None and not item.call.closed:
                item.call.arguments = closing_brackets(item.call.arguments) or "{}"
                if parsed(item.call.arguments) is not None:
                    self._surface(item)
        super()._end(status, response)


@mutant("malformed-contained", api="responses", family="malformed arguments")
class FirstObjectOnly(ResponsesAccumulator):
    """Reads the first object of repeated arguments, and ignores what follows it
    (open-webui/open-webui#22235 shows such arguments)."""

    def __init__(self) -> None:
        super().__init__()
        answer_of(self, rewriting_arguments(_first_object))


def _first_object(text: str) -> str:
    try:
        return json.dumps(json.JSONDecoder().raw_decode(text)[0])
    except (ValueError, RecursionError):
        return text


@mutant("zero-arguments", api="responses", family="zero arguments")
class CallsWithoutArgumentsDropped(ResponsesAccumulator):
    """Drops calls whose arguments are empty, as if they had not ended."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = tuple(call for call in outcome.tool_calls if call.arguments)
        return replace(outcome, tool_calls=calls)


@mutant("error-ends", api="responses", family="errors")
class ErrorRunsOpenCalls(ResponsesAccumulator):
    """Runs the calls that are open when an error comes, if their arguments parse."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type", "error") in ("error", "response.failed"):
            answer_of(self, AbandonsNothing)
        return super().feed(payload, event)
