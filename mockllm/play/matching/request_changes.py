"""Differences of a request from the one that a recording was made from, in lines for people.

    messages[0].content: "Be kind." → "Be evil."
    tools: + drop_table, - get_weather
    temperature: 0 → 1.9

The order of fields and of tools does not count, nor null against no field, nor what a recording
ignores or hides. What cannot be compared is a difference. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qsl

from mockllm.core.errors import MockLLMError, RequestError, WireError
from mockllm.core.http import Target
from mockllm.core.jsontext import compact, parse_object
from mockllm.core.request import Request
from mockllm.core.text import common_length, display, shorten
from mockllm.play.agents.known_agents import has_failed
from mockllm.play.matching.hidden import meets_hidden
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.tapes.captured import Captured, detect_api, request_of
from mockllm.scenario.ignoring import normal_body, normal_value
from mockllm.scenario.model import Ignored
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.records import ClientRequests
from mockllm.wire.protocols.values import json_value

_MADE_UP: Ignored = ("uuid",)
"""Values that clients make up anew for each run; digests leave them out, too."""

MOST_CHANGES = 20
"""Further changes of one request are counted."""

_SHOWN = 60
"""Characters of a value."""

_BEFORE = 15
"""Characters that are shown before the first difference of long texts."""

_SHORTEST_ID = 8
"""Characters of an id that is in no text by accident."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOTHING: Any = object()
"""In place of a value that one of the requests does not have."""


def changes_of_call(
    exchange: Captured, request: Request, target: Target, body: bytes, ignore: Ignored
) -> tuple[str, ...]:
    """The differences of a request for an answer of a model from the recorded one.

    Args:
        exchange: the recorded one.
        target: of the request.
        body: of the request, as it came.
        ignore: that of the recording.
    """
    if not exchange.method:
        return ()
    found = detect_api(exchange)
    if found.protocol is not None and found.protocol.name != request.api:
        return (f"api: {compact(found.protocol.name)} → {compact(request.api)}, not compared",)
    is_there = found.target == target
    if is_there and exchange.request_body == body:
        return ()
    client = PROTOCOLS[request.api].client
    exchange = _without_coding(exchange)
    with suppress(RequestError, RecursionError):
        if is_there and _is_equal(parse_object(exchange.request_body), request.body):
            return ()  # most are, and to compare them in full takes ten times as long
    try:
        if found.protocol is None:
            raise RequestError(found.reason)
        before = request_of(exchange, found)
    except MockLLMError:  # it cannot be read as one, and so its body is compared as it is
        recorded = RouteRequest.of_exchange(exchange)
        sent = RouteRequest(exchange.method, "", "", recorded.headers, body)
        return request_changes(_body_value(recorded), _body_value(sent), ignore, client)
    old, new = (_call_value(side, ignore) for side in (before, request))
    new = _with_ids_of(before, request, new)
    changes = request_changes(old, new, ignore, client)
    return (*_failures(before, request), *changes) if changes else ()


def _failures(before: Request, request: Request) -> Iterator[str]:
    """The results of tools that report a failure, and did not when the request was recorded."""
    for old, new in zip(before.results, request.results, strict=False):
        if has_failed(new, request.agent) and not has_failed(old, before.agent):
            call = new.call_id or new.name
            yield f"the result of {call} is a failure, and was none: {display(new.text)}"


def _call_value(request: Request, ignore: Ignored) -> dict[str, Any]:
    """The body, and the facts that some APIs have in their paths instead."""
    body = normal_body(ignore, request)
    if request.agent and "git" in ignore:
        body = _without_git(body)
    return {"model": request.model, **body, "stream": request.stream}


