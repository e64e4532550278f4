"""Whether two answers are the same to a client: what it reads in their frames.

`protocols.extra` holds fields that no neutral type has. They may not change the text, the calls or
the other content of an answer. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mockllm.core.events import Raw, Timed
from mockllm.core.frame import Frame
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Part, Reasoning, Refusal, Text, ToolCall, Turn
from mockllm.errors import MockLLMError, WireError
from mockllm.protocols.base import WireProtocol
from mockllm.protocols.joins import content_of
from mockllm.protocols.normalisation import answer_in, value_of

__all__ = ["check_content", "content", "moves_content"]


def check_content(
    protocol: WireProtocol, ours: Sequence[Frame], changed: Sequence[Frame], *, streamed: bool
) -> None:
    """Raises `WireError` where extra fields change what a client reads.

    They may have the usage where the API sends none to this request, and take away the finish that
    its encoder writes anyway, and the ids of calls.
    """
    before, after = _read(protocol, ours, streamed), _read(protocol, changed, streamed)
    if before.usage is None:
        after = replace(after, usage=None)
    if after.finish is None:
        before = replace(before, finish=None, finish_raw=None)
    if _with_ids_of(before, after) != after:
        raise WireError("a field of the service changes what a client reads")


def _with_ids_of(turn: Turn, other: Turn) -> Turn:
    """The turn without the ids of calls that have none in another one."""
    if len(turn.parts) != len(other.parts):
        return turn
    pairs = zip(turn.parts, other.parts, strict=True)
    return replace(turn, parts=tuple(_with_id_of(one, two) for one, two in pairs))


def _with_id_of(part: Part, other: Part) -> Part:
    if isinstance(part, ToolCall) and isinstance(other, ToolCall) and not other.id:
        return replace(part, id="")
    return part


def moves_content(protocol: WireProtocol, before: Frame | None, after: Frame) -> bool:
    """Whether a patch changes the text or the calls of one event, or an added event has some."""
    if before is not None and before.data == after.data:
        return False
    frames = [before or Frame(), after]
    mine, changed = (
        [one for one in content_of(protocol, frame) if one[0] not in ("Usage", "Finish")]
        for frame in frames
    )
    return mine != changed


def _read(protocol: WireProtocol, frames: Sequence[Frame], streamed: bool) -> Turn:
    """What a client reads, without the frames that the decoder does not understand, and without
    empty texts and fragments: a null, an empty and an absent text are one to clients.

    Raises:
        WireError: it can read nothing.
    """
    try:
        if streamed:
            wire = protocol.decoder()
            events = [event for frame in frames for event in wire.decode(frame)] + wire.close()
            turn = fold(Timed(0, event) for event in events)
        else:
            turn = protocol.decode_body(answer_in(protocol, value_of(frames[0])))
    except (MockLLMError, ValueError) as error:
        raise WireError(f"with the fields of the service a client reads nothing: {error}") from None
    whole = content(turn).whole()
    return replace(whole, parts=tuple(part for part in whole.parts if not _is_empty(part)))


def _is_empty(part: Part) -> bool:
    match part:
        case Text():
            return not (part.text or part.signature or part.citations)
        case Reasoning():
            return not (part.text or part.signature)
        case Refusal():
            return not part.text
    return False


def content(turn: Turn, frames: Iterable[Frame] = ()) -> Turn:
    """The turn without opaque parts, those with these frames excepted.

    Decoders keep the fields that they do not read as frames that were never sent; an extra holds
    the same fields where they belong.
    """
    kept = frozenset(frames)
    timed = expand(turn)
    if not any(isinstance(one.event, Raw) for one in timed):
        return turn
    return fold(one for one in timed if not isinstance(one.event, Raw) or one.event.frame in kept)
