"""Group D: the chunks of Chat Completions and (`chat_deltas`) what is inside of their deltas."""

from __future__ import annotations

from typing import Any

from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import Spot, alike, fragments, inserted, spots
from mockllm.quirks.chat.deltas import QUIRKS as DELTAS
from mockllm.quirks.samples import CALL, REASONING, TEXT

__all__ = ["QUIRKS"]

_SAFE = {
    kind: {"filtered": False, "severity": "safe"}
    for kind in ("hate", "self_harm", "sexual", "violence")
}
_NOBODY = {"created": 0, "id": "", "model": "", "object": ""}


def _prompt_filter(items: list[Item], context: Context) -> list[Item]:
    if next(spots(items), None) is None:
        return items
    results = [{"prompt_index": 0, "content_filter_results": _SAFE}]
    chunk = {"choices": [], **_NOBODY, "prompt_filter_results": results}
    return [Item(items[0].at, chunk).copy(), *items]


def _async_filter(items: list[Item], context: Context) -> list[Item]:
    lengths: dict[int, int] = {}
    for spot in list(spots(items)):
        text = _text(spot)
        if text:
            start = lengths.get(spot.index, 0)
            lengths[spot.index] = start + len(text)
            checked = _checked(spot, start, start + len(text))
            items = inserted(items, spot.item, [checked])
    return items


def _text(spot: Spot) -> str:
    content = spot.delta.get("content")
    return content if isinstance(content, str) else ""


def _checked(spot: Spot, start: int, end: int) -> Item:
    """What the asynchronous filter says of the text between two offsets."""
    choice = {
        "content_filter_offsets": {"check_offset": end, "start_offset": start, "end_offset": end},
        "content_filter_results": _SAFE,
        "finish_reason": None,
        "index": spot.index,
    }
    return Item(spot.item.at, {"choices": [choice], **_NOBODY}).copy()


def _text_parts(items: list[Item], context: Context) -> list[Item]:
    for spot in spots(items):
        if _text(spot):
            spot.delta["content"] = [{"type": "text", "text": spot.delta["content"]}]
    return items


def _thinking_parts(items: list[Item], context: Context) -> list[Item]:
    items = _text_parts(items, context)
    for spot in _thoughts(items):
        thought = spot.delta.pop("reasoning_content")
        if thought:
            inner = [{"type": "text", "text": thought}]
            spot.delta["content"] = [{"type": "thinking", "thinking": inner}]
        else:
            spot.delta["content"] = ""
    return items


def _thoughts(items: list[Item]) -> list[Spot]:
    """The chunks with reasoning and no text."""
    return [
        spot
        for spot in spots(items)
        if isinstance(spot.delta.get("reasoning_content"), str) and not spot.delta.get("content")
    ]


def _null_when_told(items: list[Item], context: Context) -> list[Item]:
    if _thoughts(items):
        for spot in spots(items):
            if "content" in spot.delta:
                spot.delta.setdefault("reasoning_content", None)
    return items


def _reasoning(*, both: bool) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        for spot in _thoughts(items):
            thought = spot.delta.pop("reasoning_content")
            spot.delta["reasoning"] = thought
            if both:
                spot.delta["reasoning_content"] = thought
        return items

    return change


def _details(items: list[Item], context: Context) -> list[Item]:
    for spot in _thoughts(items):
        thought = spot.delta.pop("reasoning_content")
        spot.delta["content"] = ""
        spot.delta["reasoning"] = thought
        if thought:
            detail = {"type": "reasoning.text", "text": thought, "format": "unknown", "index": 0}
            spot.delta["reasoning_details"] = [detail]
    return items


def _ids_change(items: list[Item], context: Context) -> list[Item]:
    count = 0
    for item in items:
        if isinstance(item.data, dict) and {"id", "choices"} <= item.data.keys():
            count += 1
            item.data["id"] = f"c{count}"
    return items


def _two_choices(*, first: bool) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        if any(spot.index for spot in spots(items)):
            return items
        told: list[Item] = []
        for item in items:
            others = [_other(spot) for spot in spots([item])]
            told += [*others, item] if first else [item, *others]
        return told

    return change


def _other(spot: Spot) -> Item:
    """The same step of another answer."""
    item = alike(spot, {key: _said(key, value) for key, value in spot.delta.items()})
    (choice,) = item.data["choices"]
    choice["index"] = 1
    choice["finish_reason"] = spot.choice.get("finish_reason")
    return item


def _said(key: str, value: Any) -> Any:
    """A field of a delta with other words, and calls with other ids."""
    if key == "tool_calls" and isinstance(value, list):
        return [_renamed(entry) for entry in value]
    if key == "annotations":
        return []
    return "Bye" if isinstance(value, str) and value and key != "role" else value


def _renamed(entry: Any) -> Any:
    if isinstance(entry, dict) and isinstance(entry.get("id"), str):
        return {**entry, "id": f"{entry['id']}_other"}
    return entry


