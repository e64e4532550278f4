"""What is inside of the deltas of Chat Completions: several calls, roles, types, nulls."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import (
    Fragment,
    alike,
    calls,
    finishes,
    fragments,
    inserted,
    removed,
    spots,
)
from mockllm.quirks.samples import CALL, TEXT, TWO_CALLS

__all__ = ["QUIRKS"]


def _one_chunk(items: list[Item], context: Context) -> list[Item]:
    answers: dict[int, list[list[Fragment]]] = {}
    for call in calls(items):
        answers.setdefault(call[0].spot.index, []).append(call)
    for several in answers.values():
        if len(several) > 1:
            items = _joined(items, several)
    return items


def _joined(items: list[Item], several: list[list[Fragment]]) -> list[Item]:
    """The items with calls whole in one chunk, where the last fragment of them was."""
    parts = [fragment for call in several for fragment in call]
    places = {id(item): place for place, item in enumerate(items)}
    last = max(parts, key=lambda fragment: places[id(fragment.spot.item)])
    entries = sorted(map(_whole, several), key=lambda entry: int(entry["index"]))
    chunk = alike(last.spot, {"tool_calls": entries})
    return removed(inserted(items, last.spot.item, [chunk]), parts)


def _whole(call: Iterable[Fragment]) -> dict[str, Any]:
    first, *others = call
    arguments = first.arguments + "".join(fragment.arguments for fragment in others)
    return {**first.entry, "function": {**first.function, "arguments": arguments}}


def _interleaved(items: list[Item], context: Context) -> list[Item]:
    queues: dict[tuple[int, int], list[Item]] = {}
    for fragment in fragments(items):
        if _is_only(fragment):
            key = fragment.spot.index, fragment.entry["index"]
            queues.setdefault(key, []).append(fragment.spot.item)
    turns = (item for row in zip_longest(*queues.values()) for item in row if item is not None)
    moved = {id(item) for queue in queues.values() for item in queue}
    times = [item.at for item in items]
    mixed = [next(turns) if id(item) in moved else item for item in items]
    for item, at in zip(mixed, times, strict=True):
        item.at = at
    return mixed


def _is_only(fragment: Fragment) -> bool:
    """Whether a chunk has this fragment and nothing else."""
    spot = fragment.spot
    alone = len(spot.item.data["choices"]) == len(spot.delta) == len(spot.delta["tool_calls"]) == 1
    return alone and spot.choice.get("finish_reason") is None


def _role_everywhere(items: list[Item], context: Context) -> list[Item]:
    for spot in spots(items):
        spot.choice["delta"] = {"role": "assistant", **spot.delta}
    return items


def _role(value: str | None) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        for spot in spots(items):
            if spot.delta:
                spot.choice["delta"] = {"role": value, **spot.delta} | {"role": value}
        return items

    return change


def _role_never(items: list[Item], context: Context) -> list[Item]:
    for spot in spots(items):
        spot.delta.pop("role", None)
    return items


def _type_missing(items: list[Item], context: Context) -> list[Item]:
    for fragment in fragments(items):
        fragment.entry.pop("type", None)
    return items


def _no_calls(value: list[Any] | None) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        for spot in spots(items):
            if "content" in spot.delta and "tool_calls" not in spot.delta:
                spot.delta["tool_calls"] = value if value is None else [*value]
        return items

    return change


def _delta_null(items: list[Item], context: Context) -> list[Item]:
    for spot in finishes(items):
        if not spot.delta:
            spot.choice["delta"] = None
    return items


def _delta_absent(items: list[Item], context: Context) -> list[Item]:
    for spot in finishes(items):
        if not spot.delta:
            del spot.choice["delta"]
    return items


QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        name="chat-two-calls-one-chunk",
        group="D",
        title="Several calls come whole in one chunk",
        only=("chat",),
        servers="Mistral, Gemini's compatible endpoint, Groq, Ollama",
        right="same",
        correct="read every entry of `tool_calls`",
        faults="reads only the first entry",
        invariant="arguments-concatenate",
        sample=TWO_CALLS,
        variants=(
            Variant(
                says='`"tool_calls":[{"index":0,…},{"index":1,…}]`, each with all its arguments',
                frames=_one_chunk,
            ),
        ),
        sources=("mcowger/plexus#691",),
    ),
    Quirk(
        name="chat-calls-interleaved",
        group="D",
        title="Fragments of several calls alternate",
        only=("chat",),
        servers="GLM on Fireworks, Qwen's servers, Bedrock",
        right="same",
        correct="the index says to which call a fragment belongs",
        faults="appends each fragment to the call that opened last",
        invariant="arguments-concatenate",
        sample=TWO_CALLS,
        variants=(
            Variant(
                says="a fragment with index 0, one with index 1, one with index 0, …",
                frames=_interleaved,
            ),
        ),
        sources=(
            "charmbracelet/fantasy#294",
            "microsoft/agent-framework#8336",
            "QwenLM/Qwen-Agent#943",
            "cline/cline#9738",
            "oracle/langchain-oracle#108",
        ),
    ),
    Quirk(
        name="chat-role-every-chunk",
        group="D",
        title="Every delta has the role",
        only=("chat",),
        servers="Ollama, OpenRouter, Together, z.ai, DeepSeek on Azure, Perplexity",
        right="same",
        correct="the role is set, not appended",
        faults="makes a role of `assistantassistant`",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant(
                says='`{"delta":{"role":"assistant","content":"lo"}}`', frames=_role_everywhere
            ),
        ),
        sources=("ollama/ollama#7626", "ollama/ollama#17166", "pydantic/logfire#545"),
    ),
    Quirk(
        name="chat-role-null-empty-never",
        group="D",
        title="The role is null, or empty, or never there",
        only=("chat",),
        servers="Cloudflare, gateways that convert from other APIs",
        right="same",
        correct="take the role for `assistant`",
        faults="fails because the role is none of the known ones, or missing",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant("null", '`"role":null` in every delta that says something', frames=_role(None)),
            Variant("empty", '`"role":""` in every delta that says something', frames=_role("")),
            Variant("never", "no delta has a role", frames=_role_never),
        ),
        sources=("Effect-TS/effect#8333",),
    ),
    Quirk(
        name="chat-type-missing",
        group="D",
        title="The entries of `tool_calls` have no `type`",
        only=("chat",),
        servers="Gemini's compatible endpoint and others",
        right="same",
        correct="take the type for `function`",
        faults="fails because the type is missing",
        invariant="null-tolerant",
        sample=CALL,
        variants=(
            Variant(
                says='`{"index":0,"id":"call_A1","function":{…}}` opens the call',
                frames=_type_missing,
            ),
        ),
    ),
    Quirk(
        name="chat-tool-calls-null",
        group="D",
        title="Chunks of text have `tool_calls`, null or empty",
        only=("chat",),
        servers="Inception Mercury, Kimi and many others",
        right="same",
        correct="take it as absent",
        faults="iterates over null",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant("null", '`"tool_calls":null` beside the content', frames=_no_calls(None)),
            Variant("empty", '`"tool_calls":[]` beside the content', frames=_no_calls([])),
        ),
        sources=("Effect-TS/effect#7268",),
    ),
    Quirk(
        name="chat-delta-null",
        group="D",
        title="The chunk with the finish reason has a delta of null, or none",
        only=("chat",),
        servers="Azure OpenAI with its asynchronous filter",
        right="same",
        correct="take the delta for empty, and read the finish reason",
        faults="fails on the missing delta, or loses the finish reason",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant(
                "null",
                '`{"index":0,"delta":null,"finish_reason":"stop"}`',
                frames=_delta_null,
            ),
            Variant("absent", '`{"index":0,"finish_reason":"stop"}`', frames=_delta_absent),
        ),
        sources=(
            "openai/openai-python#1677",
            "openai/openai-python#2313",
            "openai/openai-python#3189",
            "microsoft/semantic-kernel#7250",
            "BerriAI/litellm#3811",
            "langchain-ai/langchain#18977",
            "pydantic/pydantic-ai#797",
            "microsoft/agent-framework#1563",
            "eneo-ai/eneo#126",
        ),
    ),
)
