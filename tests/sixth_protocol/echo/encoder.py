"""Writes answers of the Echo API: acts of a stream, or a script that is not live."""

from __future__ import annotations

from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.seeded import derive
from mockllm.core.turn import Part, Reasoning, Refusal, Text, ToolCall, Turn
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.records import Json
from tests.sixth_protocol.echo.acts import (
    API,
    SILENCE,
    frame_of,
    write_finish,
    write_mishap,
    write_tally,
)


def answer_id(reply: Reply) -> str:
    """The id of an answer."""
    return "show_" + derive(reply.seed, "show", length=20)


class Encoder:
    """The events of one turn as acts; each part has a name of its own."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        self._reply = reply
        self._usage: ev.Usage | None = None

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event; none where the API has no word for it."""
        match event:
            case ev.Start():
                return [self._curtain()]
            case ev.TextDelta():
                return [_bit("line", event.part, event.text)]
            case ev.ReasoningDelta():
                return [_bit("musing", event.part, event.text)]
            case ev.RefusalDelta():
                return [_bit("balk", event.part, event.text)]
            case ev.ToolStart(part=part, id=id, name=name):
                return [frame_of("cue", part=_name(part), cue=id, gadget=name)]
            case ev.ToolArgs():
                return [_bit("setting", event.part, event.text)]
            case ev.Signature(part=part, value=value):
                return [frame_of("seal", part=_name(part), seal=value)]
            case ev.PartEnd(part=part):
                return [frame_of("hush", part=_name(part))]
            case ev.Usage():
                self._usage = event
                return []
            case ev.Finish() | ev.StreamError():
                return [self._ending(event), Frame(SILENCE)]
            case ev.Raw(api=api, frame=frame) if api == API:
                return [frame]
        return []

    def _curtain(self) -> Frame:
        reply = self._reply
        scene = reply.options.scene
        return frame_of("curtain", show=answer_id(reply), speaker=reply.model, scene=scene)

    def _ending(self, event: ev.Finish | ev.StreamError) -> Frame:
        tally = write_tally(self._usage)
        if isinstance(event, ev.StreamError):
            mishap = write_mishap(event.message, event.type, event.code)
            return frame_of("heckle", mishap=mishap, tally=tally)
        return frame_of("bow", why=write_finish(event.reason, event.raw), tally=tally)


def _name(part: int) -> str:
    return f"part-{part}"


def _bit(act: str, part: int, text: str) -> Frame:
    return frame_of(act, part=_name(part), bit=text)


def encode_body(turn: Turn, reply: Reply) -> Json:
    """An answer that is not live: `{"show", "speaker", "script": [...], "why", "tally"}`."""
    return {
        "show": answer_id(reply),
        "speaker": reply.model,
        "script": [entry for part in turn.parts for entry in _entries(part)],
        "why": write_finish(turn.finish or "stop", turn.finish_raw),
        "tally": write_tally(turn.usage),
    }


def _entries(part: Part) -> list[dict[str, Any]]:
    match part:
        case Text(text=text):
            return [{"kind": "line", "bit": text}]
        case Reasoning(text=text, signature=seal):
            return [{"kind": "musing", "bit": text, "seal": seal}]
        case Refusal(text=text):
            return [{"kind": "balk", "bit": text}]
        case ToolCall(id=id, name=name, arguments=arguments, signature=seal):
            cue = {"kind": "cue", "cue": id, "gadget": name, "bit": arguments, "seal": seal}
            return [cue]
    return []
