"""Group A: quirks of the `index` of tool calls."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.timeline import normal
from mockllm.core.turn import ToolCall, Turn
from mockllm.quirks.base import Context, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import (
    Fragment,
    by_choice,
    calls,
    contiguous,
    continuations,
    fragments,
    removed,
    set_fields,
    whole,
)
from mockllm.quirks.samples import CALL, TWO_CALLS

__all__ = ["QUIRKS"]


def _without_index(items: list[Item], _: Context) -> list[Item]:
    items = whole(items)
    for fragment in list(fragments(items)):
        fragment.entry.pop("type", None)
        del fragment.entry["index"]
    return items


def _fragments_without_index(items: list[Item], _: Context) -> list[Item]:
    # Without index and id, only the order shows which call a fragment belongs to.
    items = contiguous(items)
    for fragment in list(fragments(items)):
        del fragment.entry["index"]
    return items


def _empty_id_without_index(items: list[Item], _: Context) -> list[Item]:
    items = whole(items)
    for fragment in list(fragments(items)):
        set_fields(fragment, id="", type="function")
        del fragment.entry["index"]
    return items


def _in_order_of_arrival(turn: Turn) -> Turn:
    """The turn with its calls in the order of their openings; without indexes no other is known."""
    calls = [i for i, part in enumerate(turn.parts) if isinstance(part, ToolCall)]
    arrival = [i for i in dict.fromkeys(turn.order) if i in calls]
    if arrival in ([], calls):
        return turn
    moved = dict(zip(arrival, calls, strict=True))
    parts = list(turn.parts)
    for old, new in moved.items():
        parts[new] = turn.parts[old]
    order = tuple(moved.get(i, i) for i in turn.order)
    return normal(replace(turn, parts=tuple(parts), order=order))


def _index_first_only(items: list[Item], _: Context) -> list[Item]:
    for opening, fragment in continuations(items):
        if "id" in opening.entry:
            set_fields(fragment, id=opening.entry["id"])
            del fragment.entry["index"]
    return items


def _zero(items: list[Item]) -> list[Item]:
    for fragment in fragments(items):
        fragment.entry["index"] = 0
    return items


def _all_zero(items: list[Item], _: Context) -> list[Item]:
    return _zero(whole(items)) if _several(items) else items


def _fragments_all_zero(items: list[Item], _: Context) -> list[Item]:
    # Every fragment has index 0, so it has to follow the opening of its own call.
    return _zero(contiguous(items)) if _several(items) else items


def _several(items: list[Item]) -> bool:
    """Whether any choice has more than one call."""
    return any(len({f.entry["index"] for f in own}) > 1 for own in by_choice(items))


def _same_one_chunk(items: list[Item], _: Context) -> list[Item]:
    if not _several(items):
        return items
    items = whole(items)
    gone: list[Fragment] = []
    for first, *others in by_choice(items):
        for fragment in others:
            gone.append(fragment)
            first.choice.delta["tool_calls"].append({**fragment.entry})
    return _zero(removed(items, gone))


def _duplicate_fragments(items: list[Item], _: Context) -> list[Item]:
    gone: list[Fragment] = []
    for opening, *others in calls(items):
        entries = opening.choice.delta["tool_calls"]
        after = _position(entries, opening) + 1
        moved = list(others)
        if len(moved) > 1 and not opening.arguments:
            opening.function["arguments"] = moved.pop(0).arguments
        entries[after:after] = [{**fragment.entry} for fragment in moved]
        gone += others
    return removed(items, gone)


def _position(entries: list[object], fragment: Fragment) -> int:
    return next(i for i, entry in enumerate(entries) if entry is fragment.entry)


def _from_one(items: list[Item], _: Context) -> list[Item]:
    for fragment in fragments(items):
        fragment.entry["index"] += 1
    return items


def _gap(items: list[Item], _: Context) -> list[Item]:
    for fragment in fragments(items):
        fragment.entry["index"] *= 2
    return items


def _reversed(items: list[Item], _: Context) -> list[Item]:
    """Swaps the entries between the chunks; the chunks keep their positions."""
    for own in by_choice(items):
        ordered = sorted(own, key=lambda fragment: -fragment.entry["index"])
        entries = [{**fragment.entry} for fragment in ordered]
        for fragment, entry in zip(own, entries, strict=True):
            fragment.entry.clear()
            fragment.entry.update(entry)
    return items


_MISSING = Quirk(
    name="chat-index-missing",
    group="A",
    topic="index",
    title="Entries of `tool_calls` have no `index`",
    only=("chat",),
    servers="Gemini's OpenAI-compatible endpoint, Mistral, mistral.rs, older Ollama, proxies",
    right="same",
    correct=(
        "open a call at each new id (at each name if ids are empty); other entries "
        "continue the last call"
    ),
    faults="looks the call up under None, rejects the chunk, or loses the call",
    invariant="arguments-concatenate",
    sample=CALL,
    variants=(
        Variant(
            description="each call complete in one entry with id and function",
            frames=_without_index,
            expected=_in_order_of_arrival,
        ),
        Variant(
            "fragments",
            "id and name in the opening entry, only arguments in the others",
            _fragments_without_index,
            expected=_in_order_of_arrival,
        ),
        Variant(
            "empty-id",
            'each call complete in one entry, and its id is ""',
            _empty_id_without_index,
            expected=_in_order_of_arrival,
            ids=False,
        ),
    ),
    sources=(
        "openai/openai-python#2806",
        "AstrBotDevs/AstrBot#6661",
        "AstrBotDevs/AstrBot#6692",
        "THU-MAIC/OpenMAIC#1556",
        "ollama/ollama#7881",
        "EricLBuehler/mistral.rs#1507",
        "mozilla-ai/any-llm#1148",
        "SamSaffron/term-llm#314",
    ),
)

_FIRST_ONLY = Quirk(
    name="chat-index-first-only",
    group="A",
    topic="index",
    title="Only the opening entry has an index; the others repeat the id",
    only=("chat",),
    servers="gateways",
    right="same",
    correct="find the call by the id",
    faults="gives the arguments to another call, or to a new one",
    invariant="arguments-concatenate",
    sample=CALL,
    variants=(
        Variant(description="id in place of index after the opening", frames=_index_first_only),
    ),
    sources=("diegosouzapw/OmniRoute#6905", "diegosouzapw/OmniRoute#6276"),
)

_ALL_ZERO = Quirk(
    name="chat-index-all-zero",
    group="A",
    topic="index",
    title="Every call has index 0",
    only=("chat",),
    servers="Ollama, proxies for Gemini, self-hosted servers",
    right="same",
    correct="a different id that comes with a name opens another call, whatever the index",
    faults="joins the arguments, ids or names of all calls into one call",
    invariant="arguments-concatenate",
    sample=TWO_CALLS,
    variants=(
        Variant(
            description="each call complete, in a chunk of its own",
            frames=_all_zero,
            expected=_in_order_of_arrival,
        ),
        Variant(
            "fragments",
            "each call in fragments, one after the other",
            _fragments_all_zero,
            expected=_in_order_of_arrival,
        ),
    ),
    sources=(
        "ollama/ollama#15457",
        "NousResearch/hermes-agent#12930",
        "NousResearch/hermes-agent#62937",
        "BerriAI/litellm#16188",
        "BerriAI/litellm#16194",
        "ai-dynamo/dynamo#4723",
        "su-kaka/gcli2api#406",
        "omnigent-ai/omnigent#28",
        "vercel/ai#14277",
    ),
)

_SAME_ONE_CHUNK = Quirk(
    name="chat-index-same-one-chunk",
    group="A",
    topic="index",
    title="All calls come complete in one chunk, each with index 0",
    only=("chat",),
    servers="Bedrock's OpenAI-compatible endpoint, Ollama",
    right="same",
    correct="each entry has its own id and a name, so each entry is a call",
    faults="merges them into one call",
    invariant="arguments-concatenate",
    sample=TWO_CALLS,
    variants=(
        Variant(
            description="several entries with the same index",
            frames=_same_one_chunk,
            expected=_in_order_of_arrival,
        ),
    ),
    sources=(
        "langchain-ai/langchain#35281",
        "langchain-ai/langchain#34807",
        "ollama/ollama#15457",
    ),
)

_DUPLICATE = Quirk(
    name="chat-index-duplicate-fragments",
    group="A",
    topic="index",
    title="A chunk holds several fragments of one call",
    only=("chat",),
    servers="vLLM with speculative decoding",
    right="same",
    correct="an entry with a known index and neither id nor name continues that call",
    faults="stores the second fragment as a second call",
    invariant="arguments-concatenate",
    sample=CALL,
    variants=(
        Variant(
            description="the opening entry and its continuation in one chunk",
            frames=_duplicate_fragments,
        ),
    ),
    sources=("openai/openai-python#3201", "openai/openai-python#3425"),
)

_FROM_ONE = Quirk(
    name="chat-index-from-one",
    group="A",
    topic="index",
    title="Indexes do not count up from 0",
    only=("chat",),
    servers="converters from Anthropic that use the index of the content block",
    right="same",
    correct="use the index as a key, not as a position in a list",
    faults="fails with an index out of range",
    invariant="arguments-concatenate",
    sample=TWO_CALLS,
    variants=(
        Variant(description="1, 2, ...", frames=_from_one),
        Variant("gap", "0, 2, 4, ...", _gap),
    ),
    sources=("anthropics/anthropic-sdk-python#1192",),
)

_REVERSED = Quirk(
    name="chat-index-reversed",
    group="A",
    topic="index",
    title="The call with the highest index comes first",
    only=("chat",),
    servers="none seen; the schema allows it",
    right="same",
    correct="sort the calls by their indexes",
    faults="fails with an index out of range, or keeps the order of arrival",
    invariant="order-by-index",
    sample=TWO_CALLS,
    variants=(
        Variant(description="all entries of index 1, then all of index 0", frames=_reversed),
    ),
)

QUIRKS: tuple[Quirk, ...] = (
    _MISSING,
    _FIRST_ONLY,
    _ALL_ZERO,
    _SAME_ONE_CHUNK,
    _DUPLICATE,
    _FROM_ONE,
    _REVERSED,
)
