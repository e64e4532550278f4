"""Group B: quirks of the arguments of tool calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mockllm.core.turn import ToolCall
from mockllm.play.quirks.base import Context, Item, Tolerance, Variant, each, with_parameters
from mockllm.play.quirks.chat import chunks
from mockllm.play.quirks.samples import CALL, TWO_CALLS, ZERO
from mockllm.play.quirks.streams import with_calls
from mockllm.wire.protocols.values import array, json_object, sendable_value


def _text_of(call: list[chunks.CallFragment]) -> str:
    """The complete arguments of a call."""
    return "".join(fragment.arguments for fragment in call)


# In other forms


def _null_first(opening: chunks.CallFragment) -> None:
    if opening.function.get("arguments") == "":
        opening.function["arguments"] = None


def _null_together(items: list[Item], _: Context) -> list[Item]:
    """Opens all calls of a choice in the chunk of the first one, with null arguments."""
    openings = chunks.grouped_by(lambda opening: opening.choice.index, chunks.openings(items))
    gone: list[chunks.CallFragment] = []
    for first, *others in openings:
        if not any(opening.arguments for opening in (first, *others)):
            for opening in (first, *others):
                opening.function["arguments"] = None
            gone += [opening for opening in others if opening.choice.item is not first.choice.item]
            first.choice.delta["tool_calls"] += [{**opening.entry} for opening in gone]
    return chunks.without_fragments(items, gone)


@with_parameters
def _no_arguments(
    items: list[Item], _: Context, change: Callable[[chunks.CallFragment], object]
) -> list[Item]:
    """Changes the opening of calls without arguments, and removes their other fragments."""
    empty = [call for call in chunks.calls(items) if _text_of(call) in ("", "{}")]
    for opening, *_others in empty:
        change(opening)
    return chunks.without_fragments(items, [fragment for call in empty for fragment in call[1:]])


def _as_object(items: list[Item], _: Context) -> list[Item]:
    gone: list[chunks.CallFragment] = []
    for call in chunks.calls(items):
        value = sendable_value(_text_of(call))
        if isinstance(value, dict):
            call[0].function["arguments"] = value
            gone += call[1:]
    return chunks.without_fragments(items, gone)


def _before_name(call: list[chunks.CallFragment]) -> None:
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


# Malformed


def _whole_arguments(choice: chunks.Choice, items: list[Item]) -> list[tuple[int, str]]:
    own = [call for call in chunks.calls(items) if call[0].choice.index == choice.index]
    return [(call[0].entry["index"], _text_of(call)) for call in own if _text_of(call)]


def _repeat_arguments(items: list[Item], _: Context) -> list[Item]:
    original = items
    for choice in chunks.finishes(original):
        new = [
            chunks.with_delta(
                choice, {"tool_calls": [{"index": index, "function": {"arguments": text}}]}
            )
            for index, text in _whole_arguments(choice, original)
        ]
        items = chunks.insert(items, choice.item, new, before=True)
    return items


def _repeated_in_finish(items: list[Item], _: Context) -> list[Item]:
    for choice, repeated in [
        (choice, _whole_arguments(choice, items)) for choice in chunks.finishes(items)
    ]:
        nothing = {"id": None, "type": None}
        entries = [
            {"index": index, **nothing, "function": {"name": None, "arguments": text}}
            for index, text in repeated
        ]
        if entries:
            choice.delta["tool_calls"] = [*array(choice.delta.get("tool_calls")), *entries]
    return items


def _twice(call: ToolCall) -> ToolCall:
    *before, last = call.fragments or ("{}",)
    return replace(call, fragments=(*before, last + "".join((*before, last))))


_JOINED = (
    Tolerance(
        "the fragments join to malformed arguments, which a policy reports, skips or keeps",
        lambda turn, _: with_calls(turn, _twice),
    ),
)

_PREFIX = 2


def _without_prefix(texts: Sequence[str]) -> list[str] | None:
    """Fragments without the first characters of the arguments. None where the rest is not
    malformed: it is empty, or an object."""
    rest = "".join(texts)[_PREFIX:]
    return _malformed_fragments(texts, slice(_PREFIX, None)) if rest.strip() else None


def _front(texts: Sequence[str]) -> list[str] | None:
    """Fragments of about the first two thirds of the arguments; None where those are not
    malformed."""
    size = len("".join(texts))
    end = max(1, size * 7 // 10)
    return None if end >= size else _malformed_fragments(texts, slice(0, end))


def _malformed_fragments(texts: Sequence[str], piece: slice) -> list[str] | None:
    """The fragments of a piece of the arguments; None where it is an object."""
    if json_object("".join(texts)[piece]) is not None:
        return None
    pieces, start = [], 0
    for fragment in texts:
        first, last, _ = piece.indices(start + len(fragment))
        pieces.append(fragment[max(0, first - start) : max(0, last - start)])
        start += len(fragment)
    return pieces


def _set_arguments(call: list[chunks.CallFragment], texts: list[str]) -> list[chunks.CallFragment]:
    gone: list[chunks.CallFragment] = []
    for fragment, text in zip(call, texts, strict=True):
        if fragment.arguments and not text and fragment is not call[0]:
            gone.append(fragment)
        elif fragment.arguments != text:
            fragment.function["arguments"] = text
    return gone


def _lost_prefix(items: list[Item], _: Context) -> list[Item]:
    gone: list[chunks.CallFragment] = []
    for call in chunks.calls(items):
        kept = _without_prefix([fragment.arguments for fragment in call])
        if kept is not None:
            gone += _set_arguments(call, kept)
    return chunks.without_fragments(items, gone)


@with_parameters
def _cut(items: list[Item], _: Context, finish: str | None) -> list[Item]:
    """Cuts the arguments of the last call of each choice that finishes. A token limit cuts the end
    of an answer only, so earlier calls stay complete.

    Args:
        finish: the finish reason then; None: as it was.
    """

    last: dict[int, list[chunks.CallFragment]] = {}
    for call in sorted(chunks.calls(items), key=lambda call: call[0].entry["index"]):
        last[call[0].choice.index] = call
    gone: list[chunks.CallFragment] = []
    for index, call in last.items():
        ends = [choice for choice in chunks.finishes(items) if choice.index == index]
        front = _front([fragment.arguments for fragment in call])
        if not ends or front is None:
            continue
        gone += _set_arguments(call, front)
        for choice in ends:
            choice.fields["finish_reason"] = finish or choice.fields["finish_reason"]
    return chunks.without_fragments(items, gone)


QUIRKS = (
    chunks.quirk(
        "chat-args-null-first",
        CALL,
        each(chunks.openings, _null_first),
        Variant("together", _null_together, sample=TWO_CALLS),
    ),
    chunks.quirk(
        "chat-args-null-only",
        ZERO,
        _no_arguments(lambda opening: opening.function.update(arguments=None)),
        Variant("absent", _no_arguments(lambda opening: opening.function.pop("arguments", None))),
    ),
    chunks.quirk(
        "chat-args-empty-zero",
        ZERO,
        _no_arguments(lambda opening: opening.function.update(arguments="")),
    ),
    chunks.quirk("chat-args-whole", CALL, lambda items, _: chunks.whole(items)),
    chunks.quirk("chat-args-object", CALL, _as_object),
    chunks.quirk("chat-args-before-name", CALL, each(chunks.calls, _before_name)),
    chunks.quirk(
        "chat-args-repeated-at-end",
        CALL,
        Variant(frames=_repeat_arguments, tolerated=_JOINED),
        Variant("with-finish", _repeated_in_finish, tolerated=_JOINED),
    ),
    chunks.quirk("chat-args-lost-prefix", CALL, Variant(frames=_lost_prefix, as_sent=True)),
    chunks.quirk(
        "chat-args-truncated",
        CALL,
        Variant(frames=_cut("length"), as_sent=True),
        Variant("normal-finish", _cut(None), as_sent=True),
    ),
)
