"""The quirk of Gemini chunks that have nothing in them."""

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
    ending,
    finish,
    respelt,
    without_candidates,
)
from mockllm.quirks.samples import TEXT

__all__ = ["EMPTY_CHUNKS"]

_Json = dict[str, Any]


def _nothing_but(change: Callable[[Item], Item]) -> FramesChange:
    """Leaves nothing but the last chunk, and changes that."""

    def changed(items: list[Item], _: Context) -> list[Item]:
        place = ending(items)
        if place == len(items) or not finish(items[place]):
            return items
        return [respelt(change(items[place]))]

    return changed


def _candidate(*, reason: str, content: _Json | None = None, **more: Any) -> Callable[[Item], Item]:
    """Has nothing but these in every candidate."""

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
    """The prompt is refused: no candidates, and no tokens but its own."""
    new = without_candidates(item)
    usage = new.data.get("usageMetadata")
    if isinstance(usage, dict):
        for name in ("candidatesTokenCount", "thoughtsTokenCount"):
            usage.pop(name, None)
        usage["totalTokenCount"] = usage.get("promptTokenCount", 0)
    new.data = {"promptFeedback": {"blockReason": _BLOCK}, **new.data}
    return new


def _empty(reason: FinishReason, raw: str | None = None) -> Callable[[Turn], Turn]:
    """Nothing is said but why; where the prompt was refused, there was no output either."""

    def meaning(turn: Turn) -> Turn:
        if turn.finish is None or (turn.finish_raw or "").startswith(BLOCKED):
            return turn
        usage = turn.usage
        if usage is not None and raw is not None:
            usage = replace(usage, output=0, reasoning=0)
        return Turn(finish=reason, finish_raw=raw, usage=usage)

    return meaning


def _usage_only(items: list[Item], _: Context) -> list[Item]:
    """Puts a chunk without candidates before the first one, and before the last one."""
    chunks = [place for place, item in enumerate(items) if candidates(item)]
    changed = []
    for place, item in enumerate(items):
        if place in (*chunks[:1], *chunks[-1:]):
            changed.append(without_candidates(item))
        changed.append(item)
    return changed


EMPTY_CHUNKS: tuple[Quirk, ...] = (
    Quirk(
        name="gem-empty-candidate",
        group="J",
        title="A chunk without parts, content or candidates",
        only=("gemini",),
        servers="the Gemini API: the limit reached while thinking, answers and prompts refused",
        right="same",
        correct="empty text, and the reason",
        faults="breaks on the missing value",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant(
                "no-parts",
                '`"content":{"role":"model"},"finishReason":"MAX_TOKENS"` and nothing else',
                frames=_nothing_but(_candidate(reason="MAX_TOKENS", content={"role": "model"})),
                meaning=_empty("length"),
            ),
            Variant(
                "no-content",
                '`"finishReason":"SAFETY"` and nothing else',
                frames=_nothing_but(_candidate(reason="SAFETY", safetyRatings=SAFETY_RATINGS)),
                meaning=_empty("content_filter"),
            ),
            Variant(
                "no-candidates",
                "`promptFeedback` with a `blockReason` and nothing else",
                frames=_nothing_but(_blocked),
                meaning=_empty("content_filter", BLOCKED + _BLOCK),
            ),
            Variant(
                "usage-only",
                "chunks that have usage and no candidates, at the beginning and before the end",
                frames=_usage_only,
            ),
        ),
    ),
)
