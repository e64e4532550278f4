"""The shape of an answer: status, headers, fields, and the order of its events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from mockllm.conformance.drift.shapes import Shape
from mockllm.core.errors import MockLLMError
from mockllm.core.events import Frame
from mockllm.core.record import record
from mockllm.core.turn import TokenUsage
from mockllm.play.tapes.captured import Captured
from mockllm.play.tapes.recorded_turn import answer_carrier, recorded_turn
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.values import json_value

BEGIN, END = "(begin)", "(end)"


@record
class FreeChoice:
    """The choice of the model among ways to answer: two answers with different choices differ
    rightly.

    Args:
        parts: the kinds of parts, as `Text` and `ToolCall`.
        finish: the finish reason.
    """

    parts: frozenset[str] = frozenset()
    finish: str | None = None

    def __str__(self) -> str:
        return f"{' and '.join(sorted(self.parts)) or 'nothing'}, finish {self.finish}"


@record
class AnswerShape:
    """The shape of one answer.

    Args:
        headers: their names.
        events: the types of its events, in order, runs of one type as one; () for a body.
        problem: why it cannot be decoded; "" where it can.
        usage: the tokens that it counts.
        finish_raw: its finish reason on the wire, if that is not the usual one of the API.
    """

    status: int
    content_type: str
    headers: frozenset[str]
    shape: Shape
    events: tuple[str, ...] = ()
    choice: FreeChoice | None = None
    problem: str = ""
    usage: TokenUsage | None = None
    finish_raw: str | None = None

    @property
    def steps(self) -> frozenset[tuple[str, str]]:
        """Which type of event follows which."""
        whole = (BEGIN, *self.events, END) if self.events else ()
        return frozenset(pairwise(whole))


def answer_shape(
    exchange: Captured, protocol: WireProtocol | None, *, streamed: bool
) -> AnswerShape:
    """The shape of an exchange's answer.

    Raises:
        WireError: it cannot be decompressed.
    """
    plain = exchange.plain()
    content_type = plain.header("content-type").partition(";")[0].strip().lower()
    names = frozenset(name for name, _ in plain.headers)
    free = () if protocol is None else protocol.fields.arguments | protocol.fields.fragments
    shape = Shape(free)
    if protocol is None or plain.status >= 400:
        value = json_value(plain.body.decode("utf-8", "replace"))
        if value is not None:
            shape.add(value)
        return AnswerShape(plain.status, content_type, names, shape)
    turn = recorded_turn(plain, protocol, streamed=streamed)
    parts = frozenset(type(part).__name__ for part in turn.turn.parts)
    choice = FreeChoice(parts, turn.turn.finish)
    carrier = answer_carrier(plain, protocol, streamed=streamed)
    if carrier is None:
        shape.add(json_value(plain.body.decode("utf-8", "replace")))
        events: tuple[str, ...] = ()
    else:
        frames = carrier.readable(plain.body)
        events = tuple(_runs_as_one(_labels(frames, protocol, shape)))
    return AnswerShape(
        plain.status,
        content_type,
        names,
        shape,
        events,
        choice,
        turn.problem,
        turn.turn.usage,
        turn.turn.finish_raw,
    )


def _type_of(value: Any, event: str | None) -> str:
    named = value.get("type") if isinstance(value, dict) else None
    return named if isinstance(named, str) else event or ""


def _labels(frames: Sequence[Frame], protocol: WireProtocol, shape: Shape) -> Iterator[str]:
    """The types of events; adds their values to the shape. Events without a type have those of
    what they say: a text, the beginning of a call."""
    decoder = protocol.decoder()
    decodes = True
    for frame in frames:
        if frame.data is None:
            continue
        value = json_value(frame.data)
        label = _type_of(value, frame.event)
        if label in protocol.normalize.keepalive:
            continue
        if value is not None:
            shape.add(value, label)
        meanings: list[str] = []
        if decodes:
            try:
                meanings = [type(event).__name__ for event in decoder.decode(frame)]
            except (MockLLMError, ValueError):
                decodes = False  # `problem` has it
        if label:
            yield label
        elif value is None:
            yield frame.data  # the end marker of a stream
        else:
            yield from meanings


def _runs_as_one(labels: Iterable[str]) -> Iterator[str]:
    last = None
    for label in labels:
        if label != last:
            yield label
        last = label
