"""Fields that a service adds to its API: `provider`, `x_groq`, `usage.cost`.

No neutral type holds them. A turn has them by *place*, one JSON object for each:

    {"event": {"provider": "P"}, "message": {...}, "call": {...}, "usage": {"cost": 0.1}}

The object of a place is merged into every JSON object there, as it stands. Which places an API has,
in the words of its service, its package says (`Normalisation.places`). `added_fields` finds what a
recorded answer has more than an encoded one, and `with_extra` adds it again. `reasoning` is no
place: it says in which field the service sends its reasoning, `{"field": "content"}`. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mockllm.core.errors import MockLLMError
from mockllm.core.events import Frame
from mockllm.core.turn import Opaque, Turn
from mockllm.wire.protocols.base import WireProtocol, dumps
from mockllm.wire.protocols.decoding import decode_turn
from mockllm.wire.protocols.records import Json, Normalisation, ObjectPlace
from mockllm.wire.protocols.values import json_object, merge

Extra = Mapping[str, Json]

_MOST = 16_000
"""The characters of an extra; what is longer is content, and nothing to read."""

_MOST_BRACKETS = 50
"""YAML may not nest more deeply."""


# The form of a body among the events of a stream


def in_envelope(protocol: WireProtocol, body: Json) -> Json:
    """A body as the events of a stream hold it."""
    envelope = protocol.normalize.envelope
    return {envelope: body} if envelope else body


def answer_in(protocol: WireProtocol, value: Json) -> Json:
    """The inverse of `in_envelope`."""
    envelope = protocol.normalize.envelope
    inner: Json = value[envelope] if envelope else value
    return inner


def extra_places(protocol: WireProtocol) -> tuple[str, ...]:
    """The places of an API at which an extra may have something. The body of an HTTP error is the
    `event` of every API."""
    normal = protocol.normalize
    reasoning = () if normal.reasoning is None else ("reasoning",)
    return tuple(dict.fromkeys(("event", *normal.places, *reasoning)))


# Adding


def with_extra(
    protocol: WireProtocol, frames: Iterable[tuple[int, Frame]], extra: Extra
) -> list[tuple[int, Frame]]:
    """The events of a stream, with the times when they are due, with the fields of an extra."""
    return [(at, _with_fields(protocol, frame, extra)) for at, frame in frames]


def _with_fields(protocol: WireProtocol, frame: Frame, extra: Extra) -> Frame:
    value = json_object(frame.data)
    if value is None:  # a frame of the scenario may be broken on purpose
        return frame
    _merge_places(protocol, value, extra, streamed=True)
    return replace(frame, data=dumps(value))


def with_extra_in_body(protocol: WireProtocol, body: Json, extra: Extra) -> Json:
    """The body of an answer that is not streamed, with the fields of an extra."""
    if not extra:
        return body
    value: Json = json.loads(json.dumps(in_envelope(protocol, body)))
    _merge_places(protocol, value, extra, streamed=False)
    return answer_in(protocol, value)


def _merge_places(protocol: WireProtocol, value: Json, extra: Extra, *, streamed: bool) -> None:
    reasoning = protocol.normalize.reasoning
    if reasoning is not None and "reasoning" in extra:
        for message in objects_at(protocol, "message", [value], streamed=streamed):
            reasoning.move(message, extra["reasoning"]["field"])
    for name, fields in extra.items():
        for target in objects_at(protocol, name, [value], streamed=streamed):
            merge(target, fields)


def objects_at(
    protocol: WireProtocol, place: str, events: Sequence[Json], *, streamed: bool
) -> list[Json]:
    """The objects at a place of an API; none where it has no such place.

    Args:
        events: of a stream, or the bodies of answers in their envelopes.
    """
    known = protocol.normalize.places.get(place)
    return [] if known is None else _objects(known, events, streamed=streamed)


def _objects(place: ObjectPlace, events: Sequence[Json], *, streamed: bool) -> list[Json]:
    paths = [path.split(".") if path else [] for path in _paths(place, streamed=streamed)]
    items = [item for keys in paths for item in _at(events, keys)]
    if place.types:
        return [item for item in items if item.get("type") in place.types]
    return [item for item in items if _begins_call(item)] if place.is_call else items


def _paths(place: ObjectPlace, *, streamed: bool) -> tuple[str, ...]:
    return place.events if streamed else place.body


def _at(objects: Sequence[Json], keys: Sequence[str]) -> Sequence[Json]:
    """The objects at a path of some; a list on the way stands for what is in it."""
    for key in keys:
        objects = _in_lists([item[key] for item in objects if key in item])
    return objects


def _in_lists(values: list[Any]) -> list[Json]:
    """The objects among values, and in lists of them."""
    objects: list[Json] = []
    for value in values:
        if isinstance(value, dict):
            objects.append(value)
        elif isinstance(value, list):
            objects += _in_lists(value)
    return objects


def _begins_call(item: Json) -> bool:
    """Whether an object has the name of a call: later fragments of a call have none."""
    inner = item.get("function")
    return "name" in item or (isinstance(inner, dict) and "name" in inner)


# Finding


def added_fields(
    protocol: WireProtocol,
    turn: Turn,
    encoded: Sequence[Json],
    recorded: Sequence[Json],
    *,
    streamed: bool,
) -> dict[str, Json]:
    """The fields that the service added: those with one value wherever they are.

    Fields whose value changes from event to event, and fields that repeat the content of the turn
    or would change what a client reads, are on the tape alone.

    Args:
        turn: that was read from the recorded events.
        encoded: the events of the turn as the protocol encodes it; a body is one, in its envelope.
        recorded: the events as the service sent them.
        streamed: whether `encoded` are events of a stream.
    """
    texts = frozenset(_texts(turn))
    recorded = [
        event for event in recorded if event.get("type") not in protocol.normalize.keepalive
    ]
    places = protocol.normalize.places.values()
    others = frozenset(path for place in places for path in _paths(place, streamed=streamed))
    added: dict[str, Json] = {}
    known: dict[tuple[str, ...], set[str]] = {}  # the fields that are found, by their paths
    for name, place in protocol.normalize.places.items():
        mine, theirs = (
            _objects(place, events, streamed=streamed) for events in (encoded, recorded)
        )
        if not mine:
            continue  # the protocol does not send it in answer to this request
        always = name == "event" and any("type" in item for item in theirs)
        search = _Search(protocol, texts, others, always=always)
        paths = _paths(place, streamed=streamed)
        # Of two places at one path (an event, the last event) the first has a field.
        earlier = known.setdefault(paths, set())
        found = search.find(mine, theirs, paths[0])
        fields = {key: value for key, value in found.items() if key not in earlier}
        earlier.update(fields)
        if fields:
            added[name] = fields
    field = _reasoning_field(protocol, recorded, streamed=streamed)
    if field and field != _reasoning_field(protocol, encoded, streamed=streamed):
        added["reasoning"] = {"field": field}
    if not added or not _is_short(added):
        return {}
    return _harmless(protocol, encoded, added, streamed=streamed)


def _reasoning_field(
    protocol: WireProtocol, events: Sequence[Json], *, streamed: bool
) -> str | None:
    """The one field that has the reasoning of all messages; None where there is none."""
    reasoning = protocol.normalize.reasoning
    if reasoning is None:
        return None
    messages = objects_at(protocol, "message", events, streamed=streamed)
    fields = {field for message in messages if (field := reasoning.find(message))}
    return fields.pop() if len(fields) == 1 else None


def added_to_error(
    protocol: WireProtocol, encoded: Json, recorded: Json, message: str
) -> dict[str, Json]:
    """The fields that the service added to the body of an HTTP error: they are of `event`.

    Args:
        message: of the error, which is no such field under another name.
    """
    search = _Search(protocol, frozenset((message,)), frozenset(), always=False)
    fields = search.find([encoded], [recorded], "")
    after: Json = json.loads(json.dumps(encoded))
    merge(after, fields)
    read = protocol.decode_error(after)
    if not fields or not _is_short(fields) or read != protocol.decode_error(encoded):
        return {}
    return {"event": fields}


def _is_short(fields: Json) -> bool:
    try:
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return False
    return len(text) <= _MOST and text.count("[") + text.count("{") <= _MOST_BRACKETS


def _texts(turn: Turn) -> Iterator[str]:
    """The texts of a turn, which a service may repeat under another name."""
    for part in turn.parts:
        if not isinstance(part, Opaque):
            yield "".join(part.fragments)
            yield getattr(part, "signature", None) or ""
            yield getattr(part, "output", None) or ""


class _Search:
    """The search for the fields that some objects have more than others.

    Args:
        texts: of the answer; a field with one of them is content.
        others: the paths of all places, each of which has its own fields.
        always: whether a field has to be in each object.
    """

    def __init__(
        self,
        protocol: WireProtocol,
        texts: frozenset[str],
        others: frozenset[str],
        *,
        always: bool,
    ) -> None:
        self._rules = protocol.normalize
        self._texts = texts
        self._others = others
        self._always = always

    def find(self, ours: Sequence[Json], theirs: Sequence[Json], path: str) -> Json:
        """The fields of `theirs` with one value, which `ours` do not have; at a path."""
        fields: Json = {}
        for key in dict.fromkeys(key for item in theirs for key in item):
            inner = f"{path}.{key}" if path else key
            if inner in self._others or is_made_up(self._rules, path, key):
                continue
            values = [item[key] for item in theirs if item.get(key) is not None]
            if not values:
                continue
            if all(isinstance(value, dict) for value in values):
                objects = [item[key] for item in ours if isinstance(item.get(key), dict)]
                if 0 < len(objects) < len(ours):
                    continue  # an error, say: with fields of it every event would have one
                deeper = self.find(objects, values, inner)
                if deeper and (not self._always or len(values) == len(theirs)):
                    fields[key] = deeper
            elif not any(key in item for item in ours) and self._is_constant(values, len(theirs)):
                fields[key] = values[0]
        return fields

    def _is_constant(self, values: Sequence[Any], count: int) -> bool:
        """Whether a field has one value, which is no content. A list that only some objects have is
        content: citations, images, details of reasoning."""
        if (self._always or isinstance(values[0], list)) and len(values) < count:
            return False
        first = values[0]
        if first in ("", 0, []) or any(value != first for value in values[1:]):
            return False
        return not any(text in self._texts or not text.isprintable() for text in _strings(first))


def is_made_up(rules: Normalisation, path: str, key: str) -> bool:
    """Whether a field of an object at a path is none that the service adds."""
    inner = f"{path}.{key}" if path else key
    only = rules.answer_fields.get(path)
    return inner in rules.made_up or (only is not None and key not in only)


def _strings(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, (dict, list)):
            stack += item.values() if isinstance(item, dict) else item


def _harmless(
    protocol: WireProtocol, encoded: Sequence[Json], added: dict[str, Json], *, streamed: bool
) -> dict[str, Json]:
    """The fields that do not change what a client reads: all, or else those that do not alone."""
    wanted = _read(protocol, encoded, {}, streamed=streamed)
    if _read(protocol, encoded, added, streamed=streamed) == wanted:
        return added
    kept: dict[str, Json] = {}
    for name, fields in added.items():
        for key, value in fields.items():
            tried = {**kept, name: {**kept.get(name, {}), key: value}}
            if _read(protocol, encoded, tried, streamed=streamed) == wanted:
                kept = tried
    return kept


def _read(
    protocol: WireProtocol, encoded: Sequence[Json], extra: Extra, *, streamed: bool
) -> Turn | None:
    try:
        if not streamed:
            body = with_extra_in_body(protocol, answer_in(protocol, encoded[0]), extra)
            return protocol.decode_body(body)
        frames = [Frame(dumps(event), event=event.get("type")) for event in encoded]
        if extra:
            frames = [_with_fields(protocol, frame, extra) for frame in frames]
        return decode_turn(protocol, frames)[0]
    except (MockLLMError, ValueError):
        return None
