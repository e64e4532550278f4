"""The ways in which documented clients read an answer of Responses: they join the deltas, or take
the `done` events, the finished parts, the finished items, or the output of the final response.

Most take the final response (`get_final_response` of openai-python); chat clients show the deltas,
and Codex executes the calls of finished items. Deltas are put together by the index or the id of
their item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mockllm.wire.protocols.openai_responses.items import arguments_of, whole_number
from mockllm.wire.protocols.openai_responses.parts import (
    CALLS,
    CONTENT_PARTS,
    EVENT_PARTS,
    PartType,
)
from mockllm.wire.protocols.records import Fields, NamedEvent, Way, WayPart
from mockllm.wire.protocols.values import mapping, objects, string
from mockllm.wire.protocols.ways import usage_ways

_ENDS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}

_KINDS: Mapping[str, WayPart] = {
    "text": "text",
    "refusal": "refusal",
    "reasoning": "reasoning",
    "summary": "reasoning",
}
"""The part of an answer by the kind of its text."""

_View = dict[WayPart, list[Any]]
"""The pieces that one way of reading finds, in the order of the output, for each part of an answer
that it looks for."""

_Place = tuple[int, str, int]
"""The index of an item, the kind of a text in it, and the index of that text."""


def ways(events: Sequence[NamedEvent]) -> Iterator[Way]:
    """All ways of reading an answer."""
    values = [event for _, event in events]
    last = values[-1] if values else {}
    final = mapping(last.get("response"))
    yield from usage_ways([final.get("usage")], ("input_tokens", "output_tokens"), "total_tokens")
    yield from _ways("the output of the final response", _read_items(objects(final.get("output"))))
    if len(values) < 2:  # a body
        return
    yield Way("finish", "the type of the last event", _ENDS.get(string(last.get("type"))))
    yield Way("finish", "the status of the final response", final.get("status"))
    for event in (values[0], last):
        id = string(mapping(event.get("response")).get("id"))
        yield Way("answer id", f"`{event.get('type')}`", id)
    added = _of_type(values, "response.output_item.added")
    yield from _ways("`response.output_item.added`", {"ids": _ids(map(_item, added))})
    done = sorted(_of_type(values, "response.output_item.done"), key=_index)
    yield from _ways("`response.output_item.done`", _read_items(map(_item, done)))
    by_id = {_item(event).get("id"): _index(event) for event in added}
    texts = _texts(values, ".delta", _index)
    yield from _ways("the deltas", _read_texts(texts, added))
    texts = _texts(values, ".delta", lambda event: by_id.get(event.get("item_id"), -1))
    yield from _ways("the deltas by their `item_id`", _read_texts(texts, added))
    yield from _ways("the `done` events", _read_texts(_texts(values, ".done", _index), added))
    yield from _ways("the finished parts", _read_parts(values))


def _ways(name: str, view: _View) -> Iterator[Way]:
    for part, found in view.items():
        value = "".join(found) if part in _KINDS.values() else tuple(found)
        yield Way(part, name, value)


def _of_type(values: Sequence[Fields], *types: str) -> list[Fields]:
    return [value for value in values if value.get("type") in types]


def _item(event: Fields) -> Fields:
    return mapping(event.get("item"))


def _index(event: Fields) -> int:
    index = whole_number(event.get("output_index"))
    return -1 if index is None else index


# Items


def _read_items(items: Iterable[Fields]) -> _View:
    """The view of items that are whole."""
    given = list(items)
    view = _with_contents(
        content
        for item in given
        for name in ("summary", "content")
        for content in objects(item.get(name))
        # A text in a reasoning item is none of the answer.
        if _is_in_place(content, item)
    )
    view["calls"] = [
        (string(item.get("name")), arguments_of(item, item["type"]))
        for item in given
        if item.get("type") in CALLS
    ]
    view["ids"] = _ids(given)
    view["signatures"] = list(filter(None, (string(i.get("encrypted_content")) for i in given)))
    return view


def _is_in_place(content: Fields, item: Fields) -> bool:
    part_type = CONTENT_PARTS.get(string(content.get("type")))
    return part_type is None or part_type.item == item.get("type")


def _ids(items: Iterable[Fields]) -> list[str]:
    return [string(item.get("call_id")) for item in items if item.get("type") in CALLS]


def _with_contents(contents: Iterable[Fields]) -> _View:
    """The view of contents and summaries that are whole."""
    view: _View = {part: [] for part in (*_KINDS.values(), "citations")}
    for content in contents:
        part_type = CONTENT_PARTS.get(string(content.get("type")))
        if part_type is not None:
            view[_KINDS[part_type.kind]].append(string(content.get(part_type.value)))
        for cite in objects(content.get("annotations")):
            view["citations"].append(string(cite.get("url", cite.get("file_id"))))
    return view


def _read_parts(values: Sequence[Fields]) -> _View:
    finished = _of_type(
        values, "response.content_part.done", "response.reasoning_summary_part.done"
    )
    in_order = sorted(
        finished,
        key=lambda event: (_index(event), event.get("type") == finished[0].get("type")),
    )
    return _with_contents(mapping(event.get("part")) for event in in_order)


# Texts that are streamed


def _texts(values: Sequence[Fields], suffix: str, index: Any) -> dict[_Place, str]:
    """The texts that events with this end of their type have, joined."""
    found: dict[_Place, str] = {}
    for event in values:
        stem = string(event.get("type")).removeprefix("response.")
        part_type = EVENT_PARTS.get(stem.removesuffix(suffix)) if stem.endswith(suffix) else None
        if part_type is not None:
            place = _place(event, part_type, index(event))
            name = "delta" if suffix == ".delta" else part_type.value
            found[place] = found.get(place, "") + string(event.get(name))
    return found


def _place(event: Fields, part_type: PartType, index: int) -> _Place:
    number = whole_number(event.get(part_type.index))
    return index, part_type.kind, -1 if number is None else number


def _read_texts(texts: Mapping[_Place, str], added: Sequence[Fields]) -> _View:
    """The view of texts, and of the calls that these items open."""
    view: _View = {part: [] for part in _KINDS.values()}
    # Summaries of a reasoning item come before its content.
    for (_, kind, _), text in sorted(texts.items(), key=lambda entry: (entry[0][0], _order(entry))):
        if kind in _KINDS:
            view[_KINDS[kind]].append(text)
    view["calls"] = [
        (string(_item(event).get("name")), texts.get((_index(event), "arguments", -1), ""))
        for event in sorted(added, key=_index)
        if _item(event).get("type") in CALLS
    ]
    return view


def _order(entry: tuple[_Place, str]) -> tuple[bool, int]:
    (_, kind, number), _ = entry
    return kind != "summary", number
