"""Texts to copy: a scenario's conversation as commands for curl, and as a test with pytest.

Both send what a client of the API sends, so both work as they stand.
"""

from __future__ import annotations

import json
import pprint
import re
import shlex
from contextlib import suppress
from importlib.resources import files
from itertools import islice
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
        return dict.fromkeys(PROTOCOLS, _commands(scenario, None, url))
    return {
        name: _commands(scenario, protocol, url)
        for name, protocol in PROTOCOLS.items()
        if scenario.plays_over(name)
    }


def _commands(scenario: Scenario, protocol: WireProtocol | None, url: str) -> dict[str, str]:
    fields = "".join(
        f" \\\n  -H {shlex.quote(f'{name}: {value}')}"
        for name, value in _headers(scenario, protocol).items()
    )
    commands = {}
    for index, (method, target, body) in enumerate(_requests(scenario, protocol)):
        data = "" if body is None else f" \\\n  -d {shlex.quote(json.dumps(body))}"
        command = f"curl -sN -X {method} {shlex.quote(url + target)}{fields}{data}"
        if len(command) > _LONGEST:
            command = f"# The command has {len(command):,} characters, too many for a shell."
        commands[str(index)] = command
    return commands


_Sent = tuple[str, str, Any]
"""Method, target and body of a request; None: without a body."""


def _headers(scenario: Scenario, protocol: WireProtocol | None) -> dict[str, str]:
    own = {} if protocol is None else protocol.client.headers
    return {"content-type": "application/json", **own, SCENARIO_HEADER: scenario.name}


def _requests(scenario: Scenario, protocol: WireProtocol | None) -> list[_Sent]:
    """What a client sends for the turns, as far as that is known."""
    if scenario.route is not None:
        return [_route_request(scenario, scenario.route)] * len(scenario.turns)
    requests: list[_Sent] = []
    if protocol is not None:
        # It ends early at a turn that cannot be played over the API.
        with suppress(MockLLMError, ValueError):
            for request in islice(client_requests(scenario, protocol), _MOST_TURNS):
                parts = urlsplit(request.url)
                target = parts.path + (f"?{parts.query}" if parts.query else "")
                requests.append(("POST", target, json.loads(request.request_body)))
    return requests


def _route_request(scenario: Scenario, route: RouteSpec) -> _Sent:
    """A request for a route that its conditions hold for."""
    match = scenario.match or Match()
    path = re.sub(r"\{\w+\}|\*", "1", route.path)
    query = {name: _example(condition) for name, condition in match.query}
    return route.method, path + (f"?{urlencode(query)}" if query else ""), match.body


def _example(condition: TextCondition) -> str:
    return "1" if condition.op == "regex" else condition.value


# pytest


def test_text(scenario: Scenario) -> str:
    """A test that has the conversation of a scenario, over the first API that it plays over."""
    protocol = next((api for name, api in PROTOCOLS.items() if scenario.plays_over(name)), None)
    if protocol is None and scenario.route is None:
        return ""
    turns = [turn if protocol is None else turn.for_api(protocol.name) for turn in scenario.turns]
    requests = [
        (*request, _statuses(turn, scenario))
        for request, turn in zip(_requests(scenario, protocol), turns, strict=False)
    ]
    template = (files("mockllm.ui") / "copied_test.txt").read_text("utf-8")
    return template.format(
        given=_given(scenario),
        headers=_literal(_headers(scenario, protocol)),
        requests=_literal(requests),
        name=scenario.name.replace("-", "_"),
    )


def _given(scenario: Scenario) -> str:
    if not scenario.file:
        return f"(SCENARIO,) = loads({_literal(dump(scenario))})"
    file = str(Path(scenario.file).absolute())
    chosen = f"(SCENARIO,) = [one for one in load(FILE) if one.name == {scenario.name!r}]"
    return f"FILE = {file!r}\n{chosen}"


def _statuses(turn: TurnSpec, scenario: Scenario) -> list[tuple[int | None, ...]]:
    """For each try of a turn, the statuses that its answer may have; None: a fault breaks it."""
    answers = [answer.answer or answer.http for answer in (*turn.attempts, turn)]
    statuses = [200 if answer is None else answer.status for answer in answers]
    broken = any(inner.fault for own in scenario.turns for inner in own.every())
    return [(status, None) if broken else (status,) for status in statuses]


def _literal(value: Any) -> str:
    return pprint.pformat(value, width=92, sort_dicts=False)
