"""The quirks of Gemini, group J; `chunks` is the access to chunks that they share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mockllm.core.events import StreamError
from mockllm.play.quirks.base import (
    Context,
    FramesChange,
    Item,
    Quirk,
    Variant,
    spread,
    with_parameters,
)
from mockllm.play.quirks.gemini import chunks
from mockllm.play.quirks.samples import CALL, TEXT, TWO_SAME, ZERO
from mockllm.play.quirks.streams import ARGUMENTS_AS_TEXT, end_in_error, time_at, with_done
from mockllm.wire.protocols.gemini.fields import ARRAY_END, ARRAY_SEPARATOR, SAFETY_RATINGS
from mockllm.wire.protocols.gemini.partial import cut
from mockllm.wire.protocols.gemini_common import compact
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import mapping

# Arguments


def _each_call(change: Callable[[Json], None], wanted: Callable[[Json], bool]) -> FramesChange:
    def change_calls(item: Item) -> Item:
        changing = [call for call in chunks.calls(item) if wanted(call)]
        for call in changing:
            change(call)
        return chunks.with_wire_json(item) if changing else item

    return lambda items, _: [change_calls(item) for item in items]


def _has_no_args(call: Json) -> bool:
    return call.get("args") == {}


def _args_as_text(call: Json) -> None:
    call["args"] = compact(call["args"])


def _partial(items: list[Item], _: Context) -> list[Item]:
    """Sends the arguments in fragments; the last chunk of the last call may end the answer, too."""
    changed: list[Item] = []
    for item in items:
        if changed and chunks.is_empty_end(item) and chunks.parts(changed[-1]) == [_END]:
            changed[-1] = chunks.with_parts(item, [_END])
        else:
            changed += _fragment_arguments(item)
    return changed


# Vertex AI closes a call that has `willContinue` by an empty one.
_END: Json = {"functionCall": {}}
_FRAGMENT = 16  # characters of JSON in each fragment, about


def _fragment_arguments(item: Item) -> list[Item]:
    call = chunks.call_of(item)
    args = call.get("args") if call else None
    if call is None or not isinstance(args, dict):
        return [item]
    groups = cut(args, max(2, len(compact(args)) // _FRAGMENT))
    if not groups:
        return [item]
    named = {name: value for name, value in call.items() if name != "args"}
    opening = {**chunks.parts(item)[0], "functionCall": {**named, "willContinue": True}}
    more = [{"functionCall": {"partialArgs": group, "willContinue": True}} for group in groups]
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
        if chunks.is_empty_end(item) and _has_calls(changed):
            changed.append(chunks.with_parts(item, [chunks.EMPTY], _only_content))
        changed.append(item)
    return changed


def _only_content(candidate: Json) -> None:
    for name in candidate.keys() - {"content", "index"}:
        del candidate[name]


def _has_calls(items: Sequence[Item]) -> bool:
    return any(True for item in items for _ in chunks.calls(item))


def _with_call(items: list[Item], _: Context) -> list[Item]:
    changed: list[Item] = []
    for item in items:
        if changed and chunks.is_empty_end(item) and chunks.call_of(changed[-1]) is not None:
            changed[-1] = chunks.with_parts(item, chunks.parts(changed[-1]))
        else:
            changed.append(item)
    return changed


@with_parameters
def _nothing_but(items: list[Item], _: Context, change: Callable[[Item], Item]) -> list[Item]:
    position = chunks.end_position(items)
    if position == len(items) or not chunks.finish(items[position]):
        return items
    return [chunks.with_wire_json(change(items[position]))]


def _candidate(*, reason: str, content: Json | None = None, **more: Any) -> Callable[[Item], Item]:
    def change(item: Item) -> Item:
        for candidate in chunks.candidates(item):
            index = {name: candidate[name] for name in ("index",) if name in candidate}
            candidate.clear()
            candidate |= {} if content is None else {"content": content}
            candidate |= {"finishReason": reason, **index, **more}
        return item

    return change


_BLOCK = "PROHIBITED_CONTENT"


def _block(item: Item) -> Item:
    new = chunks.without_candidates(item)
    usage = new.data.get("usageMetadata")
    if isinstance(usage, dict):
        for name in ("candidatesTokenCount", "thoughtsTokenCount"):
            usage.pop(name, None)
        usage["totalTokenCount"] = usage.get("promptTokenCount", 0)
    new.data = {"promptFeedback": {"blockReason": _BLOCK}, **new.data}
    return new


def _usage_only(items: list[Item], _: Context) -> list[Item]:
    answering = [position for position, item in enumerate(items) if chunks.candidates(item)]
    changed = []
    for position, item in enumerate(items):
        if position in (*answering[:1], *answering[-1:]):
            changed.append(chunks.without_candidates(item))
        changed.append(item)
    return changed


# Framing


def _add_comment(item: Item) -> list[Item]:
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
            raw=(ARRAY_SEPARATOR if position else "[")
            + str(text)
            + ARRAY_END * (whole and position == last),
        )
        for position, (item, text) in enumerate(zip(elements, texts, strict=True))
    ]


# Errors and cuts

_OVERLOADED = StreamError("The model is overloaded. Please try again later.", "UNAVAILABLE", "503")


@with_parameters
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

QUIRKS: tuple[Quirk, ...] = (
    chunks.quirk(
        "gem-args-absent",
        ZERO,
        Variant("absent", _each_call(lambda call: call.pop("args"), _has_no_args)),
        Variant("null", _each_call(lambda call: call.update(args=None), _has_no_args)),
    ),
    chunks.quirk("gem-same-name-no-id", TWO_SAME, _one_chunk),
    chunks.quirk(
        "gem-stop-for-tools",
        CALL,
        Variant("empty-text", _empty_text),
        Variant("with-call", _with_call),
    ),
    chunks.quirk("gem-partial-args", CALL, _partial),
    chunks.quirk(
        "gem-args-string",
        CALL,
        Variant(
            frames=_each_call(_args_as_text, lambda call: isinstance(call.get("args"), dict)),
            tolerated=(ARGUMENTS_AS_TEXT,),
        ),
    ),
    chunks.quirk(
        "gem-strict-framing",
        TEXT,
        Variant("comments", spread(_add_comment)),
        Variant("id-lines", _id_lines),
        Variant("done", with_done(lambda items: chunks.end_position(items) < len(items))),
    ),
    chunks.quirk(
        "gem-raw-error-lines",
        TEXT,
        Variant(
            "behind-text",
            _raw_error(chunks.behind_first),
            as_sent=True,
            expected=end_in_error(_OVERLOADED),
        ),
        Variant("first", _raw_error(lambda _: 0), as_sent=True, expected=end_in_error(_OVERLOADED)),
    ),
    chunks.quirk("gem-array-form", TEXT, Variant(frames=_array, content_type="application/json")),
    chunks.quirk(
        "gem-no-finish",
        TEXT,
        Variant("no-last-chunk", _without_end, as_sent=True),
        Variant("no-word", _without_reason, as_sent=True),
        Variant("cut", lambda items, _: items[: chunks.behind_first(items)], as_sent=True),
    ),
    chunks.quirk(
        "gem-empty-candidate",
        TEXT,
        Variant(
            "no-parts",
            _nothing_but(_candidate(reason="MAX_TOKENS", content={"role": "model"})),
            as_sent=True,
        ),
        Variant(
            "no-content",
            _nothing_but(_candidate(reason="SAFETY", safetyRatings=SAFETY_RATINGS)),
            as_sent=True,
        ),
        Variant("no-candidates", _nothing_but(_block), as_sent=True),
        Variant("usage-only", _usage_only),
    ),
)
