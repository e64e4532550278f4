"""What a turn loses on its way through the Messages API: in words, and as a function."""

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
    opened_block,
    read_stop,
    said_usage,
    signature_of,
    write_stop,
)
from mockllm.protocols.anthropic_messages.decoder import HANDLED, adds_nothing, parsed
from mockllm.protocols.anthropic_messages.encoder import Opening, Openings
from mockllm.protocols.values import mapping, string

__all__ = ["LOSSES", "project"]

LOSSES = (
    "A refusal is text, and nothing where it has no words; the finish of `refusal` says what it "
    "was. A finish of `content_filter` comes back as `refusal`.",
    "Of other words for the end only `stop_sequence`, `pause_turn` and "
    "`model_context_window_exceeded` are said.",
    "Blocks open in the order of the parts: a call (or frame) that would begin after a part "
    "behind it begins before that.",
    "Reasoning always has a signature, made up where the turn has none, and is never marked as "
    "a summary. With a signature and no words it is a thinking block whose words are withheld; "
    "redacted thinking is kept as frames.",
    "Log probabilities and the signatures of calls are not said.",
    "Citations come after their text, as results of a web search; other kinds are kept as "
    "frames, the index into the encrypted result is made up.",
    "A complete answer always tells its usage, if need be 0; one that is cut or ends in an error "
    "tells none. What was written into the cache counts as input.",
    "An error has a type and no code.",
    "What the beginning of the message tells besides id, model and usage is not kept.",
    "Frames of other protocols, comments, pings, and frames that say what neutral parts say are "
    "not read back as frames. A `message_delta` kept as a frame is the end of the message.",
    "A body has the blocks of hosted tools whole, arguments as a value (as text where they are no "
    "JSON object), and of an answer that ends in an error the error alone.",
)


def project(turn: Turn) -> Turn:
    """The turn as it comes back from the stream; `LOSSES` says what is missing."""
    openings, kept = Openings(turn), _Kept()
    return fold(
        ev.Timed(item.at, told)
        for item in expand(turn)
        for due in openings.due(item.event)
        for told in _told(turn, due, kept)
    )


def _told(turn: Turn, event: ev.Event | Opening, kept: _Kept) -> Iterable[ev.Event]:
    """The event as it comes back, in none, one or two."""
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
            yield said_usage(turn)
            yield read_stop(write_stop(event))
        case ev.StreamError():
            yield replace(event, type=event.type or DEFAULT_ERROR, code=None)
        case ev.Start() | ev.ToolStart() | ev.ToolArgs() | ev.Cite():
            yield event


class _Kept:
    """Which frames of this protocol come back as frames, asked in the order of the stream."""

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
                return not adds_nothing(value)
            case type:
                return type not in HANDLED
