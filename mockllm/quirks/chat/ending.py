"""How Chat Completions streams end: with or without the marks of it, and what comes behind them."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.turn import Turn
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import Spot, alike, finishes, inserted, spots
from mockllm.quirks.samples import TEXT
from mockllm.quirks.usage import tells_only_usage

__all__ = ["QUIRKS", "tells_only_finish"]

_DONE = "[DONE]"


def tells_only_finish(spot: Spot) -> bool:
    """Whether a chunk tells a finish reason and nothing else but perhaps usage."""
    return not spot.delta and len(spot.item.data["choices"]) == 1


def _never(*, done: bool) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        told = finishes(items)
        if not told:
            return items
        gone = {id(spot.item) for spot in told if tells_only_finish(spot)}
        for spot in told:
            spot.choice["finish_reason"] = None
            if spot.item.data.get("usage"):
                spot.item.data["usage"] = None
        # What breaks off before the finish breaks off before the usage, which comes later.
        items = [item for item in items if id(item) not in gone and not tells_only_usage(item)]
        return items if done else _no_done(items, context)

    return change


def _unfinished(turn: Turn) -> Turn:
    if turn.finish is None:
        return turn
    return replace(turn, finish=None, finish_raw=None, usage=None)


def _no_done(items: list[Item], context: Context) -> list[Item]:
    return [item for item in items if item.data != _DONE]


def _after_done(items: list[Item], context: Context) -> list[Item]:
    done = next((item for item in items if item.data == _DONE), None)
    like = next(spots(items), None)
    if done is None or like is None:
        return items
    late = alike(like, {"content": "late"})
    late.at = items[-1].at
    return [*items, late]


def _after_finish(items: list[Item], context: Context) -> list[Item]:
    last: dict[int, Item] = {}
    for spot in list(spots(items)):
        if isinstance(spot.choice.get("finish_reason"), str):
            moved = last.pop(spot.index, None)
            if moved is not None:
                moved.at = spot.item.at
                others = [item for item in items if item is not moved]
                items = inserted(others, spot.item, [moved])
        elif _is_text(spot):
            last[spot.index] = spot.item
    return items


def _is_text(spot: Spot) -> bool:
    """Whether a chunk is a fragment of text and nothing else."""
    content = spot.delta.get("content")
    only = len(spot.delta) == 1 and len(spot.item.data["choices"]) == 1
    return only and isinstance(content, str) and bool(content)


QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        name="chat-finish-never",
        group="C",
        title="The stream ends without any finish reason",
        only=("chat",),
        servers="overloaded proxies, servers that are killed",
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
                meaning=_unfinished,
            ),
            Variant(
                "end",
                "nothing follows the last fragment",
                frames=_never(done=False),
                meaning=_unfinished,
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
        title="There is no `[DONE]`",
        only=("chat",),
        servers="gateways like Azure's, several servers",
        right="same",
        correct="the finish reason says that the answer is complete",
        faults="waits for more, or reports an error",
        invariant="finish-and-usage",
        sample=TEXT,
        variants=(Variant(says="the chunk with the finish or the usage is last", frames=_no_done),),
    ),
    Quirk(
        name="chat-data-after-done",
        group="C",
        title="More data follow `[DONE]`",
        only=("chat",),
        servers="faulty proxies",
        right="same",
        correct="pass over everything after `[DONE]`",
        faults="appends it to the answer",
        invariant="text-accumulates",
        sample=TEXT,
        variants=(Variant(says="a chunk with text follows `[DONE]`", frames=_after_done),),
    ),
    Quirk(
        name="chat-delta-after-finish",
        group="C",
        title="The last fragment of text follows the finish reason",
        only=("chat",),
        servers="proxies that change the order",
        right="same",
        correct="go on reading until the stream ends",
        faults="loses the fragment",
        invariant="text-accumulates",
        sample=TEXT,
        variants=(
            Variant(
                says='`{"delta":{"content":"lo"}}` behind the chunk with `finish_reason`',
                frames=_after_finish,
            ),
        ),
    ),
)
