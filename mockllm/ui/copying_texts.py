"""Texts to copy: a scenario's conversation as commands for curl, and as a test with pytest.

Both send what a client of the API sends, so both work as they stand.
"""

from __future__ import annotations

import json
import pprint
import re
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from mockllm.errors import MockLLMError
from mockllm.importers.export import client_requests
from mockllm.matching.index import SCENARIO_HEADER
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Match, RouteSpec, Scenario, TextCondition, TurnSpec
from mockllm.tapes.captured import Captured

_LONGEST = 100_000
"""Characters of a command; no shell takes much longer ones."""

_MOST_TURNS = 50


# curl


def curl_texts(scenario: Scenario, url: str) -> dict[str, dict[str, str]]:
    """For each API, and each turn by its index, the command that gets the turn. Those of a route
    are the same for each.

    The commands name the scenario in a header, so that no other one answers.
    """
    if scenario.route is not None:
        command = _route_command(scenario, scenario.route, url)
        commands = {str(index): command for index in range(len(scenario.turns))}
        return dict.fromkeys(PROTOCOLS, commands)
    return {
        name: {
            str(index): _command(request, scenario, protocol, url)
            for index, request in enumerate(_requests(scenario, protocol))
        }
        for name, protocol in PROTOCOLS.items()
        if scenario.plays_over(name)
    }


def _requests(scenario: Scenario, protocol: WireProtocol) -> list[Captured]:
    """What a client sends for the turns, as far as that is known."""
    requests: list[Captured] = []
    try:
        for request in client_requests(scenario, protocol):
            requests.append(request)
            if len(requests) == _MOST_TURNS:
                break
    except (MockLLMError, ValueError):  # such as a turn that cannot be played over the API
        return requests
    return requests


def _command(request: Captured, scenario: Scenario, protocol: WireProtocol, url: str) -> str:
    body = json.dumps(json.loads(request.request_body))
    headers = {"content-type": "application/json", **protocol.client.headers}
    headers[SCENARIO_HEADER] = scenario.name
    lines = [f"curl -sN {shlex.quote(url + _target(request))}"]
    lines += [f"  -H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items()]
    lines.append(f"  -d {shlex.quote(body)}")
    return _bounded(" \\\n".join(lines))


def _target(request: Captured) -> str:
    parts = urlsplit(request.url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _bounded(command: str) -> str:
    if len(command) <= _LONGEST:
        return command
    return f"# The command has {len(command):,} characters, too many for a shell."


def _route_command(scenario: Scenario, route: RouteSpec, url: str) -> str:
    target, body = _route_request(scenario, route)
    lines = [f"curl -s -X {route.method} {shlex.quote(url + target)}"]
    lines.append(f"  -H {shlex.quote(f'{SCENARIO_HEADER}: {scenario.name}')}")
    if body is not None:
        lines.append("  -H 'content-type: application/json'")
        lines.append(f"  -d {shlex.quote(json.dumps(body))}")
    return _bounded(" \\\n".join(lines))


def _route_request(scenario: Scenario, route: RouteSpec) -> tuple[str, Any]:
    """A target of a route, and a body that its conditions hold for; None: without one."""
    match = scenario.match or Match()
    path = re.sub(r"\{\w+\}|\*", "1", route.path)
    query = {name: _example(condition) for name, condition in match.query}
    return path + (f"?{urlencode(query)}" if query else ""), match.body


def _example(condition: TextCondition) -> str:
    return "1" if condition.op == "regex" else condition.value


# pytest


def test_text(scenario: Scenario) -> str:
    """A test that has the conversation of a scenario, over the first API that it plays over."""
    protocol = next((api for name, api in PROTOCOLS.items() if scenario.plays_over(name)), None)
    if scenario.route is not None:
        requests = _route_requests(scenario, scenario.route)
    elif protocol is not None:
        requests = _api_requests(scenario, protocol)
    else:
        return ""
    headers = {} if protocol is None else protocol.client.headers
    template = (files("mockllm.ui") / "copied_test.txt").read_text("utf-8")
    return template.format(
        given=_given(scenario),
        headers=_literal(
            {"content-type": "application/json", **headers, SCENARIO_HEADER: scenario.name}
        ),
        requests=_literal(requests),
        name=scenario.name.replace("-", "_"),
    )


_Turn = tuple[str, str, Any, list[tuple[int | None, ...]]]


def _given(scenario: Scenario) -> str:
    if not scenario.file:
        return f"(SCENARIO,) = loads({_literal(dump(scenario))})"
    file = str(Path(scenario.file).absolute())
    chosen = f"(SCENARIO,) = [one for one in load(FILE) if one.name == {scenario.name!r}]"
    return f"FILE = {file!r}\n{chosen}"


def _api_requests(scenario: Scenario, protocol: WireProtocol) -> list[_Turn]:
    return [
        ("POST", _target(request), json.loads(request.request_body), _statuses(turn, scenario))
        for request, turn in zip(
            _requests(scenario, protocol),
            [turn.for_api(protocol.name) for turn in scenario.turns],
            strict=False,
        )
    ]


def _route_requests(scenario: Scenario, route: RouteSpec) -> list[_Turn]:
    target, body = _route_request(scenario, route)
    return [(route.method, target, body, _statuses(turn, scenario)) for turn in scenario.turns]


def _statuses(turn: TurnSpec, scenario: Scenario) -> list[tuple[int | None, ...]]:
    """For each try of a turn, the statuses that its answer may have; None: a fault breaks it."""
    tries = [attempt.status if attempt.status >= 400 else 200 for attempt in turn.attempts]
    answer = turn.answer or turn.http
    statuses = [*tries, 200 if answer is None else answer.status]
    broken = any(map(_is_broken, scenario.turns))
    return [(status, None) if broken else (status,) for status in statuses]


def _literal(value: Any) -> str:
    return pprint.pformat(value, width=92, sort_dicts=False)


def _is_broken(turn: TurnSpec) -> bool:
    tries = any(
        attempt.fault or (attempt.reply and attempt.reply.fault) for attempt in turn.attempts
    )
    return bool(turn.fault) or tries or any(_is_broken(variant) for _, variant in turn.variants)
