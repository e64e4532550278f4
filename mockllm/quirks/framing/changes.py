"""The bytes of a stream, changed: lines, blocks, events, writes.

Only pure functions may live here. Each takes the pieces of a stream in whatever shape they come
(any line ends, raw text among them, a JSON array in place of events) and leaves what it does
not understand as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import cycle, pairwise
from typing import Any

from mockllm.core.timed_bytes import TimedBytes
from mockllm.errors import SSEError
from mockllm.framing.sse import decode
from mockllm.quirks.base import BytesChange, Context
from mockllm.scenario.model import Api

__all__ = [
    "between",
    "break_json",
    "bytewise",
    "cut_short",
    "done",
    "first",
    "glued",
    "is_end",
    "line_ends",
    "mark",
    "no_final_blank",
    "no_space",
    "one_newline",
    "padded",
    "several_lines",
    "split_characters",
    "split_crlf",
    "with_lines",
]

BOM = b"\xef\xbb\xbf"
MOST_WRITES = 20_000
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BLANK = re.compile(rb"(\r\n|\r|\n)(?:\r\n|\r|\n)+")
_START = rb"(?:\A(?:\xef\xbb\xbf)?|(?<=[\r\n]))"
_DATA = re.compile(_START + rb"data(?=:)")
_DONE = re.compile(_START + rb"data: ?\[DONE\] *(?=[\r\n]|\Z)")
_SPACE = re.compile(rb"(" + _START + rb"(?:data|event|id|retry):) (?! )")
_SEVERAL = re.compile(rb"[\xc0-\xff][\x80-\xbf]+")


def _is_event(piece: TimedBytes) -> bool:
    return _DATA.search(piece.data) is not None


def _is_done(piece: TimedBytes) -> bool:
    return _DONE.search(piece.data) is not None


def _line_end(pieces: Sequence[TimedBytes]) -> bytes:
    """How this stream ends its lines."""
    found = next(filter(None, (_LINE_END.search(piece.data) for piece in pieces)), None)
    return found[0] if found else b"\n"


def _object(piece: TimedBytes) -> dict[str, Any] | None:
    """The JSON object of the one event in a piece; None where that is not what is in it."""
    try:
        (data,) = [frame.data for frame in decode(piece.data) if frame.data is not None]
        value = json.loads(data)
    except (SSEError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _middle(pieces: Sequence[TimedBytes]) -> int | None:
    """The place of the event in the middle of those that hold JSON objects."""
    places = [index for index, piece in enumerate(pieces) if _object(piece) is not None]
    return places[len(places) // 2] if places else None


# Where an answer ends

_LAST_TYPES: dict[Api, frozenset[str]] = {
    "responses": frozenset(
        {"response.completed", "response.incomplete", "response.failed", "error"}
    ),
    "anthropic": frozenset({"message_delta", "message_stop", "error"}),
    "agui": frozenset({"RUN_FINISHED", "RUN_ERROR"}),
}
_REASONS: dict[Api, tuple[str, str]] = {
    "chat": ("choices", "finish_reason"),
    "gemini": ("candidates", "finishReason"),
}


def is_end(value: object, api: Api) -> bool:
    """Whether the JSON value of an event begins the end of an answer: it says why the answer
    ended, or tells an error. All that the answer says has come before it."""
    if not isinstance(value, dict):
        return False
    if value.get("error") or value.get("promptFeedback"):
        return True
    if api in _LAST_TYPES:
        kind = value.get("type")
        return isinstance(kind, str) and kind in _LAST_TYPES[api]
    several, reason = _REASONS[api]
    choices = value.get(several)
    return isinstance(choices, list) and any(
        isinstance(choice, dict) and bool(choice.get(reason)) for choice in choices
    )


# Lines


def line_ends(*ends: bytes) -> BytesChange:
    """Ends the lines with `ends`, one after the other, over and over."""

    def change(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
        ending = cycle(ends)
        changed = []
        after_cr = False
        for piece in pieces:
            # The LF of a CRLF may begin the next piece; it is no line of its own.
            data = piece.data[1:] if after_cr and piece.data[:1] == b"\n" else piece.data
            after_cr = piece.data[-1:] == b"\r"
            data = _LINE_END.sub(lambda _: next(ending), data)
            if data:
                changed.append(TimedBytes(piece.at, data))
        return changed

    return change


def split_crlf(pieces: list[TimedBytes], context: Context) -> list[TimedBytes]:
    """Ends lines with CRLF, and a write between the CR and the LF."""
    ended = line_ends(b"\r\n")(pieces, context)
    return [
        TimedBytes(piece.at, data)
        for piece in ended
        for data in re.findall(rb"[^\r]*\r|[^\r]+", piece.data)
    ]


def no_space(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Leaves out the space behind the colon of a field; a value that begins with a space
    keeps it."""
    return [TimedBytes(piece.at, _SPACE.sub(rb"\1", piece.data)) for piece in pieces]


