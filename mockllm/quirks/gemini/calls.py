"""Quirks of calls in Gemini: their arguments, their ids, and the finish reason after them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mockllm.core.turn import ToolCall, Turn
from mockllm.protocols.gemini.fields import compact
from mockllm.protocols.gemini.partial import cut
from mockllm.protocols.values import mapping
from mockllm.quirks.base import Context, FramesChange, Item, Tolerance, Variant
from mockllm.quirks.gemini import chunks
from mockllm.quirks.samples import CALL, TWO_SAME, ZERO
from mockllm.scenario.model import Api

_Json = dict[str, Any]


# Arguments


def _each_call(change: Callable[[_Json], None], wanted: Callable[[_Json], bool]) -> FramesChange:
    def changed(item: Item) -> Item:
        changing = [call for call in chunks.calls(item) if wanted(call)]
        for call in changing:
            change(call)
        return chunks.with_wire_json(item) if changing else item

    return lambda items, _: [changed(item) for item in items]


def _without_args(call: _Json) -> None:
    del call["args"]


def _null_args(call: _Json) -> None:
    call["args"] = None


def _args_as_text(call: _Json) -> None:
    call["args"] = compact(call["args"])


def _text_kept(turn: Turn, _: Api) -> Turn:
    """The turn with the string in place of the arguments: JSON, but not an object."""
    parts = tuple(
        replace(part, fragments=(json.dumps(compact(part.parsed()), ensure_ascii=False),))
        if isinstance(part, ToolCall)
        else part
        for part in turn.parts
    )
    return replace(turn, parts=parts, order=(), gaps=())


def _partial(items: list[Item], _: Context) -> list[Item]:
    """Sends the arguments in fragments; the last chunk of the last call may end the answer, too."""
    changed: list[Item] = []
    for item in items:
        if changed and chunks.is_empty_end(item) and chunks.parts(changed[-1]) == [_END]:
            changed[-1] = chunks.with_parts(item, [_END])
        else:
            changed += _fragmented(item)
    return changed


# Vertex AI closes a call that has `willContinue` by an empty one.
_END: _Json = {"functionCall": {}}
_FRAGMENT = 16  # characters of JSON in each fragment, about


def _fragmented(item: Item) -> list[Item]:
    call = chunks.call_of(item)
    args = call.get("args") if call else None
    if call is None or not isinstance(args, dict):
        return [item]
    groups = cut(args, max(2, len(compact(args)) // _FRAGMENT))
    if not groups:
        return [item]
    named = {name: value for name, value in call.items() if name != "args"}
    opening = {**chunks.parts(item)[0], "functionCall": {**named, "willContinue": True}}
    more = [{"functionCall": {"partialArgs": each, "willContinue": True}} for each in groups]
    return [chunks.with_parts(item, [part]) for part in (opening, *more, _END)]


# Several calls


def _one_chunk(items: list[Item], _: Context) -> list[Item]:
    changed: list[Item] = []
    for item in _WITHOUT_IDS(items, _):
        before = changed[-1] if changed else None
        if before is not None and _same_tool(before, item):
            changed[-1] = chunks.with_parts(item, [*chunks.parts(before), *chunks.parts(item)])
        else:
            changed.append(item)
    return changed


_WITHOUT_IDS = _each_call(lambda call: call.pop("id"), lambda call: "id" in call)


def _same_tool(before: Item, item: Item) -> bool:
    call, last = chunks.call_of(item), chunks.parts(before)[-1:]
    if call is None or not last or chunks.end_position([before]) == 0:
        return False
    name = mapping(last[0].get("functionCall")).get("name")
    return bool(name == call["name"]) and len(chunks.candidates(before)) == len(
        chunks.candidates(item)
    )


# The finish


def _empty_text(items: list[Item], _: Context) -> list[Item]:
    changed: list[Item] = []
    for item in items:
        if chunks.is_empty_end(item) and _called(changed):
            changed.append(chunks.with_parts(item, [chunks.EMPTY], _only_content))
        changed.append(item)
    return changed


def _only_content(candidate: _Json) -> None:
    for name in candidate.keys() - {"content", "index"}:
        del candidate[name]


def _called(items: Sequence[Item]) -> bool:
    return any(True for item in items for _ in chunks.calls(item))


def _with_call(items: list[Item], _: Context) -> list[Item]:
    changed: list[Item] = []
    for item in items:
        if changed and chunks.is_empty_end(item) and chunks.call_of(changed[-1]) is not None:
            changed[-1] = chunks.with_parts(item, chunks.parts(changed[-1]))
        else:
            changed.append(item)
    return changed


# The table

CALLS = (
    chunks.quirk(
        "gem-args-absent",
        ZERO,
        Variant("absent", _each_call(_without_args, lambda call: call.get("args") == {})),
        Variant("null", _each_call(_null_args, lambda call: call.get("args") == {})),
    ),
    chunks.quirk("gem-same-name-no-id", TWO_SAME, Variant(frames=_one_chunk)),
    chunks.quirk(
        "gem-stop-for-tools",
        CALL,
        Variant("empty-text", _empty_text),
        Variant("with-call", _with_call),
    ),
    chunks.quirk("gem-partial-args", CALL, Variant(frames=_partial)),
    chunks.quirk(
        "gem-args-string",
        CALL,
        Variant(
            frames=_each_call(_args_as_text, lambda call: isinstance(call.get("args"), dict)),
            tolerated=(
                Tolerance(
                    "arguments that are not an object are malformed, which a policy reports, "
                    "skips or keeps",
                    _text_kept,
                ),
            ),
        ),
    ),
)
