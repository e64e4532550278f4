"""How a stream of the Responses API is put together.

https://platform.openai.com/docs/api-reference/responses-streaming

An answer is a list of output items, each with its `added`, deltas and `done`; a `done` repeats
the whole of what the deltas said. A name in backquotes is that of the quirk that a rule comes
from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mockllm.checking.outcome import Outcome, TroubleKind, Usage
from mockllm.checking.probes import Delta
from mockllm.checking.reference.answer import (
    Answer,
    Malformed,
    MissingId,
    Slot,
    StagedCall,
    parsed,
)
from mockllm.checking.reference.values import (
    count,
    error_words,
    json_text,
    mapping,
    sequence,
    string,
)

__all__ = ["ResponsesAccumulator"]

_Words = Literal["text", "reasoning", "refusal"]

_WORDS: dict[str, tuple[str, _Words, str]] = {
    "output_text": ("message", "text", "content"),
    "refusal": ("message", "refusal", "content"),
    "reasoning_summary_text": ("reasoning", "reasoning", "summary"),
    "reasoning_text": ("reasoning", "reasoning", "content"),
}
"""By the middle of an event's name: the type of its item, what it says, and where in the item."""

_PARTS: dict[str, tuple[_Words, str]] = {
    "output_text": ("text", "text"),
    "refusal": ("refusal", "refusal"),
    "summary_text": ("reasoning", "text"),
    "reasoning_text": ("reasoning", "text"),
}
"""By the type of a part: what it says, and the field that has it."""

_CALL = "function_call"


@dataclass(slots=True, eq=False)
class _Item:
    """An output item that has begun.

    Args:
        index: its `output_index`, a key that is not to be taken for a place in a list.
        number: how many items began before it.
        ids: all that it was ever called by.
        call: the call that it is, if it is one.
        given: the arguments that came with its `added`.
        done: the slots whose words are final.
    """

    type: str
    index: int
    number: int
    ids: set[str] = field(default_factory=set)
    call: StagedCall | None = None
    given: str = ""
    done: set[Slot] = field(default_factory=set)

    def slot(self, where: str, index: object) -> Slot:
        """The place of a part of it among those of all items."""
        return self.index, self.number, int(where == "content"), count(index) or 0


