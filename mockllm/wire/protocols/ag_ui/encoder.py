"""The stream of an answer.

https://docs.ag-ui.com/concepts/events

Each text and each reasoning is a message. Calls belong to the message of the text before them; if
there is none, they share a message of their own. Everything is closed before RUN_FINISHED, because
`verifyEvents` of @ag-ui/client rejects a run that finishes while something is open.
"""

from __future__ import annotations

from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import expand
from mockllm.core.turn import Reasoning, ToolCall, Turn
from mockllm.wire.protocols.ag_ui import API
from mockllm.wire.protocols.ag_ui.objects import (
    ENDINGS,
    Options,
    event_in,
    frame_of,
    message_prefix,
    write_usage,
)
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.custom_calls import function
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import string


class Encoder:
    """Turns the events of one turn into the frames of one run. An opaque frame that ends the run
    replaces the end of the turn: after RUN_FINISHED clients accept only another run."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        self._turn = turn
        self._reply = reply
        self._options: Options = reply.options
        self._prefix = message_prefix(reply)
        self._messages = 0
        self._ids: dict[int, str] = {}
        self._sent: dict[int, int] = {}
        self._parent: str | None = None
        self._subagents: list[str] = []
        self._owners: dict[int, str] = {}
        self._finished: Json = {"type": "RUN_FINISHED"}
        self._over = False

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event, in order. What begins while a subagent runs is its work, and all
        events of it name the subagent."""
        part = getattr(event, "part", None)
        if part is None or isinstance(event, ev.Raw):
            return self._frames(event)
        if part not in self._ids and self._subagents:
            self._owners.setdefault(part, self._subagents[-1])
        owner, frames = self._owners.get(part), self._frames(event)
        if owner is None:
            return frames
        return [
            Frame(dumps({**(event_in(frame) or {}), "subagentRunId": owner})) for frame in frames
        ]

    def _frames(self, event: ev.Event) -> list[Frame]:
        match event:
            case ev.Start():
                return [self._run("RUN_STARTED", parentRunId=self._options.parent_run_id)]
            case ev.TextDelta() | ev.RefusalDelta():
                return self._text(event.part, event.text)
            case ev.ReasoningDelta():
                return self._reasoning(event.part, event.text)
            case ev.ToolStart():
                return [self._call(event)]
            case ev.ToolArgs():
                return self._arguments(event)
            case ev.PartEnd():
                return self._close(event.part)
            case ev.Raw(api=api, frame=frame, native=native) if api == API:
                return self._native(frame) if native else self._raw(frame)
            case ev.Finish() | ev.StreamError() if not self._over:
                return [self._end(event)]
        return []

    def _run(self, type: str, **fields: Any) -> Frame:
        options = self._options
        return frame_of(type, threadId=options.thread_id, runId=options.run_id, **fields)

    def _message(self) -> str:
        self._messages += 1
        return f"{self._prefix}_{self._messages}"

    def _text(self, part: int, text: str) -> list[Frame]:
        frames = []
        if part not in self._ids:
            self._ids[part] = self._parent = self._message()
            frames.append(frame_of("TEXT_MESSAGE_START", messageId=self._parent, role="assistant"))
        return [*frames, frame_of("TEXT_MESSAGE_CONTENT", messageId=self._ids[part], delta=text)]

    def _reasoning(self, part: int, text: str) -> list[Frame]:
        frames = []
        if part not in self._ids:
            id = self._ids[part] = self._message()
            frames.append(frame_of("REASONING_START", messageId=id))
            frames.append(frame_of("REASONING_MESSAGE_START", messageId=id, role="reasoning"))
        id = self._ids[part]
        return [*frames, frame_of("REASONING_MESSAGE_CONTENT", messageId=id, delta=text)]

    def _call(self, event: ev.ToolStart) -> Frame:
        """The opening of a call, always with the message it belongs to. Without `parentMessageId`,
        clients make a message from every call, and some put each result directly after its call:
        parallel calls would come back as separate turns."""
        self._ids[event.part] = event.id
        if self._parent is None:
            self._parent = self._message()
        return frame_of(
            "TOOL_CALL_START",
            toolCallId=event.id,
            toolCallName=event.name,
            parentMessageId=self._parent,
        )

    def _arguments(self, event: ev.ToolArgs) -> list[Frame]:
        part, delta = event.part, event.text
        call = self._turn.parts[part]
        if not isinstance(call, ToolCall):
            return []
        if call.custom:
            number = self._sent[part] = self._sent.get(part, -1) + 1
            delta = function(call).fragments[number]
        return [frame_of("TOOL_CALL_ARGS", toolCallId=self._ids[part], delta=delta)]

    def _close(self, part: int) -> list[Frame]:
        if part not in self._ids:
            return []
        id = self._ids[part]
        match self._turn.parts[part]:
            case ToolCall(signature=signature):
                return [
                    frame_of("TOOL_CALL_END", toolCallId=id),
                    *_signature_frames("tool-call", id, signature),
                ]
            case Reasoning(signature=signature):
                return [
                    frame_of("REASONING_MESSAGE_END", messageId=id),
                    *_signature_frames("message", id, signature),
                    frame_of("REASONING_END", messageId=id),
                ]
        return [frame_of("TEXT_MESSAGE_END", messageId=id)]

    def _native(self, frame: Frame) -> list[Frame]:
        """The event of a native part, with the ids that the part leaves out."""
        value = event_in(frame) or {}
        match value.get("type"):
            case "RUN_FINISHED":  # sent where the run ends: clients accept nothing after it
                self._finished = value
                return []
            case "TOOL_CALL_RESULT" if "messageId" not in value:
                value["messageId"] = self._message()
            case "ACTIVITY_SNAPSHOT" | "ACTIVITY_DELTA" if "messageId" not in value:
                # One message for all events of an activity, and another one in each run.
                value["messageId"] = f"{self._prefix}_{value['activityType']}"
            case "SUBAGENT_STARTED":
                self._subagents.append(value["subagentRunId"])
            case "SUBAGENT_FINISHED" | "SUBAGENT_ERROR":
                ended = value["subagentRunId"]
                self._subagents = [id for id in self._subagents if id != ended]
        return [Frame(dumps(value))]

    def _raw(self, frame: Frame) -> list[Frame]:
        type = string((event_in(frame) or {}).get("type"))
        if type in ENDINGS:
            self._over = True
        elif type == "RUN_STARTED":
            self._over = False
        return [frame]

    def _end(self, event: ev.Finish | ev.StreamError) -> Frame:
        usage = write_usage(self._turn.usage, self._reply.model)
        if isinstance(event, ev.StreamError):
            code = event.code or event.type
            return frame_of("RUN_ERROR", message=event.message, code=code, usage=usage)
        return self._run(**self._finished, usage=usage)


def _signature_frames(subtype: str, id: str, signature: str | None) -> list[Frame]:
    if signature is None:
        return []
    fields = {"subtype": subtype, "entityId": id, "encryptedValue": signature}
    return [frame_of("REASONING_ENCRYPTED_VALUE", **fields)]


def encode_body(turn: Turn, reply: Reply) -> Json:
    """The events of an answer in a list, `{"events": [...]}`, without frames that hold no event.
    This form is mockllm's own, for reading and comparing: AG-UI always streams."""
    encoder = Encoder(turn, reply)
    frames = (frame for timed in expand(turn) for frame in encoder.encode(timed.event))
    return {"events": [value for value in map(event_in, frames) if value is not None]}
