"""The answer to a request as the live page shows it: as it was sent, or made again.

Each part comes with its bytes, its times and the events in it. The JSON has texts as they are; the
page shows what is not visible in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from mockllm.core import events as ev
from mockllm.core.errors import MockLLMError, RequestError
from mockllm.core.http import reason_phrase
from mockllm.core.text import shorten
from mockllm.core.timeline import fold
from mockllm.core.turn import ToolCall, Turn
from mockllm.core.visible_bytes import Piece, visible_lines
from mockllm.play.replay.compilation.http_answer import HttpAnswer, bytes_answer
from mockllm.play.replay.filling import played_selection, played_turn
from mockllm.play.replay.sessions.exchange import Exchange, PassedAnswer
from mockllm.play.replay.turn_answer import turn_answer
from mockllm.play.tapes.recorded_turn import carrier_of
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.serve.server.control.server_view import KEEPS, SentAnswers
from mockllm.wire.framing.carrier import FrameDecoder
from mockllm.wire.framing.content_coding import decompress
from mockllm.wire.framing.frame_text import readable
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Decoder, WireProtocol

_KEPT = f"Each process keeps the last {KEEPS} answers that it sent."

_MOST_COMPARED = 2000
"""With more parts it is not looked for which of them a quirk made."""


def sent_of(
    exchange: Exchange, sent: SentAnswers | None, scenario: Scenario | None, speed: float
) -> tuple[ShownAnswer | None, str]:
    """The answer to a request; None, and why.

    Args:
        scenario: that answered, as it is served now; None: it is no longer served.
    """
    if exchange.passed is not None and exchange.passed.status:
        return _passed_answer(exchange, exchange.passed), ""
    known = None if sent is None else sent.find(exchange)
    if known is not None:
        return _sent_answer(*known, scenario, speed), ""
    if exchange.outcome == "forwarded":
        return None, f"The bytes of the service are not kept. {_KEPT}"
    if scenario is None or exchange.played.position is None or exchange.played.api not in PROTOCOLS:
        return None, f"The bytes are not kept, and no scenario gives them again. {_KEPT}"
    if exchange.body_size is not None:
        return None, "The answer cannot be made again: its request was too large to be kept whole."
    try:
        answer = _made_again(exchange, scenario, exchange.played.quirks)
    except MockLLMError as error:
        return None, f"The answer cannot be made again: {error}"
    note = (
        "Made again from the scenario as it is now: these bytes are not kept, or another process "
        "sent them. When each part left is not known."
    )
    made = made_answer(answer, speed, note=note)
    return replace(made, fault=exchange.fault, struck_after=exchange.sent.struck_after), ""


def made_answer(answer: HttpAnswer, speed: float, *, note: str = "") -> ShownAnswer:
    """An answer that is not sent, as it would be."""
    due = [round(at / speed) if speed > 0 else 0 for at in answer.times]
    return ShownAnswer(
        answer,
        due,
        source="made again",
        note=note,
        timed=answer.timed and speed > 0,
        fault="" if answer.fault is None else answer.fault.faults,
        struck_after=None if answer.fault is None else answer.fault.struck,
    )


_OVER_SOCKET = "It went over a WebSocket: Connection has its messages, and when they were sent."


def _sent_answer(
    exchange: Exchange, answer: HttpAnswer, scenario: Scenario | None, speed: float
) -> ShownAnswer:
    if exchange.headers.get("upgrade", "").lower() == "websocket":
        # What was sent is counted in the bytes of messages, and this is another form of it.
        return replace(
            made_answer(answer, speed),
            source="sent",
            note=f"The same answer over HTTP. {_OVER_SOCKET}",
            fault=exchange.fault,
            struck_after=None,
            quirks=_quirks(exchange, answer, scenario),
        )
    at_once = not exchange.sent.marks and not exchange.in_use and not exchange.broken_off
    all_at = round(exchange.sent.duration * 1_000_000) if at_once else None
    short = exchange.sent.bytes < answer.size and not exchange.in_use
    return replace(
        made_answer(answer, speed),
        sent_at=list(sent_times(answer.data, exchange.sent.marks or (), all_at=all_at)),
        source="sent",
        note="The answer is still being sent." if exchange.in_use else "",
        fault=exchange.fault,
        struck_after=exchange.sent.struck_after,
        gone_after=exchange.sent.bytes if exchange.broken_off or short else None,
        quirks=_quirks(exchange, answer, scenario),
    )


def _passed_answer(exchange: Exchange, passed: PassedAnswer) -> ShownAnswer:
    """The answer of a service."""
    chunks, note = tuple(passed.chunks), ""
    headers = dict(reversed(passed.headers))
    coding = headers.get("content-encoding", "")
    if coding:
        note = f"Shown without the {coding} of the service. "
        try:
            chunks = decompress(chunks, coding)
        except MockLLMError as error:
            note = f"Not decoded: {error}. "
    if passed.left_out:
        note += f"{passed.left_out:,} more bytes came, and are not kept here. "
    answer = bytes_answer(
        passed.status,
        passed.headers,
        chunks,
        streamed=carrier_of(headers.get("content-type", "")) is not None,
        ending="complete" if exchange.sent.complete else "closed",
    )
    return ShownAnswer(
        answer,
        sent_at=answer.times,
        note=note.strip(),
        timed=True,
        fault=exchange.fault,
        struck_after=exchange.sent.struck_after,
        gone_after=exchange.sent.bytes if exchange.broken_off else None,
    )


def _made_again(exchange: Exchange, scenario: Scenario, quirks: tuple[str, ...]) -> HttpAnswer:
    """The answer of the turn that answered an exchange."""
    protocol = PROTOCOLS[exchange.played.api or ""]
    request = exchange.request
    if request is None:
        raise RequestError("its request cannot be read any more")
    selection = played_selection(scenario, exchange.played, request)
    if selection is None:
        raise RequestError(
            "no turn of the scenario answered it, or the scenario is another one now"
        )
    spec = played_turn(scenario, exchange.played)
    tries = len(spec.attempts) + 1 if spec is not None else 1
    return turn_answer(
        selection.scenario,
        selection.position,
        protocol,
        replace(request, stream=exchange.played.stream),
        attempt=min(exchange.played.attempt, tries),
        quirks=quirks,
    )


# Quirks


def _quirks(exchange: Exchange, answer: HttpAnswer, scenario: Scenario | None) -> dict[int, str]:
    """By the number of a part, the quirks that made it: those parts that the same answer without
    quirks does not have."""
    names = exchange.played.quirks
    if scenario is None or exchange.played.position is None or len(answer.data) > _MOST_COMPARED:
        return {}
    spec = played_turn(scenario, exchange.played)
    names += () if spec is None or spec.wire is None else spec.wire.quirks
    if not names or not answer.streamed or exchange.body_size is not None:
        return {}
    turns = tuple(turn.with_each(_without_quirks) for turn in scenario.turns)
    try:
        plain = _made_again(exchange, replace(scenario, turns=turns), ())
    except MockLLMError:  # the scenario is another one now
        return {}
    label = ", ".join(dict.fromkeys(names))
    return dict.fromkeys(_only_in(answer.data, plain.data), label)


def _without_quirks(turn: TurnSpec) -> TurnSpec:
    return turn if turn.wire is None else replace(turn, wire=replace(turn.wire, quirks=()))


def _only_in(parts: Iterable[bytes], others: Iterable[bytes]) -> list[int]:
    matcher = SequenceMatcher(None, list(parts), list(others), autojunk=False)
    numbers: list[int] = []
    for kind, begin, end, _, _ in matcher.get_opcodes():
        if kind != "equal":
            numbers += range(begin, end)
    return numbers


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
    content_type = dict(answer.headers).get("content-type", "")
    read = answer.streamed and answer.status < 300
    reading = _Reading(protocol if read else None, content_type)
    parts, offset = [], 0
    for number, (data, text, at, sent_at) in enumerate(
        zip_longest(answer.data, readable(answer.data), shown.due, shown.sent_at)
    ):
        if number >= _MOST_PARTS or offset + len(data) > _MOST_BYTES:
            break
        parts.append(
            {
                "at": at,
                "left": sent_at,
                "size": len(data),
                "offset": offset,
                "lines": _lines(text),
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
    lines = [[_piece(piece) for piece in line] for line in visible_lines([data])]
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

    def __init__(self, protocol: WireProtocol | None, content_type: str) -> None:
        self._frames: FrameDecoder | None = None
        self._decoder: Decoder | None = None
        if protocol is not None:
            self._frames = (carrier_of(content_type, protocol.carriers) or protocol.usual).decoder()
            self._decoder = protocol.decoder()
        self.events: list[ev.Event] = []
        self.problems: list[str] = []

    def feed(self, data: bytes) -> list[ev.Event]:
        """The events in the next bytes; none after bytes that cannot be decoded."""
        if self._frames is None or self._decoder is None:
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
        """The turn that all events add up to; None where they contradict each other."""
        if self._decoder is None and not self.events:
            return None
        try:
            rest: list[ev.Event] = []
            if self._decoder is not None and self._frames is not None:
                for frame in self._frames.close():
                    rest += self._decoder.decode(frame)
                rest += self._decoder.close()
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
    return {"id": call.id or "", "name": call.name, "arguments": shorten(call.arguments, _LONGEST)}


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
