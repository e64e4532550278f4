"""Differences of a request from the one that a recording was made from, in lines for people.

    messages[0].content: "Be kind." → "Be evil."
    tools: + drop_table, - get_weather
    temperature: 0 → 1.9

The order of fields does not count, nor null against no field, nor what a recording ignores or
hides. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from mockllm.core.errors import MockLLMError
from mockllm.core.jsontext import compact
from mockllm.core.request import Request
from mockllm.core.text import common_length, shorten
from mockllm.play.matching.hidden import meets_hidden
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.tapes.captured import Captured, detect_api, request_of
from mockllm.scenario.ignoring import normal_value
from mockllm.scenario.model import Ignored
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.values import json_value

_MADE_UP: Ignored = ("uuid",)
"""Values that clients make up anew for each run; digests leave them out, too."""

MOST_CHANGES = 20
"""Further changes of one request are counted."""

_SHOWN = 60
"""Characters of a value."""

_BEFORE = 15
"""Characters that are shown before the first difference of long texts."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOTHING: Any = object()
"""In place of a value that one of the requests does not have."""


def changes_of_call(
    exchange: Captured, request: Request, body: bytes, ignore: Ignored
) -> tuple[str, ...]:
    """The differences of a request for an answer of a model from the recorded one.

    Args:
        exchange: the recorded one.
        body: of the request, as it came.
        ignore: that of the recording.
    """
    if not exchange.method or (exchange.request_body == body and "model" in request.body):
        return ()
    found = detect_api(exchange)
    if found.protocol is None:
        return ()
    try:
        before = request_of(exchange.plain_request(), found)
    except MockLLMError:  # a tape that somebody has changed
        return ()
    old, new = ({"model": each.model, **each.body} for each in (before, request))
    unimportant = frozenset(PROTOCOLS[request.api].client.usage)
    return request_changes(old, new, (*ignore, *_MADE_UP), unimportant)


def changes_of_route(exchange: Captured, request: RouteRequest, ignore: Ignored) -> tuple[str, ...]:
    """The differences of a request that calls no model from the recorded one."""
    before = RouteRequest.of_exchange(exchange)
    if not exchange.method or (before.body, before.query) == (request.body, request.query):
        return ()
    before = RouteRequest.of_exchange(exchange.plain_request())
    old, new = map(_route_value, (before, request))
    return request_changes(old, new, (*ignore, *_MADE_UP))


def _route_value(request: RouteRequest) -> Any:
    body = request.fields
    if body is None and request.body:
        body = f"{len(request.body)} bytes, {blake2b(request.body, digest_size=4).hexdigest()}"
    return {"query": dict(request.parameters), "body": body}


def request_changes(
    recorded: Any, sent: Any, ignore: Ignored = (), unimportant: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """The differences between two requests, each with its path; none where they ask for the same.

    Args:
        recorded: a JSON value, with placeholders for what a recording hides.
        sent: the JSON value of the request that got the recording.
        ignore: that of the recording.
        unimportant: names of fields at the top that versions of SDKs add and leave out.
    """
    try:
        sides = (normal_value(ignore, value) for value in (recorded, sent))
        changes = list(_changes("", *(_without(side, unimportant) for side in sides)))
    except RecursionError:  # JSON may be as deep as it can be read
        return ("body: it is nested too deeply to be compared",)
    if len(changes) <= MOST_CHANGES:
        return tuple(changes)
    return (*changes[:MOST_CHANGES], f"and {len(changes) - MOST_CHANGES} more")


def _without(value: Any, names: frozenset[str]) -> Any:
    if not isinstance(value, dict) or not names & value.keys():
        return value
    return {name: item for name, item in value.items() if name not in names}


def _changes(path: str, recorded: Any, sent: Any) -> Iterator[str]:
    if _is_same(recorded, sent):
        return
    match recorded, sent:
        case str(), str():
            yield from _text_changes(path, recorded, sent)
        case Mapping(), Mapping():
            for key in dict.fromkeys((*recorded, *sent)):
                step = key if _PLAIN.fullmatch(key) else f"[{compact(key)}]"
                inner = f"{path}.{step}" if path and step[0] != "[" else f"{path}{step}"
                yield from _changes(inner, *(_field(side, key) for side in (recorded, sent)))
        case list(), list():
            yield from _list_changes(path, recorded, sent)
        case _:
            yield _line(path, recorded, sent)


def _field(value: Mapping[str, Any], name: str) -> Any:
    """The value of a field; null is no value."""
    item = value.get(name)
    return _NOTHING if item is None else item


def _is_same(recorded: Any, sent: Any) -> bool:
    """Whether two values are equal, and of one JSON type: `1` is not `true`."""
    if isinstance(recorded, bool) or isinstance(sent, bool):
        return recorded is sent
    return bool(recorded == sent) and not isinstance(recorded, Mapping | list)


def _text_changes(path: str, recorded: str, sent: str) -> Iterator[str]:
    """Of two texts that hold JSON, as arguments do, the changes inside."""
    if meets_hidden(recorded, sent):
        return
    if recorded[:1] in ("{", "[") and sent[:1] == recorded[:1]:
        inside = [json_value(side.encode("utf-8", "surrogatepass")) for side in (recorded, sent)]
        if None not in inside:
            yield from _changes(path, *inside)
            return
    yield _line(path, recorded, sent)


def _list_changes(path: str, recorded: Sequence[Any], sent: Sequence[Any]) -> Iterator[str]:
    before, after = _names(recorded), _names(sent)
    if not before or not after:
        for index in range(max(len(recorded), len(sent))):
            pair = (side[index] if index < len(side) else _NOTHING for side in (recorded, sent))
            yield from _changes(f"{path}[{index}]", *pair)
        return
    changed = [f"+ {name}" for name in after if name not in before]
    changed += [f"- {name}" for name in before if name not in after]
    if changed:
        yield f"{path}: {', '.join(changed)}"
    for name, item in before.items():
        if name in after:
            yield from _changes(f"{path}.{name}", item, after[name])


def _names(items: Sequence[Any]) -> dict[str, Any] | None:
    """Items by their names, as tools have them; None where any has none, or two have one."""
    named: dict[str, Any] = {}
    for item in items:
        name = _name(item)
        if name is None or name in named:
            return None
        named[name] = item
    return named


def _name(item: Any) -> str | None:
    """The name of a tool: its own, or that of the only object in it."""
    if not isinstance(item, Mapping) or "role" in item:
        return None
    inner = [value for value in item.values() if isinstance(value, Mapping)]
    names = [value.get("name") for value in (item, *inner)]
    return next((name for name in names if isinstance(name, str)), None)


def _line(path: str, recorded: Any, sent: Any) -> str:
    before, after = (_value_text(value) for value in (recorded, sent))
    if isinstance(recorded, str) and isinstance(sent, str):
        before, after = _from_difference(before, after)
    before, after = (
        shorten(text, _SHOWN, mark=f"… ({len(text)} characters)") for text in (before, after)
    )
    return f"{path or 'body'}: {before} → {after}"


def _value_text(value: Any) -> str:
    return "nothing" if value is _NOTHING else compact(value)


def _from_difference(before: str, after: str) -> tuple[str, str]:
    """Two long texts from shortly before their first difference on."""
    if max(len(before), len(after)) <= _SHOWN:
        return before, after
    start = max(0, common_length(before, after) - _BEFORE)
    return (before, after) if start < 2 else (f"…{before[start:]}", f"…{after[start:]}")
