"""Changes of the bytes of a stream: lines, blocks, events, writes.

Only pure functions may live here. Each accepts any stream (any line ends, raw text, a JSON array
instead of events), and does not change what it cannot parse. Those of events and writes are for
other carriers, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import cycle, pairwise

from mockllm.core.errors import StreamFormatError
from mockllm.core.http import TimedBytes
from mockllm.core.jsontext import json_bytes
from mockllm.play.quirks.base import BytesChange, Context, with_parameters
from mockllm.play.quirks.streams import end_position
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.framing.json_array import JSON_ARRAY
from mockllm.wire.framing.sse import SSE
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.records import Json

BOM = b"\xef\xbb\xbf"
MOST_WRITES = 20_000
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BLANK = re.compile(rb"(\r\n|\r|\n)(?:\r\n|\r|\n)+")
_START = rb"(?:\A(?:\xef\xbb\xbf)?|(?<=[\r\n]))"
_DATA = re.compile(_START + rb"data(?=:)")
_DONE = re.compile(_START + rb"data: ?\[DONE\] *(?=[\r\n]|\Z)")
_SPACE = re.compile(rb"(" + _START + rb"(?:data|event|id|retry):) (?! )")
_SEVERAL = re.compile(rb"[\xc0-\xff][\x80-\xbf]+")


def _is_event(timed: TimedBytes) -> bool:
    return _DATA.search(timed.data) is not None


def _is_done(timed: TimedBytes) -> bool:
    return _DONE.search(timed.data) is not None


def _line_end(stream: Sequence[TimedBytes]) -> bytes:
    match = next(filter(None, (_LINE_END.search(timed.data) for timed in stream)), None)
    return match[0] if match else b"\n"


def _object(timed: TimedBytes, carrier: Carrier = SSE) -> Json | None:
    """The JSON object in the data of exactly one event; None where the bytes are anything else."""
    try:
        (data,) = [frame.data for frame in carrier.decode(timed.data) if frame.data is not None]
        value = json.loads(data)
    except (StreamFormatError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _carrier(context: Context) -> Carrier:
    """The carrier of the events of the stream. What is in an array are no events here."""
    carrier = PROTOCOLS[context.api].carrier(context.reply.options)
    return SSE if carrier is JSON_ARRAY else carrier


def _in_middle(
    stream: list[TimedBytes], context: Context, change: Callable[[bytes], bytes]
) -> list[TimedBytes]:
    """Changes the payload of the event in the middle, or of the last one before the end of the
    answer: a client may have the finish reason of an end that came as a whole."""
    carrier = _carrier(context)
    values = [_object(timed, carrier) for timed in stream]
    end = end_position(values, context.api)
    objects = [index for index, value in enumerate(values) if value is not None]
    if not objects:
        return stream
    before_end = [index for index in objects if end is None or index < end] or objects[:1]
    middle = min(objects[len(objects) // 2], before_end[-1])
    at, data = stream[middle].at, stream[middle].data
    begin, end = carrier.parts(data)["payload"]
    changed = carrier.repair(data[:begin] + change(data[begin:end]) + data[end:])
    return [*stream[:middle], TimedBytes(at, changed), *stream[middle + 1 :]]


# Lines


@with_parameters
def line_ends(stream: list[TimedBytes], _context: Context, *ends: bytes) -> list[TimedBytes]:
    """Ends the lines with `ends`, one after the other, over and over."""
    next_end = cycle(ends)
    changed = []
    after_cr = False
    for timed in stream:
        # A CRLF may be split over two writes; its LF does not end another line.
        data = timed.data[1:] if after_cr and timed.data[:1] == b"\n" else timed.data
        after_cr = timed.data[-1:] == b"\r"
        data = _LINE_END.sub(lambda _: next(next_end), data)
        if data:
            changed.append(TimedBytes(timed.at, data))
    return changed


def split_crlf(stream: list[TimedBytes], context: Context) -> list[TimedBytes]:
    """Ends lines with CRLF, with the CR and the LF in different writes."""
    ended = line_ends(b"\r\n")(stream, context)
    return [
        TimedBytes(timed.at, data)
        for timed in ended
        for data in re.findall(rb"[^\r]*\r|[^\r]+", timed.data)
    ]


def no_space(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Removes the space after the colon of a field; a value that begins with a space keeps it."""
    return [TimedBytes(timed.at, _SPACE.sub(rb"\1", timed.data)) for timed in stream]


