"""Group C: quirks of the end of a stream: no finish reason, no `[DONE]`, chunks after the end."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.turn import Turn
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import Choice, choices_of, finishes, inserted, with_delta
from mockllm.quirks.chat.usage import is_usage_chunk
from mockllm.quirks.ends import DONE, unfinished
from mockllm.quirks.samples import TEXT


def is_finish_chunk(choice: Choice) -> bool:
    """Whether a chunk has a finish reason, and nothing else but usage."""
    return not choice.delta and len(choice.item.data["choices"]) == 1


def _never(*, done: bool, usage: bool = False) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        finished = finishes(items)
        if not finished:
            return items
        gone = {id(choice.item) for choice in finished if is_finish_chunk(choice)}
        for choice in finished:
            choice.fields["finish_reason"] = None
            if choice.item.data.get("usage"):
                choice.item.data["usage"] = None
        # Usage follows the finish chunk, so a stream that is cut before the one lacks the other,
        # unless a proxy adds it.
        items = [
            item for item in items if id(item) not in gone and (usage or not is_usage_chunk(item))
        ]
        return items if done else _no_done(items, context)

    return change


def _without_finish(turn: Turn) -> Turn:
    return replace(turn, finish=None, finish_raw=None)


def _no_done(items: list[Item], context: Context) -> list[Item]:
    return [item for item in items if item.data != DONE]


def _after_done(items: list[Item], context: Context) -> list[Item]:
    done = next((item for item in items if item.data == DONE), None)
    first = next(choices_of(items), None)
    if done is None or first is None:
        return items
    late = with_delta(first, {"content": "late"})
    late.at = items[-1].at
    return [*items, late]


def _after_finish(items: list[Item], context: Context) -> list[Item]:
    last: dict[int, Item] = {}
    for choice in list(choices_of(items)):
        if isinstance(choice.fields.get("finish_reason"), str):
            moved = last.pop(choice.index, None)
            if moved is not None:
                moved.at = choice.item.at
                others = [item for item in items if item is not moved]
                items = inserted(others, choice.item, [moved])
        elif _is_text(choice):
            last[choice.index] = choice.item
    return items


def _is_text(choice: Choice) -> bool:
    content = choice.delta.get("content")
    only = len(choice.delta) == 1 and len(choice.item.data["choices"]) == 1
    return only and isinstance(content, str) and bool(content)


QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        "chat-finish-never",
        TEXT,
        (
            Variant("done", frames=_never(done=True), expected=unfinished),
            Variant("end", frames=_never(done=False), expected=unfinished),
            Variant("usage", frames=_never(done=True, usage=True), expected=_without_finish),
        ),
        only=("chat",),
    ),
    Quirk("chat-no-done", TEXT, (Variant(frames=_no_done),), only=("chat",)),
    Quirk("chat-data-after-done", TEXT, (Variant(frames=_after_done),), only=("chat",)),
    Quirk("chat-delta-after-finish", TEXT, (Variant(frames=_after_finish),), only=("chat",)),
)
