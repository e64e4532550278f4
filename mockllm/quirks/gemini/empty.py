"""The quirk of Gemini chunks without parts, content or candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mockllm.core.events import FinishReason
from mockllm.core.turn import Turn
from mockllm.protocols.gemini.fields import BLOCKED, SAFETY_RATINGS
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.gemini.chunks import (
    candidates,
    end_position,
    finish,
    with_wire_json,
    without_candidates,
)
from mockllm.quirks.samples import TEXT

_Json = dict[str, Any]


def _nothing_but(change: Callable[[Item], Item]) -> FramesChange:
    def changed(items: list[Item], _: Context) -> list[Item]:
        position = end_position(items)
        if position == len(items) or not finish(items[position]):
            return items
        return [with_wire_json(change(items[position]))]

    return changed


def _candidate(*, reason: str, content: _Json | None = None, **more: Any) -> Callable[[Item], Item]:
    def change(item: Item) -> Item:
        for candidate in candidates(item):
            index = {name: candidate[name] for name in ("index",) if name in candidate}
            candidate.clear()
            candidate |= {} if content is None else {"content": content}
            candidate |= {"finishReason": reason, **index, **more}
        return item

    return change


_BLOCK = "PROHIBITED_CONTENT"


def _blocked(item: Item) -> Item:
    new = without_candidates(item)
    usage = new.data.get("usageMetadata")
    if isinstance(usage, dict):
        for name in ("candidatesTokenCount", "thoughtsTokenCount"):
            usage.pop(name, None)
        usage["totalTokenCount"] = usage.get("promptTokenCount", 0)
    new.data = {"promptFeedback": {"blockReason": _BLOCK}, **new.data}
    return new


def _empty(reason: FinishReason, raw: str | None = None) -> Callable[[Turn], Turn]:
    """The turn with nothing but its finish; of a blocked prompt (`raw`), without output tokens."""

    def expected(turn: Turn) -> Turn:
        if turn.finish is None or (turn.finish_raw or "").startswith(BLOCKED):
            return turn
        usage = turn.usage
        if usage is not None and raw is not None:
            usage = replace(usage, output=0, reasoning=0)
        return Turn(finish=reason, finish_raw=raw, usage=usage)

    return expected


def _usage_only(items: list[Item], _: Context) -> list[Item]:
    chunks = [position for position, item in enumerate(items) if candidates(item)]
    changed = []
    for position, item in enumerate(items):
        if position in (*chunks[:1], *chunks[-1:]):
            changed.append(without_candidates(item))
        changed.append(item)
    return changed


EMPTY_CHUNKS: tuple[Quirk, ...] = (
    Quirk(
        "gem-empty-candidate",
        TEXT,
        (
            Variant(
                "no-parts",
                frames=_nothing_but(_candidate(reason="MAX_TOKENS", content={"role": "model"})),
                expected=_empty("length"),
            ),
            Variant(
                "no-content",
                frames=_nothing_but(_candidate(reason="SAFETY", safetyRatings=SAFETY_RATINGS)),
                expected=_empty("content_filter"),
            ),
            Variant(
                "no-candidates",
                frames=_nothing_but(_blocked),
                expected=_empty("content_filter", BLOCKED + _BLOCK),
            ),
            Variant("usage-only", frames=_usage_only),
        ),
        only=("gemini",),
    ),
)