def one_newline(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Removes all blank lines."""
    return [TimedBytes(timed.at, _BLANK.sub(rb"\1", timed.data)) for timed in stream]


def mark(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Puts a byte order mark before a stream of events that has none."""
    if not any(map(_is_event, stream)) or stream[0].data.startswith(BOM):
        return stream
    return [TimedBytes(stream[0].at, BOM + stream[0].data), *stream[1:]]


# Blocks and fields


def _block(at: int, lines: Sequence[bytes], end: bytes) -> TimedBytes:
    return TimedBytes(at, end.join([*lines, end]))


@with_parameters
def between(stream: list[TimedBytes], _context: Context, *lines: bytes) -> list[TimedBytes]:
    """Adds a block of these lines before every event but the first, or before the only one."""
    events = [index for index, timed in enumerate(stream) if _is_event(timed)]
    before = set(events[1:] or events)
    end = _line_end(stream)
    changed = []
    for index, timed in enumerate(stream):
        if index in before:
            changed.append(_block(timed.at, lines, end))
        changed.append(timed)
    return changed


@with_parameters
def first(stream: list[TimedBytes], _context: Context, *lines: bytes) -> list[TimedBytes]:
    """Adds a block of these lines before the first event."""
    if not any(map(_is_event, stream)):
        return stream
    return [_block(stream[0].at, lines, _line_end(stream)), *stream]


def with_lines(name: bytes, value: Callable[[int], bytes]) -> BytesChange:
    """Adds a field before the data of every event that does not have it.

    Args:
        value: of the field, from the number of the event, which counts from 1.
    """
    own = re.compile(_START + re.escape(name) + rb"(?=[:\r\n])")

    def change(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
        end = _line_end(stream)
        number = 0
        changed = []
        for timed in stream:
            match = _DATA.search(timed.data)
            number += match is not None
            if match is None or own.search(timed.data):
                changed.append(timed)
                continue
            start = match.end() - len(b"data")
            line = name + b": " + value(number) + end
            changed.append(TimedBytes(timed.at, timed.data[:start] + line + timed.data[start:]))
        return changed

    return change


def several_lines(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Spreads the JSON of each event over several data lines."""
    return [_spread(timed) for timed in stream]


def _spread(timed: TimedBytes) -> TimedBytes:
    value = _object(timed)
    lines = list(re.finditer(_START + rb"data: ?([^\r\n]*)", timed.data))
    if value is None or len(lines) != 1:
        return timed
    text = json_bytes(json.dumps(value, ensure_ascii=False, indent=1))
    spread = text.replace(b"\n", _line_end([timed]) + b"data: ")
    begin, end = lines[0].span(1)
    return TimedBytes(timed.at, timed.data[:begin] + spread + timed.data[end:])


# Comments that have no blank line behind them


@with_parameters
def comment_before(stream: list[TimedBytes], _context: Context, comment: bytes) -> list[TimedBytes]:
    """Adds a comment directly before the lines of every event but the first."""
    events = [number for number, timed in enumerate(stream) if _data_lines(timed)]
    return [
        TimedBytes(timed.at, comment + _end_of_line(timed) + timed.data)
        if number in events[1:]
        else timed
        for number, timed in enumerate(stream)
    ]


@with_parameters
def comment_inside(stream: list[TimedBytes], context: Context, comment: bytes) -> list[TimedBytes]:
    """Spreads the JSON of each event over several data lines, and adds a comment after the first
    and the last of them."""

    return [_with_inside(timed, comment) for timed in several_lines(stream, context)]


def _with_inside(timed: TimedBytes, comment: bytes) -> TimedBytes:
    lines, data = _lines(timed), _data_lines(timed)
    if not data or not lines[data[-1]].endswith((b"\r", b"\n")):
        return timed
    for number in (data[-1], data[0]):
        lines.insert(number + 1, comment + _end_of_line(timed))
    return TimedBytes(timed.at, b"".join(lines))


def _lines(timed: TimedBytes) -> list[bytes]:
    # Bytes are split at CR, LF and CRLF only.
    return timed.data.splitlines(keepends=True)


def _data_lines(timed: TimedBytes) -> list[int]:
    return [number for number, line in enumerate(_lines(timed)) if line.startswith(b"data:")]


def _end_of_line(timed: TimedBytes) -> bytes:
    first = _lines(timed)[0]
    return first[len(first.rstrip(b"\r\n")) :] or b"\n"


# Events


@with_parameters
def pad_event(stream: list[TimedBytes], context: Context, size: int) -> list[TimedBytes]:
    """Puts `size` spaces before the last brace of the event in the middle."""

    def longer(payload: bytes) -> bytes:
        before, brace, after = payload.rpartition(b"}")
        return before + b" " * size + brace + after

    return _in_middle(stream, context, longer)


def break_json(stream: list[TimedBytes], context: Context) -> list[TimedBytes]:
    """Cuts the JSON of the event in the middle after its first closing brace; before it, where
    that is the last one."""
    return _in_middle(stream, context, _broken)


def _broken(payload: bytes) -> bytes:
    match = _DATA.search(payload)
    begin, end = payload.index(b"}", match.end() if match else 0), payload.rindex(b"}")
    return payload[: begin + (begin < end)] + payload[end + 1 :]


def cut_short(stream: list[TimedBytes], context: Context) -> list[TimedBytes]:
    """Cuts the stream in the middle of the event that begins its end; where there is none, in the
    middle of the last event."""
    if not stream:
        return stream
    events = [index for index, timed in enumerate(stream) if _is_event(timed)]
    carrier = _carrier(context)
    last = end_position((_object(timed, carrier) for timed in stream), context.api)
    if last is None:
        last = (events or [len(stream) - 1])[-1]
    data = stream[last].data
    half = TimedBytes(stream[last].at, data[: len(data) // 2])
    return [*stream[:last], *([half] if half.data else [])]


def no_final_blank(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Cuts the stream after the line of its last event, `[DONE]` not counted."""
    events = [index for index, timed in enumerate(stream) if _is_event(timed)]
    if not events:
        return stream
    last = next((index for index in reversed(events) if not _is_done(stream[index])), events[-1])
    data = stream[last].data
    ended = data.rstrip(b"\r\n") + _line_end([stream[last]])
    return [*stream[:last], TimedBytes(stream[last].at, ended)]


@with_parameters
def rewrite_done(
    stream: list[TimedBytes], _context: Context, write: Callable[[bytes, bytes], bytes]
) -> list[TimedBytes]:
    """Changes the bytes of `[DONE]`.

    Args:
        write: the new bytes, from its line without the line end and the rest of the block.
    """

    return [_rewritten(timed, write) for timed in stream]


def _rewritten(timed: TimedBytes, write: Callable[[bytes, bytes], bytes]) -> TimedBytes:
    match = _DONE.search(timed.data)
    if match is None:
        return timed
    before, line, rest = timed.data[: match.start()], match[0], timed.data[match.end() :]
    return TimedBytes(timed.at, before + write(line, rest))


# Writes


def join_writes(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Joins the whole stream into one write, at the time of the last one."""
    return [TimedBytes(stream[-1].at, b"".join(timed.data for timed in stream))] if stream else []


def bytewise(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Writes each of the first `MOST_WRITES` bytes by itself."""
    changed: list[TimedBytes] = []
    for timed in stream:
        single = timed.data[: max(0, MOST_WRITES - len(changed))]
        changed += [TimedBytes(timed.at, bytes((byte,))) for byte in single]
        if len(single) < len(timed.data):
            changed.append(TimedBytes(timed.at, timed.data[len(single) :]))
    return changed


def split_characters(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Cuts every character of several bytes: its last byte is in the next write."""
    changed = []
    for timed in stream:
        edges = [match.end() - 1 for match in _SEVERAL.finditer(timed.data)]
        cuts = [0, *edges, len(timed.data)]
        parts = (timed.data[a:b] for a, b in pairwise(cuts))
        changed += [TimedBytes(timed.at, data) for data in parts if data]
    return changed
