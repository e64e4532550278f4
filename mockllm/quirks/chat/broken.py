"""Group B, the worst of it: arguments that do not parse any more, and what that means."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mockllm.core.turn import ToolCall, Turn
from mockllm.quirks.base import Context, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import (
    Fragment,
    Spot,
    alike,
    calls,
    finishes,
    inserted,
    removed,
)
from mockllm.quirks.samples import CALL

__all__ = ["QUIRKS", "object_of", "text_of"]


def text_of(call: list[Fragment]) -> str:
    """The arguments of a call, from all its fragments."""
    return "".join(fragment.arguments for fragment in call)


def object_of(text: str) -> dict[str, Any] | None:
    """The object that arguments are, or None where they are none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _again(spot: Spot, items: list[Item]) -> list[tuple[int, str]]:
    """Index and whole arguments of the calls of a choice."""
    own = [call for call in calls(items) if call[0].spot.index == spot.index]
    return [(call[0].entry["index"], text_of(call)) for call in own if text_of(call)]


def _repeated(items: list[Item], _: Context) -> list[Item]:
    told = items
    for spot in finishes(told):
        new = [
            alike(spot, {"tool_calls": [{"index": index, "function": {"arguments": text}}]})
            for index, text in _again(spot, told)
        ]
        items = inserted(items, spot.item, new, before=True)
    return items


def _repeated_in_finish(items: list[Item], _: Context) -> list[Item]:
    for spot, again in [(spot, _again(spot, items)) for spot in finishes(items)]:
        nothing = {"id": None, "type": None}
        entries = [
            {"index": index, **nothing, "function": {"name": None, "arguments": text}}
            for index, text in again
        ]
        if entries:
            held = spot.delta.get("tool_calls")
            spot.delta["tool_calls"] = [*(held if isinstance(held, list) else ()), *entries]
    return items


_PREFIX = 2


def _without_prefix(pieces: Sequence[str]) -> list[str] | None:
    """Fragments without the first characters of the arguments.

    None where what is left would not be broken: nothing is, or an object.
    """
    rest = "".join(pieces)[_PREFIX:]
    if not rest.strip() or object_of(rest) is not None:
        return None
    kept, left = [], _PREFIX
    for piece in pieces:
        kept.append(piece[left:])
        left = max(0, left - len(piece))
    return kept


