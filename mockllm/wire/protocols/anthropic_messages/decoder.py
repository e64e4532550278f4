"""Reads streams of the Messages API, from Anthropic and from compatible servers.

https://docs.claude.com/en/docs/build-with-claude/streaming

Events are read by their JSON `type`; `event:` lines may be missing (`anth-no-event-lines`). Events
without a neutral form are kept: redacted thinking, uploads, compactions and other blocks that only
this API has as native parts (`native`), unknown types as frames, as the API reference asks clients
to accept new types of events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.anthropic_messages.assembly import Assembly, is_placeholder
from mockllm.wire.protocols.anthropic_messages.blocks import DEFAULT_ERROR, STOPS, read_usage
from mockllm.wire.protocols.base import dumps, no_body
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, mapping, string, typed_event


class Decoder:
    """Turns the frames of one Messages stream into events. `complete` is true after `message_stop`
    or an error; what follows is ignored."""

    def __init__(self) -> None:
        self.complete = False
        self.begun = False
        self.usage: Json = {}
        self.assembly = Assembly()

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a frame; none for comments, pings and `[DONE]`, which converters add."""
        if frame.data is None or self.complete or frame.data.strip() in ("", "[DONE]"):
            return []
        value = typed_event(frame)
        return _HANDLERS.get(value["type"], _unknown)(self, value, frame)

    def close(self) -> list[ev.Event]:
        """The ends of blocks that are still open when the stream ends. Anthropic sends no
        `content_block_stop` for a call that the token limit cuts."""
        return self.assembly.flush()


def decode_body(body: Fields) -> Turn:
    """The turn of a message, or of an error body; raises `WireError` if it is neither."""
    content = body.get("content")
    if body.get("error"):
        values: list[Fields] = [{**body, "type": "error"}]
    elif isinstance(content, list):
        values = _stream_values(body, content)
    else:
        raise no_body("a Messages body", "`content` (an array) or `error`", body)
    decoder = Decoder()
    frames = (Frame(dumps(value), event=value["type"]) for value in values)
    events = [event for frame in frames for event in decoder.decode(frame)]
    return fold(ev.Timed(0, event) for event in [*events, *decoder.close()])


def _stream_values(body: Fields, content: list[Any]) -> list[Fields]:
    values: list[Fields] = [{"type": "message_start", "message": {**body, "content": []}}]
    values += _blocks(content)
    if body.get("stop_reason") is not None:
        names = ("stop_reason", "stop_sequence", "stop_details", "container")
        delta = {name: body[name] for name in names if name in body}
        usage = {"usage": body["usage"]} if "usage" in body else {}
        values.append({"type": "message_delta", "delta": delta, **usage})
    return values


def _blocks(content: list[Any]) -> list[Fields]:
    """A start with the complete block and a stop, for each block of a message."""
    return [
        event
        for index, block in enumerate(content)
        for event in (
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_stop", "index": index},
        )
    ]


def _unknown(decoder: Decoder, value: Fields, frame: Frame) -> list[ev.Event]:
    return [decoder.assembly.raw(frame)]


def _start(decoder: Decoder, value: Fields, frame: Frame) -> list[ev.Event]:
    if decoder.begun:
        decoder.complete = True
        error = ev.StreamError("message_start came twice in one stream", DEFAULT_ERROR)
        return [*decoder.assembly.flush(), error]
    decoder.begun = True
    message = mapping(value.get("message"))
    decoder.usage.update(_counts(message.get("usage")))
    start = ev.Start(string(message.get("id")), string(message.get("model")))
    blocks = array(message.get("content"))
    filled = not all(map(is_placeholder, blocks))
    return [start, *_message_events(decoder, message, _blocks(blocks))] if filled else [start]


def _message_events(decoder: Decoder, message: Fields, blocks: list[Fields]) -> list[ev.Event]:
    """The events of a message that is complete in its start. Programmatic tool calling sends such
    messages: `message_stop` may follow at once, and the stop reason is in the start, too
    (langchain-ai/langchain#34406)."""
    handlers = {"content_block_start": Assembly.start, "content_block_stop": Assembly.stop}
    out = [
        event
        for block in blocks
        for event in handlers[block["type"]](
            decoder.assembly, block, Frame(dumps(block), event=block["type"])
        )
    ]
    if isinstance(message.get("stop_reason"), str):
        usage = [read_usage(decoder.usage)] if decoder.usage else []
        out += [*usage, _finish(message)]
    return out


def _delta(decoder: Decoder, value: Fields, frame: Frame) -> list[ev.Event]:
    delta = mapping(value.get("delta"))
    ends = isinstance(delta.get("stop_reason"), str)
    out = decoder.assembly.flush() if ends else []
    usage = _counts(value.get("usage"))
    if usage:
        decoder.usage.update(usage)
        out.append(read_usage(decoder.usage))
    if ends:
        out.append(_finish(delta))
    return out


def _finish(delta: Fields) -> ev.Finish:
    """The finish of a message, or of a delta of one, that says why it ended."""
    finish, sequence = STOPS.read(string(delta.get("stop_reason"))), delta.get("stop_sequence")
    if finish.raw == "stop_sequence" and isinstance(sequence, str):
        return replace(finish, stop_sequence=sequence)
    return finish


def _stop(decoder: Decoder, value: Fields, frame: Frame) -> list[ev.Event]:
    decoder.complete = True
    return decoder.assembly.flush()


def _error(decoder: Decoder, value: Fields, frame: Frame) -> list[ev.Event]:
    decoder.complete = True
    error = value.get("error")
    details = mapping(error)
    message = string(details.get("message")) or string(error) or string(value.get("message"))
    kind = string(details.get("type")) or DEFAULT_ERROR
    reported = ev.StreamError(message or "the stream reports an error", kind)
    return [*decoder.assembly.flush(), reported]


def _counts(value: object) -> Json:
    """The counts in a `usage` object. Usage is cumulative (API reference, "Event types"): each
    event replaces the counts that it has, and null or absent ones stay."""
    return {name: count for name, count in mapping(value).items() if count is not None}


_Handler = Callable[[Decoder, Fields, Frame], list[ev.Event]]
_HANDLERS: dict[str, _Handler] = {
    "message_start": _start,
    "content_block_start": lambda decoder, value, frame: decoder.assembly.start(value, frame),
    "content_block_delta": lambda decoder, value, frame: decoder.assembly.delta(value, frame),
    "content_block_stop": lambda decoder, value, frame: decoder.assembly.stop(value, frame),
    "message_delta": _delta,
    "message_stop": _stop,
    "ping": lambda decoder, value, frame: [],
    "error": _error,
}
