"""The differences between recordings and the live services' answers to the same requests. Pure.

Shapes are compared, not words. What two calls of an unchanged service may differ in is no drift: a
field that is null or has a value, one that only some answers have, a text in place of a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from mockllm.conformance.drift.answers import BEGIN, END, AnswerShape
from mockllm.conformance.drift.encoder_shapes import NOTHING_KNOWN, KnownShape, known_shape
from mockllm.conformance.drift.shapes import (
    NULL,
    JsonPlace,
    Shape,
    missing_fields,
    retyped_fields,
    unknown_fields,
    unknown_kinds,
    untyped_objects,
)
from mockllm.conformance.drift.witness import is_known, is_known_finish, witness
from mockllm.core.record import record
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol

FindingKind = Literal[
    "status",
    "unreadable",
    "content-type",
    "form",
    "header-removed",
    "added",
    "removed",
    "retyped",
    "event-added",
    "event-removed",
    "finish",
    "order",
]


@record
class Group:
    """Recordings whose answers have one shape: those of one service, model and form.

    Args:
        api: the name of the API; "" for a route that calls no model.
        route: such as `POST /v1/embeddings`.
        error: whether the answer is an HTTP error.
    """

    api: str
    host: str
    route: str
    model: str
    streamed: bool
    error: bool

    @property
    def protocol(self) -> WireProtocol | None:
        """The API; None for a route."""
        return PROTOCOLS[self.api] if self.api else None

    @property
    def known(self) -> KnownShape:
        """The shape that mockllm itself sends in this form."""
        if not self.api or self.error:
            return NOTHING_KNOWN
        return known_shape(self.api, streamed=self.streamed)


@record
class DriftDifference:
    """One difference between a recording and an answer.

    Args:
        place: the field, event, or header; the field is without indexes.
        detail: what was, and what is.
    """

    kind: FindingKind
    place: str
    detail: str
    field: JsonPlace | None = None


@record
class DriftFinding:
    """A difference that answers of a group have.

    Args:
        answers: the names of the recordings whose answers have it.
        compared: of how many.
        witness: what the SDK's types say of it; "" where there is none.
    """

    group: Group
    difference: DriftDifference
    answers: tuple[str, ...]
    compared: int
    witness: str = ""


@dataclass(slots=True)
class _Pool:
    """All recordings of a group."""

    shape: Shape = field(default_factory=Shape)
    headers: set[str] | None = None
    events: set[str] = field(default_factory=set)
    always: set[str] | None = None
    steps: set[tuple[str, str]] = field(default_factory=set)
    finishes: set[str | None] = field(default_factory=set)

    def add(self, answer: AnswerShape) -> None:
        self.shape.merge(answer.shape)
        events = set(answer.events)
        self.headers = (
            set(answer.headers) if self.headers is None else self.headers & answer.headers
        )
        self.always = events if self.always is None else self.always & events
        self.events |= events
        self.steps |= answer.steps
        self.finishes.add(answer.finish_raw)


class Comparison:
    """Compares answers with the recordings of their groups.

    Args:
        recordings: all recordings, whether they are sent again or not.
    """

    def __init__(self, recordings: Iterable[tuple[Group, AnswerShape]]) -> None:
        self._pools: dict[Group, _Pool] = {}
        self._found: dict[tuple[Group, DriftDifference], list[str]] = {}
        self._compared: dict[Group, int] = {}
        self.otherwise: dict[str, str] = {}
        """What the model answered otherwise, and how, by the name of the recording."""
        self.chance = 0
        """How many fields differed that not every answer has."""
        for group, answer in recordings:
            self._pools.setdefault(group, _Pool()).add(answer)

    @property
    def compared(self) -> int:
        """The number of compared answers."""
        return sum(self._compared.values())

    def add(
        self, name: str, group: Group, before: AnswerShape, after: AnswerShape, error: str = ""
    ) -> bool:
        """Compares an answer with its recording; whether anything has drifted.

        Args:
            error: what the answer says, if it is an HTTP error.
        """
        self._compared[group] = self._compared.get(group, 0) + 1
        differences = dict.fromkeys(self._differences(name, group, before, after, error))
        for difference in differences:
            self._found.setdefault((group, difference), []).append(name)
        return bool(differences)

    def findings(self) -> tuple[DriftFinding, ...]:
        """All differences, those of a group together."""
        order = {group: number for number, group in enumerate(self._compared)}
        found = [
            DriftFinding(group, difference, tuple(names), self._compared[group])
            for (group, difference), names in self._found.items()
        ]
        found.sort(key=lambda finding: order[finding.group])
        return tuple(map(_with_witness, found))

    def _differences(
        self, name: str, group: Group, before: AnswerShape, after: AnswerShape, error: str
    ) -> Iterator[DriftDifference]:
        pool, known = self._pools[group], group.known
        if before.status != after.status:
            said = f": {error}" if error else ""
            yield DriftDifference("status", "status", f"{before.status}, now {after.status}{said}")
        if (before.status >= 400) != (after.status >= 400):
            return
        if before.content_type != after.content_type:
            detail = f"{before.content_type or 'none'}, now {after.content_type or 'none'}"
            yield DriftDifference("content-type", "content-type", detail)
        known_headers = filter(_READ_BY_CLIENTS.search, known.headers - after.headers)
        for header in sorted((pool.headers or set()).intersection(known_headers)):
            yield DriftDifference("header-removed", header, "is not sent any more")
        if bool(before.events) != bool(after.events):
            forms = ("a body", "a stream") if after.events else ("a stream", "no events")
            yield DriftDifference("form", "answer", f"{forms[0]}, now {forms[1]}")
            return
        if after.problem and not before.problem:
            yield DriftDifference("unreadable", "answer", after.problem)
        same = _is_same_choice(before, after)
        if not same:
            self.otherwise[name] = f"{before.choice}; now {after.choice}"
        for found in self._fields(pool.shape, known, after.shape, same_choice=same):
            if self._is_known_null(group, found, after.shape):
                self.chance += 1
            else:
                yield found
        yield from _finish(pool, group, after)
        if after.events:
            yield from _events(pool, known, after, same_choice=same)

    def _is_known_null(self, group: Group, found: DriftDifference, after: Shape) -> bool:
        """Whether a field is new and null, and the SDK knows it: a service may state that there is
        nothing."""
        if found.kind != "added" or found.field is None or group.protocol is None:
            return False
        shape = after.fields.get(found.field)
        is_null = shape is not None and shape.types <= NULL
        known = is_null and is_known(group.protocol, found.field, streamed=group.streamed)
        return bool(known) and not group.error

    def _fields(
        self, pool: Shape, known: KnownShape, after: Shape, *, same_choice: bool
    ) -> Iterator[DriftDifference]:
        for place in unknown_fields(pool, after):
            expected = known.is_chance(place) if same_choice else place in known.played.fields
            if expected:
                self.chance += 1
            else:
                yield DriftDifference("added", str(place), _types(after, place), place)
        for place in unknown_kinds(pool, after):
            if place in known.played.objects:
                self.chance += 1
            else:
                yield DriftDifference("added", str(place), "a type of object", place)
        for place in missing_fields(pool, after) if same_choice else ():
            if known.is_chance(place):
                self.chance += 1
            else:
                yield DriftDifference("removed", str(place), _types(pool, place), place)
        for place in untyped_objects(pool, after) if same_choice else ():
            yield DriftDifference("removed", str(place), "string", place)
        for place in retyped_fields(pool, after):
            types = known.played.fields[place].types if place in known.played.fields else set()
            if not after.fields[place].types <= pool.fields[place].types | types | NULL:
                detail = f"{_types(pool, place)}, now {_types(after, place)}"
                yield DriftDifference("retyped", str(place), detail, place)


def _finish(pool: _Pool, group: Group, after: AnswerShape) -> Iterator[DriftDifference]:
    """A finish reason that neither the recordings, nor mockllm, nor the SDK know."""
    value, protocol = after.finish_raw, group.protocol
    if value is None or protocol is None or value in pool.finishes | group.known.finishes:
        return
    if not is_known_finish(protocol, value, streamed=group.streamed):
        yield DriftDifference("finish", "finish reason", f"{value}, which nobody knows")


_READ_BY_CLIENTS = re.compile(r"ratelimit|request-?id|retry-after|organization|project|-version$")
"""Of the headers that mockllm knows, those that are not of the way to the client."""


def _is_same_choice(before: AnswerShape, after: AnswerShape) -> bool:
    """Whether answers can be compared whole. One with no part at all is no free choice."""
    nothing = after.choice is not None and not after.choice.parts
    return nothing or before.choice == after.choice


def _types(shape: Shape, place: JsonPlace) -> str:
    types = shape.fields[place].types
    return " or ".join(sorted(types - NULL) + sorted(types & NULL))


def _events(
    pool: _Pool, known: KnownShape, after: AnswerShape, *, same_choice: bool
) -> Iterator[DriftDifference]:
    seen = set(after.events)
    for event in sorted(seen - pool.events - known.events):
        yield DriftDifference("event-added", event, "is a new type of event")
    if not same_choice:
        return
    gone = sorted((pool.always or set()) - seen)
    for event in gone:
        yield DriftDifference("event-removed", event, "does not come any more")
    if gone:
        return  # what stood beside it has other neighbours
    usual = pool.events | {BEGIN, END}
    for first, second in sorted(after.steps - pool.steps - known.steps):
        if first in usual and second in usual:
            detail = f"now comes after {first}" if second != END else f"now ends with {first}"
            yield DriftDifference("order", second, detail)


def _with_witness(finding: DriftFinding) -> DriftFinding:
    """The finding, with what the SDK's types say of a field or an event."""
    protocol, place = finding.group.protocol, finding.difference.field
    if protocol is None or place is None or finding.group.error:
        return finding
    said = witness(protocol, place, streamed=finding.group.streamed)
    return replace(finding, witness=said)
