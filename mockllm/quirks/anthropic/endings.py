"""The quirks of how Messages streams end: reason and usage, errors, cuts, a second beginning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mockllm.core.events import StreamError
from mockllm.core.turn import Turn
from mockllm.protocols.anthropic_messages.blocks import request_id
from mockllm.quirks.anthropic.events import (
    ended,
    ending,
    event,
    kind,
    made,
    said,
    start_of,
    stop_reason,
    until,
)
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.samples import CALL, TEXT, TEXT_AND_CALL

__all__ = ["ENDINGS"]


# Reason and usage


def _without_usage(*, start: bool, end: bool) -> FramesChange:
    def change(items: list[Item], _: Context) -> list[Item]:
        for item in items:
            message = event(item).get("message")
            if end and kind(item) == "message_delta":
                event(item).pop("usage", None)
            elif start and kind(item) == "message_start" and isinstance(message, dict):
                message.pop("usage", None)
        return items

    return change


def _usage_unknown(turn: Turn) -> Turn:
    return replace(turn, usage=None)


def _second_delta(*, behind: bool) -> FramesChange:
    """A `message_delta` without a reason, behind the one that has it or before it."""

    def change(items: list[Item], _: Context) -> list[Item]:
        place = next((place for place, item in enumerate(items) if stop_reason(item)), None)
        if place is None:
            return items
        second = items[place].copy()
        event(second)["delta"] = {"stop_reason": None, "stop_sequence": None}
        here = place + behind
        return [*items[:here], second, *items[here:]]

    return change


# Errors and cuts

_OVERLOADED = StreamError("Overloaded", "overloaded_error")


def _error(place: Callable[[list[Item]], int]) -> FramesChange:
    """An error in place of all events from a place on."""

    def change(items: list[Item], context: Context) -> list[Item]:
        kept = place(items)
        near = items[kept : kept + 1] or items[-1:]
        error = {"type": _OVERLOADED.type, "message": _OVERLOADED.message}
        id = request_id(context.reply.seed)
        told = made(near[0].at if near else 0, "error", error=error, request_id=id)
        return [*items[:kept], told]

    return change


def _behind_first(items: list[Item]) -> int:
    """The place behind the first event that says something, or of the end where none does."""
    first = said(items)
    return ending(items) if first is None else first + 1


def _failed(told: Callable[[Turn], Turn]) -> Callable[[Turn], Turn]:
    return lambda turn: replace(ended(told(turn)), error=_OVERLOADED)


def _cut(place: Callable[[list[Item]], int]) -> FramesChange:
    return lambda items, _: items[: place(items)]


def _behind_first_input(items: list[Item]) -> int:
    first = said(items, "tool_use")
    return len(items) if first is None else first + 1


def _unstopped(items: list[Item], _: Context) -> list[Item]:
    return [item for item in items if kind(item) != "message_stop"]


# A second attempt


def _started_twice(begun: Callable[[list[Item]], int | None]) -> FramesChange:
    """The beginning of a first attempt, and all of a second: `begun` gives the place of the last
    event of the first, or None where that has only its start."""

    def change(items: list[Item], _: Context) -> list[Item]:
        start = start_of(items)
        if start is None:
            return items
        last = begun(items)
        first = [item.copy() for item in items[: 1 + (start if last is None else last)]]
        message = event(items[start]).get("message")
        if isinstance(message, dict) and isinstance(message.get("id"), str):
            id = message["id"]
            message["id"] = id[:-1] + ("0" if id[-1:] != "0" else "1")
        return [*first, *items]

    return change


# The table

ENDINGS: tuple[Quirk, ...] = (
    Quirk(
        name="anth-error-event",
        group="H",
        title="An error event inside of the stream",
        only=("anthropic",),
        servers="Anthropic itself when it is overloaded",
        right="error",
        correct="report it as an error of its type, which a retry may mend",
        faults="passes over it, or reports an error that has status 200 and no name",
        invariant="error-ends",
        sample=TEXT,
        variants=(
            Variant(
                "behind-delta",
                "`event: error` behind the first fragment",
                frames=_error(_behind_first),
                meaning=_failed(until),
            ),
            Variant(
                "first",
                "`event: error` in place of the whole answer",
                frames=_error(lambda _: 0),
                meaning=_failed(lambda _: Turn()),
            ),
            Variant(
                "at-the-end",
                "`event: error` in place of reason and usage",
                frames=_error(ending),
                meaning=_failed(lambda turn: turn),
            ),
        ),
        sources=(
            "anthropics/anthropic-sdk-python#1258",
            "anthropics/anthropic-sdk-python#1918",
            "anthropics/anthropic-sdk-go#200",
            "vercel/ai#2453",
            "vercel/ai#2463",
            "vercel/ai#10653",
            "Helicone/helicone#4678",
            "farzaa/clicky#132",
        ),
    ),
    Quirk(
        name="anth-cut",
        group="H",
        title="The stream ends, the message does not",
        only=("anthropic",),
        servers="networks",
        right="error",
        correct="report that the stream was cut",
        faults="takes what came for the whole answer; runs a call with `{}`",
        invariant="truncated-is-not-complete",
        sample=TEXT_AND_CALL,
        variants=(
            Variant(
                "behind-delta",
                "nothing follows the first fragment",
                frames=_cut(_behind_first),
                meaning=lambda turn: ended(until(turn)),
            ),
            Variant(
                "in-call",
                "nothing follows the first fragment of an input",
                frames=_cut(_behind_first_input),
                meaning=lambda turn: until(turn, call=True),
            ),
            Variant(
                "before-end",
                "neither `message_delta` nor `message_stop`",
                frames=_cut(ending),
                meaning=ended,
            ),
            Variant(
                "before-stop",
                "the reason is there, `message_stop` is not",
                frames=_unstopped,
                right="either",
            ),
        ),
        sources=(
            "SamSaffron/term-llm#955",
            "NVIDIA-NeMo/Switchyard#283",
            "openclaw/openclaw#120030",
            "BerriAI/litellm#32159",
            "griffinwork40/agent-afk#635",
        ),
    ),
    Quirk(
        name="anth-usage-missing",
        group="H",
        title="An event that should tell the usage does not",
        only=("anthropic",),
        servers="compatible servers",
        right="same",
        correct="it is unknown",
        faults="breaks on the missing value",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant(
                "message-delta",
                "`message_delta` without `usage`",
                frames=_without_usage(start=False, end=True),
                meaning=_usage_unknown,
            ),
            Variant(
                "message-start",
                "`message_start` without `usage`",
                frames=_without_usage(start=True, end=False),
            ),
            Variant(
                "both",
                "no `usage` anywhere",
                frames=_without_usage(start=True, end=True),
                meaning=_usage_unknown,
            ),
        ),
    ),
    Quirk(
        name="anth-two-message-delta",
        group="H",
        title="A second message_delta, without a reason",
        only=("anthropic",),
        servers="converters",
        right="same",
        correct="the last reason that is one counts, and so does the last usage",
        faults="forgets the reason; adds the usages up",
        invariant="finish-and-usage",
        sample=CALL,
        variants=(
            Variant(
                "null-after",
                '`"stop_reason":null` behind the one that counts',
                frames=_second_delta(behind=True),
            ),
            Variant(
                "null-before",
                '`"stop_reason":null` before the one that counts',
                frames=_second_delta(behind=False),
            ),
        ),
    ),
    Quirk(
        name="anth-message-start-twice",
        group="H",
        title="The message starts again in the middle of the stream",
        only=("anthropic",),
        servers="proxies that fall back on another server",
        right="either",
        correct="report it, or forget what came before",
        faults="adds the blocks of both attempts up",
        invariant="text-accumulates",
        sample=TEXT,
        variants=(
            Variant(
                "in-block",
                "the first attempt breaks off inside of a block",
                frames=_started_twice(said),
            ),
            Variant(
                "at-once",
                "one `message_start` follows the other",
                frames=_started_twice(lambda _: None),
            ),
        ),
    ),
)
