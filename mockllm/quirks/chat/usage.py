"""Group E: where and how Chat Completions streams report usage.

Servers with these quirks send usage even if the request does not set
`stream_options.include_usage`. Streams that end in an error, and turns without usage, are not
changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mockllm.core.turn import TokenUsage
from mockllm.protocols.openai_chat.fields import write_usage
from mockllm.quirks.base import Context, Item, Variant, parametrised
from mockllm.quirks.chat.chunks import choices_of, finishes, quirk
from mockllm.quirks.ends import DONE
from mockllm.quirks.samples import TEXT


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
    usage, first = _usage(context), next(choices_of(items), None)
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


@parametrised
def _no_choices(items: list[Item], context: Context, *, null: bool) -> list[Item]:
    items, chunk = _with_usage(items, context)
    if chunk is not None and null:
        chunk.data["choices"] = None
    elif chunk is not None:
        del chunk.data["choices"]
    return items


def _in_finish_chunk(items: list[Item], context: Context) -> list[Item]:
    finished = finishes(items)
    if not finished:
        return items
    items, chunk = _with_usage(items, context)
    if chunk is not None:
        finished[-1].item.data["usage"] = chunk.data["usage"]
    return [item for item in items if not is_usage_chunk(item)]


def _cumulative(items: list[Item], context: Context) -> list[Item]:
    usage = _usage(context)
    chunks = list({id(choice.item): choice.item for choice in choices_of(items)}.values())
    if usage is None or not chunks:
        return items
    for count, item in enumerate(chunks, 1):
        output = usage.output * count // len(chunks)
        so_far = replace(usage, output=output, reasoning=min(usage.reasoning, output))
        if count == len(chunks):
            so_far = usage
        item.data["usage"] = write_usage(so_far)
    return [item for item in items if not is_usage_chunk(item)]


@parametrised
def _wiped(items: list[Item], context: Context, *, null: bool) -> list[Item]:
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


QUIRKS = (
    quirk("usage-empty-choices", TEXT, Variant(frames=_empty_choices)),
    quirk(
        "usage-no-choices",
        TEXT,
        Variant("absent", _no_choices(null=False)),
        Variant("null", _no_choices(null=True)),
    ),
    quirk("usage-in-finish-chunk", TEXT, Variant(frames=_in_finish_chunk)),
    quirk("usage-cumulative", TEXT, Variant(frames=_cumulative)),
    quirk(
        "usage-wiped-by-trailing-chunk",
        TEXT,
        Variant("absent", _wiped(null=False)),
        Variant("null", _wiped(null=True)),
    ),
)
