"""Group D: quirks of the chunks of Chat Completions and of their deltas."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mockllm.core.turn import Reasoning, Text, Turn
from mockllm.play.quirks.base import (
    Context,
    Item,
    Tolerance,
    Variant,
    each,
    each_with,
    with_parameters,
)
from mockllm.play.quirks.chat import chunks
from mockllm.play.quirks.samples import CALL, REASONING, TEXT, TEXT_AND_CALL, TWO_CALLS
from mockllm.play.quirks.streams import alternating, at_times_of
from mockllm.scenario.model import Api
from mockllm.wire.protocols.records import Json


def _one_chunk(items: list[Item], context: Context) -> list[Item]:
    for several in chunks.grouped_by(lambda call: call[0].choice.index, chunks.calls(items)):
        if len(several) > 1:
            items = _join_calls(items, several)
    return items


def _join_calls(items: list[Item], several: list[list[chunks.CallFragment]]) -> list[Item]:
    parts = [fragment for call in several for fragment in call]
    indexes = {id(item): index for index, item in enumerate(items)}
    last = max(parts, key=lambda fragment: indexes[id(fragment.choice.item)])
    entries = sorted(map(_whole, several), key=lambda entry: int(entry["index"]))
    chunk = chunks.with_delta(last.choice, {"tool_calls": entries})
    return chunks.without_fragments(chunks.insert(items, last.choice.item, [chunk]), parts)


def _whole(call: Iterable[chunks.CallFragment]) -> Json:
    first, *others = call
    arguments = first.arguments + "".join(fragment.arguments for fragment in others)
    return {**first.entry, "function": {**first.function, "arguments": arguments}}


def _interleave(items: list[Item], context: Context) -> list[Item]:
    only = chunks.grouped_by(chunks.call_key, filter(_is_only, chunks.fragments(items)))
    queues = [[fragment.choice.item for fragment in call] for call in only]
    turns = alternating(*queues)
    moved = {id(item) for queue in queues for item in queue}
    return at_times_of(items, [next(turns) if id(item) in moved else item for item in items])


def _is_only(fragment: chunks.CallFragment) -> bool:
    choice = fragment.choice
    siblings = choice.item.data["choices"], choice.delta, choice.delta["tool_calls"]
    is_single = all(len(several) == 1 for several in siblings)
    return is_single and choice.fields.get("finish_reason") is None


@each_with(chunks.choices_of)
def _role(choice: chunks.Choice, value: str | None) -> None:
    if choice.delta:
        choice.fields["delta"] = {"role": value, **choice.delta} | {"role": value}


def _role_everywhere(choice: chunks.Choice) -> None:
    choice.fields["delta"] = {"role": "assistant", **choice.delta}


def _function_null(items: list[Item], context: Context) -> list[Item]:
    """Adds an entry without a function after the opening of each call."""
    for opening in chunks.openings(items):
        entry = {"index": opening.entry["index"], "function": None}
        chunk = chunks.with_delta(opening.choice, {"tool_calls": [entry]})
        items = chunks.insert(items, opening.choice.item, [chunk])
    return items


@each_with(chunks.choices_of)
def _no_calls(choice: chunks.Choice, value: list[Any] | None) -> None:
    if "content" in choice.delta and "tool_calls" not in choice.delta:
        choice.delta["tool_calls"] = value if value is None else [*value]


def _empty_finishes(items: list[Item]) -> list[chunks.Choice]:
    return [choice for choice in chunks.finishes(items) if not choice.delta]


_SAFE = {
    kind: {"filtered": False, "severity": "safe"}
    for kind in ("hate", "self_harm", "sexual", "violence")
}
# Azure's filter sends chunks of its own, which have no identity (see `chat-object-empty`).
_NO_IDENTITY = {"created": 0, "id": "", "model": "", "object": ""}


def _prompt_filter(items: list[Item], context: Context) -> list[Item]:
    if next(chunks.choices_of(items), None) is None:
        return items
    results = [{"prompt_index": 0, "content_filter_results": _SAFE}]
    chunk = {"choices": [], **_NO_IDENTITY, "prompt_filter_results": results}
    return [Item(items[0].at, chunk).copy(), *items]


def _async_filter(items: list[Item], context: Context) -> list[Item]:
    lengths: dict[int, int] = {}
    for choice in list(chunks.choices_of(items)):
        text = _text(choice)
        if text:
            start = lengths.get(choice.index, 0)
            lengths[choice.index] = start + len(text)
            result = _filter_result(choice, start, start + len(text))
            items = chunks.insert(items, choice.item, [result])
    return items


def _text(choice: chunks.Choice) -> str:
    content = choice.delta.get("content")
    return content if isinstance(content, str) else ""


def _filter_result(choice: chunks.Choice, start: int, end: int) -> Item:
    """A chunk of the asynchronous filter with its result for the text between two offsets."""
    fields = {
        "content_filter_offsets": {"check_offset": end, "start_offset": start, "end_offset": end},
        "content_filter_results": _SAFE,
        "finish_reason": None,
        "index": choice.index,
    }
    return Item(choice.item.at, {"choices": [fields], **_NO_IDENTITY}).copy()


@each_with(chunks.choices_of)
def _text_parts(choice: chunks.Choice, *, several: bool = False) -> None:
    if text := _text(choice):
        texts = (text[:1], text[1:]) if several and text[1:] else (text,)
        choice.delta["content"] = [{"type": "text", "text": part} for part in texts]


def _thinking_part(choice: chunks.Choice) -> None:
    thought = choice.delta.pop("reasoning_content")
    inner = [{"type": "text", "text": thought}]
    choice.delta["content"] = [{"type": "thinking", "thinking": inner}] if thought else ""


def _thinking_parts(items: list[Item], context: Context) -> list[Item]:
    return each(_reasoning_only, _thinking_part)(_text_parts()(items, context), context)


def _reasoning_only(items: list[Item]) -> list[chunks.Choice]:
    return [
        choice
        for choice in chunks.choices_of(items)
        if isinstance(choice.delta.get("reasoning_content"), str)
        and not choice.delta.get("content")
    ]


def _null_beside_text(items: list[Item], context: Context) -> list[Item]:
    if _reasoning_only(items):
        for choice in chunks.choices_of(items):
            if "content" in choice.delta:
                choice.delta.setdefault("reasoning_content", None)
    return items


def _as_reasoning(choice: chunks.Choice) -> None:
    choice.delta["reasoning"] = choice.delta.pop("reasoning_content")


def _as_both(choice: chunks.Choice) -> None:
    _as_reasoning(choice)
    choice.delta["reasoning_content"] = choice.delta["reasoning"]


def _as_details(choice: chunks.Choice) -> None:
    thought = choice.delta.pop("reasoning_content")
    choice.delta["content"] = ""
    choice.delta["reasoning"] = thought
    if thought:
        detail = {"type": "reasoning.text", "text": thought, "format": "unknown", "index": 0}
        choice.delta["reasoning_details"] = [detail]


def _as_summary(choice: chunks.Choice) -> None:
    _as_details(choice)
    for detail in choice.delta.get("reasoning_details", ()):
        detail |= {"type": "reasoning.summary", "summary": detail.pop("text")}


def _think_tags(items: list[Item], context: Context) -> list[Item]:
    """Puts the reasoning into the text, between tags."""
    thinking = [choice for choice in _reasoning_only(items) if choice.delta["reasoning_content"]]
    for choice in thinking:
        choice.delta["content"] = choice.delta.pop("reasoning_content")
    if thinking:
        thinking[0].delta["content"] = f"<think>{thinking[0].delta['content']}"
        thinking[-1].delta["content"] += "</think>"
    return items


def _thinking_apart(turn: Turn, _: Api) -> Turn:
    """The turn with what the tags enclose as reasoning."""
    before, _, rest = turn.text.partition("<think>")
    thinking, closing, after = rest.partition("</think>")
    if not closing:
        return turn
    others = tuple(part for part in turn.parts if not isinstance(part, Text))
    parts = (Reasoning((thinking,)), Text((before + after,)), *others)
    return replace(turn, parts=parts, order=(), gaps=())


_THINKING_SPLIT = Tolerance("what the tags enclose may be the reasoning", _thinking_apart)


def _without_object(item: Item) -> None:
    if isinstance(item.data, dict) and "choices" in item.data:
        item.data.pop("object", None)


def _choices_counted(items: list[Item], context: Context) -> list[Item]:
    """Numbers the choices as if each chunk had another one."""
    choices = list(chunks.choices_of(items))
    if not any(choice.index for choice in choices):
        for number, choice in enumerate(choices):
            choice.fields["index"] = number
    return items


def _choices_unnumbered(items: list[Item], context: Context) -> list[Item]:
    choices = list(chunks.choices_of(items))
    if not any(choice.index for choice in choices):
        for choice in choices:
            del choice.fields["index"]
    return items


def _ids_change(items: list[Item], context: Context) -> list[Item]:
    count = 0
    for item in items:
        if isinstance(item.data, dict) and {"id", "choices"} <= item.data.keys():
            count += 1
            item.data["id"] = f"c{count}"
    return items


@with_parameters
def _two_choices(items: list[Item], context: Context, *, first: bool) -> list[Item]:
    if any(choice.index for choice in chunks.choices_of(items)):
        return items
    doubled: list[Item] = []
    for item in items:
        others = [_second_choice(choice) for choice in chunks.choices_of([item])]
        doubled += [*others, item] if first else [item, *others]
    return doubled


def _second_choice(choice: chunks.Choice) -> Item:
    item = chunks.with_delta(
        choice, {key: _second_value(key, value) for key, value in choice.delta.items()}
    )
    (fields,) = item.data["choices"]
    fields["index"] = 1
    # Another one, which shows a client that takes it for that of the answer.
    fields["finish_reason"] = choice.fields.get("finish_reason") and "length"
    return item


def _second_value(key: str, value: Any) -> Any:
    """A field of a delta with a different text, and calls with different ids."""
    if key == "tool_calls" and isinstance(value, list):
        return [_with_other_id(entry) for entry in value]
    if key == "annotations":
        return []
    return "Bye" if isinstance(value, str) and value and key != "role" else value


def _with_other_id(entry: Any) -> Any:
    if isinstance(entry, dict) and isinstance(entry.get("id"), str):
        return {**entry, "id": f"{entry['id']}_other"}
    return entry


def _no_content(items: list[Item], context: Context) -> list[Item]:
    calling = {fragment.choice.index for fragment in chunks.fragments(items)}
    texts = {
        choice.index
        for choice in chunks.choices_of(items)
        if isinstance(choice.delta.get("content"), str)
    }
    for choice in chunks.choices_of(items):
        if choice.index in calling - texts and "content" in choice.delta:
            delta = {k: v for k, v in choice.delta.items() if k not in _NULLABLE or v is not None}
            choice.fields["delta"] = delta
    return items


_NULLABLE = ("content", "refusal")


def _progress(items: list[Item], context: Context) -> list[Item]:
    """A foreign event between chunks."""
    first = next(chunks.choices_of(items), None)
    if first is None:
        return items
    data = {"tool": "web_search", "label": "Searching", "status": "running"}
    return chunks.insert(
        items, first.item, [Item(first.item.at, data, event="agent.tool.progress")]
    )


# The table

QUIRKS = (
    chunks.quirk("chat-two-calls-one-chunk", TWO_CALLS, _one_chunk),
    chunks.quirk("chat-calls-interleaved", TWO_CALLS, _interleave),
    chunks.quirk("chat-role-every-chunk", TEXT, each(chunks.choices_of, _role_everywhere)),
    chunks.quirk(
        "chat-role-null-empty-never",
        TEXT,
        Variant("null", _role(None)),
        Variant("empty", _role("")),
        Variant("never", each(chunks.choices_of, lambda choice: choice.delta.pop("role", None))),
    ),
    chunks.quirk(
        "chat-type-missing",
        CALL,
        each(chunks.fragments, lambda fragment: fragment.entry.pop("type", None)),
    ),
    chunks.quirk("chat-function-null", CALL, _function_null),
    chunks.quirk(
        "chat-tool-calls-null",
        TEXT,
        Variant("null", _no_calls(None)),
        Variant("empty", _no_calls([])),
    ),
    chunks.quirk(
        "chat-delta-null",
        TEXT,
        Variant("null", each(_empty_finishes, lambda choice: choice.fields.update(delta=None))),
        Variant("absent", each(_empty_finishes, lambda choice: choice.fields.pop("delta"))),
    ),
    chunks.quirk("chat-first-choices-empty", TEXT, _prompt_filter),
    chunks.quirk("chat-object-empty", TEXT, _async_filter),
    chunks.quirk("chat-object-missing", TEXT, each(list, _without_object)),
    chunks.quirk(
        "chat-choice-index",
        TEXT,
        Variant("absent", _choices_unnumbered),
        Variant("counts", _choices_counted, right="either"),
    ),
    chunks.quirk(
        "chat-content-parts",
        TEXT,
        Variant("text", _text_parts()),
        Variant("several", _text_parts(several=True)),
        Variant("thinking", _thinking_parts, sample=REASONING),
    ),
    chunks.quirk(
        "chat-reasoning-fields",
        REASONING,
        Variant("reasoning-content", _null_beside_text),
        Variant("reasoning", each(_reasoning_only, _as_reasoning)),
        Variant("both", each(_reasoning_only, _as_both)),
        Variant("details", each(_reasoning_only, _as_details)),
        Variant("summary", each(_reasoning_only, _as_summary)),
    ),
    chunks.quirk(
        "chat-think-tags",
        REASONING,
        Variant(frames=_think_tags, as_sent=True, tolerated=(_THINKING_SPLIT,)),
    ),
    chunks.quirk("chat-chunk-id-changes", TEXT, _ids_change),
    chunks.quirk(
        "chat-n-choices",
        TEXT,
        Variant("interleaved", _two_choices(first=False)),
        Variant("one-first", _two_choices(first=True)),
    ),
    chunks.quirk("chat-content-key-absent", CALL, _no_content),
    chunks.quirk("chat-named-event", TEXT_AND_CALL, _progress),
)
