"""The scenarios that are served, as the live page lists and shows them; texts to copy: commands
for curl, and a test with pytest.

Both send what a client of the API sends, so both work as they stand.
"""

from __future__ import annotations

import json
import pprint
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from mockllm.core.errors import MockLLMError
from mockllm.core.text import shorten
from mockllm.play.matching.index import SCENARIO_HEADER
from mockllm.play.replay.client_requests import text_meeting
from mockllm.record.importers.export import client_requests
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Match, Scenario, TurnSpec
from mockllm.scenario.part_model import AnyPart, members, title_of
from mockllm.scenario.reading import nodes
from mockllm.scenario.reading.files import MAX_FILE
from mockllm.scenario.route_model import RouteSpec
from mockllm.serve.server.control.control_routes import scenario_summary
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol

_LONGEST_TITLE = 120
_LONGEST_TEXT = 1_000_000
"""Characters of a scenario's text that are sent."""


def scenario_entry(scenario: Scenario, played: Mapping[int, int]) -> dict[str, Any]:
    """The entry of a scenario in the list."""
    return {
        **scenario_summary(scenario),
        "file": scenario.file,
        "line": scenario.line or None,
        "tags": _tags(scenario),
        "turns": [
            {"index": index, "title": _title(turn), "attempts": len(turn.attempts) + 1}
            for index, turn in enumerate(scenario.turns)
        ],
        "played": {str(index): times for index, times in sorted(played.items())},
    }


def _tags(scenario: Scenario) -> list[str]:
    """The features of a scenario that few have."""
    every = [form for turn in scenario.turns for form in turn.forms()]
    tags = {
        "recorded": any(True for turn in every for _ in turn.recordings()),
        "fault": any(turn.fault for turn in every),
        "quirk": any(turn.wire is not None and turn.wire.quirks for turn in every),
        "error": any(turn.http is not None for turn in every),
        "retry": any(turn.attempts for turn in every),
        "fallback": scenario.match is not None and scenario.match.anything,
        "only by name": scenario.match is None and scenario.is_conversation,
        "MCP server": scenario.server is not None,
    }
    return [name for name, holds in tags.items() if holds]


def _title(turn: TurnSpec) -> str:
    """The effect of a turn, in one line."""
    if turn.http is not None:
        title = f"HTTP {turn.http.status}"
    elif turn.answer is not None:
        title = f"HTTP {turn.answer.status} {turn.answer.kind}".strip()
    else:
        title = " · ".join(filter(None, map(_part_title, turn.reply))) or "an empty answer"
    if turn.fault:
        title += " · fault " + ", ".join(fault.name for fault in turn.fault)
    return shorten(" ".join(title.split()), _LONGEST_TITLE)


def _part_title(part: AnyPart) -> str:
    return " + ".join(shorten(title_of(member), _LONGEST_TITLE) for member in members((part,)))


def scenario_json(
    scenario: Scenario, entry: Mapping[str, Any], problems: Sequence[Mapping[str, Any]], url: str
) -> dict[str, Any]:
    """All about one scenario. It reads the file of the scenario."""
    text, line, why = _text(scenario)
    own = [problem for problem in problems if scenario.file and problem["file"] == scenario.file]
    return {
        **entry,
        "text": text,
        "first_line": line,
        "text_why": why,
        "problems": own,
        "curl": curl_texts(scenario, url),
        "test": test_text(scenario),
    }


def _text(scenario: Scenario) -> tuple[str, int, str]:
    """The text of a scenario, its first line in its file, and why it is not that of the file."""
    if not scenario.file:
        why = "It was not loaded from a file that the server knows, so this is written anew."
        return _shorten(dump(scenario), 1, why)
    try:
        with Path(scenario.file).open("rb") as file:
            text = file.read(MAX_FILE + 1).decode()
        document = _document(text, scenario)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    except UnicodeDecodeError:
        reason = "is not UTF-8"
    except MockLLMError:
        reason = "is broken now"
    else:
        if document is not None:
            return _shorten(*document, "")
        reason = "does not have it any more"
    why = f"{scenario.file} {reason}, so this is written anew from what is served."
    return _shorten(dump(scenario), 1, why)


def _shorten(text: str, line: int, why: str) -> tuple[str, int, str]:
    if len(text) <= _LONGEST_TEXT:
        return text, line, why
    note = f"Only the first {_LONGEST_TEXT:,} of its {len(text):,} characters are shown."
    return text[:_LONGEST_TEXT], line, f"{why} {note}".strip()


_MARK = re.compile(r"^---[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)|^(?=---\s)", re.MULTILINE)
"""Where a YAML document begins: after its mark, or at one that has the document beside it."""


def _document(text: str, scenario: Scenario) -> tuple[str, int] | None:
    """The document of a scenario in the text of its file, and its first line; None where it is not
    there."""
    own = scenario.server
    key, name = ("scenario", scenario.name) if own is None else ("mcp", own.name)
    marks = [mark.span() for mark in _MARK.finditer(text)]
    for (_, begin), (end, _) in pairwise([(0, 0), *marks, (len(text), len(text))]):
        for document in nodes.documents(text[begin:end], scenario.file):
            root = document.root
            written = root.entries.get(key) if isinstance(root, nodes.Mapping) else None
            if isinstance(written, nodes.Scalar) and written.value == name:
                line = text.count("\n", 0, begin) + 1
                return text[begin:end].rstrip("\n") + "\n", line
    return None


_LONGEST = 100_000
"""Characters of a command; no shell takes much longer ones."""

_MOST_TURNS = 50


# curl


def curl_texts(scenario: Scenario, url: str) -> dict[str, dict[str, str]]:
    """For each API over HTTP, and each turn by its index, the command that gets the turn. Those of
    a route are the same for each.

    The commands name the scenario in a header, so that no other one answers.
    """
    if scenario.route is not None:
        return dict.fromkeys(PROTOCOLS, _commands(scenario, None, url))
    return {
        name: _commands(scenario, PROTOCOLS[name], url)
        for name in PROTOCOLS.over_http
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
    """The requests that a client sends for the turns, as far as they are known."""
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
    query = {name: text_meeting(condition, "1") for name, condition in match.query}
    return route.method, path + (f"?{urlencode(query)}" if query else ""), match.body


# pytest


def test_text(scenario: Scenario) -> str:
    """A test that has the conversation of a scenario, over the first API that it plays over."""
    played = (PROTOCOLS[name] for name in PROTOCOLS.over_http if scenario.plays_over(name))
    protocol = next(played, None)
    if protocol is None and scenario.route is None:
        return ""
    turns = [turn if protocol is None else turn.for_api(protocol.name) for turn in scenario.turns]
    requests = [
        (*request, _statuses(turn, scenario))
        for request, turn in zip(_requests(scenario, protocol), turns, strict=False)
    ]
    template = (files("mockllm.serve.ui") / "copied_test.txt").read_text("utf-8")
    return template.format(
        given=_setup_code(scenario),
        headers=_literal(_headers(scenario, protocol)),
        requests=_literal(requests),
        name=scenario.name.replace("-", "_"),
    )


def _setup_code(scenario: Scenario) -> str:
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