class ResponsesAccumulator:
    """Puts the events of one stream together (`Probe`).

    Args:
        tools: the names of the tools that were offered; None: a call of any tool will do.
        malformed: what becomes of a call whose arguments never parse.
        missing_id: what becomes of a call that never gets an id (a `call_id`: the id of its
            item is of no use to anybody else).
    """

    def __init__(
        self,
        *,
        tools: Collection[str] | None = None,
        malformed: Malformed = "error",
        missing_id: MissingId = "synthesise",
    ) -> None:
        self._answer = Answer(
            tools, malformed, missing_id, "response.completed, .incomplete or .failed"
        )
        self._items: list[_Item] = []

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one event adds: its text and reasoning, and the call that surfaces with it."""
        value = mapping(payload)
        # Sequence numbers, log probabilities and the event line are not needed
        # (`resp-required-missing`); a bare error has no type.
        type = string(value.get("type")) or ("error" if value.get("error") else event or "")
        if self._answer.failed and type == "response.failed":
            # Follows the error that it repeats, and has the usage.
            self._usage(mapping(value.get("response")))
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
                self._end(status, mapping(value.get("response")))
            case ["response", words, "delta" | "done" as stage] if words in _WORDS:
                self._words(words, stage, value)
            case ["error"]:
                # `resp-error-shape`: nested as it is sent, or flat as it is documented.
                self._answer.fail(error_words(value.get("error") or payload))
            case _:
                # `resp-keepalive`, `resp-unknown-event`; and names that are not of this API
                # (`resp-legacy-names`), which say nothing here.
                pass
        return self._answer.delta()

    def outcome(self) -> Outcome:
        """The answer so far."""
        return self._answer.outcome()

    def pending(self) -> int:
        """How many calls have begun and not surfaced."""
        return len(self._answer.staged())

    def fail(self, message: str, kind: TroubleKind = "stream_error") -> None:
        """The stream broke underneath, below what an event can tell."""
        self._answer.fail(message, kind)

    def close(self) -> None:
        """Nothing more comes; without one of the three ends it was cut (`resp-no-terminal`)."""
        self._answer.close()

    # Items

    def _item(self, type: str, value: Mapping[str, Any]) -> _Item:
        """The item that an event is about; a new one if it never began (`resp-missing-openers`).

        Keyed by `output_index`, since the id of an item may be another in each event
        (`resp-item-id-rotates`, `resp-reasoning-ids`) or null (`resp-item-id-null`). Where
        several items share an index, an id that is known says which; else it is the last one
        of the type (`resp-output-index`).
        """
        index = count(value.get("output_index")) or 0
        alike = [item for item in self._items if item.index == index and item.type == type]
        id = string(value.get("item_id"))
        for item in alike:
            if id in item.ids:
                return item
        return alike[-1] if alike else self._open(type, index)

    def _open(self, type: str, index: int) -> _Item:
        item = _Item(type, index, len(self._items))
        if type == _CALL:
            item.call = self._answer.open(index, key=index)
        self._items.append(item)
        return item

    def _added(self, value: Mapping[str, Any]) -> None:
        told = mapping(value.get("item"))
        item = self._open(string(told.get("type")), count(value.get("output_index")) or 0)
        self._identify(item, told)
        # Only used if neither deltas nor a final value come (`resp-args-in-added`).
        item.given = _text(told.get("arguments"))

    def _identify(self, item: _Item, told: Mapping[str, Any]) -> None:
        item.ids |= {string(told.get("id"))} - {""}
        if item.call is not None and not item.call.settled:
            item.call.id = item.call.id or string(told.get("call_id"))
            item.call.name = item.call.name or string(told.get("name"))

    def _item_done(self, value: Mapping[str, Any]) -> None:
        told = mapping(value.get("item"))
        type = string(told.get("type"))
        if type == _CALL:
            item = self._called(value.get("output_index"), told)
        else:
            item = self._item(type, {**value, "item_id": told.get("id")})
        self._identify(item, told)
        for where in ("summary", "content"):
            for index, part in enumerate(map(mapping, sequence(told.get(where)))):
                self._whole(item, item.slot(where, index), part)
        if item.call is not None:
            self._final(item.call, told.get("arguments"))
            if told.get("status") != "incomplete":
                self._surface(item)

    def _called(self, output_index: object, told: Mapping[str, Any]) -> _Item:
        """The item of a call that is told whole: its `call_id` is its identity, whatever else
        changes; else it is the one at this index that has none yet."""
        index, id = count(output_index) or 0, string(told.get("call_id"))
        calls = [item for item in self._items if item.call is not None]
        here = [item for item in calls if item.index == index]
        for item in [*here, *calls]:
            if item.call is not None and id and item.call.id == id:
                return item
        for item in reversed(here):
            if item.call is not None and not (id and item.call.id):
                return item
        return self._open(_CALL, index)

    # Words

    def _words(self, name: str, stage: str, value: Mapping[str, Any]) -> None:
        type, kind, where = _WORDS[name]
        item = self._item(type, value)
        slot = item.slot(where, value.get(f"{where}_index"))
        if stage == "done":
            self._settle(item, slot, kind, value.get("refusal" if kind == "refusal" else "text"))
        elif slot not in item.done:
            self._answer.add(kind, string(value.get("delta")), slot)

    def _part_done(self, value: Mapping[str, Any]) -> None:
        part = mapping(value.get("part"))
        kind = _PARTS.get(string(part.get("type")))
        if kind is not None:
            item = self._item("reasoning" if kind[0] == "reasoning" else "message", value)
            where = "summary" if part.get("type") == "summary_text" else "content"
            self._whole(item, item.slot(where, value.get(f"{where}_index")), part)

    def _whole(self, item: _Item, slot: Slot, part: Mapping[str, Any]) -> None:
        kind = _PARTS.get(string(part.get("type")))
        if kind is not None:
            self._settle(item, slot, kind[0], part.get(kind[1]))

    def _settle(self, item: _Item, slot: Slot, kind: _Words, whole: object) -> None:
        """Takes a final value: it stands for the deltas and is not added to them, however often
        it comes (`resp-dup-done`), and ends them (`resp-delta-after-done`). An empty one is of
        a server that does not repeat what it has sent."""
        if isinstance(whole, str) and whole:
            item.done.add(slot)
            self._answer.replace(kind, whole, slot)

    # Calls

    def _arguments(self, stage: str, value: Mapping[str, Any]) -> None:
        # By item, for items may overlap (`resp-interleaved`).
        item = self._item(_CALL, value)
        call = item.call
        assert call is not None
        if call.settled:
            return
        if stage == "delta":
            call.arguments += string(value.get("delta"))
        elif stage == "done":
            self._final(call, value.get("arguments"))
            # Without name or arguments there is more to come: they may be in the item's own
            # `done` alone (`resp-missing-openers`, `resp-args-done-only`).
            if call.name and call.id and call.arguments:
                self._surface(item)

    def _final(self, call: StagedCall, whole: object) -> None:
        """Final arguments stand for the deltas (`resp-args-done-only`, `resp-delta-after-done`);
        empty ones do not (`resp-zero-arg`)."""
        if not call.settled:
            call.arguments = _text(whole) or call.arguments

    def _surface(self, item: _Item) -> None:
        call = item.call
        if call is not None and not call.settled:
            call.arguments = call.arguments or item.given
            self._answer.surface(call)

    # The end

    def _end(self, status: str, response: Mapping[str, Any]) -> None:
        self._usage(response)
        # `response.failed`, and whoever says so in the response alone.
        if status == "failed" or response.get("error"):
            self._answer.fail(error_words(response.get("error") or "the response failed"))
            return
        self._harvest(sequence(response.get("output")))
        # `resp-incomplete`: what there is counts, with the reason for the end.
        details = mapping(response.get("incomplete_details"))
        self._answer.finish = string(details.get("reason")) or status
        self._answer.complete = True
        for item in self._items:
            call = item.call
            if call is None or call.settled:
                continue
            if status == "incomplete" and (not call.arguments or parsed(call.arguments) is None):
                self._answer.refuse(call, f"was cut off by {self._answer.finish}")
            else:
                self._surface(item)

    def _harvest(self, output: list[Any]) -> None:
        """Takes what only the final response has. Its list may be empty or null although there
        were items (`resp-completed-output-empty`), and its places need not be their indexes: so
        calls are told by their id, and words taken only where there were none."""
        said = {kind for kind in ("text", "reasoning", "refusal") if self._answer.says(kind)}
        for index, told in enumerate(map(mapping, output)):
            if told.get("type") == _CALL:
                item = self._called(index, told)
                self._identify(item, told)
                if item.call is not None:
                    self._final(item.call, told.get("arguments"))
                continue
            for where in ("summary", "content"):
                for place, part in enumerate(map(mapping, sequence(told.get(where)))):
                    kind = _PARTS.get(string(part.get("type")))
                    if kind is not None and kind[0] not in said:
                        slot = index, len(self._items), int(where == "content"), place
                        self._answer.replace(kind[0], string(part.get(kind[1])), slot)

    def _usage(self, response: Mapping[str, Any]) -> None:
        usage = mapping(response.get("usage"))
        if usage:
            cached = mapping(usage.get("input_tokens_details")).get("cached_tokens")
            reasoning = mapping(usage.get("output_tokens_details")).get("reasoning_tokens")
            told = (usage.get("input_tokens"), usage.get("output_tokens"), reasoning, cached)
            self._answer.usage = Usage(*map(count, told))


def _text(arguments: object) -> str:
    """Arguments as text, also where they came as an object; null is ""."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json_text(arguments)
