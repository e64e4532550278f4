"""What the Messages API cannot express: the projection of a turn, and a list of the losses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mockllm.core import events as ev
from mockllm.core.frame import Frame
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Reasoning, ServerTool, Turn
from mockllm.protocols.anthropic_messages.assembly import is_neutral
from mockllm.protocols.anthropic_messages.blocks import (
    API,
    DEFAULT_ERROR,
    message_usage,
    opened_block,
    read_stop,
    signature_of,
    write_stop,
)
from mockllm.protocols.anthropic_messages.decoder import HANDLED, parsed
from mockllm.protocols.anthropic_messages.encoder import Opening, Openings
from mockllm.protocols.anthropic_messages.server_tools import (
    is_result,
    opened_tool,
    read_call,
    read_result,
    result_block,
    server_id,
)
from mockllm.protocols.custom_calls import LOSS, with_functions
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
    "Log probabilities and the signatures of texts and calls are not sent.",
    LOSS,
    "Citations come before their text, as results of a web search, or without a URL as passages "
    "of a document. The index into the encrypted result is derived.",
    "Tools of the service have an id, derived if the turn has none. Those that this API does not "
    "have are not sent, nor are those whose input is no JSON object, nor results in the form of "
    "another API. A result that does not directly follow its call is a part of its own, without "
    "input.",
    "A complete answer always has usage, 0 if the turn has none; an answer that is cut or ends "
    "in an error has none. Tokens written into the cache count as input.",
    "An error has a type and no code.",
    "Of the message in `message_start` only id, model, usage and filled content are kept, and "
    "with content its stop reason.",
    "Frames of other protocols, comments, pings, and frames with a neutral form do not come "
    "back as frames. A frame with a `message_delta` is the end of the message, and a "
    "`message_start` that is the first part is its start.",
    "A body has arguments as a value (as text if they are not a JSON object); the body of an "
    "answer with an error is the error only.",
)


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn; `LOSSES` lists what is dropped."""
    turn = with_functions(turn)
    openings, decoded = Openings(turn), _Decoded(turn)
    return fold(
        ev.Timed(item.at, event)
        for item in expand(turn)
        for due in openings.due(item.event)
        for event in decoded.events(due)
    )


class _Decoded:
    """The events of a turn as the Decoder returns them."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._keys: dict[int, int] = {}
        self._last = -1
        self._called: tuple[str, int] | None = None
        self._foreign: set[int] = set()

    def events(self, event: ev.Event | Opening) -> Iterable[ev.Event]:
        """The event as the Decoder returns it: none, one or several events."""
        match event:
            case Opening(part=part):
                if opened_block(self._turn.parts[part]):
                    self._open(part)
            case ev.ToolStart(part=part, id=id, name=name):
                yield ev.ToolStart(self._open(part), id, name)
            case ev.ServerToolStart(part=part):
                yield from self._server_tool(part)
            case ev.TextDelta(part=part, text=text) | ev.RefusalDelta(part=part, text=text):
                if part in self._keys:
                    yield ev.TextDelta(self._keys[part], text)
            case ev.ReasoningDelta(part=part, text=text):
                yield ev.ReasoningDelta(self._keys[part], text)
            case ev.ToolArgs(part=part, text=text) if part in self._keys:
                yield ev.ToolArgs(self._keys[part], text)
            case ev.Cite(part=part):
                yield replace(event, part=self._keys[part])
            case ev.PartEnd(part=part):
                yield from self._end(part)
            case ev.Raw(api=api, frame=frame) if api == API and self._keeps(frame):
                yield replace(event, part=self._new_key())
            case ev.Finish():
                yield message_usage(self._turn)
                yield read_stop(write_stop(event))
            case ev.StreamError():
                yield replace(event, type=event.type or DEFAULT_ERROR, code=None)
            case ev.Start():
                yield event

    def _new_key(self) -> int:
        self._last += 1
        return self._last

    def _open(self, part: int) -> int:
        key = self._keys[part] = self._new_key()
        return key

    def _server_tool(self, part: int) -> Iterable[ev.Event]:
        tool = self._turn.parts[part]
        assert isinstance(tool, ServerTool)
        block = opened_tool(tool)
        if block is None:
            return
        if is_result(tool.name):
            yield from self._result(block)
            return
        key, id = self._open(part), server_id(tool)
        self._called = id, key
        yield ev.ServerToolStart(key, id, *read_call(block))

    def _result(self, block: Mapping[str, Any]) -> Iterable[ev.Event]:
        """A result: of the call directly before it, or a part of its own."""
        kind, output = read_result(block)
        id, key = block["tool_use_id"], self._last
        if self._called != (id, key):
            key = self._new_key()
            yield ev.ServerToolStart(key, id, kind, block["type"])
        self._called = None
        yield ev.ServerToolResult(key, output)

    def _end(self, part: int) -> Iterable[ev.Event]:
        whole, key = self._turn.parts[part], self._keys.get(part)
        if isinstance(whole, Reasoning) and key is not None:
            yield ev.Signature(key, signature_of(whole))
        block = result_block(whole) if isinstance(whole, ServerTool) else None
        if key is not None and block is not None:
            yield from self._result(block)

    def _keeps(self, frame: Frame) -> bool:
        """Whether a frame of this protocol is kept as a frame."""
        if frame.data is None or frame.data.strip() in ("", "[DONE]"):
            return False
        value = parsed(frame)
        index = value.get("index")
        index = index if isinstance(index, int) else -1
        match value["type"]:
            case "content_block_start":
                foreign = not is_neutral(string(mapping(value.get("content_block")).get("type")))
                (self._foreign.add if foreign else self._foreign.discard)(index)
                return foreign
            case "content_block_delta" | "content_block_stop":
                return index in self._foreign
            case type:
                return type not in HANDLED
