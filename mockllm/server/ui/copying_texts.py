"""Texts to copy: a scenario's conversation as commands for curl, and as a test with pytest. Pure.

Both send what a client of the API sends, so both work as they stand.
"""

from __future__ import annotations

import json
import pprint
import re
import shlex
from collections.abc import Mapping, Sequence
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

__all__ = ["curl_texts", "test_text"]

_LONGEST = 100_000
"""Characters of a command; no shell takes much longer ones."""

_MOST_TURNS = 50


# curl


def curl_texts(scenario: Scenario, url: str) -> dict[str, dict[str, str]]:
    """For each API, and each turn by its index, the command that gets the turn. Those of a route
    are the same for each.

    The commands name the scenario in a header, so that no other one answers.

    Args:
        url: of the server, without a slash at its end.
    """
    if scenario.route is not None:
        command = _route_command(scenario, scenario.route, url)
        commands = {str(index): command for index in range(len(scenario.turns))}
        return dict.fromkeys(PROTOCOLS, commands)
    return {
        name: {
            str(index): _command(one, scenario, protocol, url)
            for index, one in enumerate(_requests(scenario, protocol))
        }
        for name, protocol in PROTOCOLS.items()
        if scenario.plays_over(name)
    }


def _requests(scenario: Scenario, protocol: WireProtocol) -> list[Captured]:
    """What a client sends for the turns, as far as that is known."""
    found: list[Captured] = []
    try:
        for one in client_requests(scenario, protocol):
            found.append(one)
            if len(found) == _MOST_TURNS:
                break
    except (MockLLMError, ValueError):  # such as a turn that cannot be played over the API
        return found
    return found


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
    if scenario.route is not None:
        target, body = _route_request(scenario, scenario.route)
        data = "None" if body is None else "json.dumps(BODY).encode()"
        head = [] if body is None else [f"BODY = {_literal(body)}", "", ""]
        lines = [
            f"    url = mockllm_session.url + {target!r}",
            f"    headers = {{'content-type': 'application/json', {SCENARIO_HEADER!r}: "
            f"{scenario.name!r}}}",
            f"    for statuses in {_literal([_statuses(one) for one in scenario.turns])}:",
            "        for status in statuses:",
            f"            sent = Request(url, {data}, headers, method={scenario.route.method!r})",
            "            sent = send(sent)",
            f"            assert {_compared(scenario)}",
        ]
        return _test(scenario, head, lines)
    name = next((one for one in PROTOCOLS if scenario.plays_over(one)), None)
    if name is None:
        return ""
    protocol = PROTOCOLS[name]
    requests = enumerate(_requests(scenario, protocol))
    turns = [_turn(scenario, protocol, index, one) for index, one in requests]
    compared = _compared(scenario)
    head = [
        f"HEADERS = {_literal(_headers(scenario, protocol))}",
        "",
        "# Path, body, and the statuses of the answers: of the tries that fail, then of the last.",
        f"TURNS = {_literal(turns)}",
        "",
        "",
    ]
    lines = [
        "    for target, body, statuses in TURNS:",
        "        for status in statuses:",
        "            url = mockllm_session.url + target",
        "            sent = send(Request(url, json.dumps(body).encode(), HEADERS))",
        f"            assert {compared}",
    ]
    return _test(scenario, head, lines)


def _headers(scenario: Scenario, protocol: WireProtocol) -> Mapping[str, str]:
    given = {"content-type": "application/json", **protocol.client.headers}
    return {**given, SCENARIO_HEADER: scenario.name}


def _turn(scenario: Scenario, protocol: WireProtocol, index: int, one: Captured) -> Any:
    statuses = _statuses(scenario.turns[index].for_api(protocol.name))
    return (_target(one), json.loads(one.request_body), statuses)


def _compared(scenario: Scenario) -> str:
    return "status in (None, sent)" if _has_faults(scenario) else "sent == status"


def _statuses(turn: TurnSpec) -> list[int | None]:
    """The statuses of the answers; None for all of a turn with a fault."""
    if _is_broken(turn):
        return [None] * (len(turn.attempts) + 1)
    tries = [one.status if one.status >= 400 else 200 for one in turn.attempts]
    if turn.answer is not None:
        return [*tries, turn.answer.status]
    return [*tries, 200 if turn.http is None else turn.http.status]


def _literal(value: Any) -> str:
    return pprint.pformat(value, width=92, sort_dicts=False)


_SEND = '''\
def send(request):
    """The status of the answer, which is read to its end."""
    try:
        with urlopen(request) as answer:
            answer.read()
            return answer.status
    except HTTPError as error:
        return error.code
'''

_SEND_BROKEN = '''\
def send(request):
    """The status of the answer; None where a fault breaks it on the way."""
    try:
        with urlopen(request, timeout=5) as answer:
            answer.read()
            return answer.status
    except HTTPError as error:
        return error.code
    except (OSError, HTTPException):
        return None
'''


def _test(scenario: Scenario, head: Sequence[str], lines: Sequence[str]) -> str:
    broken = _has_faults(scenario)
    imports = ["import json"]
    if broken:
        imports += ["from http.client import HTTPException"]
    imports += ["from urllib.error import HTTPError", "from urllib.request import Request, urlopen"]
    name = scenario.name.replace("-", "_")
    send = _SEND_BROKEN if broken else _SEND
    if scenario.file:
        imports += ["", "from mockllm import load"]
        given = [
            f"FILE = {str(Path(scenario.file).absolute())!r}",
            f"(SCENARIO,) = [one for one in load(FILE) if one.name == {scenario.name!r}]",
            "",
        ]
        use = "    mockllm_session.use(SCENARIO)"
    else:
        use = "    mockllm_session.add(SCENARIO)"
        given = [f"SCENARIO = {_literal(dump(scenario))}", ""]
    test = [f"def test_{name}(mockllm_session):", use, *lines]
    return "\n".join((*imports, "", *given, *head, send, "", *test, ""))


def _has_faults(scenario: Scenario) -> bool:
    return any(_is_broken(turn) for turn in scenario.turns)


def _is_broken(turn: TurnSpec) -> bool:
    tries = any(one.fault or (one.reply and one.reply.fault) for one in turn.attempts)
    return bool(turn.fault) or tries or any(_is_broken(one) for _, one in turn.variants)
