"""Group D: quirks of the deltas of Chat Completions: several calls, roles, types, nulls."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from mockllm.quirks.base import Context, Item, Variant, each, each_with
from mockllm.quirks.chat import chunks
from mockllm.quirks.samples import CALL, TEXT, TWO_CALLS


def _one_chunk(items: list[Item], context: Context) -> list[Item]:
    answers: dict[int, list[list[chunks.CallFragment]]] = {}
    for call in chunks.calls(items):
        answers.setdefault(call[0].choice.index, []).append(call)
    for several in answers.values():
        if len(several) > 1:
            items = _joined(items, several)
    return items


def _joined(items: list[Item], several: list[list[chunks.CallFragment]]) -> list[Item]:
    parts = [fragment for call in several for fragment in call]
    indexes = {id(item): index for index, item in enumerate(items)}
    last = max(parts, key=lambda fragment: indexes[id(fragment.choice.item)])
    entries = sorted(map(_whole, several), key=lambda entry: int(entry["index"]))
    chunk = chunks.with_delta(last.choice, {"tool_calls": entries})
    return chunks.removed(chunks.inserted(items, last.choice.item, [chunk]), parts)


def _whole(call: Iterable[chunks.CallFragment]) -> dict[str, Any]:
    first, *others = call
    arguments = first.arguments + "".join(fragment.arguments for fragment in others)
    return {**first.entry, "function": {**first.function, "arguments": arguments}}


def _interleaved(items: list[Item], context: Context) -> list[Item]:
    queues: dict[tuple[int, int], list[Item]] = {}
    for fragment in chunks.fragments(items):
        if _is_only(fragment):
            key = fragment.choice.index, fragment.entry["index"]
            queues.setdefault(key, []).append(fragment.choice.item)
    turns = (item for row in zip_longest(*queues.values()) for item in row if item is not None)
    moved = {id(item) for queue in queues.values() for item in queue}
    times = [item.at for item in items]
    mixed = [next(turns) if id(item) in moved else item for item in items]
    for item, at in zip(mixed, times, strict=True):
        item.at = at
    return mixed


def _is_only(fragment: chunks.CallFragment) -> bool:
    choice = fragment.choice
    alone = (
        len(choice.item.data["choices"])
        == len(choice.delta)
        == len(choice.delta["tool_calls"])
        == 1
    )
    return alone and choice.fields.get("finish_reason") is None


@each_with(chunks.choices_of)
def _role(choice: chunks.Choice, value: str | None) -> None:
    if choice.delta:
        choice.fields["delta"] = {"role": value, **choice.delta} | {"role": value}


def _role_everywhere(choice: chunks.Choice) -> None:
    choice.fields["delta"] = {"role": "assistant", **choice.delta}


@each_with(chunks.choices_of)
def _no_calls(choice: chunks.Choice, value: list[Any] | None) -> None:
    if "content" in choice.delta and "tool_calls" not in choice.delta:
        choice.delta["tool_calls"] = value if value is None else [*value]


def _empty_finishes(items: list[Item]) -> list[chunks.Choice]:
    return [choice for choice in chunks.finishes(items) if not choice.delta]


QUIRKS = (
    chunks.quirk("chat-two-calls-one-chunk", TWO_CALLS, Variant(frames=_one_chunk)),
    chunks.quirk("chat-calls-interleaved", TWO_CALLS, Variant(frames=_interleaved)),
    chunks.quirk(
        "chat-role-every-chunk", TEXT, Variant(frames=each(chunks.choices_of, _role_everywhere))
    ),
    chunks.quirk(
        "chat-role-null-empty-never",
        TEXT,
        Variant("null", _role(None)),
        Variant("empty", _role("")),
        Variant("never", each(chunks.choices_of, lambda choice: choice.delta.pop("role", None))),
    ),
    chunks.quirk(
        "chat-type-missing",
        CALL,
        Variant(frames=each(chunks.fragments, lambda fragment: fragment.entry.pop("type", None))),
    ),
    chunks.quirk(
        "chat-tool-calls-null",
        TEXT,
        Variant("null", _no_calls(None)),
        Variant("empty", _no_calls([])),
    ),
    chunks.quirk(
        "chat-delta-null",
        TEXT,
        Variant("null", each(_empty_finishes, lambda choice: choice.fields.update(delta=None))),
        Variant("absent", each(_empty_finishes, lambda choice: choice.fields.pop("delta"))),
    ),
)
