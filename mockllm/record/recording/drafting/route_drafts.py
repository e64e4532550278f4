"""Exchanges that call no model to scenarios with a `route`, and to their turns. Pure."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mockllm.core.errors import WireError
from mockllm.core.http import host_in
from mockllm.core.jsontext import compact, is_in_json
from mockllm.core.text import display
from mockllm.play.matching.fingerprint import is_generated
from mockllm.play.matching.hidden import is_file
from mockllm.play.tapes.captured import CUTS, Captured, Tape
from mockllm.play.tapes.recorded_turn import route_headers
from mockllm.record.recording.drafting.draft import DraftedTurn, Line, Origin, description_of, slug
from mockllm.record.redaction.find.secret_names import name_is_secret
from mockllm.record.redaction.placeholders import wildcards
from mockllm.record.redaction.redact import route_body, route_template
from mockllm.scenario import model as m
from mockllm.scenario.check import text_operators
from mockllm.scenario.reading.routes import is_host, is_path
from mockllm.scenario.route_model import RouteAnswer, RouteSpec
from mockllm.wire.protocols.values import sendable_value, utf8_text

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

_MOST_INLINE = 2048
"""Longer bodies, in characters of JSON or text, get a file of their own."""

_MOST_CONDITION = 1024
"""Longer bodies, in characters of JSON, are no condition of `match`."""

_NOTHING: Any = object()
"""In place of a value of which nothing is a condition."""

_MAX_BRACKETS = 40
"""JSON with more brackets is written as text, and is no condition; YAML has a bound on nesting."""


def route_of(exchange: Captured) -> RouteSpec:
    """The route that an exchange is of.

    Raises:
        WireError: no route can answer as it was answered.
    """
    if exchange.method not in _METHODS:
        raise WireError(f"a {exchange.method} request has no route that can be written")
    if not 200 <= exchange.status <= 599:
        raise WireError(f"HTTP {exchange.status} is no answer")
    return RouteSpec(exchange.method, _template(exchange), _host(exchange))


def _template(exchange: Captured) -> str:
    """The path of the route of an exchange."""
    path, _ = route_template(exchange)
    if not is_path(path):
        raise WireError(f"no route has the path {display(path)}")
    return path


def _host(exchange: Captured) -> str:
    """The host of an exchange; "" where it had a secret, or is none that a route can have."""
    host = host_in(exchange.url)
    # A host is in lower case, and then no placeholder is one.
    return host if is_host(host) and wildcards(urlsplit(exchange.url).netloc) is None else ""


def begun_route(
    exchange: Captured, route: RouteSpec, origin: Origin, free_name: Callable[[str], str]
) -> m.Scenario:
    """A scenario for requests that are similar to that of an exchange, without turns."""
    method = exchange.method.lower()
    return m.Scenario(
        name=free_name(slug(origin.stem or f"{method} {route.path}", f"{method}-route")),
        turns=(),
        description=description_of(exchange, origin),
        match=_match(exchange),
        route=route,
    )


def route_line(exchange: Captured, scenario: m.Scenario, order: int) -> Line:
    """The line of the report for an exchange that is the last turn of a scenario."""
    number = len(scenario.turns)
    notes = [f"turn {number} of {scenario.name}", f"{exchange.method} {_template(exchange)}"]
    if exchange.status >= 400:
        notes.append(f"HTTP {exchange.status}")
    if exchange.cut:
        notes.append(CUTS[exchange.cut])
    if order:
        notes.append(f"number {order + 1} of the same request")
    return Line(exchange.source, "neutral", "; ".join(notes), scenario.name, number - 1)


# The request


def _match(exchange: Captured) -> m.Match | None:
    """The conditions on a similar request: the parameters of the query, and what the body says in
    short values."""
    body = _condition(route_body(exchange))
    conditions: dict[str, m.AnyText] = {}
    for name, value in parse_qsl(urlsplit(exchange.url).query, keep_blank_values=True):
        condition = _of_parameter(name, value, dict(exchange.hidden).get(f"?{name}"))
        if condition is not None:
            conditions[name] = condition
    match = m.Match(query=tuple(conditions.items()), body=body or None)
    return match if match.conditions else None


def _of_parameter(name: str, value: str, tag: str | None) -> m.TextCondition | None:
    """The condition on a parameter; None for a credential, which differs from machine to machine.

    Args:
        tag: of a value that is hidden.
    """
    if wildcards(value) is None:
        return m.TextCondition("equals", value)
    if tag is None or name_is_secret(name):
        return None
    return m.TextCondition("hidden", tag)


def _condition(body: Any) -> Any:
    """The part of a body that a request has to have: all of a short one, else its short fields."""
    if not isinstance(body, dict):
        return None
    fields = _stable_part({name: _file_condition(value) for name, value in body.items()})
    if fields is _NOTHING:
        return None
    text = compact(fields)
    if len(text) <= _MOST_CONDITION and _is_shallow(text) and not any(text_operators(fields)):
        return fields
    short = {
        name: value
        for name, value in fields.items()
        if isinstance(value, str | int | float | bool) and len(str(value)) <= _MOST_CONDITION // 8
    }
    return None if any(text_operators(short)) else short


def _file_condition(value: Any) -> Any:
    """Of an uploaded file its name; its content may change."""
    return {"filename": value["filename"]} if is_file(value) else value


def _stable_part(value: Any) -> Any:
    """The part of a value that another run sends, too; `_NOTHING` if there is none."""
    if isinstance(value, dict):
        kept = {name: _stable_part(item) for name, item in value.items()}
        kept = {name: item for name, item in kept.items() if item is not _NOTHING}
        return kept if kept or not value else _NOTHING
    if isinstance(value, list):
        items = [_stable_part(item) for item in value]
        return _NOTHING if _NOTHING in items else items
    return _NOTHING if _changes(value) or not is_in_json(value) else value


def _changes(value: Any) -> bool:
    """Whether a value is a string that another run does not send: it has a secret, or a UUID."""
    return isinstance(value, str) and (wildcards(value) is not None or is_generated(value))


# The answer


def route_turn(scenario: m.Scenario, exchange: Captured, recorded: m.Recorded) -> DraftedTurn:
    """The next turn of a route, with the answer of an exchange."""
    name = f"{scenario.name}.{len(scenario.turns) + 1}"
    answer, content = _body(exchange.body, exchange.header("content-type"), name)
    answer = replace(answer, status=exchange.status, headers=route_headers(exchange))
    spec = m.TurnSpec(answer=answer, recorded=replace(recorded, file=f"{name}.draft"))
    return DraftedTurn(spec, Tape("", False, exchange), content=content)


def _body(body: bytes, kind: str, stem: str) -> tuple[RouteAnswer, bytes | None]:
    """The answer as it is written, and the content of its file, if it has one."""
    if not body:
        return RouteAnswer(), None
    text = utf8_text(body)
    if text is not None and len(text) <= _MOST_INLINE:
        value = _json(text)
        if value is not None:
            return RouteAnswer(kind="json", value=value), None
        return RouteAnswer(kind="text", value=text), None
    if text is None and len(body) <= _MOST_INLINE // 4:
        return RouteAnswer(kind="base64", value=base64.b64encode(body).decode()), None
    file = stem + (_ending(kind) or (".bin" if text is None else ".txt"))
    return RouteAnswer(kind="file", value=file), body


def _json(text: str) -> Any:
    """The JSON object or list; None for another text, or for one that YAML may nest too deeply."""
    value = sendable_value(text)
    return value if isinstance(value, dict | list) and _is_shallow(text) else None


def _is_shallow(text: str) -> bool:
    return text.count("[") + text.count("{") < _MAX_BRACKETS


def _ending(kind: str) -> str:
    """The ending of a file's name, from the content type; never one that is read as a scenario or
    as a tape."""
    ending = mimetypes.guess_extension(kind.partition(";")[0].strip().lower()) or ""
    return ending if re.fullmatch(r"\.[a-z0-9]{1,8}", ending) and ending not in _OTHERS else ""


_OTHERS = (".yaml", ".yml", ".jsonl")
