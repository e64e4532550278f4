"""Group B: quirks of the arguments of tool calls; `broken` has those that make them malformed."""

from __future__ import annotations

from collections.abc import Callable

from mockllm.protocols.values import sendable_value
from mockllm.quirks.base import Context, Item, Variant, each, parametrised
from mockllm.quirks.chat import broken
from mockllm.quirks.chat.broken import text_of
from mockllm.quirks.chat.chunks import CallFragment, calls, openings, quirk, removed, whole
from mockllm.quirks.samples import CALL, ZERO


def _null_first(opening: CallFragment) -> None:
    if opening.function.get("arguments") == "":
        opening.function["arguments"] = None


@parametrised
def _no_arguments(
    items: list[Item], _: Context, change: Callable[[CallFragment], object]
) -> list[Item]:
    """Changes the opening of calls without arguments, and removes their other fragments."""
    empty = [call for call in calls(items) if text_of(call) in ("", "{}")]
    for opening, *_others in empty:
        change(opening)
    return removed(items, [fragment for call in empty for fragment in call[1:]])


def _as_object(items: list[Item], _: Context) -> list[Item]:
    gone: list[CallFragment] = []
    for call in calls(items):
        value = sendable_value(text_of(call))
        if isinstance(value, dict):
            call[0].function["arguments"] = value
            gone += call[1:]
    return removed(items, gone)


def _before_name(call: list[CallFragment]) -> None:
    """Moves the first character of the arguments to the opening, and the name to the fragment
    that the character comes from."""
    opening, *others = call
    first = next((fragment for fragment in others if fragment.arguments), None)
    if first is None or opening.arguments or not opening.function.get("name"):
        return
    name = opening.function.pop("name")
    text = first.arguments
    opening.function["arguments"] = text[0]
    rest = {**first.function, "arguments": text[1:]}
    first.function.clear()
    first.function.update({"name": name, **rest})


QUIRKS = (
    quirk("chat-args-null-first", CALL, Variant(frames=each(openings, _null_first))),
    quirk(
        "chat-args-null-only",
        ZERO,
        Variant(frames=_no_arguments(lambda opening: opening.function.update(arguments=None))),
        Variant("absent", _no_arguments(lambda opening: opening.function.pop("arguments", None))),
    ),
    quirk(
        "chat-args-empty-zero",
        ZERO,
        Variant(frames=_no_arguments(lambda opening: opening.function.update(arguments=""))),
    ),
    quirk("chat-args-whole", CALL, Variant(frames=lambda items, _: whole(items))),
    quirk("chat-args-object", CALL, Variant(frames=_as_object)),
    quirk("chat-args-before-name", CALL, Variant(frames=each(calls, _before_name))),
    *broken.QUIRKS,
)
