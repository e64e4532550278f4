"""How to put together a stream of the OpenAI Responses API.

https://platform.openai.com/docs/api-reference/responses-streaming

An answer is a list of output items, each with the events `added`, deltas and `done`. A `done`
repeats everything that the deltas have sent. A name in backquotes is the quirk that a rule is there
for; `mockllm list quirks NAME` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

from examples.accumulators.answer import Slot, StagedCall, TextKind, parsed
from examples.accumulators.base import Accumulator, Options
from examples.accumulators.values import (
    count,
    error_message,
    json_text,
    mapping,
    sequence,
    string,
)
from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta

__all__ = ["ResponsesAccumulator"]

_TEXT_EVENTS: dict[str, tuple[str, TextKind, str]] = {
    "output_text": ("message", "text", "content"),
    "refusal": ("message", "refusal", "content"),
    "reasoning_summary_text": ("reasoning", "reasoning", "summary"),
    "reasoning_text": ("reasoning", "reasoning", "content"),
}
"""By the middle of an event's name: the type of its item, the kind of text, and the list of the
item that has it."""

_TEXT_PARTS: dict[str, tuple[TextKind, str]] = {
    "output_text": ("text", "text"),
    "refusal": ("refusal", "refusal"),
    "summary_text": ("reasoning", "text"),
    "reasoning_text": ("reasoning", "text"),
}
"""By the type of a part: the kind of text, and the field that has it."""

_CALL = "function_call"


@dataclass(slots=True, eq=False)
class _Item:
    """An output item that has begun.

    Args:
        index: its `output_index`: a key, not a position in a list.
        number: how many items began before it.
        ids: all ids that it has had.
        call: the staged call, if the item is a call.
        initial_arguments: the arguments in its `added` event.
        final: the slots whose text is final.
    """

    type: str
    index: int
    number: int
    ids: set[str] = field(default_factory=set)
    call: StagedCall | None = None
    initial_arguments: str = ""
    final: set[Slot] = field(default_factory=set)

    def slot(self, where: str, index: object) -> Slot:
        """The slot of the part at an index of `summary` or `content`; summaries come first."""
        return self.index, self.number, int(where == "content"), count(index) or 0


class ResponsesAccumulator(Accumulator):
    """Puts the events of one stream together (a `Probe`).

    Without a terminal event the stream was cut (`resp-no-terminal`). A call may never get a
    `call_id` (`resp-call-id-missing`): the `id` of its item is no substitute, since results refer
    to the `call_id`.
    """

    end = "response.completed, .incomplete or .failed"

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self._items: list[_Item] = []

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one event adds: text, reasoning, and the call that surfaces."""
        value = mapping(payload)
        # Sequence numbers, log probabilities and the event line are not needed
        # (`resp-required-missing`). A bare error has no type.
        type = string(value.get("type")) or ("error" if value.get("error") else event or "")
        response = mapping(value.get("response"))
        self._answer.identify(string(response.get("id")), string(response.get("model")))
        if self._answer.failed and type == "response.failed":
            # It follows an `error` event, repeats the error, and adds the usage.
            self._usage(response)
        if self._answer.failed or self._answer.complete:
            return None  # `resp-after-completed`
        match type.split("."):
            case ["response", "output_item", "added"]:
                self._added(value)
            case ["response", "output_item", "done"]:
                self._item_done(value)
            case ["response", "function_call_arguments", stage]:
                self._arguments(stage, value)
            case ["response", "content_part" | "reasoning_summary_part", "done"]:
                self._part_done(value)
            case ["response", ("completed" | "incomplete" | "failed") as status]:
                self._end(status, response)
            case ["response", name, "delta" | "done" as stage] if name in _TEXT_EVENTS:
                self._text_event(name, stage, value)
            case ["error"]:
                # Nested below `error` as the service sends it, or flat as its reference says
                # (`resp-error-shape`).
                self._answer.fail(error_message(value.get("error") or payload))
            case _:
                pass  # `resp-keepalive`, `resp-unknown-event`, `resp-legacy-names`
        return self._answer.delta()

    # Items

    def _item(self, type: str, value: Mapping[str, Any]) -> _Item:
        """The item of an event; a new one if there was no `added` (`resp-missing-openers`).

        The key is `output_index`: the id of an item may be another one in each event
        (`resp-item-id-rotates`, `resp-reasoning-ids`) or null (`resp-item-id-null`). If several
        items share an index, a known id decides, else the last item of the type
        (`resp-output-index`).
        """
        index = count(value.get("output_index")) or 0
        candidates = [item for item in self._items if item.index == index and item.type == type]
        id = string(value.get("item_id"))
        for item in candidates:
            if id in item.ids:
                return item
        return candidates[-1] if candidates else self._open(type, index)

    def _open(self, type: str, index: int) -> _Item:
        item = _Item(type, index, len(self._items))
        if type == _CALL:
            item.call = self._answer.open(index, key=index)
        self._items.append(item)
        return item

    def _added(self, value: Mapping[str, Any]) -> None:
        fields = mapping(value.get("item"))
        item = self._open(string(fields.get("type")), count(value.get("output_index")) or 0)
        self._identify(item, fields)
        # Used only if neither deltas nor a final value follow (`resp-args-in-added`).
        item.initial_arguments = _arguments_text(fields.get("arguments"))

    def _identify(self, item: _Item, fields: Mapping[str, Any]) -> None:
        """Takes the ids and the name from the fields of an item; the first ones stay."""
        item.ids |= {string(fields.get("id"))} - {""}
        if item.call is not None and not item.call.closed:
            item.call.id = item.call.id or string(fields.get("call_id"))
            item.call.name = item.call.name or string(fields.get("name"))

    def _item_done(self, value: Mapping[str, Any]) -> None:
        fields = mapping(value.get("item"))
        type = string(fields.get("type"))
        if type == _CALL:
            item = self._call_item(value.get("output_index"), fields)
        else:
            item = self._item(type, {**value, "item_id": fields.get("id")})
        self._identify(item, fields)
        for where in ("summary", "content"):
            for index, part in enumerate(map(mapping, sequence(fields.get(where)))):
                self._final_part(item, item.slot(where, index), part)
        self._answer.keep(string(fields.get("encrypted_content")))
        if item.call is not None:
            self._final_arguments(item.call, fields.get("arguments"))
            if fields.get("status") != "incomplete":
                self._surface(item)

    def _call_item(self, output_index: object, fields: Mapping[str, Any]) -> _Item:
        """The item of a call that is sent as a whole; a new one if it is not known.

        The `call_id` identifies it, whatever else changes; else it is the latest call at this
        index that can have the id.
        """
        index, id = count(output_index) or 0, string(fields.get("call_id"))
        calls = [item for item in self._items if item.call is not None]
        same_index = [item for item in calls if item.index == index]
        for item in [*same_index, *calls]:
            if item.call is not None and id and item.call.id == id:
                return item
        for item in reversed(same_index):
            if item.call is not None and not (id and item.call.id):
                return item
        return self._open(_CALL, index)

    # Text, reasoning and refusal

    def _text_event(self, name: str, stage: str, value: Mapping[str, Any]) -> None:
        type, kind, where = _TEXT_EVENTS[name]
        item = self._item(type, value)
        slot = item.slot(where, value.get(f"{where}_index"))
        if stage == "done":
            self._take_final(
                item, slot, kind, value.get("refusal" if kind == "refusal" else "text")
            )
        elif slot not in item.final:  # an empty delta adds nothing (`resp-empty-delta`)
            self._answer.add(kind, string(value.get("delta")), slot)

    def _part_done(self, value: Mapping[str, Any]) -> None:
        part = mapping(value.get("part"))
        kind = _TEXT_PARTS.get(string(part.get("type")))
        if kind is not None:
            item = self._item("reasoning" if kind[0] == "reasoning" else "message", value)
            where = "summary" if part.get("type") == "summary_text" else "content"
            self._final_part(item, item.slot(where, value.get(f"{where}_index")), part)

    def _final_part(self, item: _Item, slot: Slot, part: Mapping[str, Any]) -> None:
        kind = _TEXT_PARTS.get(string(part.get("type")))
        if kind is not None:
            self._take_final(item, slot, kind[0], part.get(kind[1]))

    def _take_final(self, item: _Item, slot: Slot, kind: TextKind, whole: object) -> None:
        """Replaces the deltas by a final text, however often it comes (`resp-dup-done`).

        Later deltas are ignored (`resp-delta-after-done`), and so is an empty text: some servers
        do not repeat it.
        """
        if isinstance(whole, str) and whole:
            item.final.add(slot)
            self._answer.replace(kind, whole, slot)

    # Calls

    def _arguments(self, stage: str, value: Mapping[str, Any]) -> None:
        # Events of several items may alternate (`resp-interleaved`).
        item = self._item(_CALL, value)
        call = item.call
        assert call is not None
        if call.closed:
            return
        if stage == "delta":
            call.argue(string(value.get("delta")))
        elif stage == "done":
            self._final_arguments(call, value.get("arguments"))
            # If the name, the id or the arguments are missing, the item's own `done` may have
            # them (`resp-missing-openers`, `resp-args-done-only`).
            if call.name and call.id and call.arguments:
                self._surface(item)

    def _final_arguments(self, call: StagedCall, whole: object) -> None:
        """Replaces the deltas by final arguments (`resp-args-done-only`,
        `resp-delta-after-done`), unless these are empty (`resp-zero-arg`)."""
        if not call.closed:
            call.replace_arguments(_arguments_text(whole) or call.arguments)

    def _surface(self, item: _Item) -> None:
        call = item.call
        if call is not None and not call.closed:
            call.replace_arguments(call.arguments or item.initial_arguments)
            self._answer.surface(call)

    # The end

    def _end(self, status: str, response: Mapping[str, Any]) -> None:
        self._usage(response)
        # `response.failed`, or another terminal event whose response has an error.
        if status == "failed" or response.get("error"):
            self._answer.fail(error_message(response.get("error") or "the response failed"))
            return
        self._fill_from_response(sequence(response.get("output")))
        # What was sent counts, and the reason is the finish (`resp-incomplete`).
        details = mapping(response.get("incomplete_details"))
        self._answer.finish = string(details.get("reason")) or status
        self._answer.complete = True
        for item in self._items:
            call = item.call
            if call is None or call.closed:
                continue
            if status == "incomplete" and (not call.arguments or parsed(call.arguments) is None):
                self._answer.reject(call, f"was cut off by {self._answer.finish}")
            else:
                self._surface(item)

    def _fill_from_response(self, output: list[Any]) -> None:
        """Takes what only the final response has.

        Its `output` may be empty or null although there were items
        (`resp-completed-output-empty`). Positions in it need not be the indexes of the items. So
        calls are found by their id, and text is taken only for kinds that had none.
        """
        streamed = {kind for kind in ("text", "reasoning", "refusal") if self._answer.has(kind)}
        for index, fields in enumerate(map(mapping, output)):
            if fields.get("type") == _CALL:
                item = self._call_item(index, fields)
                self._identify(item, fields)
                if item.call is not None:
                    self._final_arguments(item.call, fields.get("arguments"))
                continue
            for where in ("summary", "content"):
                for position, part in enumerate(map(mapping, sequence(fields.get(where)))):
                    kind = _TEXT_PARTS.get(string(part.get("type")))
                    if kind is not None and kind[0] not in streamed:
                        slot = index, len(self._items), int(where == "content"), position
                        self._answer.replace(kind[0], string(part.get(kind[1])), slot)

    def _usage(self, response: Mapping[str, Any]) -> None:
        usage = mapping(response.get("usage"))
        if usage:
            cached = mapping(usage.get("input_tokens_details")).get("cached_tokens")
            reasoning = mapping(usage.get("output_tokens_details")).get("reasoning_tokens")
            counts = (usage.get("input_tokens"), usage.get("output_tokens"), reasoning, cached)
            self._answer.usage = Usage(*map(count, counts))


def _arguments_text(arguments: object) -> str:
    """Arguments as text, also if they came as an object; null is empty."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json_text(arguments)
