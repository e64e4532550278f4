"""Group A: how Chat Completions tells which tool call a fragment is of. `index` has a file of
its own; here are `id` and `name`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mockllm.core.turn import ToolCall, Turn
from mockllm.quirks.base import Context, Item, Quirk, Variant
from mockllm.quirks.chat import index
from mockllm.quirks.chat.chunks import (
    Fragment,
    alike,
    by_choice,
    calls,
    fragments,
    inserted,
    later,
    put,
)
from mockllm.quirks.samples import CALL

__all__ = ["QUIRKS"]


def _id_repeated(items: list[Item], _: Context) -> list[Item]:
    for opening, fragment in later(items):
        if "id" in opening.entry:
            put(fragment, id=opening.entry["id"])
    return items


def _new_ids(items: list[Item], _: Context) -> list[Item]:
    """The opening of call i has the id i + 1; the numbers beyond those are for the others."""
    for own in by_choice(items):
        opened: set[int] = set()
        fresh = max(fragment.entry["index"] for fragment in own) + 2
        for fragment in own:
            index = fragment.entry["index"]
            if index in opened:
                put(fragment, id=str(fresh))
                fresh += 1
            else:
                put(fragment, id=str(index + 1))
                opened.add(index)
    return items


def _numbered(turn: Turn) -> Turn:
    parts = list(turn.parts)
    number = 0
    for place, part in enumerate(parts):
        if isinstance(part, ToolCall):
            number += 1
            parts[place] = replace(part, id=str(number))
    return replace(turn, parts=tuple(parts))


def _name(fragment: Fragment, value: Any) -> None:
    """Sets the name of a fragment; it comes before the arguments."""
    rest = {key: held for key, held in fragment.function.items() if key != "name"}
    fragment.function.clear()
    fragment.function.update({"name": value, **rest})


def _empty_later(items: list[Item], _: Context) -> list[Item]:
    for _opening, fragment in later(items):
        put(fragment, id="", type="function")
        _name(fragment, "")
    return items


def _empty_id_later(items: list[Item], _: Context) -> list[Item]:
    for _opening, fragment in later(items):
        put(fragment, id="")
    return items


def _null_later(items: list[Item], _: Context) -> list[Item]:
    for _opening, fragment in later(items):
        put(fragment, id=None, type=None)
        _name(fragment, None)
    return items


def _null_words(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        put(opening, id="null")
    return items


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


def _null_id(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        put(opening, id=None)
    return items


def _empty_id(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        put(opening, id="")
    return items


def _name_repeated(items: list[Item], _: Context) -> list[Item]:
    for opening, fragment in later(items):
        if "name" in opening.function:
            _name(fragment, opening.function["name"])
    return items


def _halves(name: object) -> tuple[str, str] | None:
    """A name in two pieces, after a separator where there is one.

    The pieces differ: equal ones would be a name that is repeated. None where no cut does that.
    """
    if not isinstance(name, str):
        return None
    words = [i for i in range(1, len(name)) if name[i - 1] in "_-"]
    middle = sorted(range(1, len(name)), key=lambda i: abs(2 * i - len(name)))
    for place in (*words, *middle):
        if name[:place] != name[place:]:
            return name[:place], name[place:]
    return None


def _name_split(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        halves = _halves(opening.function.get("name"))
        if halves is not None:
            opening.function["name"] = halves[0]
            items = _named(items, opening, halves[1])
    return items


def _name_split_first(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        halves = _halves(opening.function.get("name"))
        if halves is not None and not opening.arguments:
            opening.function.pop("arguments", None)
            opening.function["name"] = halves[0]
            items = _named(items, opening, halves[1])
    return items


def _name_late(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        name = opening.function.get("name")
        if isinstance(name, str) and name:
            opening.function["name"] = ""
            items = _named(items, opening, name)
    return items


def _named(items: list[Item], opening: Fragment, name: str) -> list[Item]:
    """The items with a chunk behind an opening that has more of its name."""
    entry = {"index": opening.entry["index"], "function": {"name": name, "arguments": ""}}
    return inserted(items, opening.spot.item, [alike(opening.spot, {"tool_calls": [entry]})])


_ID_REPEATED = Quirk(
    name="chat-id-repeated",
    group="A",
    title="Every fragment has the id of its call",
    only=("chat",),
    servers="OpenAI-compatible servers and converters",
    right="same",
    correct="set the id once",
    faults="appends the id to itself",
    invariant="id-kept",
    sample=CALL,
    variants=(Variant(says="the same id again and again", frames=_id_repeated),),
    sources=("openai/openai-agents-python#990", "LionSR/TeXRA#4575"),
)

_NEW_IDS = Quirk(
    name="chat-id-new-every-chunk",
    group="A",
    title="Every fragment has an id of its own",
    only=("chat",),
    servers="LM Studio",
    right="same",
    correct="known index and no name: the fragment continues its call, whose first id stays",
    faults="makes a call of each fragment, or keeps the last id",
    invariant="id-kept",
    sample=CALL,
    variants=(Variant(says='"1", "2", ... under one index', frames=_new_ids, meaning=_numbered),),
    sources=("NousResearch/hermes-agent#106943", "NousResearch/hermes-agent#5254"),
)

_EMPTY_LATER = Quirk(
    name="chat-id-empty-later",
    group="A",
    title="The id is empty after the opening, and so is the name",
    only=("chat",),
    servers="Alibaba DashScope (Qwen, GLM)",
    right="same",
    correct="an empty string says nothing",
    faults="opens a call with each fragment, or erases the name",
    invariant="id-kept",
    sample=CALL,
    variants=(
        Variant(says='id and name are ""', frames=_empty_later),
        Variant("id-only", 'id is "", the name is not there', _empty_id_later),
    ),
    sources=("anomalyco/opencode#37841",),
)

_NULL_LATER = Quirk(
    name="chat-id-null-later",
    group="A",
    title="Id, type and name are null after the opening",
    only=("chat",),
    servers="SGLang, Cloudflare Workers AI",
    right="same",
    correct="null is the same as not there",
    faults='rejects the chunk, fails, or makes the text "null" of it',
    invariant="null-tolerant",
    sample=CALL,
    variants=(Variant(says="null in three fields", frames=_null_later),),
    sources=("lidge-jun/opencodex#1754", "Effect-TS/effect#8333", "deathbyknowledge/gsv#268"),
)

_NULL_WORD = Quirk(
    name="chat-placeholder-null-string",
    group="A",
    title='The id or the name of a call is the text "null"',
    only=("chat",),
    servers="servers that put merged chunks together anew",
    right="either",
    correct="report it; an id that several calls share links no result, a tool null is unknown",
    faults="takes all such calls for one",
    invariant="id-kept",
    sample=CALL,
    variants=(
        Variant(says="the id of each call", frames=_null_words, ids=False),
        Variant("name", "the name of each call", _null_names, meaning=_called_null),
    ),
    sources=("langchain-ai/langchainjs#11373", "pgadmin-org/pgadmin4#9828"),
)

_NO_ID = Quirk(
    name="chat-id-never",
    group="A",
    title="Calls have no id",
    only=("chat",),
    servers="older Ollama and what is built on it, converters from Gemini",
    right="same",
    correct="make up an id, unique and the same from then on",
    faults="loses the call, or cannot say which call a result belongs to",
    invariant="missing-id",
    sample=CALL,
    variants=(
        Variant(says="no id field", frames=_no_id, ids=False),
        Variant("null", "the id is null", _null_id, ids=False),
        Variant("empty", 'the id is ""', _empty_id, ids=False),
    ),
    sources=("BerriAI/litellm#11262", "deepset-ai/haystack-core-integrations#3321"),
)

_NAME_REPEATED = Quirk(
    name="chat-name-repeated",
    group="A",
    title="Every fragment has the name of its call",
    only=("chat",),
    servers="MiniMax at NVIDIA NIM, parsers for Qwen, proxies",
    right="same",
    correct="a name that equals the one known already says nothing",
    faults="appends the name to itself",
    invariant="name-kept",
    sample=CALL,
    variants=(Variant(says="the same name again and again", frames=_name_repeated),),
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
    title="The name comes in two pieces",
    only=("chat",),
    servers="Gemini's OpenAI-compatible endpoint, parsers in llama.cpp and vLLM",
    right="same",
    correct="append a piece that differs from what is there",
    faults="keeps the last piece, or makes two calls",
    invariant="name-kept",
    sample=CALL,
    variants=(
        Variant(says="the second piece in a chunk of its own", frames=_name_split),
        Variant(
            "before-arguments", "no arguments field before the name is whole", _name_split_first
        ),
    ),
    sources=("continuedev/continue#5849",),
)

_NAME_LATE = Quirk(
    name="chat-name-empty-first",
    group="A",
    title="The name is empty at first and comes in the next chunk",
    only=("chat",),
    servers="vMLX",
    right="same",
    correct="wait for a name that is not empty",
    faults="loses the call, or rejects the chunk",
    invariant="name-kept",
    sample=CALL,
    variants=(Variant(says='"", then the name', frames=_name_late),),
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
