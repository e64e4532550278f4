"""The quirks of the legacy Completions, group O.

Only chunks with the shape of our encoder are found: a scenario may send raw frames with any
content, and chunks of another shape are not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from mockllm.core.turn import TokenUsage
from mockllm.play.quirks.base import (
    Context,
    Item,
    Quirk,
    Variant,
    drop,
    each,
    quirks_of,
    with_parameters,
)
from mockllm.play.quirks.samples import TEXT
from mockllm.play.quirks.streams import DONE
from mockllm.wire.protocols.openai_completions.fields import write_usage
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import objects

quirk = quirks_of("completions")
"""A quirk of Completions."""

Choice = tuple[Item, Json]
"""A chunk and its only choice. Changes of the choice change the chunk."""


def _chunks(items: list[Item]) -> Iterator[Item]:
    return (item for item in items if isinstance(item.data, dict) and "choices" in item.data)


def _choices(items: list[Item]) -> Iterator[Choice]:
    for item in _chunks(items):
        choices = objects(item.data["choices"])
        if len(choices) == 1 and isinstance(choices[0].get("text"), str):
            yield item, choices[0]


def _finishes(items: list[Item]) -> list[Choice]:
    return [pair for pair in _choices(items) if pair[1].get("finish_reason")]


# Identity


@with_parameters
def _ids(items: list[Item], context: Context, name: Callable[[int], str]) -> list[Item]:
    for number, item in enumerate(_chunks(items)):
        item.data["id"] = name(number)
    return items


# Texts and finish reasons


@with_parameters
def _last_text(items: list[Item], context: Context, *, null: bool) -> list[Item]:
    for _, choice in _finishes(items):
        if not choice["text"]:
            choice["text"] = None
            if not null:
                del choice["text"]
    return items


def _finish_with_text(items: list[Item], context: Context) -> list[Item]:
    """Sends the last text of each choice together with its finish reason."""
    finishes = {choice["index"]: choice for _, choice in _finishes(items)}
    for item, choice in reversed(list(_choices(items))):
        finish = finishes.get(choice["index"])
        if finish is not None and not choice.get("finish_reason"):
            del finishes[choice["index"]]
            finish["text"] = choice["text"] + finish["text"]
            finish["logprobs"] = choice["logprobs"]
            items = [other for other in items if other is not item]
    return items


def _finish_twice(items: list[Item], context: Context) -> list[Item]:
    for item, _ in _finishes(items):
        at = next(i for i, other in enumerate(items) if other is item) + 1
        items = [*items[:at], item.copy(), *items[at:]]
    return items


@with_parameters
def _never(items: list[Item], context: Context, *, done: bool) -> list[Item]:
    """Sends no finish reason, and perhaps nothing of what follows it."""
    finishes = [item for item, _ in _finishes(items)]
    first = next(at for at, item in enumerate(items) if item in finishes)
    return [*items[:first], *(item for item in items[first:] if done and item not in finishes)]


def _empty_finish(pair: Choice) -> None:
    if pair[1].get("finish_reason") is None:
        pair[1]["finish_reason"] = ""


# Choices


@with_parameters
def _without_choices(items: list[Item], context: Context, *, null: bool) -> list[Item]:
    """Sends a chunk without choices after the one with the finish reason, and null as the choices
    of the chunk with the usage."""
    for item, _ in _finishes(items)[-1:]:
        at = next(i for i, other in enumerate(items) if other is item) + 1
        more = item.copy()
        more.data["choices"] = None if null else []
        items = [*items[:at], more, *items[at:]]
    if null:
        for item in _chunks(items):
            item.data["choices"] = item.data["choices"] or None
    return items


@with_parameters
def _two_choices(items: list[Item], context: Context, *, first: bool) -> list[Item]:
    if any(choice["index"] for _, choice in _choices(items)):
        return items
    doubled: list[Item] = []
    for item in items:
        others = [_second(item) for _ in _choices([item])]
        doubled += [*others, item] if first else [item, *others]
    return doubled


def _second(item: Item) -> Item:
    other = item.copy()
    (choice,) = other.data["choices"]
    # Its finish is another one, too: a client may take it for that of the answer.
    finish = choice["finish_reason"] and "length"
    text = choice["text"] and f"({choice['text']})"
    choice.update(index=1, text=text, logprobs=None, finish_reason=finish)
    return other


# Usage


def _usage_so_far(items: list[Item], context: Context) -> list[Item]:
    """Sends the usage so far with every chunk of the answer."""
    usage = context.turn.usage or context.reply.usage
    answering = [item for item, _ in _choices(items)]
    for count, item in enumerate(answering, 1):
        item.data["usage"] = _part_of(usage, count, len(answering))
    return items


def _part_of(usage: TokenUsage, count: int, whole: int) -> Json:
    output = usage.output * count // whole
    so_far = replace(usage, output=output, reasoning=min(usage.reasoning, output))
    return write_usage(usage if count == whole else so_far)


QUIRKS: tuple[Quirk, ...] = (
    quirk(
        "compl-id-changes",
        TEXT,
        Variant("each", _ids(lambda number: f"cmpl-{number}")),
        Variant("prefix", _ids(lambda number: f"chatcmpl-{number}")),
    ),
    quirk(
        "compl-text-absent",
        TEXT,
        Variant("absent", _last_text(null=False)),
        Variant("null", _last_text(null=True)),
    ),
    quirk("compl-finish-with-text", TEXT, _finish_with_text),
    quirk("compl-finish-twice", TEXT, _finish_twice),
    quirk(
        "compl-finish-never",
        TEXT,
        Variant("done", _never(done=True), as_sent=True),
        Variant("end", _never(done=False), as_sent=True),
    ),
    quirk("compl-finish-empty", TEXT, each(_choices, _empty_finish)),
    quirk("compl-no-done", TEXT, drop(lambda item: item.data == DONE)),
    quirk(
        "compl-no-choices",
        TEXT,
        Variant("empty", _without_choices(null=False)),
        Variant("null", _without_choices(null=True)),
    ),
    quirk(
        "compl-n-choices",
        TEXT,
        Variant("interleaved", _two_choices(first=False)),
        Variant("one-first", _two_choices(first=True)),
    ),
    quirk("compl-usage-every-chunk", TEXT, _usage_so_far),
)
