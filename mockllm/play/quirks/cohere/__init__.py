"""The quirks of Cohere's Chat API, group N."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.turn import Turn
from mockllm.play.quirks import samples
from mockllm.play.quirks.base import (
    Context,
    Item,
    Quirk,
    Tolerance,
    Variant,
    drop,
    quirks_of,
    with_parameters,
)
from mockllm.play.quirks.streams import DONE, event, kind, last
from mockllm.scenario.model import Api
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import mapping

quirk = quirks_of("cohere")
"""A quirk of Cohere."""

_CALLS = ("tool-call-start", "tool-call-delta")
_BLOCKS = ("content-start", "content-delta", "content-end")


# Calls without arguments


def _function(item: Item) -> Json:
    """The function in an event of a call; changes of it change the event."""
    call = mapping(mapping(event(item).get("delta")).get("message")).get("tool_calls")
    function: Json = call["function"] if isinstance(call, dict) and "function" in call else {}
    return function


def _zero(items: list[Item]) -> set[object]:
    """The indexes of the calls without arguments."""
    texts: dict[object, str] = {}
    for item in items:
        if kind(item) in _CALLS:
            index = event(item).get("index")
            texts[index] = texts.get(index, "") + str(_function(item).get("arguments", ""))
    return {index for index, text in texts.items() if text in ("", "{}")}


@with_parameters
def _zero_args(
    items: list[Item], context: Context, start: str | None, delta: str | None
) -> list[Item]:
    """Sends calls without arguments in another way.

    Args:
        start: the arguments in the start of the call; None: null.
        delta: the arguments in its only fragment; None: there is none.
    """
    zero, sent, changed = _zero(items), set(), []
    for item in items:
        index = event(item).get("index")
        if kind(item) in _CALLS and index in zero:
            begins = kind(item) == "tool-call-start"
            if not begins and (delta is None or index in sent):
                continue
            _function(item)["arguments"] = start if begins else delta
            if not begins:
                sent.add(index)
        changed.append(item)
    return changed


# Blocks


def _index_zero(items: list[Item], context: Context) -> list[Item]:
    for item in items:
        if kind(item) in _BLOCKS:
            item.data["index"] = 0
    return items


# The end


@with_parameters
def _end_with(
    items: list[Item], context: Context, finish: str, error: str | None = None
) -> list[Item]:
    end = last(items, "message-end")
    if end is not None:
        message = {} if error is None else {"error": error}
        items[end].data["delta"] |= {"finish_reason": finish, **message}
    return items


def _bill_fewer(items: list[Item], context: Context) -> list[Item]:
    """Counts instructions of the service as tokens that are not billed."""
    end = last(items, "message-end")
    usage = mapping(mapping(items[end].data.get("delta")).get("usage")) if end is not None else {}
    if usage:
        units = usage["billed_units"]
        units["input_tokens"] = _billed_of(units["input_tokens"])
        units["output_tokens"] = _billed_of(units["output_tokens"])
    return items


def _billed_of(tokens: int) -> int:
    return tokens // 2


def _billed_turn(turn: Turn, api: Api) -> Turn:
    usage = turn.usage
    if usage is None:
        return turn
    counts = replace(usage, input=_billed_of(usage.input), output=_billed_of(usage.output))
    return replace(turn, usage=counts)


QUIRKS: tuple[Quirk, ...] = (
    quirk(
        "cohere-zero-arg",
        samples.ZERO,
        Variant("null", _zero_args("", "null")),
        Variant("empty", _zero_args("", None)),
        Variant("none", _zero_args(None, None)),
    ),
    quirk("cohere-content-index", samples.REASONING, _index_zero),
    quirk(
        "cohere-two-usages",
        samples.TEXT,
        Variant(
            frames=_bill_fewer,
            tolerated=(Tolerance("what is billed is a right count, too", _billed_turn),),
        ),
    ),
    quirk(
        "cohere-error-finish",
        samples.TEXT,
        Variant("error", _end_with("ERROR", "the model failed"), as_sent=True),
        Variant("bare", _end_with("ERROR"), as_sent=True),
        Variant("timeout", _end_with("TIMEOUT"), as_sent=True),
    ),
    quirk("cohere-no-done", samples.TEXT, drop(lambda item: item.data == DONE)),
)
