"""Quirks of output items in Responses streams: their ids, indexes and order.

Each change stands above its quirk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import zip_longest

from mockllm.quirks import samples
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.responses.events import (
    ITEM_DONE,
    event,
    index,
    item_id,
    kind,
    numbered,
    output,
    output_item,
    output_items,
    reordered,
)

__all__ = [
    "CALL_ID_MISSING",
    "INTERLEAVED",
    "ITEM_ID_NULL",
    "ITEM_ID_ROTATES",
    "OUTPUT_INDEX",
    "REASONING_IDS",
]

# Identifiers


def _rotated(applies: Callable[[str], bool], *, outputs: bool = True) -> FramesChange:
    """Gives an item a new id at each event that names it.

    Args:
        applies: whether the ids in events of a type are changed.
        outputs: whether those in response objects are changed.
    """

    def change(items: list[Item], context: Context) -> list[Item]:
        counts: Counter[str] = Counter()

        def fresh(id: object) -> str:
            prefix = str(id).partition("_")[0]
            counts[prefix] += 1
            return f"{prefix}_{counts[prefix]}"

        for item in items:
            if item_id(item) is not None and applies(kind(item)):
                own = output_item(item)
                holder, name = (own, "id") if own else (event(item), "item_id")
                holder[name] = fresh(holder[name])
            for entry in output(item) if outputs else ():
                if isinstance(entry.get("id"), str):
                    entry["id"] = fresh(entry["id"])
        return items

    return change


ITEM_ID_ROTATES = Quirk(
    name="resp-item-id-rotates",
    group="I",
    topic="ids",
    only=("responses",),
    title="An output item has a different id in every event",
    servers="GitHub Copilot, proxies, vLLM, mistral.rs",
    right="same",
    correct="identify items by output_index and calls by call_id",
    faults="raises an error about a changed id, or makes one call several times",
    invariant="id-kept",
    sample=samples.CALL,
    variants=(
        Variant(
            "every-event", "fc_1, fc_2, ...: every event has a new id", _rotated(lambda _: True)
        ),
        Variant(
            "item-done",
            "the finished item has a different id than its added item and its deltas",
            _rotated(lambda kind: kind == ITEM_DONE),
        ),
        Variant(
            "completed",
            "the final response has different ids than all events before it",
            _rotated(lambda _: False),
        ),
    ),
    sources=(
        "vllm-project/vllm#24788",
        "EricLBuehler/mistral.rs#2309",
        "EricLBuehler/mistral.rs#1944",
    ),
)


def _null_ids(*, deltas: bool) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        for item in items:
            for entry in output_items(item):
                if "id" in entry:
                    entry["id"] = None
            if deltas and "item_id" in event(item):
                item.data["item_id"] = None
        return items

    return change


ITEM_ID_NULL = Quirk(
    name="resp-item-id-null",
    group="I",
    topic="ids",
    only=("responses",),
    title="Output items have no id",
    servers="servers compatible with OpenAI",
    right="same",
    correct="identify items by output_index",
    faults="rejects the item as invalid",
    invariant="null-tolerant",
    sample=samples.CALL,
    variants=(
        Variant("null", "id and item_id are null everywhere", _null_ids(deltas=True)),
        Variant("in-items", "id is null in items; deltas have an item_id", _null_ids(deltas=False)),
    ),
)


def _no_call_id(items: list[Item], context: Context) -> list[Item]:
    for item in items:
        for entry in output_items(item):
            entry.pop("call_id", None)
    return items


def _empty_call_id(items: list[Item], context: Context) -> list[Item]:
    for item in items:
        for entry in output_items(item):
            if "call_id" in entry:
                entry["call_id"] = ""
    return items


CALL_ID_MISSING = Quirk(
    name="resp-call-id-missing",
    group="I",
    topic="ids",
    only=("responses",),
    title="Calls have no call_id, only the id of their item",
    servers="converters from Chat Completions, whose upstream gives calls no ids",
    right="same",
    correct="generate a unique call_id and keep it, or clearly report that it is missing",
    faults="loses the call, or gives all calls one id",
    invariant="missing-id",
    sample=samples.CALL,
    variants=(
        Variant("", "no call_id in any event", _no_call_id, ids=False),
        Variant("empty", 'the call_id is ""', _empty_call_id, ids=False),
    ),
    sources=("diegosouzapw/OmniRoute#419",),
)


# Indexes and order


def _indexed(number: Callable[[int], int]) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        for item in items:
            if (old := index(item)) is not None:
                item.data["output_index"] = number(old)
        return items

    return change


@numbered
def _reversed(items: list[Item], context: Context) -> list[Item]:
    indexed = [item for item in items if index(item) is not None]
    return reordered(items, sorted(indexed, key=lambda item: -(index(item) or 0)))


OUTPUT_INDEX = Quirk(
    name="resp-output-index",
    group="I",
    topic="index",
    only=("responses",),
    title="output_index does not count up from 0",
    servers="servers that convert from another protocol",
    right="same",
    correct="use it as a key, not as a position; if items share it, identify them by their ids",
    faults="fails with an IndexError, or replaces one item by another",
    invariant="order-by-index",
    sample=samples.TWO_CALLS,
    variants=(
        Variant("shared", "all items have output_index 0", _indexed(lambda _: 0)),
        Variant("reversed", "item 1 comes before item 0", _reversed),
        Variant("gaps", "output_index 0, 3, 6, ...", _indexed(lambda at: 3 * at)),
    ),
    sources=("BerriAI/litellm#36375",),
)


@numbered
def _interleaved(items: list[Item], context: Context) -> list[Item]:
    groups: dict[int, list[Item]] = {}
    for item in items:
        if (at := index(item)) is not None:
            groups.setdefault(at, []).append(item)
    if len(groups) < 2:
        return items
    heads, bodies, tails = [], [], []
    for group in groups.values():
        end = max((i for i, item in enumerate(group) if kind(item).endswith(".delta")), default=0)
        heads.append(group[0])
        bodies.append(group[1 : end + 1])
        tails += group[end + 1 :]
    rounds = [item for turn in zip_longest(*bodies) for item in turn if item is not None]
    return reordered(items, [*heads, *rounds, *tails])


INTERLEAVED = Quirk(
    name="resp-interleaved",
    group="I",
    topic="calls",
    only=("responses",),
    title="Several items are open at once, and their deltas alternate",
    servers="OpenRouter, xAI, lists of MCP tools",
    right="same",
    correct="route each delta by its output_index or item_id",
    faults="splits the fragments into many calls",
    invariant="arguments-concatenate",
    sample=samples.TWO_CALLS,
    variants=(Variant("", "added 0, added 1, delta 0, delta 1, delta 0, ...", _interleaved),),
    sources=("microsoft/agent-framework#8336",),
)


# Reasoning


def _is_reasoning_delta(type: str) -> bool:
    return type.startswith("response.reasoning_") and type.endswith(".delta")


def _shared_index(items: list[Item], context: Context) -> list[Item]:
    if any(output_item(item).get("type") == "reasoning" for item in items):
        return _indexed(lambda _: 0)(items, context)
    return items


REASONING_IDS = Quirk(
    name="resp-reasoning-ids",
    group="I",
    topic="ids",
    only=("responses",),
    title="Every fragment of reasoning names a different item",
    servers="LiteLLM's bridge from Chat Completions",
    right="same",
    correct="identify reasoning by output_index and by the index of its content or summary",
    faults="splits the reasoning into many items",
    invariant="text-accumulates",
    sample=samples.SUMMARY,
    variants=(
        Variant(
            "deltas",
            "every delta of reasoning has a different item_id",
            _rotated(_is_reasoning_delta, outputs=False),
        ),
        Variant(
            "shared-index",
            "reasoning and the item after it have the same output_index",
            _shared_index,
        ),
    ),
    sources=("BerriAI/litellm#36375",),
)
