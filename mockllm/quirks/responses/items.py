"""Quirks of output items in Responses streams: their identity and their place.

Each change stands above the quirk that it makes.
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
    kind,
    numbered,
    output,
    owner,
    put_back,
    shown,
    shown_items,
)

__all__ = [
    "INTERLEAVED",
    "ITEM_ID_NULL",
    "ITEM_ID_ROTATES",
    "OUTPUT_INDEX",
    "REASONING_IDS",
]

# Identifiers


def _rotated(at: Callable[[str], bool], *, outputs: bool = True) -> FramesChange:
    """Gives items another id each time that an event of one of these types names them."""

    def change(items: list[Item], context: Context) -> list[Item]:
        counts: Counter[str] = Counter()

        def fresh(id: object) -> str:
            prefix = str(id).partition("_")[0]
            counts[prefix] += 1
            return f"{prefix}_{counts[prefix]}"

        for item in items:
            if owner(item) is not None and at(kind(item)):
                place, name = (shown(item), "id") if shown(item) else (event(item), "item_id")
                place[name] = fresh(place[name])
            for entry in output(item) if outputs else ():
                if isinstance(entry.get("id"), str):
                    entry["id"] = fresh(entry["id"])
        return items

    return change


ITEM_ID_ROTATES = Quirk(
    name="resp-item-id-rotates",
    group="I",
    only=("responses",),
    title="An output item has another id in every event",
    servers="GitHub Copilot, proxies, vLLM, mistral.rs",
    right="same",
    correct="know items by output_index and calls by call_id",
    faults="an error about an identity that changed, or one call made several times",
    invariant="id-kept",
    sample=samples.CALL,
    variants=(
        Variant("every-event", "fc_1, fc_2, ...: no two events agree", _rotated(lambda _: True)),
        Variant(
            "item-done",
            "the finished item has another id than its added item and its deltas",
            _rotated(lambda word: word == ITEM_DONE),
        ),
        Variant(
            "completed",
            "the final response has other ids than all events before it",
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
            for entry in shown_items(item):
                if "id" in entry:
                    entry["id"] = None
            if deltas and "item_id" in event(item):
                item.data["item_id"] = None
        return items

    return change


ITEM_ID_NULL = Quirk(
    name="resp-item-id-null",
    group="I",
    only=("responses",),
    title="Output items have no id",
    servers="servers compatible with OpenAI",
    right="same",
    correct="know items by output_index",
    faults="refused as invalid",
    invariant="null-tolerant",
    sample=samples.CALL,
    variants=(
        Variant("null", "id and item_id are null everywhere", _null_ids(deltas=True)),
        Variant("in-items", "id is null in items; deltas have an item_id", _null_ids(deltas=False)),
    ),
)


# Places


def _indexed(place: Callable[[int], int]) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        for item in items:
            if (at := index(item)) is not None:
                item.data["output_index"] = place(at)
        return items

    return change


@numbered
def _reversed(items: list[Item], context: Context) -> list[Item]:
    placed = [item for item in items if index(item) is not None]
    return put_back(items, sorted(placed, key=lambda item: -(index(item) or 0)))


OUTPUT_INDEX = Quirk(
    name="resp-output-index",
    group="I",
    only=("responses",),
    title="output_index is no running number",
    servers="servers that convert from another protocol",
    right="same",
    correct="it is a key and no position; where items share it, their ids tell them apart",
    faults="IndexError, or an item takes the place of another",
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
    return put_back(items, [*heads, *rounds, *tails])


INTERLEAVED = Quirk(
    name="resp-interleaved",
    group="I",
    only=("responses",),
    title="Items are open at the same time, and their deltas alternate",
    servers="OpenRouter, xAI, lists of MCP tools",
    right="same",
    correct="put each delta where its output_index or item_id says",
    faults="fragments fall apart into many calls",
    invariant="arguments-concatenate",
    sample=samples.TWO_CALLS,
    variants=(Variant("", "added 0, added 1, delta 0, delta 1, delta 0, ...", _interleaved),),
    sources=("microsoft/agent-framework#8336",),
)


# Reasoning


def _is_reasoning_delta(type: str) -> bool:
    return type.startswith("response.reasoning_") and type.endswith(".delta")


def _shared_index(items: list[Item], context: Context) -> list[Item]:
    if any(shown(item).get("type") == "reasoning" for item in items):
        return _indexed(lambda _: 0)(items, context)
    return items


REASONING_IDS = Quirk(
    name="resp-reasoning-ids",
    group="I",
    only=("responses",),
    title="Every fragment of reasoning names another item",
    servers="the bridge of LiteLLM from Chat Completions",
    right="same",
    correct="know reasoning by output_index and the index of its content or summary",
    faults="reasoning falls apart into many pieces",
    invariant="text-accumulates",
    sample=samples.SUMMARY,
    variants=(
        Variant(
            "deltas",
            "item_id is another in every delta of reasoning",
            _rotated(_is_reasoning_delta, outputs=False),
        ),
        Variant(
            "shared-index",
            "reasoning and what follows it have the same output_index",
            _shared_index,
        ),
    ),
    sources=("BerriAI/litellm#36375",),
)
