"""Group B: quirks of the arguments of tool calls; `broken` has those that make them malformed."""

from __future__ import annotations

from mockllm.protocols.values import sendable_value
from mockllm.quirks.base import Context, Item, Quirk, Variant
from mockllm.quirks.chat import broken
from mockllm.quirks.chat.broken import text_of
from mockllm.quirks.chat.chunks import CallFragment, calls, removed, whole
from mockllm.quirks.samples import CALL, ZERO


def _null_first(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        if opening.function.get("arguments") == "":
            opening.function["arguments"] = None
    return items


def _zero_calls(items: list[Item]) -> list[list[CallFragment]]:
    return [call for call in calls(items) if text_of(call) in ("", "{}")]


def _bare(items: list[Item], stripped: list[list[CallFragment]]) -> list[Item]:
    return removed(items, [fragment for _opening, *others in stripped for fragment in others])


def _null_only(items: list[Item], _: Context) -> list[Item]:
    found = _zero_calls(items)
    for opening, *_others in found:
        opening.function["arguments"] = None
    return _bare(items, found)


def _absent(items: list[Item], _: Context) -> list[Item]:
    found = _zero_calls(items)
    for opening, *_others in found:
        opening.function.pop("arguments", None)
    return _bare(items, found)


def _empty_only(items: list[Item], _: Context) -> list[Item]:
    found = _zero_calls(items)
    for opening, *_others in found:
        opening.function["arguments"] = ""
    return _bare(items, found)


def _whole(items: list[Item], _: Context) -> list[Item]:
    return whole(items)


def _as_object(items: list[Item], _: Context) -> list[Item]:
    gone: list[CallFragment] = []
    for call in calls(items):
        value = sendable_value(text_of(call))
        if isinstance(value, dict):
            call[0].function["arguments"] = value
            gone += call[1:]
    return removed(items, gone)


def _before_name(items: list[Item], _: Context) -> list[Item]:
    """Moves the first character of the arguments to the opening, and the name to the fragment
    that the character comes from."""
    for opening, *others in calls(items):
        first = next((fragment for fragment in others if fragment.arguments), None)
        if first is None or opening.arguments or not opening.function.get("name"):
            continue
        name = opening.function.pop("name")
        text = first.arguments
        opening.function["arguments"] = text[0]
        rest = {**first.function, "arguments": text[1:]}
        first.function.clear()
        first.function.update({"name": name, **rest})
    return items


_NULL_FIRST = Quirk("chat-args-null-first", CALL, (Variant(frames=_null_first),), only=("chat",))

_NULL_ONLY = Quirk(
    "chat-args-null-only",
    ZERO,
    (Variant(frames=_null_only), Variant("absent", _absent)),
    only=("chat",),
)

_EMPTY_ZERO = Quirk("chat-args-empty-zero", ZERO, (Variant(frames=_empty_only),), only=("chat",))

_ALL_AT_ONCE = Quirk("chat-args-whole", CALL, (Variant(frames=_whole),), only=("chat",))

_OBJECT = Quirk("chat-args-object", CALL, (Variant(frames=_as_object),), only=("chat",))

_BEFORE_NAME = Quirk("chat-args-before-name", CALL, (Variant(frames=_before_name),), only=("chat",))

QUIRKS: tuple[Quirk, ...] = (
    _NULL_FIRST,
    _NULL_ONLY,
    _EMPTY_ZERO,
    _ALL_AT_ONCE,
    _OBJECT,
    _BEFORE_NAME,
    *broken.QUIRKS,
)
