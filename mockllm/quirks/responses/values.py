"""Quirks of arguments and texts in Responses streams: their deltas and their done events.

Each change stands above its quirk.
"""

from __future__ import annotations

from collections.abc import Collection

from mockllm.quirks import samples
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.responses.events import (
    ARGUMENTS_DELTA,
    ARGUMENTS_DONE,
    ITEM_ADDED,
    ITEM_DONE,
    VALUES,
    event,
    item_id,
    kind,
    numbered,
    output_item,
    output_items,
    rename,
    value_key,
    without,
)

__all__ = [
    "ARGS_DONE_ONLY",
    "ARGS_IN_ADDED",
    "DELTA_AFTER_DONE",
    "DUP_DONE",
    "EMPTY_DELTA",
    "ZERO_ARG",
]

ARGS_DONE_ONLY = Quirk(
    name="resp-args-done-only",
    group="I",
    topic="arguments",
    only=("responses",),
    title="The arguments come complete, without deltas before them",
    servers="gpt-5.3-codex-spark, LM Studio",
    right="same",
    correct="use the arguments of the done event, or of the finished item",
    faults="makes the call with {}",
    invariant="final-replaces",
    sample=samples.CALL,
    variants=(
        Variant("done", "no arguments.delta; arguments.done has them", without(ARGUMENTS_DELTA)),
        Variant(
            "item-done",
            "neither arguments.delta nor arguments.done; the finished item has them",
            without(ARGUMENTS_DELTA, ARGUMENTS_DONE),
        ),
    ),
    sources=(
        "BerriAI/litellm#27144",
        "earendil-works/pi#2745",
        "anomalyco/opencode#44862",
        "Wei-Shaw/sub2api#6629",
    ),
)


def _arguments(items: list[Item]) -> dict[str, str]:
    """The arguments of each finished call, by the id of its item."""
    return {
        id: arguments
        for item in items
        if kind(item) == ITEM_DONE and output_item(item).get("type") == "function_call"
        if (id := item_id(item))
        and isinstance(arguments := output_item(item).get("arguments"), str)
    }


def _zero(items: list[Item]) -> set[str]:
    return {id for id, arguments in _arguments(items).items() if arguments in ("", "{}")}


@numbered
def _empty_arguments(items: list[Item], context: Context) -> list[Item]:
    zero = _zero(items)
    for item in items:
        if kind(item) == ARGUMENTS_DONE and item_id(item) in zero:
            item.data["arguments"] = ""
        for entry in output_items(item):
            if entry.get("type") == "function_call" and entry.get("id") in zero:
                entry["arguments"] = ""
    return [item for item in items if kind(item) != ARGUMENTS_DELTA or item_id(item) not in zero]


@numbered
def _no_zero_done(items: list[Item], context: Context) -> list[Item]:
    zero, left_out = _zero(items), (ARGUMENTS_DELTA, ARGUMENTS_DONE)
    return [item for item in items if kind(item) not in left_out or item_id(item) not in zero]


ZERO_ARG = Quirk(
    name="resp-zero-arg",
    group="I",
    topic="arguments",
    only=("responses",),
    title="A call without arguments has an empty string, or no arguments event at all",
    servers="vLLM",
    right="same",
    correct="make the call with the arguments {}",
    faults="parses the empty string as JSON",
    invariant="zero-arguments",
    sample=samples.ZERO,
    variants=(
        Variant("empty", 'no arguments.delta, and arguments "" in every event', _empty_arguments),
        Variant("no-done", "neither arguments.delta nor arguments.done", _no_zero_done),
    ),
    sources=("vllm-project/vllm#54236",),
)


def _in_added(items: list[Item], context: Context) -> list[Item]:
    whole = _arguments(items)
    for item in items:
        if kind(item) == ITEM_ADDED and item_id(item) in whole:
            output_item(item)["arguments"] = whole[item_id(item) or ""]
    return items


@numbered
def _only_in_added(items: list[Item], context: Context) -> list[Item]:
    whole = _arguments(items)
    added = _in_added(items, context)
    return [item for item in added if kind(item) != ARGUMENTS_DELTA or item_id(item) not in whole]


