"""What a turn loses on its way through the Responses API: in words, and as a function.

Only pure functions may live here.
"""

from __future__ import annotations

from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import normal
from mockllm.core.turn import Opaque, Part, Reasoning, Refusal, Text, ToolCall, Turn
from mockllm.protocols.openai_responses.decoder import understands
from mockllm.protocols.openai_responses.layout import sequence
from mockllm.protocols.openai_responses.objects import API, INCOMPLETE, incomplete_reason, said

__all__ = ["LOSSES", "project"]

LOSSES = (
    "Why a complete answer ended is read off its parts: with calls `tool_calls`, with a refusal "
    "and no calls `refusal`, otherwise `stop`. The wire's own word for the end is kept for "
    "incomplete answers only, and of other services' words none.",
    "Calls have no signature.",
    "A citation keeps its cited text only where the text has those words.",
    "An error always has type and code; a body tells the code alone.",
    "Of items, contents and the response only the fields that neutral parts have come back: not "
    "`phase`, `namespace`, real log probabilities, or citations of files in finished contents. "
    "They cannot be frames: the official client stops at a second `done` of an item.",
    "A stream that is cut tells no usage.",
    "Frames of other protocols, comments, and frames that say what neutral parts say are not "
    "read back as frames. A body has of a hosted tool's frames the finished item only.",
)


def project(turn: Turn) -> Turn:
    """The turn as it comes back from the stream; `LOSSES` says what is missing.

    A frame kept as it is stays in its place as long as it does not name the `output_index` of
    another item and parts do not interleave around it.
    """
    kept = [i for i, part in enumerate(turn.parts) if _survives(part)]
    parts = tuple(_projected(turn.parts[i]) for i in kept)
    order, gaps = _without(turn, kept)
    over = turn.finish is not None or turn.error is not None
    return normal(
        replace(
            turn,
            parts=parts,
            order=order,
            gaps=gaps,
            usage=turn.usage if over else None,
            error=said(turn.error) if turn.error else None,
            finish=None if turn.error else _finish(turn, parts),
            finish_raw=None if turn.error else _raw_finish(turn),
        )
    )


def _survives(part: Part) -> bool:
    return not isinstance(part, Opaque) or (part.api == API and not understands(part.frame))


def _projected(part: Part) -> Part:
    match part:
        case Text(citations=citations) if citations:
            text = part.text
            told = (c if c.cited_text in text else replace(c, cited_text="") for c in citations)
            return replace(part, citations=tuple(told))
        case Reasoning():
            return replace(part, signature=part.signature or None)
        case ToolCall():
            return replace(part, signature=None)
    return part


def _finish(turn: Turn, parts: tuple[Part, ...]) -> ev.FinishReason | None:
    if turn.finish is None or turn.finish in INCOMPLETE:
        return turn.finish
    if any(isinstance(part, ToolCall) for part in parts):
        return "tool_calls"
    return "refusal" if any(isinstance(part, Refusal) for part in parts) else "stop"


def _raw_finish(turn: Turn) -> str | None:
    word = incomplete_reason(turn)
    return None if word in INCOMPLETE.values() else word


def _without(turn: Turn, kept: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Order and gaps with only the beats of the parts kept; pauses go to the next beat."""
    place = {old: new for new, old in enumerate(kept)}
    order, gaps = [], []
    waited = 0
    for beat, old in enumerate(sequence(turn)):
        waited += turn.gaps[beat] if turn.gaps else 0
        if old in place:
            order.append(place[old])
            gaps.append(waited)
            waited = 0
    if not turn.gaps:
        return tuple(order), ()
    if not order and turn.finish is None and turn.error is None:
        return (), turn.gaps[:1]  # all that such a stream tells is when it began
    return tuple(order), (*gaps, waited + turn.gaps[-1])
