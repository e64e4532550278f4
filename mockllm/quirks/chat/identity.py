"""Group A: quirks of `id` and `name`, by which a client finds the call of a fragment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mockllm.core.turn import ToolCall, Turn
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.chat import index
from mockllm.quirks.chat.chunks import (
    Fragment,
    by_choice,
    calls,
    continuations,
    fragments,
    inserted,
    set_fields,
    with_delta,
)
from mockllm.quirks.samples import CALL

__all__ = ["QUIRKS"]


def _id_repeated(items: list[Item], _: Context) -> list[Item]:
    for opening, fragment in continuations(items):
        if "id" in opening.entry:
            set_fields(fragment, id=opening.entry["id"])
    return items


def _new_ids(items: list[Item], _: Context) -> list[Item]:
    """Gives the opening of call i the id i + 1, and all other fragments higher numbers."""
    for own in by_choice(items):
        opened: set[int] = set()
        fresh = max(fragment.entry["index"] for fragment in own) + 2
        for fragment in own:
            index = fragment.entry["index"]
            if index in opened:
                set_fields(fragment, id=str(fresh))
                fresh += 1
            else:
                set_fields(fragment, id=str(index + 1))
                opened.add(index)
    return items


def _numbered(turn: Turn) -> Turn:
    parts = list(turn.parts)
    number = 0
    for i, part in enumerate(parts):
        if isinstance(part, ToolCall):
            number += 1
            parts[i] = replace(part, id=str(number))
    return replace(turn, parts=tuple(parts))


def _name(fragment: Fragment, value: Any) -> None:
    """Sets the name of a fragment; it comes before the arguments."""
    rest = {key: held for key, held in fragment.function.items() if key != "name"}
    fragment.function.clear()
    fragment.function.update({"name": value, **rest})


def _empty_later(items: list[Item], _: Context) -> list[Item]:
    for _opening, fragment in continuations(items):
        set_fields(fragment, id="", type="function")
        _name(fragment, "")
    return items


def _empty_id_later(items: list[Item], _: Context) -> list[Item]:
    for _opening, fragment in continuations(items):
        set_fields(fragment, id="")
    return items


def _null_later(items: list[Item], _: Context) -> list[Item]:
    for _opening, fragment in continuations(items):
        set_fields(fragment, id=None, type=None)
        _name(fragment, None)
    return items


def _opened_with_id(value: str | None) -> FramesChange:
    def change(items: list[Item], _: Context) -> list[Item]:
        for opening, *_others in calls(items):
            set_fields(opening, id=value)
        return items

    return change


def _null_names(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        _name(opening, "null")
    return items


def _called_null(turn: Turn) -> Turn:
    parts = tuple(
        replace(part, name="null") if isinstance(part, ToolCall) else part for part in turn.parts
    )
    return replace(turn, parts=parts)


def _no_id(items: list[Item], _: Context) -> list[Item]:
    for fragment in fragments(items):
        fragment.entry.pop("id", None)
    return items


def _name_repeated(items: list[Item], _: Context) -> list[Item]:
    for opening, fragment in continuations(items):
        if "name" in opening.function:
            _name(fragment, opening.function["name"])
    return items


def _halves(name: object) -> tuple[str, str] | None:
    """A name cut in two, after a separator if it has one; None where no cut is possible.

    The halves differ. Equal ones would look like a repeated name (`chat-name-repeated`).
    """
    if not isinstance(name, str):
        return None
    separators = [i for i in range(1, len(name)) if name[i - 1] in "_-"]
    middle = sorted(range(1, len(name)), key=lambda i: abs(2 * i - len(name)))
    for cut in (*separators, *middle):
        if name[:cut] != name[cut:]:
            return name[:cut], name[cut:]
    return None


def _name_split(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        halves = _halves(opening.function.get("name"))
        if halves is not None:
            opening.function["name"] = halves[0]
            items = _with_name_after(items, opening, halves[1])
    return items


def _name_split_first(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        halves = _halves(opening.function.get("name"))
        if halves is not None and not opening.arguments:
            opening.function.pop("arguments", None)
            opening.function["name"] = halves[0]
            items = _with_name_after(items, opening, halves[1])
    return items


def _name_late(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        name = opening.function.get("name")
        if isinstance(name, str) and name:
            opening.function["name"] = ""
            items = _with_name_after(items, opening, name)
    return items


def _with_name_after(items: list[Item], opening: Fragment, name: str) -> list[Item]:
    """The items with another chunk after an opening, with the rest of its name."""
    entry = {"index": opening.entry["index"], "function": {"name": name, "arguments": ""}}
    return inserted(
        items, opening.choice.item, [with_delta(opening.choice, {"tool_calls": [entry]})]
    )


_ID_REPEATED = Quirk(
    name="chat-id-repeated",
    group="A",
    topic="ids",
    title="Every fragment has the id of its call",
    only=("chat",),
    servers="OpenAI-compatible servers and converters",
    right="same",
    correct="set the id once",
    faults="appends the id to itself",
    invariant="id-kept",
    sample=CALL,
    variants=(Variant(description="the same id in every fragment", frames=_id_repeated),),
    sources=("openai/openai-agents-python#990", "LionSR/TeXRA#4575"),
)

_NEW_IDS = Quirk(
    name="chat-id-new-every-chunk",
    group="A",
    topic="ids",
    title="Every fragment of a call has a new id",
    only=("chat",),
    servers="LM Studio",
    right="same",
    correct="an entry with a known index and no name continues that call; keep its first id",
    faults="makes a call from each fragment, or keeps the last id",
    invariant="id-kept",
    sample=CALL,
    variants=(
        Variant(
            description='"1", "2", ... under the same index', frames=_new_ids, expected=_numbered
        ),
    ),
    sources=("NousResearch/hermes-agent#106943", "NousResearch/hermes-agent#5254"),
)

_EMPTY_LATER = Quirk(
    name="chat-id-empty-later",
    group="A",
    topic="ids",
    title="The id, and often the name, are empty after the opening entry",
    only=("chat",),
    servers="Alibaba DashScope (Qwen, GLM)",
    right="same",
    correct="treat an empty string as absent",
    faults='opens a call at each fragment, or overwrites the name with ""',
    invariant="id-kept",
    sample=CALL,
    variants=(
        Variant(description='id and name are ""', frames=_empty_later),
        Variant("id-only", 'id is "", name is absent', _empty_id_later),
    ),
    sources=("anomalyco/opencode#37841",),
)

_NULL_LATER = Quirk(
    name="chat-id-null-later",
    group="A",
    topic="ids",
    title="Id, type and name are null after the opening entry",
    only=("chat",),
    servers="SGLang, Cloudflare Workers AI",
    right="same",
    correct="treat null as absent",
    faults='rejects the chunk, raises a TypeError, or stores the text "null"',
    invariant="null-tolerant",
    sample=CALL,
    variants=(Variant(description="null in all three fields", frames=_null_later),),
    sources=("lidge-jun/opencodex#1754", "Effect-TS/effect#8333", "deathbyknowledge/gsv#268"),
)

_NULL_WORD = Quirk(
    name="chat-placeholder-null-string",
    group="A",
    topic="ids",
    title='The id or the name of a call is the text "null"',
    only=("chat",),
    servers="servers that re-serialise merged chunks",
    right="either",
    correct='report it: a shared id links no result, and no tool is called "null"',
    faults="merges all such calls into one",
    invariant="id-kept",
    sample=CALL,
    variants=(
        Variant(
            description='the id of every call is "null"', frames=_opened_with_id("null"), ids=False
        ),
        Variant("name", 'the name of every call is "null"', _null_names, expected=_called_null),
    ),
    sources=("langchain-ai/langchainjs#11373", "pgadmin-org/pgadmin4#9828"),
)

_NO_ID = Quirk(
    name="chat-id-never",
    group="A",
    topic="ids",
    title="Calls have no id",
    only=("chat",),
    servers="older Ollama and software built on it, converters from Gemini",
    right="same",
    correct="generate a unique id and keep it",
    faults="loses the call, or cannot link a result to its call",
    invariant="missing-id",
    sample=CALL,
    variants=(
        Variant(description="no id field", frames=_no_id, ids=False),
        Variant("null", "the id is null", _opened_with_id(None), ids=False),
        Variant("empty", 'the id is ""', _opened_with_id(""), ids=False),
    ),
    sources=("BerriAI/litellm#11262", "deepset-ai/haystack-core-integrations#3321"),
)

_NAME_REPEATED = Quirk(
    name="chat-name-repeated",
    group="A",
    topic="names",
    title="Every fragment has the name of its call",
    only=("chat",),
    servers="MiniMax at NVIDIA NIM, parsers for Qwen, proxies",
    right="same",
    correct="ignore a name that equals the name so far",
    faults="appends the name to itself",
    invariant="name-kept",
    sample=CALL,
    variants=(Variant(description="the same name in every fragment", frames=_name_repeated),),
    sources=(
        "NousResearch/hermes-agent#11984",
        "NousResearch/hermes-agent#8259",
        "mcowger/plexus#719",
        "openai/openai-agents-python#326",
    ),
)

_NAME_SPLIT = Quirk(
    name="chat-name-split",
    group="A",
    topic="names",
    title="The name comes in two fragments",
    only=("chat",),
    servers="Gemini's OpenAI-compatible endpoint, parsers in llama.cpp and vLLM",
    right="same",
    correct="append a fragment that differs from the name so far",
    faults="keeps the last fragment, or makes two calls",
    invariant="name-kept",
    sample=CALL,
    variants=(
        Variant(description="the second fragment in a chunk of its own", frames=_name_split),
        Variant(
            "before-arguments", "no arguments field before the name is complete", _name_split_first
        ),
    ),
    sources=("continuedev/continue#5849",),
)

_NAME_LATE = Quirk(
    name="chat-name-empty-first",
    group="A",
    topic="names",
    title="The name is empty at first and comes in the next chunk",
    only=("chat",),
    servers="vMLX",
    right="same",
    correct="wait for a name that is not empty",
    faults="loses the call, or rejects the chunk",
    invariant="name-kept",
    sample=CALL,
    variants=(Variant(description='"", then the name', frames=_name_late),),
    sources=("jjang-ai/vmlx#244",),
)

QUIRKS: tuple[Quirk, ...] = (
    *index.QUIRKS,
    _ID_REPEATED,
    _NEW_IDS,
    _EMPTY_LATER,
    _NULL_LATER,
    _NULL_WORD,
    _NO_ID,
    _NAME_REPEATED,
    _NAME_SPLIT,
    _NAME_LATE,
)
