"""Group A: quirks of the `index`, the ids and the names of tool calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mockllm.core.turn import ToolCall, Turn
from mockllm.play.quirks.base import (
    Context,
    FramesChange,
    Item,
    Tolerance,
    Variant,
    each,
    each_with,
    with_parameters,
)
from mockllm.play.quirks.chat import chunks
from mockllm.play.quirks.samples import CALL, TWO_CALLS
from mockllm.play.quirks.streams import SHARED_ID, with_calls
from mockllm.scenario.model import Api


def _without_index_and_type(fragment: chunks.CallFragment) -> None:
    fragment.entry.pop("type", None)
    del fragment.entry["index"]


def _with_empty_id(fragment: chunks.CallFragment) -> None:
    chunks.set_fields(fragment, id="", type="function")
    del fragment.entry["index"]


def _index_first_only(pair: tuple[chunks.CallFragment, chunks.CallFragment]) -> None:
    opening, fragment = pair
    if "id" in opening.entry:
        chunks.set_fields(fragment, id=opening.entry["id"])
        del fragment.entry["index"]


def _zero(items: list[Item]) -> list[Item]:
    for fragment in chunks.fragments(items):
        fragment.entry["index"] = 0
    return items


def _all_zero(items: list[Item], _: Context) -> list[Item]:
    return _zero(chunks.whole(items)) if _several(items) else items


def _fragments_all_zero(items: list[Item], _: Context) -> list[Item]:
    # Every fragment has index 0, so it has to follow the opening of its own call.
    return _zero(chunks.contiguous(items)) if _several(items) else items


def _several(items: list[Item]) -> bool:
    return any(len({f.entry["index"] for f in own}) > 1 for own in chunks.by_choice(items))


def _same_one_chunk(items: list[Item], _: Context) -> list[Item]:
    if not _several(items):
        return items
    items = chunks.whole(items)
    gone: list[chunks.CallFragment] = []
    for first, *others in chunks.by_choice(items):
        for fragment in others:
            gone.append(fragment)
            first.choice.delta["tool_calls"].append({**fragment.entry})
    return _zero(chunks.without_fragments(items, gone))


def _duplicate_fragments(items: list[Item], _: Context) -> list[Item]:
    gone: list[chunks.CallFragment] = []
    for opening, *others in chunks.calls(items):
        entries = opening.choice.delta["tool_calls"]
        after = next(i for i, entry in enumerate(entries) if entry is opening.entry) + 1
        moved = list(others)
        if len(moved) > 1 and not opening.arguments:
            opening.function["arguments"] = moved.pop(0).arguments
        entries[after:after] = [{**fragment.entry} for fragment in moved]
        gone += others
    return chunks.without_fragments(items, gone)


@each_with(chunks.fragments)
def _renumber(fragment: chunks.CallFragment, number: Callable[[int], int]) -> None:
    fragment.entry["index"] = number(fragment.entry["index"])


def _reverse_entries(own: list[chunks.CallFragment]) -> None:
    """Swaps the entries between the chunks; the chunks keep their positions."""
    ordered = sorted(own, key=lambda fragment: -fragment.entry["index"])
    entries = [{**fragment.entry} for fragment in ordered]
    for fragment, entry in zip(own, entries, strict=True):
        fragment.entry.clear()
        fragment.entry.update(entry)


def _id_repeated(pair: tuple[chunks.CallFragment, chunks.CallFragment]) -> None:
    opening, fragment = pair
    if "id" in opening.entry:
        chunks.set_fields(fragment, id=opening.entry["id"])


def _new_ids(own: list[chunks.CallFragment]) -> None:
    """Gives the opening of call i the id i + 1, and all other fragments higher numbers."""
    opened: set[int] = set()
    fresh = max(fragment.entry["index"] for fragment in own) + 2
    for fragment in own:
        index = fragment.entry["index"]
        if index in opened:
            chunks.set_fields(fragment, id=str(fresh))
            fresh += 1
        else:
            chunks.set_fields(fragment, id=str(index + 1))
            opened.add(index)


def _name(fragment: chunks.CallFragment, value: Any) -> None:
    rest = {key: held for key, held in fragment.function.items() if key != "name"}
    fragment.function.clear()
    fragment.function.update({"name": value, **rest})


@each_with(chunks.continuations)
def _later(
    pair: tuple[chunks.CallFragment, chunks.CallFragment],
    /,
    name: str | None = "absent",
    **fields: Any,
) -> None:
    """Sets fields of every fragment but the openings, and the name unless it is `absent`."""
    chunks.set_fields(pair[1], **fields)
    if name != "absent":
        _name(pair[1], name)


def _opened_with_id(value: str | None) -> FramesChange:
    return each(chunks.openings, lambda opening: chunks.set_fields(opening, id=value))


def _without_calls(turn: Turn, api: Api) -> Turn:
    parts = tuple(part for part in turn.parts if not isinstance(part, ToolCall))
    return replace(turn, parts=parts)


_NULL_IS_TEXT = Tolerance(
    'the text "null" may be read as text',
    lambda turn, _: with_calls(turn, lambda call: replace(call, id="null")),
)
_NULL_IS_ABSENT = Tolerance(
    'the text "null" may be read as absent, and a call without a name is none', _without_calls
)


def _id_shared(own: list[chunks.CallFragment]) -> None:
    for fragment in own:
        if "id" in fragment.entry and "id" in own[0].entry:
            chunks.set_fields(fragment, id=own[0].entry["id"])


def _name_repeated(pair: tuple[chunks.CallFragment, chunks.CallFragment]) -> None:
    opening, fragment = pair
    if "name" in opening.function:
        _name(fragment, opening.function["name"])


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


def _all_of(name: object) -> tuple[str, str] | None:
    return ("", name) if isinstance(name, str) and name else None


@with_parameters
def _name_after(
    items: list[Item],
    _: Context,
    cut: Callable[[object], tuple[str, str] | None],
    *,
    bare: bool = False,
) -> list[Item]:
    """Sends the name of a call in its opening and in a further chunk after it.

    Args:
        cut: the name in two pieces; None leaves the call as it is.
        bare: remove the arguments of the opening, and leave calls that have some there.
    """

    for opening in chunks.openings(items):
        pieces = cut(opening.function.get("name"))
        if pieces is None or (bare and opening.arguments):
            continue
        if bare:
            opening.function.pop("arguments", None)
        opening.function["name"] = pieces[0]
        function = {"name": pieces[1], "arguments": ""}
        calls = [{"index": opening.entry["index"], "function": function}]
        chunk = chunks.with_delta(opening.choice, {"tool_calls": calls})
        items = chunks.insert(items, opening.choice.item, [chunk])
    return items


# The table

QUIRKS = (
    chunks.quirk(
        "chat-index-missing",
        CALL,
        Variant(frames=each(chunks.fragments, _without_index_and_type, chunks.whole), as_sent=True),
        Variant(
            "fragments",
            # Without index and id, only the order shows which call a fragment belongs to.
            each(chunks.fragments, lambda fragment: fragment.entry.pop("index"), chunks.contiguous),
            as_sent=True,
        ),
        Variant(
            "empty-id",
            each(chunks.fragments, _with_empty_id, chunks.whole),
            as_sent=True,
            ids=False,
        ),
    ),
    chunks.quirk("chat-index-first-only", CALL, each(chunks.continuations, _index_first_only)),
    chunks.quirk(
        "chat-index-all-zero",
        TWO_CALLS,
        Variant(frames=_all_zero, as_sent=True),
        Variant("fragments", _fragments_all_zero, as_sent=True),
    ),
    chunks.quirk(
        "chat-index-same-one-chunk", TWO_CALLS, Variant(frames=_same_one_chunk, as_sent=True)
    ),
    chunks.quirk("chat-index-duplicate-fragments", CALL, _duplicate_fragments),
    chunks.quirk(
        "chat-index-from-one",
        TWO_CALLS,
        _renumber(lambda index: index + 1),
        Variant("gap", _renumber(lambda index: 2 * index)),
        Variant("negative", _renumber(lambda index: index - 1)),
    ),
    chunks.quirk("chat-index-reversed", TWO_CALLS, each(chunks.by_choice, _reverse_entries)),
    chunks.quirk("chat-id-repeated", CALL, each(chunks.continuations, _id_repeated)),
    chunks.quirk(
        "chat-id-new-every-chunk",
        CALL,
        Variant(frames=each(chunks.by_choice, _new_ids), as_sent=True),
    ),
    chunks.quirk(
        "chat-id-empty-later",
        CALL,
        _later("", id="", type="function"),
        Variant("id-only", _later(id="")),
    ),
    chunks.quirk("chat-id-null-later", CALL, _later(None, id=None, type=None)),
    chunks.quirk(
        "chat-placeholder-null-string",
        CALL,
        Variant(frames=_opened_with_id("null"), ids=False, tolerated=(_NULL_IS_TEXT,)),
        Variant(
            "name",
            each(chunks.openings, lambda opening: _name(opening, "null")),
            as_sent=True,
            tolerated=(_NULL_IS_ABSENT,),
        ),
    ),
    chunks.quirk(
        "chat-id-never",
        CALL,
        Variant(
            frames=each(chunks.fragments, lambda fragment: fragment.entry.pop("id", None)),
            ids=False,
        ),
        Variant("null", _opened_with_id(None), ids=False),
        Variant("empty", _opened_with_id(""), ids=False),
    ),
    chunks.quirk(
        "chat-id-shared",
        TWO_CALLS,
        Variant(frames=each(chunks.by_choice, _id_shared), ids=False, tolerated=(SHARED_ID,)),
    ),
    chunks.quirk("chat-name-repeated", CALL, each(chunks.continuations, _name_repeated)),
    chunks.quirk(
        "chat-name-split",
        CALL,
        _name_after(_halves),
        Variant("before-arguments", _name_after(_halves, bare=True)),
    ),
    chunks.quirk("chat-name-empty-first", CALL, _name_after(_all_of)),
)
