"""Groups C and E: quirks of the end of a stream of Chat Completions: finish reason and usage.

Servers with the quirks of usage send it even if the request does not set
`stream_options.include_usage`. Streams that end in an error, and turns without usage, are not
changed by these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mockllm.core.turn import TokenUsage
from mockllm.play.quirks.base import Context, Item, Variant, drop, each, with_parameters
from mockllm.play.quirks.chat import chunks
from mockllm.play.quirks.samples import CALL, TEXT
from mockllm.play.quirks.streams import DONE
from mockllm.wire.protocols.openai_chat.fields import write_usage


def is_usage_chunk(item: Item) -> bool:
    """Whether a chunk has usage and no choices."""
    return isinstance(item.data, dict) and bool(item.data.get("usage")) and _empty(item)


def _empty(item: Item) -> bool:
    choices = item.data.get("choices")
    return isinstance(choices, list) and not choices


def _usage(context: Context) -> TokenUsage | None:
    return None if context.turn.error is not None else context.turn.usage


def _with_usage(items: list[Item], context: Context) -> tuple[list[Item], Item | None]:
    """The items with a usage chunk, and that chunk. The chunk is None where there is no usage to
    report, or no chunk to copy its identity from."""
    usage_chunks = [item for item in items if is_usage_chunk(item)]
    if usage_chunks:
        return items, usage_chunks[-1]
    usage, first = _usage(context), next(chunks.choices_of(items), None)
    if usage is None or first is None:
        return items, None
    index = _end(items)
    at = items[max(index - 1, 0)].at
    chunk = Item(at, {**first.item.data, "choices": [], "usage": write_usage(usage)}).copy()
    return [*items[:index], chunk, *items[index:]], chunk


def _end(items: Sequence[Item]) -> int:
    return next((i for i, item in enumerate(items) if item.data == DONE), len(items))


def _without_nulls(items: list[Item]) -> list[Item]:
    for item in items:
        if isinstance(item.data, dict) and "usage" in item.data and item.data["usage"] is None:
            del item.data["usage"]
    return items


def _empty_choices(items: list[Item], context: Context) -> list[Item]:
    items, chunk = _with_usage(items, context)
    return items if chunk is None else _without_nulls(items)


@with_parameters
def _no_choices(items: list[Item], context: Context, *, null: bool) -> list[Item]:
    items, chunk = _with_usage(items, context)
    if chunk is not None and null:
        chunk.data["choices"] = None
    elif chunk is not None:
        del chunk.data["choices"]
    return items


def _in_finish_chunk(items: list[Item], context: Context) -> list[Item]:
    finished = chunks.finishes(items)
    if not finished:
        return items
    items, chunk = _with_usage(items, context)
    if chunk is not None:
        finished[-1].item.data["usage"] = chunk.data["usage"]
    return [item for item in items if not is_usage_chunk(item)]


def _in_x_groq(items: list[Item], context: Context) -> list[Item]:
    items = _in_finish_chunk(items, context)
    for choice in chunks.finishes(items)[-1:]:
        chunk = choice.item.data
        if chunk.get("usage"):
            chunk["x_groq"] = {"id": "req_1", "usage": chunk.pop("usage")}
    return items


def _cumulative(items: list[Item], context: Context) -> list[Item]:
    usage = _usage(context)
    answering = list({id(choice.item): choice.item for choice in chunks.choices_of(items)}.values())
    if usage is None or not answering:
        return items
    for count, item in enumerate(answering, 1):
        output = usage.output * count // len(answering)
        so_far = replace(usage, output=output, reasoning=min(usage.reasoning, output))
        if count == len(answering):
            so_far = usage
        item.data["usage"] = write_usage(so_far)
    return [item for item in items if not is_usage_chunk(item)]


@with_parameters
def _wipe_usage(items: list[Item], context: Context, *, null: bool) -> list[Item]:
    items, chunk = _with_usage(items, context)
    if chunk is None:
        return items
    trailing = chunk.copy()
    if null:
        trailing.data["usage"] = None
    else:
        del trailing.data["usage"]
    index = _end(items)
    return [*items[:index], trailing, *items[index:]]


USAGE = (
    chunks.quirk("usage-empty-choices", TEXT, _empty_choices),
    chunks.quirk(
        "usage-no-choices",
        TEXT,
        Variant("absent", _no_choices(null=False)),
        Variant("null", _no_choices(null=True)),
    ),
    chunks.quirk("usage-in-finish-chunk", TEXT, _in_finish_chunk),
    chunks.quirk("usage-in-x-groq", TEXT, _in_x_groq),
    chunks.quirk("usage-cumulative", TEXT, _cumulative),
    chunks.quirk(
        "usage-wiped-by-trailing-chunk",
        TEXT,
        Variant("absent", _wipe_usage(null=False)),
        Variant("null", _wipe_usage(null=True)),
    ),
)


def is_finish_chunk(choice: chunks.Choice) -> bool:
    """Whether a chunk has a finish reason, and nothing else but usage."""
    return not choice.delta and len(choice.item.data["choices"]) == 1


@with_parameters
def _never(items: list[Item], context: Context, *, done: bool, usage: bool = False) -> list[Item]:
    finished = chunks.finishes(items)
    if not finished:
        return items
    gone = {id(choice.item) for choice in finished if is_finish_chunk(choice)}
    for choice in finished:
        choice.fields["finish_reason"] = None
        if choice.item.data.get("usage"):
            choice.item.data["usage"] = None
    # Usage follows the finish chunk, so a stream that is cut before the one lacks the other,
    # unless a proxy adds it.
    items = [item for item in items if id(item) not in gone and (usage or not is_usage_chunk(item))]
    return items if done else _no_done(items, context)


_no_done = drop(lambda item: item.data == DONE)


def _after_done(items: list[Item], context: Context) -> list[Item]:
    done = next((item for item in items if item.data == DONE), None)
    first = next(chunks.choices_of(items), None)
    if done is None or first is None:
        return items
    late = chunks.with_delta(first, {"content": "late"})
    late.at = items[-1].at
    return [*items, late]


def _after_finish(items: list[Item], context: Context) -> list[Item]:
    last: dict[int, Item] = {}
    for choice in list(chunks.choices_of(items)):
        if isinstance(choice.fields.get("finish_reason"), str):
            moved = last.pop(choice.index, None)
            if moved is not None:
                moved.at = choice.item.at
                others = [item for item in items if item is not moved]
                items = chunks.insert(others, choice.item, [moved])
        elif _is_text(choice):
            last[choice.index] = choice.item
    return items


def _is_text(choice: chunks.Choice) -> bool:
    content = choice.delta.get("content")
    only = len(choice.delta) == 1 and len(choice.item.data["choices"]) == 1
    return only and isinstance(content, str) and bool(content)


def _stop_with_tools(items: list[Item], context: Context) -> list[Item]:
    calling = {fragment.choice.index for fragment in chunks.fragments(items)}
    for choice in chunks.finishes(items):
        if choice.index in calling and choice.fields["finish_reason"] == "tool_calls":
            choice.fields["finish_reason"] = "stop"
    return items


@with_parameters
def _finish_sent(items: list[Item], context: Context, values: Mapping[str, str]) -> list[Item]:
    for choice in chunks.finishes(items):
        reason = choice.fields["finish_reason"]
        choice.fields["finish_reason"] = values.get(reason, reason)
    return items


_ANTHROPIC = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
_EOS = {"stop": "eos"}
_GUARDRAIL = {"stop": "guardrail_intervened", "content_filter": "guardrail_intervened"}


def _with_last_delta(items: list[Item], context: Context) -> list[Item]:
    last: dict[int, chunks.Choice] = {}
    gone: set[int] = set()
    for choice in chunks.choices_of(items):
        reason = choice.fields.get("finish_reason")
        if not isinstance(reason, str):
            last[choice.index] = choice
            continue
        before = last.pop(choice.index, None)
        if before is not None and is_finish_chunk(choice):
            before.fields["finish_reason"] = reason
            if choice.item.data.get("usage"):
                before.item.data["usage"] = choice.item.data["usage"]
            gone.add(id(choice.item))
    return [item for item in items if id(item) not in gone]


def _unfinished_choices(items: list[Item]) -> list[chunks.Choice]:
    return [
        choice
        for choice in chunks.choices_of(items)
        if choice.fields.get("finish_reason", "absent") is None
    ]


def _twice(items: list[Item], context: Context) -> list[Item]:
    for choice in chunks.finishes(items):
        items = chunks.insert(items, choice.item, [_second_finish(choice)])
    return items


def _second_finish(choice: chunks.Choice) -> Item:
    item = chunks.with_delta(choice, {})
    item.data["choices"][0]["finish_reason"] = choice.fields["finish_reason"]
    return item


def _twice_with_usage(items: list[Item], context: Context) -> list[Item]:
    finished = chunks.finishes(items)
    if not finished:
        return items
    second = _second_finish(finished[-1])
    if context.turn.usage is not None:
        second.data["usage"] = write_usage(context.turn.usage)
        items = [item for item in items if not is_usage_chunk(item)]
    return chunks.insert(items, finished[-1].item, [second])


QUIRKS = (
    chunks.quirk(
        "chat-finish-stop-with-tools", CALL, Variant(frames=_stop_with_tools, as_sent=True)
    ),
    chunks.quirk(
        "chat-finish-foreign-value",
        TEXT,
        Variant("end-turn", _finish_sent(_ANTHROPIC), as_sent=True),
        Variant("eos", _finish_sent(_EOS), as_sent=True),
        Variant("guardrail", _finish_sent(_GUARDRAIL), as_sent=True),
    ),
    chunks.quirk("chat-finish-with-last-delta", TEXT, _with_last_delta),
    chunks.quirk(
        "chat-finish-key-absent",
        TEXT,
        Variant(
            "absent", each(_unfinished_choices, lambda choice: choice.fields.pop("finish_reason"))
        ),
        Variant(
            "empty",
            each(_unfinished_choices, lambda choice: choice.fields.update(finish_reason="")),
        ),
    ),
    chunks.quirk(
        "chat-finish-twice",
        CALL,
        Variant("again", _twice),
        Variant("with-usage", _twice_with_usage),
    ),
    chunks.quirk(
        "chat-finish-never",
        TEXT,
        Variant("done", _never(done=True), as_sent=True),
        Variant("end", _never(done=False), as_sent=True),
        Variant("usage", _never(done=True, usage=True), as_sent=True),
    ),
    chunks.quirk("chat-no-done", TEXT, _no_done),
    chunks.quirk("chat-data-after-done", TEXT, _after_done),
    chunks.quirk("chat-delta-after-finish", TEXT, _after_finish),
)