def one_newline(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Leaves out all blank lines."""
    return [TimedBytes(piece.at, _BLANK.sub(rb"\1", piece.data)) for piece in pieces]


def mark(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Puts a byte order mark before a stream of events that has none."""
    if not any(map(_is_event, pieces)) or pieces[0].data.startswith(BOM):
        return pieces
    return [TimedBytes(pieces[0].at, BOM + pieces[0].data), *pieces[1:]]


# Blocks and fields


def _block(at: int, lines: Sequence[bytes], end: bytes) -> TimedBytes:
    return TimedBytes(at, end.join([*lines, end]))


def between(*lines: bytes) -> BytesChange:
    """Puts a block of these lines before every event but the first, or before the only one."""

    def change(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
        events = [index for index, piece in enumerate(pieces) if _is_event(piece)]
        before = set(events[1:] or events)
        end = _line_end(pieces)
        changed = []
        for index, piece in enumerate(pieces):
            if index in before:
                changed.append(_block(piece.at, lines, end))
            changed.append(piece)
        return changed

    return change


def first(*lines: bytes) -> BytesChange:
    """Puts a block of these lines before the first event."""

    def change(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
        if not any(map(_is_event, pieces)):
            return pieces
        return [_block(pieces[0].at, lines, _line_end(pieces)), *pieces]

    return change


def with_lines(name: bytes, value: Callable[[int], bytes]) -> BytesChange:
    """Puts a field before the data of every event that does not have it; `value` is given the
    number of the event, from 1."""
    own = re.compile(_START + re.escape(name) + rb"(?=[:\r\n])")

    def change(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
        end = _line_end(pieces)
        number = 0
        changed = []
        for piece in pieces:
            found = _DATA.search(piece.data)
            number += found is not None
            if found is None or own.search(piece.data):
                changed.append(piece)
                continue
            place = found.end() - len(b"data")
            line = name + b": " + value(number) + end
            changed.append(TimedBytes(piece.at, piece.data[:place] + line + piece.data[place:]))
        return changed

    return change


def several_lines(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Spreads the JSON of each event over several data lines."""
    return [_spread(piece) for piece in pieces]


def _spread(piece: TimedBytes) -> TimedBytes:
    value = _object(piece)
    lines = list(re.finditer(_START + rb"data: ?([^\r\n]*)", piece.data))
    if value is None or len(lines) != 1:
        return piece
    try:
        text = json.dumps(value, ensure_ascii=False, indent=1).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can spell
        return piece
    spread = text.replace(b"\n", _line_end([piece]) + b"data: ")
    begin, end = lines[0].span(1)
    return TimedBytes(piece.at, piece.data[:begin] + spread + piece.data[end:])


# Events


def padded(size: int) -> BytesChange:
    """Puts `size` spaces before the last brace of the event in the middle."""

    def change(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
        place = _middle(pieces)
        if place is None:
            return pieces
        whole = pieces[place]
        before, brace, after = whole.data.rpartition(b"}")
        longer = TimedBytes(whole.at, before + b" " * size + brace + after)
        return [*pieces[:place], longer, *pieces[place + 1 :]]

    return change


def break_json(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Ends the JSON of the event in the middle behind its first closing brace; where that is
    the last one, before it."""
    place = _middle(pieces)
    if place is None:
        return pieces
    at, data = pieces[place].at, pieces[place].data
    found = _DATA.search(data)
    begin, end = data.index(b"}", found.end() if found else 0), data.rindex(b"}")
    kept = data[: begin + 1] if begin < end else data[:begin]
    return [*pieces[:place], TimedBytes(at, kept + data[end + 1 :]), *pieces[place + 1 :]]


def cut_short(pieces: list[TimedBytes], context: Context) -> list[TimedBytes]:
    """Ends the stream in the middle of the event that begins its end; where there is none, in
    the middle of the last one."""
    if not pieces:
        return pieces
    ends = (index for index, piece in enumerate(pieces) if is_end(_object(piece), context.api))
    events = [index for index, piece in enumerate(pieces) if _is_event(piece)]
    last = next(ends, (events or [len(pieces) - 1])[-1])
    data = pieces[last].data
    half = TimedBytes(pieces[last].at, data[: len(data) // 2])
    return [*pieces[:last], *([half] if half.data else [])]


def no_final_blank(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Ends the stream after the line of its last event; `[DONE]` does not come either."""
    events = [index for index, piece in enumerate(pieces) if _is_event(piece)]
    if not events:
        return pieces
    last = next((index for index in reversed(events) if not _is_done(pieces[index])), events[-1])
    data = pieces[last].data
    ended = data.rstrip(b"\r\n") + _line_end([pieces[last]])
    return [*pieces[:last], TimedBytes(pieces[last].at, ended)]


def done(say: Callable[[bytes, bytes], bytes]) -> BytesChange:
    """Says `[DONE]` in another way; `say` is given its line without the line end, and the rest
    of the block."""

    def change(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
        return [_said(piece, say) for piece in pieces]

    return change


def _said(piece: TimedBytes, say: Callable[[bytes, bytes], bytes]) -> TimedBytes:
    found = _DONE.search(piece.data)
    if found is None:
        return piece
    before, line, rest = piece.data[: found.start()], found[0], piece.data[found.end() :]
    return TimedBytes(piece.at, before + say(line, rest))


# Writes


def glued(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Joins the whole stream into one write, due when the last of it is."""
    return [TimedBytes(pieces[-1].at, b"".join(piece.data for piece in pieces))] if pieces else []


def bytewise(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Writes each byte by itself; of a stream longer than `MOST_WRITES` bytes, its beginning."""
    changed: list[TimedBytes] = []
    for piece in pieces:
        single = piece.data[: max(0, MOST_WRITES - len(changed))]
        changed += [TimedBytes(piece.at, bytes((byte,))) for byte in single]
        if len(single) < len(piece.data):
            changed.append(TimedBytes(piece.at, piece.data[len(single) :]))
    return changed


def split_characters(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    """Ends a write before the last byte of every character of several bytes."""
    changed = []
    for piece in pieces:
        edges = [found.end() - 1 for found in _SEVERAL.finditer(piece.data)]
        cuts = [0, *edges, len(piece.data)]
        parts = (piece.data[a:b] for a, b in pairwise(cuts))
        changed += [TimedBytes(piece.at, data) for data in parts if data]
    return changed