ARGS_IN_ADDED = Quirk(
    name="resp-args-in-added",
    group="I",
    topic="arguments",
    only=("responses",),
    title="The added item of a call already has all its arguments",
    servers="servers compatible with OpenAI",
    right="same",
    correct="replace whatever came before by the done value",
    faults="doubles the arguments, one copy after the other",
    invariant="final-replaces",
    sample=samples.CALL,
    variants=(
        Variant("repeated", "in the added item, and again in the deltas", _in_added),
        Variant("alone", "in the added item, and there are no deltas", _only_in_added),
    ),
)


@numbered
def _empty_first(items: list[Item], context: Context) -> list[Item]:
    begun: set[tuple[str, ...]] = set()
    changed = []
    for item in items:
        if kind(item).endswith(".delta") and value_key(item) not in begun:
            begun.add(value_key(item))
            empty = item.copy()
            empty.data["delta"] = ""
            changed.append(empty)
        changed.append(item)
    return changed


EMPTY_DELTA = Quirk(
    name="resp-empty-delta",
    group="I",
    topic="arguments",
    only=("responses",),
    title="The first delta of a value is empty",
    servers="Baseten, converters from Chat Completions",
    right="same",
    correct="append nothing",
    faults="treats an empty delta as a missing one, and aborts the stream",
    invariant="null-tolerant",
    sample=samples.TEXT_AND_CALL,
    variants=(Variant("", '`"delta":""` before the deltas of each text and call', _empty_first),),
    sources=("BerriAI/litellm#33341", "BerriAI/litellm#39288", "BerriAI/litellm#40207"),
)


def _repeated(types: Collection[str]) -> FramesChange:
    @numbered
    def change(items: list[Item], context: Context) -> list[Item]:
        return [
            each
            for item in items
            for each in ((item, item.copy()) if kind(item) in types else (item,))
        ]

    return change


DUP_DONE = Quirk(
    name="resp-dup-done",
    group="I",
    topic="ends",
    only=("responses",),
    title="Done events are sent twice",
    servers="proxies",
    right="same",
    correct="ignore a second done event of the same item",
    faults="makes the call twice",
    invariant="surface-once",
    sample=samples.CALL,
    variants=(
        Variant(
            "both",
            "arguments.done and output_item.done twice each",
            _repeated((ARGUMENTS_DONE, ITEM_DONE)),
        ),
        Variant("item", "output_item.done twice", _repeated((ITEM_DONE,))),
        Variant("arguments", "arguments.done twice", _repeated((ARGUMENTS_DONE,))),
    ),
    sources=("Oaklight/llm-rosetta#589",),
)


def _field(item: Item) -> str:
    """The field in which a `.done` event has its value; "" for all other events."""
    stem, _, step = kind(item).rpartition(".")
    return VALUES.get(stem, "") if step == "done" else ""


@numbered
def _late_delta(items: list[Item], context: Context) -> list[Item]:
    changed = []
    for item in items:
        changed.append(item)
        field = _field(item)
        if field and event(item).get(field):
            late = item.copy()
            late.data = {
                "delta" if key == field else key: [] if key == "logprobs" else value
                for key, value in late.data.items()
            }
            rename(late, kind(item).removesuffix("done") + "delta")
            changed.append(late)
    return changed


@numbered
def _lost_delta(items: list[Item], context: Context) -> list[Item]:
    latest: dict[tuple[str, ...], int] = {}
    lost: set[int] = set()
    for i, item in enumerate(items):
        if kind(item).endswith(".delta") and event(item).get("delta"):
            latest[value_key(item)] = i
        elif _field(item) and value_key(item) in latest:
            lost.add(latest.pop(value_key(item)))
    return [item for i, item in enumerate(items) if i not in lost]


DELTA_AFTER_DONE = Quirk(
    name="resp-delta-after-done",
    group="I",
    topic="ends",
    only=("responses",),
    title="A delta follows the done event, or the deltas are not the done value",
    servers="proxies",
    right="same",
    correct="use the value of the done event",
    faults="doubles the value",
    invariant="final-replaces",
    sample=samples.TEXT_AND_CALL,
    variants=(
        Variant("late", "a delta with the complete value comes after .done", _late_delta),
        Variant("different", "the deltas lack a fragment that .done has", _lost_delta),
    ),
)
