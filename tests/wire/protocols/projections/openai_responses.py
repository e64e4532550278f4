"""What the Responses API cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import normal, sequential
from mockllm.core.turn import (
    Media,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    Turn,
    beats,
)
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.openai_responses import API
from mockllm.wire.protocols.openai_responses.citations import annotations_of, citation
from mockllm.wire.protocols.openai_responses.decoder import Decoder
from mockllm.wire.protocols.openai_responses.item_fields import (
    END,
    begin_code,
    code_deltas,
    code_text,
    escape_code,
)
from mockllm.wire.protocols.openai_responses.layout import own_ids
from mockllm.wire.protocols.openai_responses.objects import (
    INCOMPLETE,
    complete_error,
    incomplete_reason,
)
from mockllm.wire.protocols.openai_responses.server_tools import encodable, item_type


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn.

    An opaque frame keeps its position, unless it names the `output_index` of another item or
    parts interleave around it.
    """
    kept = [i for i, part in enumerate(turn.parts) if _survives(part)]
    own = own_ids(turn)
    parts = tuple(_projected(turn.parts[i], i, own) for i in kept)
    order, gaps = _beats(turn, kept)
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


def projected_citations(part: Text) -> tuple[ev.Cite, ...]:
    """The citations that a client reads from the annotations of a text."""
    values: list[Mapping[str, Any]] = [*annotations_of(part)]
    return tuple(citation(0, value, part.text) for value in values)


def _is_unread(frame: Frame) -> bool:
    """Whether a frame has content that has no neutral form."""
    return any(isinstance(event, ev.Raw) for event in Decoder().decode(frame))


def canonical(fragments: Sequence[str]) -> tuple[str, ...]:
    """The fragments that the deltas of the wire are read as."""
    if not fragments:
        return ()
    deltas = [delta for some in code_deltas(fragments) for delta in some]
    if not deltas:
        return (code_text(""),)
    return (begin_code(deltas[0]), *map(escape_code, deltas[1:]), END)


def _survives(part: Part) -> bool:
    if isinstance(part, Media):
        return part.media_type.startswith("image/")
    return not isinstance(part, Opaque) or (part.api == API and _is_unread(part.frame))


def _projected(part: Part, index: int, own: Mapping[str, int]) -> Part:
    match part:
        case Text():
            return replace(part, citations=projected_citations(part), signature=None, tokens=())
        case Reasoning():
            return replace(part, signature=part.signature or None)
        case ToolCall():
            return replace(part, signature=None)
        case ServerTool():
            id = part.id if own.get(part.id) == index else ""
            return replace(_server_tool(encodable(part)), id=id)
        case Media():
            return _image(part)
    return part


def _image(image: Media) -> ServerTool:
    format = dumps({"output_format": image.media_type.removeprefix("image/")})
    result = base64.b64encode(b"".join(image.data)).decode()
    return ServerTool("image_generation", fragments=(format,), output=dumps(result))


def _server_tool(call: ServerTool) -> ServerTool:
    """The call that a client reads from its item."""
    tool = item_type(call)
    read = tool.read(tool.write(call))
    if tool.value == "code":
        return replace(read, fragments=canonical(call.fragments))
    return replace(read, fragments=call.fragments or read.fragments) if tool.delta else read


def _counts(part: Part) -> list[int]:
    """For each beat of a part, how many beats it becomes."""
    if isinstance(part, Media):
        counts = [1, *[0] * (beats(part) - 1)]  # its input comes with the end of the item
        counts[-1] += 1
        return counts
    if not isinstance(part, ServerTool):
        return [1] * beats(part)
    call = encodable(part)
    tool, fragments = item_type(call), _server_tool(call).fragments
    if tool.value == "code":
        counts = [1, *map(len, code_deltas(call.fragments))]
    elif tool.delta and call.fragments:
        counts = [1] * beats(part)
    else:
        counts = [1, *[0] * len(call.fragments)]
    # The rest comes with the end of the item.
    counts[-1] += 1 + len(fragments) - sum(counts)
    return counts


def _finish(turn: Turn, parts: tuple[Part, ...]) -> ev.FinishReason | None:
    if turn.finish is None:
        return None
    written = incomplete_reason(turn)
    if written is not None:
        reasons = [finish for finish, value in INCOMPLETE.items() if value == written]
        return reasons[0] if reasons else "length"
    if any(isinstance(part, ToolCall) for part in parts):
        return "tool_calls"
    return "refusal" if any(isinstance(part, Refusal) for part in parts) else "stop"


def _raw_finish(turn: Turn) -> str | None:
    reason = incomplete_reason(turn)
    return None if reason in INCOMPLETE.values() else reason


_NONE: Iterator[int] = iter(())


def _beats(turn: Turn, kept: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Order and gaps of the kept parts; the pauses before dropped beats move to the next beat."""
    left = {old: (new, iter(_counts(turn.parts[old]))) for new, old in enumerate(kept)}
    order: list[int] = []
    gaps: list[int] = []
    waited = 0
    for beat, old in enumerate(turn.order or sequential(turn)):
        waited += turn.gaps[beat] if turn.gaps else 0
        new, counts = left.get(old, (0, _NONE))
        for _ in range(next(counts, 0)):
            order.append(new)
            gaps.append(waited)
            waited = 0
    if not turn.gaps:
        return tuple(order), ()
    if not order and turn.finish is None and turn.error is None:
        return (), turn.gaps[:1]  # such a stream has the time of its beginning only
    return tuple(order), (*gaps, waited + turn.gaps[-1])
