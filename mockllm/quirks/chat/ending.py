"""Group C: quirks of the end of a stream: no finish reason, no `[DONE]`, chunks after the end."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.turn import Turn
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import Choice, choices_of, finishes, inserted, with_delta
from mockllm.quirks.samples import TEXT
from mockllm.quirks.usage import is_usage_chunk

__all__ = ["QUIRKS", "is_finish_chunk"]

_DONE = "[DONE]"


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


def _unfinished(turn: Turn) -> Turn:
    if turn.finish is None:
        return turn
    return replace(turn, finish=None, finish_raw=None, usage=None)


def _no_done(items: list[Item], context: Context) -> list[Item]:
    return [item for item in items if item.data != _DONE]


def _after_done(items: list[Item], context: Context) -> list[Item]:
    done = next((item for item in items if item.data == _DONE), None)
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
    """Whether a chunk is a fragment of text and nothing else."""
    content = choice.delta.get("content")
    only = len(choice.delta) == 1 and len(choice.item.data["choices"]) == 1
    return only and isinstance(content, str) and bool(content)


QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        name="chat-finish-never",
        group="C",
        topic="ends",
        title="The stream ends without any finish reason",
        only=("chat",),
        servers="overloaded proxies, killed servers",
        right="error",
        correct="report the answer as interrupted",
        faults="reports it as complete",
        invariant="truncated-is-not-complete",
        sample=TEXT,
        variants=(
            Variant(
                "done",
                "`[DONE]` follows the last fragment",
                frames=_never(done=True),
                expected=_unfinished,
            ),
            Variant(
                "end",
                "nothing follows the last fragment",
                frames=_never(done=False),
                expected=_unfinished,
            ),
            Variant(
                "usage",
                "usage and `[DONE]` follow the last fragment",
                frames=_never(done=True, usage=True),
                expected=_without_finish,
            ),
        ),
        sources=(
            "can1357/oh-my-pi#9433",
            "theopenco/llmgateway#1901",
            "NVIDIA/TensorRT-LLM#18289",
        ),
    ),
    Quirk(
        name="chat-no-done",
        group="C",
        topic="ends",
        title="The stream has no `[DONE]`",
        only=("chat",),
        servers="gateways like Azure's, several other servers",
        right="same",
        correct="treat the finish reason as the end of the answer",
        faults="waits for more, or reports an error",
        invariant="finish-and-usage",
        sample=TEXT,
        variants=(
            Variant(
                description="the chunk with the finish reason or the usage is last", frames=_no_done
            ),
        ),
    ),
    Quirk(
        name="chat-data-after-done",
        group="C",
        topic="ends",
        title="Another chunk follows `[DONE]`",
        only=("chat",),
        servers="faulty proxies",
        right="same",
        correct="ignore everything after `[DONE]`",
        faults="appends it to the answer",
        invariant="text-accumulates",
        sample=TEXT,
        variants=(Variant(description="a chunk with text follows `[DONE]`", frames=_after_done),),
    ),
    Quirk(
        name="chat-delta-after-finish",
        group="C",
        topic="ends",
        title="The last fragment of text follows the finish reason",
        only=("chat",),
        servers="proxies that reorder chunks",
        right="same",
        correct="read until the stream ends",
        faults="loses the fragment",
        invariant="text-accumulates",
        sample=TEXT,
        variants=(
            Variant(
                description='`{"delta":{"content":"lo"}}` after the chunk with `finish_reason`',
                frames=_after_finish,
            ),
        ),
    ),
)
