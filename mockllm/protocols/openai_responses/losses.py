"""What the Responses API cannot express: the projection of a turn, and a list of the losses.

Only pure functions may live here.
"""

from __future__ import annotations

from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import normal
from mockllm.core.turn import Opaque, Part, Reasoning, Refusal, Text, ToolCall, Turn
from mockllm.protocols.openai_responses.decoder import understands
from mockllm.protocols.openai_responses.layout import sequence
from mockllm.protocols.openai_responses.objects import (
    API,
    INCOMPLETE,
    complete_error,
    incomplete_reason,
)

__all__ = ["LOSSES", "project"]

LOSSES = (
    "The finish of a complete answer is derived from its parts: `tool_calls` with calls, "
    "`refusal` with a refusal and no calls, otherwise `stop`. A raw finish reason is kept only "
    "for incomplete answers, and only if it is one of this service.",
    "Calls have no signature.",
    "A citation keeps its cited text only if the text contains it.",
    "An error always has type and code; a body has the code only.",
    "Of items, contents and the response only the fields with a neutral form come back: not "
    "`phase`, `namespace`, real log probabilities, or citations of files in finished contents. "
    "They cannot be kept as frames, because the official client fails at a second `done` of an "
    "item.",
    "A stream that is cut has no usage.",
    "Frames of other protocols, comments, and frames with a neutral form do not come back as "
    "frames. Of a hosted tool's frames a body has the finished item only.",
)


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn; `LOSSES` lists what is dropped.

    An opaque frame keeps its position, unless it names the `output_index` of another item or
    parts interleave around it.
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
            error=complete_error(turn.error) if turn.error else None,
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
            # Citations have offsets on the wire, so only text that is in the answer is kept.
            kept = (c if c.cited_text in text else replace(c, cited_text="") for c in citations)
            return replace(part, citations=tuple(kept))
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
    reason = incomplete_reason(turn)
    return None if reason in INCOMPLETE.values() else reason


def _without(turn: Turn, kept: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Order and gaps of the kept parts; the pauses before dropped beats move to the next beat."""
    new_index = {old: new for new, old in enumerate(kept)}
    order, gaps = [], []
    waited = 0
    for beat, old in enumerate(sequence(turn)):
        waited += turn.gaps[beat] if turn.gaps else 0
        if old in new_index:
            order.append(new_index[old])
            gaps.append(waited)
            waited = 0
    if not turn.gaps:
        return tuple(order), ()
    if not order and turn.finish is None and turn.error is None:
        return (), turn.gaps[:1]  # such a stream has the time of its beginning only
    return tuple(order), (*gaps, waited + turn.gaps[-1])