def _without_git(value: Any) -> Any:
    """A value without the texts of an agent about a git repository: it sends none where the folder
    is in none."""
    if isinstance(value, dict):
        return {name: _without_git(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_git(item) for item in value if not _is_git(item)]
    return value


def _is_git(item: Any) -> bool:
    text = item.get("text") if isinstance(item, dict) else None
    return isinstance(text, str) and "<git>" in text


def _with_ids_of(before: Request, request: Request, value: Any) -> Any:
    """The value of a request with the recorded ids in place of those that were given by mockllm,
    which gives an edited answer others."""
    ids = {
        new: old
        for old, new in zip(_ids(before), _ids(request), strict=False)
        if new != old and len(new) >= _SHORTEST_ID
    }
    if not ids:
        return value
    of_any = re.compile("|".join(map(re.escape, ids)))
    with suppress(RecursionError):  # JSON may be as deep as it can be read
        return json.loads(of_any.sub(lambda new: compact(ids[new[0]])[1:-1], compact(value)))
    return value


def _ids(request: Request) -> list[str]:
    """The earlier answer that a request names, and the calls and items of its history."""
    ids = [request.previous or ""]
    for message in request.messages:
        ids += (*(call.id for call in message.calls), message.call_id, message.ref)
    return ids


def changes_between(exchange: Captured, sent: Captured, ignore: Ignored) -> tuple[str, ...]:
    """The differences of the request of an exchange from that of a recorded one, for either kind of
    request. Where it is sent to is not looked at."""
    found = detect_api(sent)
    if found.protocol is not None:
        with suppress(MockLLMError):  # one that its API refuses is compared as JSON
            request = request_of(sent, found)
            return changes_of_call(exchange, request, found.target, sent.request_body, ignore)
    return changes_of_route(exchange, RouteRequest.of_exchange(sent), ignore)


def changes_of_route(exchange: Captured, request: RouteRequest, ignore: Ignored) -> tuple[str, ...]:
    """The differences of a request that calls no model from the recorded one."""
    before = RouteRequest.of_exchange(exchange)
    if not exchange.method or (before.body, before.query) == (request.body, request.query):
        return ()
    before = RouteRequest.of_exchange(_without_coding(exchange))
    query, body = (
        request_changes(value_of(before), value_of(request), ignore, path=name)
        for name, value_of in (("query", _query_value), ("body", _body_value))
    )
    return (*query, *body)


def _without_coding(exchange: Captured) -> Captured:
    """A recorded exchange whose request is not compressed, or is as it was where that fails."""
    try:
        return exchange.plain_request()
    except WireError:
        return exchange


def _query_value(request: RouteRequest) -> dict[str, Any]:
    """The parameters of a query, each with its text, or its texts where it comes several times."""
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(request.query, keep_blank_values=True):
        query.setdefault(name, []).append(value)
    return {name: texts[0] if len(texts) == 1 else texts for name, texts in query.items()}


def _body_value(request: RouteRequest) -> Any:
    if not request.body:
        return _NOTHING
    if request.fields is not None:
        return request.fields
    return f"{len(request.body)} bytes, {blake2b(request.body, digest_size=4).hexdigest()}"


def request_changes(
    recorded: Any,
    sent: Any,
    ignore: Ignored = (),
    client: ClientRequests | None = None,
    path: str = "",
) -> tuple[str, ...]:
    """The differences between two requests, each with its path; none where they ask for the same.

    Args:
        recorded: a JSON value, with placeholders for what a recording hides.
        sent: the JSON value of the request that got the recording.
        ignore: that of the recording.
        client: the clients of an API, whose SDKs add and leave out some fields at the top, and for
            which the order of tools means nothing.
        path: of the values in their requests.
    """
    try:
        if _is_equal(recorded, sent):
            return ()
        sides = [_comparable(value, client) for value in (recorded, sent)]
        changes = list(
            _changes(path, *(normal_value((*ignore, *_MADE_UP), side) for side in sides))
        )
    except RecursionError:  # JSON may be as deep as it can be read
        return (f"{path or 'body'}: it is nested too deeply to be compared",)
    if len(changes) <= MOST_CHANGES:
        return tuple(changes)
    return (*changes[:MOST_CHANGES], f"and {len(changes) - MOST_CHANGES} more")


def _is_equal(recorded: Any, sent: Any) -> bool:
    """Whether two JSON values are the same but for the order of fields."""
    if type(recorded) is not type(sent):
        return False
    if isinstance(recorded, dict):
        return recorded.keys() == sent.keys() and all(
            _is_equal(item, sent[name]) for name, item in recorded.items()
        )
    if isinstance(recorded, list):
        return len(recorded) == len(sent) and all(map(_is_equal, recorded, sent))
    return bool(recorded == sent)


def _comparable(value: Any, client: ClientRequests | None) -> Any:
    if client is None or not isinstance(value, dict):
        return value
    return {
        name: _in_order(item) if name in client.tool_fields else item
        for name, item in value.items()
        if name not in client.usage
    }


def _in_order(tools: Any) -> Any:
    """A value whose lists of named items are in the order of their names."""
    if isinstance(tools, dict):
        return {name: _in_order(item) for name, item in tools.items()}
    if not isinstance(tools, list):
        return tools
    named = _names(tools)
    return [named[name] for name in sorted(named)] if named else [_in_order(item) for item in tools]


def _changes(path: str, recorded: Any, sent: Any) -> Iterator[str]:
    if _is_same(recorded, sent):
        return
    match recorded, sent:
        case str(), str():
            yield from _text_changes(path, recorded, sent)
        case dict(), dict():
            for key in dict.fromkeys((*recorded, *sent)):
                step = key if _PLAIN.fullmatch(key) else f"[{compact(key)}]"
                inner = f"{path}.{step}" if path and step[0] != "[" else f"{path}{step}"
                yield from _changes(inner, *(_field(side, key) for side in (recorded, sent)))
        case list(), list():
            yield from _list_changes(path, recorded, sent)
        case list() as items, other if other is _NOTHING and _names(items):
            yield from _list_changes(path, items, [])
        case other, list() as items if other is _NOTHING and _names(items):
            yield from _list_changes(path, [], items)
        case _:
            yield _line(path, recorded, sent)


def _field(value: dict[str, Any], name: str) -> Any:
    """The value of a field; null is no value."""
    item = value.get(name)
    return _NOTHING if item is None else item


def _is_same(recorded: Any, sent: Any) -> bool:
    """Whether two values are equal, and of one JSON type: `1` is not `true`."""
    if isinstance(recorded, bool) or isinstance(sent, bool):
        return recorded is sent
    return bool(recorded == sent) and not isinstance(recorded, dict | list)


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
    if before is None or after is None or not (before or after):
        for index in range(max(len(recorded), len(sent))):
            pair = (side[index] if index < len(side) else _NOTHING for side in (recorded, sent))
            yield from _changes(f"{path}[{index}]", *pair)
        return
    changed = [f"+ {name}" for name in after if name not in before]
    changed += [f"- {name}" for name in before if name not in after]
    if changed:
        yield f"{path}: {', '.join(changed)}"
    common = before.keys() & after.keys()
    orders = [[name for name in names if name in common] for names in (before, after)]
    if orders[0] != orders[1]:
        yield f"{path}: {' → '.join(map(', '.join, orders))}"
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
    if not isinstance(item, dict) or "role" in item:
        return None
    inner = [value for value in item.values() if isinstance(value, dict)]
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
