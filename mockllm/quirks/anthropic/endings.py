"""Quirks of the end of Messages streams: reason and usage, errors, cuts, a second beginning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mockllm.core.events import StreamError
from mockllm.core.turn import Turn
from mockllm.protocols.anthropic_messages.blocks import request_id
from mockllm.quirks.anthropic.events import (
    end_position,
    event,
    first_output,
    kind,
    new_event,
    start_of,
    stop_reason,
    until_first_output,
    without_finish,
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
    """Adds a `message_delta` without a stop reason, after (`behind`) or before the real one."""

    def change(items: list[Item], _: Context) -> list[Item]:
        position = next(
            (position for position, item in enumerate(items) if stop_reason(item)), None
        )
        if position is None:
            return items
        second = items[position].copy()
        event(second)["delta"] = dict.fromkeys(("stop_reason", "stop_sequence", "stop_details"))
        here = position + behind
        return [*items[:here], second, *items[here:]]

    return change


# Errors and cuts

_OVERLOADED = StreamError("Overloaded", "overloaded_error")


def _error(position: Callable[[list[Item]], int]) -> FramesChange:
    """Replaces all events from a position on by an error."""

    def change(items: list[Item], context: Context) -> list[Item]:
        kept = position(items)
        replaced = items[kept : kept + 1] or items[-1:]
        at = replaced[0].at if replaced else 0
        error = {"type": _OVERLOADED.type, "message": _OVERLOADED.message}
        id = request_id(context.reply.seed)
        return [*items[:kept], new_event(at, "error", error=error, request_id=id)]

    return change


def _behind_first(items: list[Item]) -> int:
    """The position after the first output; that of the end where there is none."""
    first = first_output(items)
    return end_position(items) if first is None else first + 1


def _failed(kept: Callable[[Turn], Turn]) -> Callable[[Turn], Turn]:
    return lambda turn: replace(without_finish(kept(turn)), error=_OVERLOADED)


def _cut(position: Callable[[list[Item]], int]) -> FramesChange:
    return lambda items, _: items[: position(items)]


def _behind_first_input(items: list[Item]) -> int:
    first = first_output(items, "tool_use")
    return len(items) if first is None else first + 1


def _unstopped(items: list[Item], _: Context) -> list[Item]:
    return [item for item in items if kind(item) != "message_stop"]


# A second attempt


def _started_twice(begun: Callable[[list[Item]], int | None]) -> FramesChange:
    """Puts the beginning of a first attempt before the stream.

    Args:
        begun: gives the position of the first attempt's last event; None: only its start is sent.
    """

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
        topic="errors",
        title="An error event in the stream",
        only=("anthropic",),
        servers="Anthropic itself, if it is overloaded",
        right="error",
        correct="raise an error of its type, so that a retry is possible",
        faults="ignores it, or raises an error with status 200 and no type",
        invariant="error-ends",
        sample=TEXT,
        variants=(
            Variant(
                "behind-delta",
                "`event: error` after the first fragment",
                frames=_error(_behind_first),
                expected=_failed(until_first_output),
            ),
            Variant(
                "first",
                "`event: error` instead of the whole answer",
                frames=_error(lambda _: 0),
                expected=_failed(lambda _: Turn()),
            ),
            Variant(
                "at-the-end",
                "`event: error` instead of stop reason and usage",
                frames=_error(end_position),
                expected=_failed(lambda turn: turn),
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
        topic="ends",
        title="The stream ends before the message does",
        only=("anthropic",),
        servers="networks",
        right="error",
        correct="report that the stream was cut",
        faults="treats the partial answer as complete; runs a call with `{}`",
        invariant="truncated-is-not-complete",
        sample=TEXT_AND_CALL,
        variants=(
            Variant(
                "behind-delta",
                "nothing follows the first fragment",
                frames=_cut(_behind_first),
                expected=lambda turn: without_finish(until_first_output(turn)),
            ),
            Variant(
                "in-call",
                "nothing follows the first fragment of an input",
                frames=_cut(_behind_first_input),
                expected=lambda turn: until_first_output(turn, call=True),
            ),
            Variant(
                "before-end",
                "neither `message_delta` nor `message_stop`",
                frames=_cut(end_position),
                expected=without_finish,
            ),
            Variant(
                "before-stop",
                "`message_delta` is there, `message_stop` is not",
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
        topic="usage",
        title="An event that should have the usage has none",
        only=("anthropic",),
        servers="Anthropic-compatible servers",
        right="same",
        correct="treat the usage as unknown",
        faults="fails on the missing value",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant(
                "message-delta",
                "`message_delta` without `usage`",
                frames=_without_usage(start=False, end=True),
                expected=_usage_unknown,
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
                expected=_usage_unknown,
            ),
        ),
    ),
    Quirk(
        name="anth-two-message-delta",
        group="H",
        topic="ends",
        title="A second `message_delta` has no stop reason",
        only=("anthropic",),
        servers="converters",
        right="same",
        correct="keep the last stop reason that is not null, and the last usage",
        faults="forgets the stop reason; adds the usages up",
        invariant="finish-and-usage",
        sample=CALL,
        variants=(
            Variant(
                "null-after",
                '`"stop_reason":null` after the real one',
                frames=_second_delta(behind=True),
            ),
            Variant(
                "null-before",
                '`"stop_reason":null` before the real one',
                frames=_second_delta(behind=False),
            ),
        ),
    ),
    Quirk(
        name="anth-message-start-twice",
        group="H",
        topic="ends",
        title="The message starts again in the middle of the stream",
        only=("anthropic",),
        servers="proxies that fall back on another server",
        right="either",
        correct="report it, or discard the first attempt",
        faults="adds the blocks of both attempts together",
        invariant="text-accumulates",
        sample=TEXT,
        variants=(
            Variant(
                "in-block",
                "the first attempt is cut inside a block",
                frames=_started_twice(first_output),
            ),
            Variant(
                "at-once",
                "one `message_start` directly after the other",
                frames=_started_twice(lambda _: None),
            ),
        ),
    ),
)
