"""Routes that call no model: the readers of `route` and `answer`, and the rules for them.

A scenario with a `route` has `answer` in its turns, and no key that needs a conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from mockllm.core.text import did_you_mean
from mockllm.scenario import model as m
from mockllm.scenario.reading.conditions import sent_headers
from mockllm.scenario.reading.files import body_path
from mockllm.scenario.reading.nodes import KeyPath, Mapping, Node
from mockllm.scenario.reading.tables import FIELDS, inner_path, path_of_file, table
from mockllm.scenario.reading.values import Findings, json_value, readable_fields, text
from mockllm.scenario.route_model import RouteAnswer, RouteSpec

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
"""The methods of routes. The server itself answers OPTIONS, for pages in a browser."""

_Body = Literal["json", "text", "base64", "file"]
BODIES: tuple[_Body, ...] = ("json", "text", "base64", "file")
"""The keys of `answer` that hold a body."""

_HOST = r"(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?"
_PATH = r"/(?:(?![?#{}])[!-~]|\{[A-Za-z_][A-Za-z0-9_]*\})*"
_NAME = r"\{(\w+)\}"
_OWN = r"/_mockllm/|/s/[^/]+/"
_EXAMPLE = "a method and a path, such as POST /v1/embeddings"

_FRAMING = frozenset(
    ("content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "trailer")
)
"""Headers of the connection, which the server makes."""

_NO_BODY = (204, 304)


def is_path(path: str) -> bool:
    """Whether a route can have a path."""
    return bool(re.fullmatch(_PATH, path)) and not re.match(_OWN, path)


def is_host(host: str) -> bool:
    """Whether a route can have a host."""
    return re.fullmatch(_HOST, host) is not None


def route(node: Node, findings: Findings) -> RouteSpec | None:
    """`METHOD /path` or `METHOD host/path`, with `{name}` for one segment and `*` for any text."""
    value = text(node, findings)
    if value is None:
        return None
    method, _, target = value.partition(" ")
    host, slash, path = target.partition("/")
    path = slash + path
    if method not in METHODS:
        hint = did_you_mean(method.upper(), METHODS, f"methods: {', '.join(METHODS)}")
        findings.must_be(node, _EXAMPLE, f"; {hint}")
    elif not re.fullmatch(_PATH, path) or (host and not is_host(host)):
        hint = "; in the path, {name} is one segment and * is any text"
        if "://" in target:
            hint = "; a host is written without its scheme: GET api.example.com/v1/models"
        elif "?" in path:
            hint = "; a query is a condition: match: {query: {name: value}}"
        findings.must_be(node, _EXAMPLE, hint)
    elif re.match(_OWN, path):
        findings.add(node, "is a path of mockllm itself: /_mockllm/... and /s/SESSION/...")
    else:
        return RouteSpec(method, path, host)
    return None


_ANSWER = table(
    "answer",
    headers=sent_headers,
    json=json_value,
    base64="base64 text",
    file=inner_path,
)


def answer(node: Node, findings: Findings) -> RouteAnswer | None:
    """Status, headers and at most one body."""
    before = len(findings.found)
    values = readable_fields(node, findings, _ANSWER)
    if values is None or not isinstance(node, Mapping):
        return None
    bodies = [key for key in BODIES if key in node.entries]
    if len(bodies) > 1:
        findings.add(node, f"must have one body, got {' and '.join(bodies)}")
    if len(findings.found) > before:
        return None
    kind: _Body | Literal[""] = bodies[0] if bodies else ""
    value = values.pop(kind, None)  # null is a JSON value
    path = None
    if kind == "file":
        advice = "put the body of the answer there"
        path = path_of_file(value, node.entries[kind], findings, body_path, advice)
    return RouteAnswer(**values, kind=kind, value=value, path=path)


# Rules between values


def check_route(scenario: m.Scenario) -> Iterator[tuple[KeyPath, str]]:
    """The mistakes of a scenario that concern `route` and `answer`."""
    if scenario.route is None:
        yield from _check_conversation(scenario)
        return
    names = re.findall(_NAME, scenario.route.path)
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield ("route",), f"has {{{name}}} twice; each segment needs a name of its own"
    for key in _changed_keys(scenario, m.Scenario("", ()), _OF_SCENARIOS):
        yield (key,), "has no meaning with a 'route', which calls no model; remove it"
    if scenario.restart and scenario.socket:
        yield ("then",), "has no meaning for the sessions of a WebSocket; remove it"
    for place, match in m.with_entries(scenario.match or m.Match()):
        for key in _changed_keys(match, m.Match(), _OF_MATCHES):
            yield (
                ("match", *place, key),
                (
                    "needs a conversation, and a 'route' has none; its conditions are model, "
                    "headers, query and body"
                ),
            )
    for index, turn in enumerate(scenario.turns):
        yield from _check_turn(("turns", index), turn)


def _check_conversation(scenario: m.Scenario) -> Iterator[tuple[KeyPath, str]]:
    for index, turn in enumerate(scenario.turns):
        if turn.answer is not None:
            message = "needs a 'route: METHOD /path' in its scenario; a model's turn has a 'reply'"
            yield ("turns", index, "answer"), message


# The keys that need a conversation.
_OF_SCENARIOS = ("apis", "tools", "seed", "defaults", "obey", "ids")
_OF_MATCHES = ("user", "user_files", "system", "tools", "stream")
_OF_TURNS = (
    *("request", "finish", "finish_raw", "stop_sequence", "usage", "obey", "attempts", "wire"),
    *("service_tier", "fingerprint", "choices", "expect", "when", "extra", "fault"),
    *("name", "go_to", "times", "one_of", "headers", "hears", "speech"),
)


def _changed_keys(written: Any, empty: Any, keys: tuple[str, ...]) -> Iterator[str]:
    """The keys whose fields differ from those of an empty scenario, match or turn."""
    fields = FIELDS["scenario"] | FIELDS["turn"]
    for key in keys:
        field = fields.get(key, key)
        if getattr(written, field) != getattr(empty, field):
            yield key


def _check_turn(path: KeyPath, turn: m.TurnSpec) -> Iterator[tuple[KeyPath, str]]:
    if turn.reply and turn.answer is None:
        yield (*path, "reply"), "must be an 'answer': a route calls no model"
    if turn.http is not None and turn.answer is None:
        message = f"must be an 'answer: {{status: {turn.http.status}}}': a route has no API"
        yield (*path, "http"), message
    for key in _changed_keys(turn, m.TurnSpec(), _OF_TURNS):
        yield (*path, key), "has no meaning in a turn of a route; remove it"
    if turn.repeat:
        yield (
            (*path, "repeat"),
            (
                "is not needed: the last turn of a route stays; 'then: restart' of the scenario "
                "begins with the first again"
            ),
        )
    if turn.timing is not None and turn.timing != _usable(turn, turn.timing):
        keys = "ttft: its answer is not a stream"
        keys = "ttft, every and at" if turn.client or turn.service else keys
        yield (*path, "timing"), f"of a route has no key but {keys}"
    if turn.answer is not None:
        yield from check_answer((*path, "answer"), turn.answer)


def _usable(turn: m.TurnSpec, timing: m.Timing) -> m.Timing:
    """The part of the timing that a route has."""
    if turn.client or turn.service:
        return m.Timing(ttft=timing.ttft, every=timing.every, at=timing.at)
    return m.Timing(ttft=timing.ttft)


def check_answer(path: KeyPath, answer: RouteAnswer) -> Iterator[tuple[KeyPath, str]]:
    """The mistakes of one answer."""
    if answer.status in _NO_BODY and answer.kind:
        yield (*path, answer.kind), f"is a body, and an answer with status {answer.status} has none"
    for name, _ in answer.headers:
        if name in _FRAMING:
            yield (*path, "headers", name), "is a header that the server makes; remove it"
