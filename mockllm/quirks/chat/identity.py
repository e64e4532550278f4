"""Group A: quirks of `id` and `name`, by which a client finds the call of a fragment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mockllm.core.turn import ToolCall, Turn
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.chat import index
from mockllm.quirks.chat.chunks import (
    CallFragment,
    by_choice,
    calls,
    continuations,
    fragments,
    inserted,
    set_fields,
    with_delta,
)
from mockllm.quirks.samples import CALL


def _id_repeated(items: list[Item], _: Context) -> list[Item]:
    for opening, fragment in continuations(items):
        if "id" in opening.entry:
            set_fields(fragment, id=opening.entry["id"])
    return items


def _new_ids(items: list[Item], _: Context) -> list[Item]:
    """Gives the opening of call i the id i + 1, and all other fragments higher numbers."""
    for own in by_choice(items):
        opened: set[int] = set()
        fresh = max(fragment.entry["index"] for fragment in own) + 2
        for fragment in own:
            index = fragment.entry["index"]
            if index in opened:
                set_fields(fragment, id=str(fresh))
                fresh += 1
            else:
                set_fields(fragment, id=str(index + 1))
                opened.add(index)
    return items


def _numbered(turn: Turn) -> Turn:
    parts = list(turn.parts)
    number = 0
    for i, part in enumerate(parts):
        if isinstance(part, ToolCall):
            number += 1
            parts[i] = replace(part, id=str(number))
    return replace(turn, parts=tuple(parts))


def _name(fragment: CallFragment, value: Any) -> None:
    rest = {key: held for key, held in fragment.function.items() if key != "name"}
    fragment.function.clear()
    fragment.function.update({"name": value, **rest})


def _empty_later(items: list[Item], _: Context) -> list[Item]:
    for _opening, fragment in continuations(items):
        set_fields(fragment, id="", type="function")
        _name(fragment, "")
    return items


def _empty_id_later(items: list[Item], _: Context) -> list[Item]:
    for _opening, fragment in continuations(items):
        set_fields(fragment, id="")
    return items


def _null_later(items: list[Item], _: Context) -> list[Item]:
    for _opening, fragment in continuations(items):
        set_fields(fragment, id=None, type=None)
        _name(fragment, None)
    return items


def _opened_with_id(value: str | None) -> FramesChange:
    def change(items: list[Item], _: Context) -> list[Item]:
        for opening, *_others in calls(items):
            set_fields(opening, id=value)
        return items

    return change


def _null_names(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        _name(opening, "null")
    return items


def _called_null(turn: Turn) -> Turn:
    parts = tuple(
        replace(part, name="null") if isinstance(part, ToolCall) else part for part in turn.parts
    )
    return replace(turn, parts=parts)


def _no_id(items: list[Item], _: Context) -> list[Item]:
    for fragment in fragments(items):
        fragment.entry.pop("id", None)
    return items


def _name_repeated(items: list[Item], _: Context) -> list[Item]:
    for opening, fragment in continuations(items):
        if "name" in opening.function:
            _name(fragment, opening.function["name"])
    return items


def _halves(name: object) -> tuple[str, str] | None:
    """A name cut in two, after a separator if it has one; None where no cut is possible. The halves
    differ. Equal ones would look like a repeated name (`chat-name-repeated`)."""
    if not isinstance(name, str):
        return None
    separators = [i for i in range(1, len(name)) if name[i - 1] in "_-"]
    middle = sorted(range(1, len(name)), key=lambda i: abs(2 * i - len(name)))
    for cut in (*separators, *middle):
        if name[:cut] != name[cut:]:
            return name[:cut], name[cut:]
    return None


def _name_split(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        halves = _halves(opening.function.get("name"))
        if halves is not None:
            opening.function["name"] = halves[0]
            items = _with_name_after(items, opening, halves[1])
    return items


def _name_split_first(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        halves = _halves(opening.function.get("name"))
        if halves is not None and not opening.arguments:
            opening.function.pop("arguments", None)
            opening.function["name"] = halves[0]
            items = _with_name_after(items, opening, halves[1])
    return items


def _name_late(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        name = opening.function.get("name")
        if isinstance(name, str) and name:
            opening.function["name"] = ""
            items = _with_name_after(items, opening, name)
    return items


def _with_name_after(items: list[Item], opening: CallFragment, name: str) -> list[Item]:
    entry = {"index": opening.entry["index"], "function": {"name": name, "arguments": ""}}
    return inserted(
        items, opening.choice.item, [with_delta(opening.choice, {"tool_calls": [entry]})]
    )


_ID_REPEATED = Quirk("chat-id-repeated", CALL, (Variant(frames=_id_repeated),), only=("chat",))

_NEW_IDS = Quirk(
    "chat-id-new-every-chunk", CALL, (Variant(frames=_new_ids, expected=_numbered),), only=("chat",)
)

_EMPTY_LATER = Quirk(
    "chat-id-empty-later",
    CALL,
    (Variant(frames=_empty_later), Variant("id-only", _empty_id_later)),
    only=("chat",),
)

_NULL_LATER = Quirk("chat-id-null-later", CALL, (Variant(frames=_null_later),), only=("chat",))

_NULL_WORD = Quirk(
    "chat-placeholder-null-string",
    CALL,
    (
        Variant(frames=_opened_with_id("null"), ids=False),
        Variant("name", _null_names, expected=_called_null),
    ),
    only=("chat",),
)

_NO_ID = Quirk(
    "chat-id-never",
    CALL,
    (
        Variant(frames=_no_id, ids=False),
        Variant("null", _opened_with_id(None), ids=False),
        Variant("empty", _opened_with_id(""), ids=False),
    ),
    only=("chat",),
)

_NAME_REPEATED = Quirk(
    "chat-name-repeated", CALL, (Variant(frames=_name_repeated),), only=("chat",)
)

_NAME_SPLIT = Quirk(
    "chat-name-split",
    CALL,
    (Variant(frames=_name_split), Variant("before-arguments", _name_split_first)),
    only=("chat",),
)

_NAME_LATE = Quirk("chat-name-empty-first", CALL, (Variant(frames=_name_late),), only=("chat",))

QUIRKS: tuple[Quirk, ...] = (
    *index.QUIRKS,
    _ID_REPEATED,
    _NEW_IDS,
    _EMPTY_LATER,
    _NULL_LATER,
    _NULL_WORD,
    _NO_ID,
    _NAME_REPEATED,
    _NAME_SPLIT,
    _NAME_LATE,
)
