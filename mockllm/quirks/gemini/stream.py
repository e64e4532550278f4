"""The quirks of Gemini streams: framing, errors, and a missing end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

from mockllm.core.events import StreamError
from mockllm.core.timed_bytes import TimedBytes
from mockllm.core.turn import Turn
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.gemini.chunks import (
    candidates,
    chunk,
    ended,
    ending,
    respelt,
    said,
    until,
)
from mockllm.quirks.samples import TEXT

__all__ = ["STREAM"]

# Framing


def _comments(items: list[Item], _: Context) -> list[Item]:
    changed = []
    for item in items:
        if chunk(item):
            changed.append(Item(item.at, comment="keep-alive"))
        changed.append(item)
    return changed


def _event_lines(items: list[Item], _: Context) -> list[Item]:
    return [replace(item, event="message") if chunk(item) else item for item in items]


def _id_lines(items: list[Item], _: Context) -> list[Item]:
    numbered = enumerate(items, 1)
    return [replace(item, id=str(n)) if chunk(item) else item for n, item in numbered]


def _done(items: list[Item], _: Context) -> list[Item]:
    return items if ending(items) == len(items) else [*items, Item(items[-1].at, "[DONE]")]


_FIELD = re.compile(rb"(^|[\r\n])data: ")


def _no_space(pieces: list[TimedBytes], _: Context) -> list[TimedBytes]:
    return [TimedBytes(piece.at, _FIELD.sub(rb"\1data:", piece.data)) for piece in pieces]


def _array(items: list[Item], context: Context) -> list[Item]:
    """Makes elements of the chunks; what is none has no place among them."""
    chunks = [item for item in items if chunk(item)]
    if not chunks:
        return items
    texts = [item.frame().data for item in chunks]
    whole = context.turn.finish is not None or context.turn.error is not None
    last = len(chunks) - 1
    return [
        Item(
            item.at,
            raw=("\r\n,\r\n" if place else "[") + str(text) + "\r\n]" * (whole and place == last),
        )
        for place, (item, text) in enumerate(zip(chunks, texts, strict=True))
    ]


# Errors and cuts

_OVERLOADED = StreamError("The model is overloaded. Please try again later.", "UNAVAILABLE", "503")


def _raw_error(place: Callable[[list[Item]], int]) -> FramesChange:
    """An error as lines of JSON in place of all chunks from a place on."""

    def change(items: list[Item], _: Context) -> list[Item]:
        if any(item.raw is not None for item in items):
            return items
        kept = place(items)
        near = items[kept : kept + 1] or items[-1:]
        error = {
            "code": int(_OVERLOADED.code or 0),
            "message": _OVERLOADED.message,
            "status": _OVERLOADED.type,
        }
        raw = json.dumps({"error": error}, indent=2) + "\n"
        return [*items[:kept], Item(near[0].at if near else 0, raw=raw)]

    return change


def _behind_first(items: list[Item]) -> int:
    """The place behind the first chunk that says something, or of the end where none does."""
    first = said(items)
    return ending(items) if first is None else first + 1


def _failed(told: Callable[[Turn], Turn]) -> Callable[[Turn], Turn]:
    return lambda turn: replace(ended(told(turn)), error=_OVERLOADED)


def _cut(items: list[Item], _: Context) -> list[Item]:
    return items[: _behind_first(items)]


def _without_end(items: list[Item], _: Context) -> list[Item]:
    place = ending(items)
    return items if _is_error(items[place:]) else items[:place]


def _without_word(items: list[Item], _: Context) -> list[Item]:
    """Keeps the last chunk, without its reason."""
    place = ending(items)
    if place == len(items) or _is_error(items[place:]):
        return items
    last = items[place]
    chunk(last).pop("promptFeedback", None)
    for candidate in candidates(last):
        candidate.pop("finishReason", None)
    return [*items[:place], respelt(last), *items[place + 1 :]]


def _is_error(items: list[Item]) -> bool:
    return bool(items) and bool(chunk(items[0]).get("error"))


def _unfinished(turn: Turn) -> Turn:
    return turn if turn.finish is None else ended(turn)


# The table

STREAM: tuple[Quirk, ...] = (
    Quirk(
        name="gem-strict-framing",
        group="J",
        title="Lines of an event stream that Google does not send",
        only=("gemini",),
        servers="proxies in front of Gemini",
        right="same",
        correct="read an event stream by its rules",
        faults="refuses the line; reads an empty answer without a word",
        invariant="unknown-event",
        sample=TEXT,
        variants=(
            Variant("comments", "`: keep-alive` before each chunk", frames=_comments),
            Variant("event-lines", "`event: message` before each chunk", frames=_event_lines),
            Variant("id-lines", "`id: 1` before each chunk", frames=_id_lines),
            Variant("done", "`data: [DONE]` at the end", frames=_done),
            Variant("no-space", "`data:{…}`", bytes=_no_space),
        ),
    ),
    Quirk(
        name="gem-raw-error-lines",
        group="J",
        title="An error as lines of JSON between the events",
        only=("gemini",),
        servers="the Gemini API",
        right="error",
        correct="report it",
        faults="the stream just ends",
        invariant="error-ends",
        sample=TEXT,
        variants=(
            Variant(
                "behind-text",
                "printed over several lines, without `data:`, behind the first chunk",
                frames=_raw_error(_behind_first),
                meaning=_failed(until),
            ),
            Variant(
                "first",
                "the same in place of the whole answer",
                frames=_raw_error(lambda _: 0),
                meaning=_failed(lambda _: Turn()),
            ),
        ),
    ),
    Quirk(
        name="gem-array-form",
        group="J",
        title="A JSON array in place of an event stream",
        only=("gemini",),
        servers="the Gemini API where `alt=sse` is missing",
        right="either",
        correct="read the elements as they come, or report it clearly",
        faults="finds no event and has an empty answer",
        invariant="chunking-free",
        sample=TEXT,
        variants=(
            Variant(
                says="`[{…}`, `,` and a chunk each, `]` at the end",
                frames=_array,
                content_type="application/json",
            ),
        ),
    ),
    Quirk(
        name="gem-no-finish",
        group="J",
        title="The stream ends without a finishReason",
        only=("gemini",),
        servers="networks",
        right="error",
        correct="report that the stream was cut",
        faults="takes what came for the whole answer",
        invariant="truncated-is-not-complete",
        sample=TEXT,
        variants=(
            Variant(
                "no-last-chunk",
                "the chunk with the reason never comes",
                frames=_without_end,
                meaning=_unfinished,
            ),
            Variant(
                "no-word",
                "the last chunk comes without its reason",
                frames=_without_word,
                meaning=_unfinished,
            ),
            Variant(
                "cut",
                "nothing follows the first chunk",
                frames=_cut,
                meaning=lambda turn: ended(until(turn)),
            ),
        ),
        sources=("google-gemini/gemini-cli#29059",),
    ),
)
