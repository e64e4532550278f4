"""Quirks of whole values in Responses streams: arguments and texts, and how they are done.

Each change stands above the quirk that it makes.
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
    kind,
    numbered,
    owner,
    rename,
    shown,
    shown_items,
    slot,
    without,
)

__all__ = [
    "ARGS_DONE_ONLY",
    "ARGS_IN_ADDED",
    "DELTA_AFTER_DONE",
    "DUP_DONE",
    "ZERO_ARG",
]

ARGS_DONE_ONLY = Quirk(
    name="resp-args-done-only",
    group="I",
    only=("responses",),
    title="Arguments come whole, without any deltas before them",
    servers="gpt-5.3-codex-spark, LM Studio",
    right="same",
    correct="take the arguments of the done event, or of the finished item",
    faults="the call is made with {}",
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
        if kind(item) == ITEM_DONE and shown(item).get("type") == "function_call"
        if (id := owner(item)) and isinstance(arguments := shown(item).get("arguments"), str)
    }


def _zero(items: list[Item]) -> set[str]:
    return {id for id, arguments in _arguments(items).items() if arguments in ("", "{}")}


@numbered
def _empty_arguments(items: list[Item], context: Context) -> list[Item]:
    zero = _zero(items)
    for item in items:
        if kind(item) == ARGUMENTS_DONE and owner(item) in zero:
            item.data["arguments"] = ""
        for entry in shown_items(item):
            if entry.get("type") == "function_call" and entry.get("id") in zero:
                entry["arguments"] = ""
    return [item for item in items if kind(item) != ARGUMENTS_DELTA or owner(item) not in zero]


@numbered
def _no_zero_done(items: list[Item], context: Context) -> list[Item]:
    zero, left_out = _zero(items), (ARGUMENTS_DELTA, ARGUMENTS_DONE)
    return [item for item in items if kind(item) not in left_out or owner(item) not in zero]


ZERO_ARG = Quirk(
    name="resp-zero-arg",
    group="I",
    only=("responses",),
    title="A call without arguments says so by an empty text, or not at all",
    servers="vLLM",
    right="same",
    correct="the arguments are {}",
    faults="the empty text is parsed as JSON, which fails",
    invariant="zero-arguments",
    sample=samples.ZERO,
    variants=(
        Variant("empty", 'no arguments.delta, and arguments "" throughout', _empty_arguments),
        Variant("no-done", "neither arguments.delta nor arguments.done", _no_zero_done),
    ),
    sources=("vllm-project/vllm#54236",),
)


def _in_added(items: list[Item], context: Context) -> list[Item]:
    whole = _arguments(items)
    for item in items:
        if kind(item) == ITEM_ADDED and owner(item) in whole:
            shown(item)["arguments"] = whole[owner(item) or ""]
    return items


@numbered
def _only_in_added(items: list[Item], context: Context) -> list[Item]:
    whole = _arguments(items)
    added = _in_added(items, context)
    return [item for item in added if kind(item) != ARGUMENTS_DELTA or owner(item) not in whole]


ARGS_IN_ADDED = Quirk(
    name="resp-args-in-added",
    group="I",
    only=("responses",),
    title="A call has all its arguments as soon as its item is added",
    servers="servers compatible with OpenAI",
    right="same",
    correct="the done value replaces whatever came before it",
    faults="arguments twice, one copy behind the other",
    invariant="final-replaces",
    sample=samples.CALL,
    variants=(
        Variant("repeated", "the added item has them, and the deltas again", _in_added),
        Variant("alone", "the added item has them, and there are no deltas", _only_in_added),
    ),
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
    only=("responses",),
    title="What is done is said to be done twice",
    servers="proxies",
    right="same",
    correct="a second done event of the same item changes nothing",
    faults="the call is made twice",
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
    """The field in which a `.done` event has its value; `""` for all other events."""
    stem, _, word = kind(item).rpartition(".")
    return VALUES.get(stem, "") if word == "done" else ""


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
            latest[slot(item)] = i
        elif _field(item) and slot(item) in latest:
            lost.add(latest.pop(slot(item)))
    return [item for i, item in enumerate(items) if i not in lost]


DELTA_AFTER_DONE = Quirk(
    name="resp-delta-after-done",
    group="I",
    only=("responses",),
    title="A done value is not the end of its deltas, or not their sum",
    servers="proxies",
    right="same",
    correct="what the done event says counts",
    faults="the value is there twice",
    invariant="final-replaces",
    sample=samples.TEXT_AND_CALL,
    variants=(
        Variant("late", "a delta with the whole value comes after .done", _late_delta),
        Variant("different", "the deltas lack a piece that .done has", _lost_delta),
    ),
)
