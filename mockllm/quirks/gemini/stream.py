"""Quirks of Gemini streams: framing, errors, chunks without content, and a missing end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mockllm.core.events import FinishReason, StreamError
from mockllm.core.turn import Turn
from mockllm.protocols.gemini.fields import BLOCKED, SAFETY_RATINGS
from mockllm.quirks.base import Context, Item, Variant, parametrised, spread
from mockllm.quirks.ends import failed, time_at, unfinished, with_done, without_finish
from mockllm.quirks.gemini import chunks
from mockllm.quirks.samples import TEXT

_Json = dict[str, Any]


@parametrised
def _nothing_but(items: list[Item], _: Context, change: Callable[[Item], Item]) -> list[Item]:
    position = chunks.end_position(items)
    if position == len(items) or not chunks.finish(items[position]):
        return items
    return [chunks.with_wire_json(change(items[position]))]


def _candidate(*, reason: str, content: _Json | None = None, **more: Any) -> Callable[[Item], Item]:
    def change(item: Item) -> Item:
        for candidate in chunks.candidates(item):
            index = {name: candidate[name] for name in ("index",) if name in candidate}
            candidate.clear()
            candidate |= {} if content is None else {"content": content}
            candidate |= {"finishReason": reason, **index, **more}
        return item

    return change


_BLOCK = "PROHIBITED_CONTENT"


def _blocked(item: Item) -> Item:
    new = chunks.without_candidates(item)
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
    answering = [position for position, item in enumerate(items) if chunks.candidates(item)]
    changed = []
    for position, item in enumerate(items):
        if position in (*answering[:1], *answering[-1:]):
            changed.append(chunks.without_candidates(item))
        changed.append(item)
    return changed


# Framing


def _commented(item: Item) -> list[Item]:
    return [Item(item.at, comment="keep-alive"), item] if chunks.chunk(item) else [item]


def _id_lines(items: list[Item], _: Context) -> list[Item]:
    numbered = enumerate(items, 1)
    return [replace(item, id=str(n)) if chunks.chunk(item) else item for n, item in numbered]


def _array(items: list[Item], context: Context) -> list[Item]:
    elements = [item for item in items if chunks.chunk(item)]
    if not elements:
        return items
    texts = [item.frame().data for item in elements]
    whole = context.turn.finish is not None or context.turn.error is not None
    last = len(elements) - 1
    return [
        Item(
            item.at,
            raw=("\r\n,\r\n" if position else "[")
            + str(text)
            + "\r\n]" * (whole and position == last),
        )
        for position, (item, text) in enumerate(zip(elements, texts, strict=True))
    ]


# Errors and cuts

_OVERLOADED = StreamError("The model is overloaded. Please try again later.", "UNAVAILABLE", "503")


@parametrised
def _raw_error(items: list[Item], _: Context, position: Callable[[list[Item]], int]) -> list[Item]:
    """An error as lines of JSON in position of all chunks from a position on."""
    if any(item.raw is not None for item in items):
        return items
    start = position(items)
    error = {
        "code": int(_OVERLOADED.code or 0),
        "message": _OVERLOADED.message,
        "status": _OVERLOADED.type,
    }
    raw = json.dumps({"error": error}, indent=2) + "\n"
    return [*items[:start], Item(time_at(items, start), raw=raw)]


def _without_end(items: list[Item], _: Context) -> list[Item]:
    position = chunks.end_position(items)
    return items if _is_error(items[position:]) else items[:position]


def _without_reason(items: list[Item], _: Context) -> list[Item]:
    position = chunks.end_position(items)
    if position == len(items) or _is_error(items[position:]):
        return items
    last = items[position]
    chunks.chunk(last).pop("promptFeedback", None)
    for candidate in chunks.candidates(last):
        candidate.pop("finishReason", None)
    return [*items[:position], chunks.with_wire_json(last), *items[position + 1 :]]


def _is_error(items: list[Item]) -> bool:
    return bool(items) and bool(chunks.chunk(items[0]).get("error"))


# The table

STREAM = (
    chunks.quirk(
        "gem-strict-framing",
        TEXT,
        Variant("comments", spread(_commented)),
        Variant("id-lines", _id_lines),
        Variant("done", with_done(lambda items: chunks.end_position(items) < len(items))),
    ),
    chunks.quirk(
        "gem-raw-error-lines",
        TEXT,
        Variant(
            "behind-text",
            _raw_error(chunks.behind_first),
            expected=failed(_OVERLOADED, chunks.until_first_output),
        ),
        Variant("first", _raw_error(lambda _: 0), expected=failed(_OVERLOADED, lambda _: Turn())),
    ),
    chunks.quirk("gem-array-form", TEXT, Variant(frames=_array, content_type="application/json")),
    chunks.quirk(
        "gem-no-finish",
        TEXT,
        Variant("no-last-chunk", _without_end, expected=unfinished),
        Variant("no-word", _without_reason, expected=unfinished),
        Variant(
            "cut",
            lambda items, _: items[: chunks.behind_first(items)],
            expected=lambda turn: without_finish(chunks.until_first_output(turn)),
        ),
    ),
    chunks.quirk(
        "gem-empty-candidate",
        TEXT,
        Variant(
            "no-parts",
            _nothing_but(_candidate(reason="MAX_TOKENS", content={"role": "model"})),
            expected=_empty("length"),
        ),
        Variant(
            "no-content",
            _nothing_but(_candidate(reason="SAFETY", safetyRatings=SAFETY_RATINGS)),
            expected=_empty("content_filter"),
        ),
        Variant(
            "no-candidates",
            _nothing_but(_blocked),
            expected=_empty("content_filter", BLOCKED + _BLOCK),
        ),
        Variant("usage-only", _usage_only),
    ),
)
