"""What the Messages API cannot express: the projection of a turn, and a list of the losses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.frame import Frame
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Reasoning, Turn
from mockllm.protocols.anthropic_messages.assembly import KINDS
from mockllm.protocols.anthropic_messages.blocks import (
    API,
    DEFAULT_ERROR,
    message_usage,
    opened_block,
    read_stop,
    signature_of,
    write_stop,
)
from mockllm.protocols.anthropic_messages.decoder import HANDLED, is_plain_delta, parsed
from mockllm.protocols.anthropic_messages.encoder import Opening, Openings
from mockllm.protocols.values import mapping, string

__all__ = ["LOSSES", "project"]

LOSSES = (
    "A refusal is sent as text, and not at all if it is empty; the finish `refusal` marks it. A"
    " finish of `content_filter` comes back as `refusal`.",
    "Of the raw finish reasons only `stop_sequence`, `pause_turn` and "
    "`model_context_window_exceeded` are sent.",
    "Blocks open in the order of the parts: a call (or frame) that would open after a later "
    "part opens before it.",
    "Reasoning always has a signature, derived if the turn has none, and is never marked as a "
    "summary. Reasoning with a signature and no text is a thinking block without text; redacted"
    " thinking is kept as frames.",
    "Log probabilities and the signatures of calls are not sent.",
    "Citations come after their text, as results of a web search; other kinds are kept as "
    "frames. The index into the encrypted result is derived.",
    "A complete answer always has usage, 0 if the turn has none; an answer that is cut or ends "
    "in an error has none. Tokens written into the cache count as input.",
    "An error has a type and no code.",
    "Of the message in `message_start` only id, model, usage and filled content are kept, and "
    "with content its stop reason.",
    "Frames of other protocols, comments, pings, and frames with a neutral form do not come "
    "back as frames. A `message_delta` kept as a frame is the end of the message, and a "
    "`message_start` that is the first part is its start.",
    "A body has complete blocks of hosted tools and arguments as a value (as text if they are "
    "not a JSON object); the body of an answer with an error is the error only.",
)


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn; `LOSSES` lists what is dropped."""
    openings, kept = Openings(turn), _Kept()
    return fold(
        ev.Timed(item.at, event)
        for item in expand(turn)
        for due in openings.due(item.event)
        for event in _decoded(turn, due, kept)
    )


def _decoded(turn: Turn, event: ev.Event | Opening, kept: _Kept) -> Iterable[ev.Event]:
    """The event as the Decoder returns it: none, one or two events."""
    match event:
        case ev.TextDelta(part=part, text=text):
            yield ev.TextDelta(part, text)
        case ev.RefusalDelta(part=part, text=text) if opened_block(turn.parts[part]):
            yield ev.TextDelta(part, text)
        case ev.ReasoningDelta(part=part, text=text):
            yield ev.ReasoningDelta(part, text)
        case ev.PartEnd(part=part):
            whole = turn.parts[part]
            if isinstance(whole, Reasoning):
                yield ev.Signature(part, signature_of(whole))
        case ev.Raw(api=api, frame=frame) if api == API and kept.keeps(frame):
            yield event
        case ev.Finish():
            yield message_usage(turn)
            yield read_stop(write_stop(event))
        case ev.StreamError():
            yield replace(event, type=event.type or DEFAULT_ERROR, code=None)
        case ev.Start() | ev.ToolStart() | ev.ToolArgs() | ev.Cite():
            yield event


class _Kept:
    """Which frames of this protocol are kept as frames; `keeps` must see them in stream order."""

    def __init__(self) -> None:
        self._foreign: set[int] = set()

    def keeps(self, frame: Frame) -> bool:
        if frame.data is None or frame.data.strip() in ("", "[DONE]"):
            return False
        value = parsed(frame)
        index = value.get("index")
        index = index if isinstance(index, int) else -1
        match value["type"]:
            case "content_block_start":
                foreign = string(mapping(value.get("content_block")).get("type")) not in KINDS
                (self._foreign.add if foreign else self._foreign.discard)(index)
                return foreign
            case "content_block_delta" | "content_block_stop":
                return index in self._foreign
            case "message_delta":
                return not is_plain_delta(value)
            case type:
                return type not in HANDLED
