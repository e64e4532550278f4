"""The stream view of an answer: each part with its bytes, its times and the events in it. Pure.

The JSON has texts as they are; the page shows what is not visible in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import zip_longest
from typing import Any

from mockllm.core import events as ev
from mockllm.core.http import reason_phrase
from mockllm.core.text import shorten
from mockllm.core.timeline import fold
from mockllm.core.turn import ToolCall, Turn
from mockllm.core.visible_bytes import Piece, visible_lines
from mockllm.errors import MockLLMError
from mockllm.framing.sse import SSEDecoder
from mockllm.protocols.base import WireProtocol
from mockllm.replay.compilation.http_answer import HttpAnswer

_MOST_PARTS = 20_000
_MOST_BYTES = 20 * 1024 * 1024
_LONGEST = 200_000
"""Of a text in the sum, in characters."""


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer as it was sent, or would be.

    Args:
        due: when each part of the body is due, in microseconds; () where nothing was due.
        sent_at: when each part was sent, in microseconds after the start; None: not sent, or not
            known.
        source: `sent`, or `made again` from the scenario.
        gone_after: the bytes of the body that were written before the client left, or the server
            stopped; None: all.
        struck_after: the bytes that were written before a fault struck.
        quirks: by the number of a part, what changed it.
    """

    answer: HttpAnswer
    due: Sequence[int] = ()
    sent_at: Sequence[int | None] = ()
    source: str = "sent"
    note: str = ""
    timed: bool = False
    fault: str = ""
    struck_after: int | None = None
    gone_after: int | None = None
    quirks: Mapping[int, str] = field(default_factory=dict)


def stream_json(shown: ShownAnswer, protocol: WireProtocol | None) -> dict[str, Any]:
    """The JSON of the stream view."""
    answer = shown.answer
    reading = _Reading(protocol if answer.streamed and answer.status < 300 else None)
    parts, offset = [], 0
    for number, (data, at, sent_at) in enumerate(
        zip_longest(answer.data, shown.due, shown.sent_at)
    ):
        if number >= _MOST_PARTS or offset + len(data) > _MOST_BYTES:
            break
        parts.append(
            {
                "at": at,
                "left": sent_at,
                "size": len(data),
                "offset": offset,
                "lines": _lines(data),
                "events": [_event(event) for event in reading.feed(data)],
                "quirk": shown.quirks.get(number, ""),
                "segment": answer.segmented and answer.streamed,
            }
        )
        offset += len(data)
    return {
        "source": shown.source,
        "note": shown.note,
        "status": answer.status,
        "reason": reason_phrase(answer.status) if answer.reason is None else answer.reason,
        "headers": [list(header) for header in answer.headers],
        "streamed": answer.streamed,
        "ending": answer.ending,
        "fault": shown.fault,
        "struck_after": shown.struck_after,
        "timed": shown.timed,
        "size": answer.size,
        "gone_after": shown.gone_after,
        "parts": parts,
        "unshown": len(answer.data) - len(parts),
        "sum": _sum(answer, protocol, reading),
    }


# Bytes


def _lines(data: bytes) -> list[list[Any]]:
    lines = [[_piece(piece) for piece in line.pieces] for line in visible_lines([data])]
    if lines:
        del lines[0][0]  # the mark where a write begins: each part is one
    return lines


def _piece(piece: Piece) -> str | list[str]:
    if piece.kind == "text":
        return piece.text
    return [piece.kind, piece.text, piece.note] if piece.note else [piece.kind, piece.text]


# Events


class _Reading:
    """The events of a stream, part by part."""

    def __init__(self, protocol: WireProtocol | None) -> None:
        self._frames = SSEDecoder()
        self._decoder = None if protocol is None else protocol.decoder()
        self.events: list[ev.Event] = []
        self.problems: list[str] = []

    def feed(self, data: bytes) -> list[ev.Event]:
        """The events in the next bytes; none after bytes that cannot be decoded."""
        if self._decoder is None:
            return []
        events: list[ev.Event] = []
        try:
            for frame in self._frames.decode(data):
                events += self._decoder.decode(frame)
        except (MockLLMError, ValueError) as error:
            self.problems.append(shorten(str(error), 500))
            self._decoder = None
        self.events += events
        return events

    def turn(self) -> Turn | None:
        """What all events add up to; None where they contradict each other."""
        if self._decoder is None and not self.events:
            return None
        try:
            rest = [] if self._decoder is None else self._decoder.close()
            return fold(ev.Timed(0, event) for event in (*self.events, *rest)).whole()
        except (MockLLMError, ValueError) as error:
            self.problems.append(shorten(str(error), 500))
            return None


def _event(event: ev.Event) -> dict[str, Any]:
    given = {known.name: getattr(event, known.name) for known in fields(event)}
    values = {
        name: _value(value) for name, value in given.items() if value not in (None, "", False)
    }
    named = {name: value for name, value in values.items() if name != "part"}
    parts = [f"{name} {value}" for name, value in named.items()]
    summary = ", ".join(parts) if len(parts) > 1 else "".join(map(str, named.values()))
    return {"kind": type(event).__name__, "summary": shorten(summary, 120), "fields": values}


def _value(value: Any) -> Any:
    if is_dataclass(value):
        value = getattr(value, "data", None) or getattr(value, "event", None) or str(value)
    return shorten(value, 2000) if isinstance(value, str) else value


# The sum


def _sum(answer: HttpAnswer, protocol: WireProtocol | None, reading: _Reading) -> dict[str, Any]:
    turn = reading.turn() if answer.streamed else _body_turn(answer, protocol, reading)
    turn = Turn() if turn is None else turn
    usage = turn.usage
    error = [] if turn.error is None else [f"the stream has an error: {turn.error.message}"]
    return {
        "text": shorten(turn.text, _LONGEST),
        "reasoning": shorten(turn.reasoning, _LONGEST),
        "calls": [_call(call) for call in turn.tool_calls],
        "finish": turn.finish_raw or turn.finish,
        "usage": None if usage is None else {"input": usage.input, "output": usage.output},
        "problems": [*reading.problems, *error],
    }


def _body_turn(answer: HttpAnswer, protocol: WireProtocol | None, reading: _Reading) -> Turn | None:
    """The turn of an answer that is not streamed; None where it has none."""
    if protocol is None or answer.status >= 300:
        return None
    try:
        return protocol.decode_body(json.loads(b"".join(answer.data)))
    except (MockLLMError, ValueError, TypeError, LookupError, AttributeError) as error:
        reading.problems.append(shorten(f"the body cannot be read: {error}", 500))
        return None


def _call(call: ToolCall) -> dict[str, str]:
    return {
        "id": call.id or "",
        "name": call.name,
        "arguments": shorten(call.arguments, _LONGEST),
    }


def sent_times(
    parts: Iterable[bytes], marks: Sequence[float], *, all_at: int | None
) -> Iterator[int | None]:
    """When each part was sent, in microseconds.

    Args:
        all_at: of an answer in one write, when that was.
    """
    at, end = 0, 0
    for data in parts:
        end += len(data)
        while at < len(marks) and marks[at] < end:
            at += 2
        yield round(marks[at + 1] * 1_000_000) if at < len(marks) else all_at