def _no_content(items: list[Item], context: Context) -> list[Item]:
    calling = {fragment.spot.index for fragment in fragments(items)}
    texts = {spot.index for spot in spots(items) if isinstance(spot.delta.get("content"), str)}
    for spot in spots(items):
        if spot.index in calling - texts and "content" in spot.delta:
            told = {k: v for k, v in spot.delta.items() if k not in _UNSAID or v is not None}
            spot.choice["delta"] = told
    return items


_UNSAID = ("content", "refusal")

QUIRKS: tuple[Quirk, ...] = (
    *DELTAS,
    Quirk(
        name="chat-first-choices-empty",
        group="D",
        title="The first chunk has no choices, but what a filter says of the prompt",
        only=("chat",),
        servers="Azure OpenAI",
        right="same",
        correct="pass over it",
        faults="reads `choices[0]` and crashes",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant(
                says='`{"choices":[],…,"prompt_filter_results":[…]}` comes first',
                frames=_prompt_filter,
            ),
        ),
        sources=(
            "openai/openai-python#1266",
            "microsoft/autogen#4311",
            "Azure/azure-sdk-for-go#21086",
        ),
    ),
    Quirk(
        name="chat-object-empty",
        group="D",
        title="Chunks without identity and delta tell what a filter found",
        only=("chat",),
        servers="Azure OpenAI with its asynchronous filter",
        right="same",
        correct="pass over them, or keep what the filter says",
        faults="reads the delta that is not there",
        invariant="unknown-event",
        sample=TEXT,
        variants=(
            Variant(
                says='`{"choices":[{"content_filter_offsets":{…},"index":0}],"object":""}` '
                "behind each fragment of text",
                frames=_async_filter,
            ),
        ),
        sources=("openai/openai-python#1677", "microsoft/promptflow#4000"),
    ),
    Quirk(
        name="chat-content-parts",
        group="D",
        title="The content is a list of parts",
        only=("chat",),
        servers="Mistral where it reasons, some gateways",
        right="same",
        correct="join the texts of the parts",
        faults="shows `[object Object]`, or fails",
        invariant="text-accumulates",
        sample=TEXT,
        variants=(
            Variant("text", '`"content":[{"type":"text","text":"Hel"}]`', frames=_text_parts),
            Variant(
                "thinking",
                'reasoning is in the content, too: `[{"type":"thinking","thinking":[…]}]`',
                frames=_thinking_parts,
            ),
        ),
    ),
    Quirk(
        name="chat-reasoning-fields",
        group="D",
        title="Reasoning is in fields of its own, in some servers twice",
        only=("chat",),
        servers="DeepSeek, xAI, Alibaba; Groq, Together; StepFun; OpenRouter",
        right="same",
        correct="one text of reasoning",
        faults="drops it, or doubles it where two fields say it",
        invariant="text-accumulates",
        sample=REASONING,
        variants=(
            Variant(
                "reasoning-content",
                "`reasoning_content`, and null beside the text: DeepSeek",
                frames=_null_when_told,
            ),
            Variant("reasoning", "`reasoning`: Groq, Together", frames=_reasoning(both=False)),
            Variant(
                "both",
                "`reasoning` and `reasoning_content` say the same: StepFun",
                frames=_reasoning(both=True),
            ),
            Variant(
                "details",
                "`reasoning` and `reasoning_details` say the same: OpenRouter",
                frames=_details,
            ),
        ),
    ),
    Quirk(
        name="chat-chunk-id-changes",
        group="D",
        title="Every chunk has another id",
        only=("chat",),
        servers="LM Studio, adapters of Ollama",
        right="same",
        correct="one stream is one message",
        faults="begins a message with each chunk",
        invariant="text-accumulates",
        sample=TEXT,
        variants=(Variant(says='`"id":"c1"`, `"id":"c2"`, …', frames=_ids_change),),
        sources=("BerriAI/litellm#37792",),
    ),
    Quirk(
        name="chat-n-choices",
        group="D",
        title="A second choice that says something else",
        only=("chat",),
        servers="any that is asked for several choices",
        right="either",
        correct="keep choices apart by their index, or refuse several of them clearly",
        faults="mixes the texts of both choices",
        invariant="text-accumulates",
        sample=TEXT,
        variants=(
            Variant(
                "interleaved",
                "each chunk of choice 0 is followed by one of choice 1",
                frames=_two_choices(first=False),
            ),
            Variant(
                "one-first",
                "each chunk of choice 0 follows one of choice 1",
                frames=_two_choices(first=True),
            ),
        ),
    ),
    Quirk(
        name="chat-content-key-absent",
        group="D",
        title="An answer of tool calls alone has no key `content`",
        only=("chat",),
        servers="several compatible servers",
        right="same",
        correct="take it for null",
        faults="fails on the missing key",
        invariant="null-tolerant",
        sample=CALL,
        variants=(
            Variant(
                says='`{"role":"assistant","tool_calls":[…]}` opens the answer',
                frames=_no_content,
            ),
        ),
        sources=("cline/cline#12134",),
    ),
)
