"""The limits that a request sets to its answer, and the reply that obeys them. Pure.

Tokens are counted by the rule of `core.tokens_and_fragments`, also where a reply is cut: n tokens
are 4n bytes of UTF-8. So a reply that was cut counts exactly as many tokens as its limit.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import replace

from mockllm.core.errors import RequestError
from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.core.tokens_and_fragments import tokens
from mockllm.play.replay.auto.words import words
from mockllm.scenario.lengths import MAX_TOKENS
from mockllm.scenario.model import LIMITS, Scenario, TurnSpec, UsageSpec
from mockllm.scenario.part_model import (
    AnyPart,
    ReasoningPart,
    TextPart,
    ToolPart,
    content_of,
    cut_short,
    members,
    token_count,
)
from mockllm.wire.protocols.base import WireProtocol


@record
class Limits:
    """The limits that a request sets for the length of its answer.

    Args:
        most: how many tokens it has at most, those of reasoning among them; None: any number.
        least: how many it has at least, and no more than `most`.
        stop: texts before which it ends.
    """

    most: int | None = None
    least: int = 0
    stop: tuple[str, ...] = ()


def limits_of(
    spec: TurnSpec, scenario: Scenario, request: Request, protocol: WireProtocol
) -> Limits | None:
    """The limits of a request that a turn obeys: an automatic reply obeys all of them, a written
    one those that its scenario names. None: there are none.

    Raises:
        RequestError: the request needs more words than are made.
    """
    names = LIMITS if spec.is_auto else spec.obey or scenario.obey
    if not names:
        return None
    parameters = protocol.client.parameters(request.body)
    most = parameters.max_tokens if "max_tokens" in names else None
    if most is not None and most < 0:  # no limit, in Ollama
        most = None
    least = 0
    # Words after a JSON answer would break it.
    if "min_tokens" in names and request.output_schema is None:
        least = (parameters.ignore_eos and most) or parameters.min_tokens or 0
        least = least if most is None else min(least, most)
    if least > MAX_TOKENS:
        raise RequestError(
            f"mockllm makes answers of at most {MAX_TOKENS} tokens, and this request needs {least}",
            code="too_many_tokens",
        )
    stop = tuple(filter(None, parameters.stop)) if "stop" in names else ()
    return Limits(most, least, stop) if most is not None or least > 0 or stop else None


def obey_limits(spec: TurnSpec, scenario: Scenario, limits: Limits) -> TurnSpec:
    """The turn within the limits of a request: continued with words, cut after so many tokens, or
    ended before a stop sequence, with the finish and the usage that follow."""
    hidden = _hidden_reasoning(spec, scenario)
    least = max(0, limits.least - hidden)
    reply, is_cut = _lengthen(spec.reply, least, scenario.seeded), False
    if limits.most is not None:
        reply, is_cut = _within(reply, max(0, limits.most - hidden))
        # With `ignore_eos` and `max_tokens` the model may not end by itself: the limit ends it,
        # even where nothing was cut.
        is_cut = is_cut or (limits.least == limits.most <= hidden + token_count(reply))
    stopped, sequence = _before_stop(reply, limits.stop, least)
    usage = spec.usage or scenario.defaults.usage or UsageSpec()
    if sequence is not None:
        usage = replace(usage, output=hidden + token_count(stopped))
        return replace(
            spec, reply=stopped, finish="stop", finish_raw=None, stop_sequence=sequence, usage=usage
        )
    if is_cut:
        if usage.reasoning is not None and limits.most is not None:
            usage = replace(usage, reasoning=min(usage.reasoning, limits.most))
        usage = replace(usage, output=limits.most)
        return replace(
            spec, reply=reply, finish="length", finish_raw=None, stop_sequence=None, usage=usage
        )
    if reply != spec.reply:
        usage = replace(usage, output=hidden + token_count(reply))
        return replace(spec, reply=reply, usage=usage)
    return spec


def _hidden_reasoning(spec: TurnSpec, scenario: Scenario) -> int:
    """The tokens of reasoning that the usage has and the reply does not show."""
    for usage in (spec.usage, scenario.defaults.usage):
        if usage is not None and usage.reasoning is not None:
            parts = (part for part in members(spec.reply) if isinstance(part, ReasoningPart))
            return max(0, usage.reasoning - token_count(parts))
    return 0


# At least so many tokens


def _lengthen(reply: tuple[AnyPart, ...], least: int, seed: str) -> tuple[AnyPart, ...]:
    """A reply whose text is continued with words where it has fewer tokens; one that ends in
    anything but text stays as it is."""
    last = reply[-1] if reply else None
    lacking = least - token_count(reply)
    if lacking <= 0 or not isinstance(last, TextPart):
        return reply
    # A word has four bytes, so that it adds one token to any text.
    added = words(lacking, f"{seed}\x1fcontinued")
    split = last.split
    if isinstance(split, tuple):
        split = (*split, *(f" {word}" for word in added.split()))
    return (*reply[:-1], replace(last, text=last.text + added, split=split))


# At most so many tokens


def _within(reply: Sequence[AnyPart], most: int) -> tuple[tuple[AnyPart, ...], bool]:
    """As much of a reply as so many tokens hold, and whether it is not all of it. The parts of a
    group that is cut come one after the other."""
    kept: list[AnyPart] = []
    for part in reply:
        count = token_count((part,))
        if count > most:
            inner = tuple(members((part,)))
            kept += _shorten(part, most) if inner == (part,) else _within(inner, most)[0]
            return tuple(kept), True
        kept.append(part)
        most -= count
    return tuple(kept), False


def _shorten(part: AnyPart, most: int) -> list[AnyPart]:
    """A part after so many of its tokens, fewer than it has; none where nothing is left of it, such
    as a call that has no arguments yet."""
    content = content_of(part)
    if content is None:
        return []
    if isinstance(part, ToolPart):
        most -= tokens(part.name)
    shorter = cut_short(part, len(_first_tokens(content.text, most)))
    return [] if shorter is None else [shorter]


def _first_tokens(text: str, count: int) -> str:
    """The first tokens of a text. A token begins with a space, so that one at the end belongs to
    the next token."""
    data = text.encode("utf-8", "surrogatepass")[: 4 * max(0, count)]
    cut = codecs.getincrementaldecoder("utf-8")("surrogatepass").decode(data)
    return cut[:-1] if cut[-1:] == " " and tokens(cut[:-1]) == count else cut


# Stop sequences


def _before_stop(
    reply: Sequence[AnyPart], stop: Sequence[str], least: int
) -> tuple[tuple[AnyPart, ...], str | None]:
    """A reply before the first stop sequence in its text, and that sequence; None: it has none.

    Args:
        least: stop sequences within so many tokens do not count.
    """
    kept: list[AnyPart] = []
    for part in reply if stop else ():
        inner = tuple(members((part,)))
        if inner != (part,):
            inner, sequence = _before_stop(inner, stop, least)
            if sequence is not None:
                return (*kept, *inner), sequence
        elif isinstance(part, TextPart):
            start = len(_first_tokens(part.text, least)) if least > 0 else 0
            places = [
                (at + len(text), at, text)
                for text in stop
                if (at := part.text.find(text, start)) >= 0
            ]
            if places:
                _, at, sequence = min(places)
                shorter = cut_short(part, at)
                return (*kept, *(() if shorter is None else (shorter,))), sequence
        kept.append(part)
        least -= token_count((part,))
    return tuple(reply), None
