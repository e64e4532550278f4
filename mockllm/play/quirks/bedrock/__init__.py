"""The quirks of Amazon Bedrock Converse, group M.

First what they share: the members of the union that an event is, and the frames of AWS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from mockllm.core.errors import WireError
from mockllm.core.events import Frame, StreamError
from mockllm.core.http import TimedBytes
from mockllm.core.jsontext import json_bytes
from mockllm.core.turn import Turn
from mockllm.play.quirks import samples
from mockllm.play.quirks.base import (
    BytesChange,
    Context,
    FramesChange,
    Item,
    Quirk,
    Variant,
    drop,
    each,
    quirks_of,
    spread,
    with_parameters,
)
from mockllm.play.quirks.streams import end_in_error, end_position, time_at
from mockllm.scenario.model import Scenario, UsageSpec
from mockllm.wire.framing.eventstream import EVENTSTREAM, message
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import mapping

quirk = quirks_of("bedrock")
"""A quirk of Converse."""

_MESSAGE = "Too many tokens, please wait before trying again."


def name(item: Item) -> str:
    """The name of an event; "" for what is none."""
    return next(iter(item.data), "") if isinstance(item.data, dict) and len(item.data) == 1 else ""


def value(item: Item) -> Json:
    """The fields of an event, to be changed; {} for what has none."""
    fields = item.data.get(name(item)) if name(item) else None
    return fields if isinstance(fields, dict) else {}


def index(item: Item) -> int | None:
    """The index of the block that an event belongs to; None where it has none."""
    number = value(item).get("contentBlockIndex")
    return number if isinstance(number, int) else None


def new_event(at: int, member: str, **fields: object) -> Item:
    """A new event, with the padding that all have."""
    return Item(at, {member: {**fields, "p": "abcdefgh"}})


def events_named(member: str) -> Callable[[list[Item]], Iterable[Json]]:
    """The fields of all events of a name."""
    return lambda items: [value(item) for item in items if name(item) == member]


# Errors


@with_parameters
def _error(items: list[Item], context: Context, member: Json, *, first: bool = False) -> list[Item]:
    """An error in place of the end of the answer, or of all of it."""
    end = end_position((item.data for item in items), context.api)
    position = 0 if first else len(items) if end is None else end
    return [*items[:position], Item(time_at(items, position), member).copy()]


def _exception(type: str, **fields: object) -> FramesChange:
    return _error({type: {"message": _MESSAGE, **fields}})


_JSON = {"message": _MESSAGE}


def _as_json(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    return [TimedBytes(stream[0].at if stream else 0, dumps(_JSON).encode())]


# Frames

_Headers = list[tuple[str, str]]


@with_parameters
def _frames(
    stream: list[TimedBytes],
    _context: Context,
    change: Callable[[Frame, _Headers, bytes], bytes],
) -> list[TimedBytes]:
    """Writes each event again: `change` gets it, its headers in their order, and its payload."""
    return [replace(part, data=_rewritten(part.data, change)) for part in stream]


def _rewritten(data: bytes, change: Callable[[Frame, _Headers, bytes], bytes]) -> bytes:
    frame = _only_frame(data)
    if frame is None or frame.kind != "event":
        return data
    headers = [
        (":event-type", frame.event or ""),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ]
    return change(frame, headers, json_bytes(frame.data or ""))


def _only_frame(data: bytes) -> Frame | None:
    """The frame that some bytes are; None for other bytes, which a scenario may send."""
    try:
        frames = EVENTSTREAM.decode(data)
    except WireError:
        return None
    return frames[0] if len(frames) == 1 else None


def _without_payload(frame: Frame, headers: _Headers, payload: bytes) -> bytes:
    return message(headers, b"" if frame.event == "contentBlockStop" else payload)


def _end_of(stream: list[TimedBytes]) -> int | None:
    """The position of the frame that ends the message."""
    frames = (_only_frame(part.data) for part in stream)
    events = (frame is not None and frame.event == "messageStop" for frame in frames)
    return next((at for at, found in enumerate(events) if found), None)


def _truncate_end(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    end = _end_of(stream)
    if end is None:
        return stream
    last = stream[end]
    return [*stream[:end], replace(last, data=last.data[:-2])]


def _flip_bit(at: int) -> BytesChange:
    """Another bit of a byte in the frame that ends the message."""

    def change(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
        end = _end_of(stream)
        if end is None:
            return stream
        data = bytearray(stream[end].data)
        data[at] ^= 1
        return [*stream[:end], replace(stream[end], data=bytes(data)), *stream[end + 1 :]]

    return change


def _wrong_checksum(turn: Turn) -> Turn:
    """The turn whose end cannot be read."""
    return turn if turn.finish is None else end_in_error(StreamError("a checksum is wrong"))(turn)


# Blocks


@with_parameters
def _blocks_before(
    items: list[Item], _context: Context, blocks: Callable[[int], Iterable[Item]], count: int
) -> list[Item]:
    """Puts blocks before those of the answer, whose indexes go up by `count`."""
    start = next((at for at, item in enumerate(items, 1) if name(item) == "messageStart"), None)
    if start is None:
        return items
    for item in items[start:]:
        number = index(item)
        if number is not None:
            value(item)["contentBlockIndex"] = number + count
    return [*items[:start], *blocks(items[start - 1].at), *items[start:]]


def _block(at: int, index: int, start: Json | None, delta: Json) -> Iterator[Item]:
    if start is not None:
        yield new_event(at, "contentBlockStart", contentBlockIndex=index, start=start)
    yield new_event(at, "contentBlockDelta", contentBlockIndex=index, delta=delta)
    yield new_event(at, "contentBlockStop", contentBlockIndex=index)


def _server_tool(at: int) -> Iterator[Item]:
    use = {"name": "nova_code_interpreter", "toolUseId": "tooluse_S1", "type": "server_tool_use"}
    result = {
        "status": "success",
        "toolUseId": "tooluse_S1",
        "type": "nova_code_interpreter_result",
    }
    yield from _block(at, 0, {"toolUse": use}, {"toolUse": {"input": '{"snippet":"1+1"}'}})
    output = {"exitCode": 0, "stdOut": "2"}
    yield from _block(at, 1, {"toolResult": result}, {"toolResult": [{"json": output}]})


def _client_type(fields: Json) -> None:
    use = mapping(fields.get("start")).get("toolUse")
    if isinstance(use, dict):
        use["type"] = "tool_use"


def _with_start(items: list[Item], _context: Context) -> list[Item]:
    """A start without content before the first delta of each text."""
    opened, changed = set(), []
    for item in items:
        at_block = index(item)
        is_text = "text" in mapping(value(item).get("delta"))
        if name(item) == "contentBlockDelta" and is_text and at_block not in opened:
            opened.add(at_block)
            changed.append(
                new_event(item.at, "contentBlockStart", contentBlockIndex=at_block, start={})
            )
        changed.append(item)
    return changed


# Calls without arguments


@with_parameters
def _zero(items: list[Item], _context: Context, input: str) -> list[Item]:
    """A delta with `input` in each call that has none."""
    argued = {index(item) for item in items if "toolUse" in mapping(value(item).get("delta"))}
    changed = []
    for item in items:
        changed.append(item)
        if "toolUse" in mapping(value(item).get("start")) and index(item) not in argued:
            delta = {"toolUse": {"input": input}}
            changed.append(
                new_event(item.at, "contentBlockDelta", contentBlockIndex=index(item), delta=delta)
            )
    return changed


def _no_delta(items: list[Item], _context: Context) -> list[Item]:
    """Without the deltas of calls whose whole input is {}."""
    inputs: dict[object, str] = {}
    for item in items:
        input = mapping(mapping(value(item).get("delta")).get("toolUse")).get("input")
        if isinstance(input, str):
            inputs[index(item)] = inputs.get(index(item), "") + input
    return [
        item
        for item in items
        if name(item) != "contentBlockDelta" or inputs.get(index(item)) != "{}"
    ]


# Ends


@with_parameters
def _stopped_for(items: list[Item], _context: Context, reason: str, *, called: bool) -> list[Item]:
    """Another stop reason, in answers with calls of the client or in those without."""
    starts = (mapping(mapping(value(item).get("start")).get("toolUse")) for item in items)
    if any(use and use.get("type") != "server_tool_use" for use in starts) == called:
        for fields in events_named("messageStop")(items):
            fields["stopReason"] = reason
    return items


_CONTENT = ("contentBlockStart", "contentBlockDelta", "contentBlockStop")
_END = ("messageStop", "metadata")


def _without(*names: str) -> FramesChange:
    return drop(lambda item: name(item) in names)


def _metrics_again(item: Item) -> list[Item]:
    if name(item) != "metadata":
        return [item]
    return [item, new_event(item.at, "metadata", metrics={"latencyMs": 412})]


def _twice(fields: Json) -> None:
    usage = fields.get("usage")
    if isinstance(usage, dict):
        for cached in ("cacheReadInputToken", "cacheWriteInputToken"):
            usage[f"{cached}s"] = usage[f"{cached}Count"] = usage.get(f"{cached}s", 0)


def _unknown(item: Item) -> list[Item]:
    if name(item) != "messageStart":
        return [item]
    return [item, new_event(item.at, "kitUnknown", contentBlockIndex=0)]


def _with_cache_usage(sample: Scenario) -> Scenario:
    (turn,) = sample.turns
    return replace(sample, turns=(replace(turn, usage=UsageSpec(12, 7, 0, 3)),))


# The table

QUIRKS: tuple[Quirk, ...] = (
    quirk(
        "bedrock-exception-frame",
        samples.TEXT,
        Variant("throttling", _exception("throttlingException"), as_sent=True),
        Variant(
            "model",
            _exception(
                "modelStreamErrorException", originalStatusCode=424, originalMessage="failed"
            ),
            as_sent=True,
        ),
    ),
    quirk(
        "bedrock-throttle-first-frame",
        samples.TEXT,
        Variant(frames=_error({"throttlingException": _JSON}, first=True), as_sent=True),
    ),
    quirk(
        "bedrock-exception-unknown",
        samples.TEXT,
        Variant("new", _exception("somethingNewException"), as_sent=True),
        Variant("other-operation", _exception("modelTimeoutException"), as_sent=True),
    ),
    quirk(
        "bedrock-error-frame",
        samples.TEXT,
        Variant(
            frames=_error({"error": {"code": "internalError", "message": _MESSAGE}}),
            as_sent=True,
            decoded=False,  # SDKs of AWS raise it, and hand on no event
        ),
    ),
    quirk("bedrock-truncated-frame", samples.TEXT, Variant(bytes=_truncate_end, as_sent=True)),
    quirk(
        "bedrock-wrong-checksum",
        samples.TEXT,
        Variant("message", bytes=_flip_bit(-1), expected=_wrong_checksum),
        Variant("prelude", bytes=_flip_bit(8), expected=_wrong_checksum),
    ),
    quirk(
        "bedrock-json-for-stream",
        samples.TEXT,
        Variant(
            bytes=_as_json,
            content_type="application/json",
            expected=end_in_error(StreamError(_MESSAGE)),
        ),
    ),
    quirk(
        "bedrock-no-content-type",
        samples.TEXT,
        Variant(
            bytes=_frames(lambda _, headers, payload: message([headers[0], headers[2]], payload))
        ),
    ),
    quirk(
        "bedrock-header-order",
        samples.TEXT,
        Variant(bytes=_frames(lambda _, headers, payload: message(headers[::-1], payload))),
    ),
    quirk("bedrock-empty-stop", samples.TEXT_AND_CALL, Variant(bytes=_frames(_without_payload))),
    quirk("bedrock-padding-p", samples.TEXT, each(list, lambda item: value(item).pop("p", None))),
    quirk("bedrock-unknown-event", samples.TEXT, spread(_unknown)),
    quirk(
        "bedrock-key-twice", _with_cache_usage(samples.TEXT), each(events_named("metadata"), _twice)
    ),
    quirk("bedrock-metadata-twice", samples.TEXT, spread(_metrics_again)),
    quirk("bedrock-no-metadata", samples.TEXT, Variant(frames=_without("metadata"), as_sent=True)),
    quirk("bedrock-no-block-stop", samples.TEXT_AND_CALL, _without("contentBlockStop")),
    quirk(
        "bedrock-no-message-stop",
        samples.TEXT_AND_CALL,
        Variant("both", _without(*_END), as_sent=True),
        Variant("stop-alone", _without("messageStop"), as_sent=True),
    ),
    quirk(
        "bedrock-empty-end-turn",
        samples.TEXT,
        Variant("no-blocks", _without(*_CONTENT), as_sent=True),
        Variant("no-stop", _without(*_CONTENT, *_END), right="error", as_sent=True),
    ),
    quirk("bedrock-text-without-start", samples.TEXT, Variant("empty-start", _with_start)),
    quirk(
        "bedrock-zero-args",
        samples.ZERO,
        Variant("empty", _zero("")),
        Variant("object", _zero("{}")),
        Variant("no-delta", _no_delta, sample=samples.ZERO_IN_FRAGMENTS),
    ),
    quirk(
        "bedrock-tool-use-without-block",
        samples.TEXT,
        Variant(frames=_stopped_for("tool_use", called=False), as_sent=True),
    ),
    quirk(
        "bedrock-end-turn-with-call",
        samples.CALL,
        Variant(frames=_stopped_for("end_turn", called=True), as_sent=True),
    ),
    quirk(
        "bedrock-malformed-tool-use",
        samples.TEXT,
        Variant(frames=_stopped_for("malformed_tool_use", called=False), as_sent=True),
    ),
    quirk(
        "bedrock-server-tool-type",
        samples.CALL,
        Variant("service", _blocks_before(_server_tool, 2)),
        Variant("client", each(events_named("contentBlockStart"), _client_type)),
    ),
)