def _front(pieces: Sequence[str]) -> list[str] | None:
    """Fragments up to about two thirds of the arguments; None where those would not be broken."""
    text = "".join(pieces)
    left = max(1, len(text) * 7 // 10)
    if left >= len(text) or object_of(text[:left]) is not None:
        return None
    kept = []
    for piece in pieces:
        kept.append(piece[:left])
        left = max(0, left - len(piece))
    return kept


def _say(call: list[Fragment], pieces: list[str]) -> list[Fragment]:
    """Gives each fragment of a call its piece; those that are left without one can go."""
    gone: list[Fragment] = []
    for fragment, piece in zip(call, pieces, strict=True):
        if fragment.arguments and not piece and fragment is not call[0]:
            gone.append(fragment)
        elif fragment.arguments != piece:
            fragment.function["arguments"] = piece
    return gone


def _lost_prefix(items: list[Item], _: Context) -> list[Item]:
    gone: list[Fragment] = []
    for call in calls(items):
        pieces = _without_prefix([fragment.arguments for fragment in call])
        if pieces is not None:
            gone += _say(call, pieces)
    return removed(items, gone)


def _prefix_lost(turn: Turn) -> Turn:
    return _reworded(turn, {i: _without_prefix(call.fragments) for i, call in _calls(turn)})


def _calls(turn: Turn) -> list[tuple[int, ToolCall]]:
    return [(i, part) for i, part in enumerate(turn.parts) if isinstance(part, ToolCall)]


def _reworded(turn: Turn, pieces: dict[int, list[str] | None]) -> Turn:
    """The turn with other fragments for the calls at some places; None changes nothing.

    It has no timing any more. A call that had no fragments gets a beat for its first one.
    """
    parts = list(turn.parts)
    grown: set[int] = set()
    for place, call in _calls(turn):
        told = pieces.get(place)
        if told is not None:
            parts[place] = replace(call, fragments=tuple(told))
            if not call.fragments:
                grown.add(place)
    if tuple(parts) == turn.parts:
        return turn
    order = tuple(i for place in turn.order for i in [place] * (1 + (place in grown)))
    return replace(turn, parts=tuple(parts), order=order, gaps=())


def _truncated(items: list[Item], _: Context) -> list[Item]:
    return _cut(items, "length")


def _truncated_silently(items: list[Item], _: Context) -> list[Item]:
    return _cut(items, None)


def _cut(items: list[Item], finish: str | None) -> list[Item]:
    """Cuts the last call of each choice that finishes; before it, nothing was cut."""
    last: dict[int, list[Fragment]] = {}
    for call in sorted(calls(items), key=lambda call: call[0].entry["index"]):
        last[call[0].spot.index] = call
    gone: list[Fragment] = []
    for choice, call in last.items():
        ends = [spot for spot in finishes(items) if spot.index == choice]
        pieces = _front([fragment.arguments for fragment in call])
        if not ends or pieces is None:
            continue
        gone += _say(call, pieces)
        for spot in ends:
            spot.choice["finish_reason"] = finish or spot.choice["finish_reason"]
    return removed(items, gone)


def _cut_short(turn: Turn) -> Turn:
    """The turn with its last call cut; the finish stays."""
    own = _calls(turn)
    if not own or turn.finish is None or turn.error is not None:
        return turn
    place, call = own[-1]
    return _reworded(turn, {place: _front(call.fragments or ("{}",))})


def _cut_at_limit(turn: Turn) -> Turn:
    cut = _cut_short(turn)
    return turn if cut is turn else replace(cut, finish="length", finish_raw=None)


_REPEATED = Quirk(
    name="chat-args-repeated-at-end",
    group="B",
    title="After its fragments, a call's whole arguments come once more",
    only=("chat",),
    servers="vLLM (xLAM parser; GLM with multi-token prediction)",
    right="either",
    correct="report broken arguments; dropping a fragment that equals all before it is lenient",
    faults="hands on the arguments twice over",
    invariant="malformed-contained",
    sample=CALL,
    variants=(
        Variant(says="in a chunk before the one that finishes", frames=_repeated),
        Variant(
            "with-finish",
            "in the chunk that finishes; id, type and name are null",
            _repeated_in_finish,
        ),
    ),
    sources=(
        "vllm-project/vllm#51697",
        "vllm-project/vllm#42167",
        "vllm-project/vllm#39615",
        "lidge-jun/opencodex#361",
    ),
)

_LOST_PREFIX = Quirk(
    name="chat-args-lost-prefix",
    group="B",
    title="The first characters of the arguments are missing",
    only=("chat",),
    servers="vLLM",
    right="either",
    correct="report it with the tool's name and the text that came, or hand on that text",
    faults="fails somewhere far away when the text is parsed",
    invariant="malformed-contained",
    sample=CALL,
    variants=(Variant(says="two characters are lost", frames=_lost_prefix, meaning=_prefix_lost),),
    sources=("vllm-project/vllm#34887",),
)

_TRUNCATED = Quirk(
    name="chat-args-truncated",
    group="B",
    title="The arguments break off, yet the stream finishes",
    only=("chat",),
    servers="any model at its token limit; vLLM",
    right="either",
    correct="never run it: report it, or hand on the call as what it is, with its broken text",
    faults="closes the braces and runs the tool with half a value",
    invariant="surface-complete",
    sample=CALL,
    variants=(
        Variant(says="the finish is length", frames=_truncated, meaning=_cut_at_limit),
        Variant(
            "normal-finish", "the finish tells nothing", _truncated_silently, meaning=_cut_short
        ),
    ),
    sources=("vllm-project/vllm#45256",),
)

QUIRKS: tuple[Quirk, ...] = (_REPEATED, _LOST_PREFIX, _TRUNCATED)
