"""Group D: quirks of the deltas of Chat Completions: several calls, roles, types, nulls."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import (
    Fragment,
    calls,
    choices_of,
    finishes,
    fragments,
    inserted,
    removed,
    with_delta,
)
from mockllm.quirks.samples import CALL, TEXT, TWO_CALLS

__all__ = ["QUIRKS"]


def _one_chunk(items: list[Item], context: Context) -> list[Item]:
    answers: dict[int, list[list[Fragment]]] = {}
    for call in calls(items):
        answers.setdefault(call[0].choice.index, []).append(call)
    for several in answers.values():
        if len(several) > 1:
            items = _joined(items, several)
    return items


def _joined(items: list[Item], several: list[list[Fragment]]) -> list[Item]:
    """The items with complete calls in one chunk, at the position of their last fragment."""
    parts = [fragment for call in several for fragment in call]
    indexes = {id(item): index for index, item in enumerate(items)}
    last = max(parts, key=lambda fragment: indexes[id(fragment.choice.item)])
    entries = sorted(map(_whole, several), key=lambda entry: int(entry["index"]))
    chunk = with_delta(last.choice, {"tool_calls": entries})
    return removed(inserted(items, last.choice.item, [chunk]), parts)


def _whole(call: Iterable[Fragment]) -> dict[str, Any]:
    first, *others = call
    arguments = first.arguments + "".join(fragment.arguments for fragment in others)
    return {**first.entry, "function": {**first.function, "arguments": arguments}}


def _interleaved(items: list[Item], context: Context) -> list[Item]:
    queues: dict[tuple[int, int], list[Item]] = {}
    for fragment in fragments(items):
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


def _is_only(fragment: Fragment) -> bool:
    """Whether a chunk has this fragment and nothing else."""
    choice = fragment.choice
    alone = (
        len(choice.item.data["choices"])
        == len(choice.delta)
        == len(choice.delta["tool_calls"])
        == 1
    )
    return alone and choice.fields.get("finish_reason") is None


def _role_everywhere(items: list[Item], context: Context) -> list[Item]:
    for choice in choices_of(items):
        choice.fields["delta"] = {"role": "assistant", **choice.delta}
    return items


def _role(value: str | None) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        for choice in choices_of(items):
            if choice.delta:
                choice.fields["delta"] = {"role": value, **choice.delta} | {"role": value}
        return items

    return change


def _role_never(items: list[Item], context: Context) -> list[Item]:
    for choice in choices_of(items):
        choice.delta.pop("role", None)
    return items


def _type_missing(items: list[Item], context: Context) -> list[Item]:
    for fragment in fragments(items):
        fragment.entry.pop("type", None)
    return items


def _no_calls(value: list[Any] | None) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        for choice in choices_of(items):
            if "content" in choice.delta and "tool_calls" not in choice.delta:
                choice.delta["tool_calls"] = value if value is None else [*value]
        return items

    return change


def _delta_null(items: list[Item], context: Context) -> list[Item]:
    for choice in finishes(items):
        if not choice.delta:
            choice.fields["delta"] = None
    return items


def _delta_absent(items: list[Item], context: Context) -> list[Item]:
    for choice in finishes(items):
        if not choice.delta:
            del choice.fields["delta"]
    return items


QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        name="chat-two-calls-one-chunk",
        group="D",
        topic="calls",
        title="Several calls come complete in one chunk",
        only=("chat",),
        servers="Mistral, Gemini's compatible endpoint, Groq, Ollama",
        right="same",
        correct="read every entry of `tool_calls`",
        faults="reads only the first entry",
        invariant="arguments-concatenate",
        sample=TWO_CALLS,
        variants=(
            Variant(
                description=(
                    '`"tool_calls":[{"index":0,…},{"index":1,…}]`, each with all its arguments'
                ),
                frames=_one_chunk,
            ),
        ),
        sources=("mcowger/plexus#691",),
    ),
    Quirk(
        name="chat-calls-interleaved",
        group="D",
        topic="calls",
        title="Fragments of several calls alternate",
        only=("chat",),
        servers="GLM on Fireworks, Qwen's servers, Bedrock",
        right="same",
        correct="route each fragment by its index",
        faults="appends each fragment to the call that opened last",
        invariant="arguments-concatenate",
        sample=TWO_CALLS,
        variants=(
            Variant(
                description="a fragment with index 0, one with index 1, one with index 0, …",
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
        topic="content",
        title="Every delta has the role",
        only=("chat",),
        servers="Ollama, OpenRouter, Together, z.ai, DeepSeek on Azure, Perplexity",
        right="same",
        correct="set the role; do not append it",
        faults="builds the role `assistantassistant`",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant(
                description='`{"delta":{"role":"assistant","content":"lo"}}`',
                frames=_role_everywhere,
            ),
        ),
        sources=("ollama/ollama#7626", "ollama/ollama#17166", "pydantic/logfire#545"),
    ),
    Quirk(
        name="chat-role-null-empty-never",
        group="D",
        topic="content",
        title="The role is null, empty or never sent",
        only=("chat",),
        servers="Cloudflare, gateways that convert from other APIs",
        right="same",
        correct="assume `assistant`",
        faults="fails because the role is unknown or missing",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant("null", '`"role":null` in every delta that is not empty', frames=_role(None)),
            Variant("empty", '`"role":""` in every delta that is not empty', frames=_role("")),
            Variant("never", "no delta has a role", frames=_role_never),
        ),
        sources=("Effect-TS/effect#8333",),
    ),
    Quirk(
        name="chat-type-missing",
        group="D",
        topic="calls",
        title="The entries of `tool_calls` have no `type`",
        only=("chat",),
        servers="Gemini's compatible endpoint and others",
        right="same",
        correct="assume `function`",
        faults="fails because the type is missing",
        invariant="null-tolerant",
        sample=CALL,
        variants=(
            Variant(
                description='`{"index":0,"id":"call_A1","function":{…}}` opens the call',
                frames=_type_missing,
            ),
        ),
    ),
    Quirk(
        name="chat-tool-calls-null",
        group="D",
        topic="calls",
        title="Chunks of text have `tool_calls` that are null or empty",
        only=("chat",),
        servers="Inception Mercury, Kimi and many others",
        right="same",
        correct="treat them as absent",
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
        topic="content",
        title="The finish chunk has a null delta, or none",
        only=("chat",),
        servers="Azure OpenAI with its asynchronous filter",
        right="same",
        correct="treat the delta as empty, and read the finish reason",
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
