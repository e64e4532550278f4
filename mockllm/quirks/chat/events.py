"""Quirks of events between the chunks, which are no chunks themselves."""

from __future__ import annotations

from mockllm.quirks.base import Context, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import choices_of, inserted
from mockllm.quirks.samples import TEXT_AND_CALL

__all__ = ["QUIRKS"]


def _progress(items: list[Item], context: Context) -> list[Item]:
    first = next(choices_of(items), None)
    if first is None:
        return items
    data = {"tool": "web_search", "label": "Searching", "status": "running"}
    return inserted(items, first.item, [Item(first.item.at, data, event="agent.tool.progress")])


QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        name="chat-named-event",
        group="D",
        topic="framing",
        title="An event with a name of its own stands between the chunks",
        only=("chat",),
        servers="Hermes Agent, gateways that report the progress of their own tools",
        right="same",
        correct="pass over events whose names or fields it does not know",
        faults="validates the data as a chunk, and aborts the stream",
        invariant="unknown-event",
        sample=TEXT_AND_CALL,
        variants=(
            Variant(
                description="`event: agent.tool.progress` after the first chunk; its data have no "
                "`choices`",
                frames=_progress,
            ),
        ),
        sources=(
            "janhq/jan#8392",
            "LibreChat-AI/agents#137",
            "anomalyco/opencode#38106",
            "NousResearch/hermes-agent#7989",
        ),
    ),
)
