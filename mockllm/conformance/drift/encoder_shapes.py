"""The knowledge of mockllm about an API: the shape of all that its encoders send for the scenarios
of the kit. Differences that these show, too, are chance. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from mockllm.checking.cases.compile import plain_cases
from mockllm.checking.material import kit_scenarios
from mockllm.conformance.drift.answers import AnswerShape, answer_shape
from mockllm.conformance.drift.shapes import JsonPlace, Shape
from mockllm.core.http import TimedBytes
from mockllm.core.jsontext import json_bytes
from mockllm.core.record import record
from mockllm.play.tapes.captured import Captured
from mockllm.scenario.model import Api
from mockllm.scenario.part_model import frame_apis
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import dumps


@record
class KnownShape:
    """The shape of the answers of an API.

    Args:
        sent: of what the encoders make.
        played: of all that the kit plays: with frames that its scenarios write out.
        finishes: finish reasons that are not the usual ones.
    """

    sent: Shape
    played: Shape
    headers: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()
    steps: frozenset[tuple[str, str]] = frozenset()
    finishes: frozenset[str | None] = frozenset()

    def is_chance(self, place: JsonPlace) -> bool:
        """Whether a field is known that not every answer has."""
        known = place in self.played.fields
        return known and not (place in self.sent.fields and self.sent.is_always(place))


NOTHING_KNOWN = KnownShape(Shape(), Shape())
"""Of a route that no protocol of mockllm has."""


@cache
def known_shape(api: Api, *, streamed: bool) -> KnownShape:
    """The shape that mockllm sends over an API."""
    sent, played = Shape(), Shape()
    headers: set[str] = set()
    events: set[str] = set()
    steps: set[tuple[str, str]] = set()
    finishes: set[str | None] = set()
    for answer, is_encoded in _answers(api, streamed=streamed):
        played.merge(answer.shape)
        headers |= answer.headers
        events |= set(answer.events)
        steps |= answer.steps
        finishes.add(answer.finish_raw)
        if is_encoded:
            sent.merge(answer.shape)
    return KnownShape(
        sent,
        played,
        frozenset(headers),
        frozenset(events),
        frozenset(steps),
        frozenset(finishes),
    )


def _answers(api: Api, *, streamed: bool) -> Iterator[tuple[AnswerShape, bool]]:
    """The answers to the kit's scenarios, and whether the encoders made all of each."""
    protocol = PROTOCOLS[api]
    for case in plain_cases(kit_scenarios(api), api):
        answer = case.answer
        chunks = tuple(TimedBytes(0, data) for data in answer.data)
        headers = tuple((name.lower(), value) for name, value in answer.headers)
        if not streamed:
            if case.body is None:
                continue
            chunks = (TimedBytes(0, json_bytes(dumps(case.body))),)
            headers = (("content-type", "application/json"), *headers)
        exchange = Captured("", "", (), b"", answer.status, headers, chunks)
        written_out = any(frame_apis(turn.reply) for turn in case.scenario.turns)
        yield answer_shape(exchange, protocol, streamed=streamed), not written_out
