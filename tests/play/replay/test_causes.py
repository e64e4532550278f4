"""Whose an error is, or a fault: the journal names it, whoever refused."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mockllm.core.http import NO_TARGET
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.fault_plan import FaultPlan
from mockllm.play.replay.loading import loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.request_headers import FAULT_HEADER, requested_faults
from mockllm.play.replay.sessions.session import Session
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import dumps

SOURCES = Path(__file__).parents[3] / "mockllm"

TURNS = """
scenario: turns
match: {user: TEXT}
turns: [TURN]
"""
PLAIN, ERROR = "{reply: {text: Hi.}}", "{http: 503}"
TRIES = "{reply: {text: Hi.}, attempts: [{http: 429}]}"
BROKEN = "{reply: {text: Hi.}, fault: {cut: {after: 2 events}}}"


@pytest.mark.parametrize(
    ("turn", "header", "plan", "outcome", "cause"),
    [
        (PLAIN, "", "", "played", ""),
        (ERROR, "", "", "error", "scenario"),
        (TRIES, "", "", "error", "scenario"),
        (BROKEN, "", "", "played", "scenario"),
        (PLAIN, "status", "", "played", "request"),
        (PLAIN, "", "status", "played", "server"),
        (ERROR, "", "status", "error", "scenario"),
    ],
)
def test_the_cause_of_an_error_or_a_fault(turn, header, plan, outcome, cause):
    """The scenario, the header of the request, or the server; none of an answer that is whole."""
    faults = FaultPlan((requested_faults(plan),)) if plan else FaultPlan()
    scenarios = loads(TURNS.replace("TEXT", "hi").replace("TURN", turn))
    player = Player(scenarios, faults=faults)
    body = dumps(first_body(PROTOCOLS["chat"], "m", "hi")).encode()
    headers = {FAULT_HEADER: header} if header else {}
    call = ApiCall(PROTOCOLS["chat"], NO_TARGET, headers, body, Session("s"))
    played = player.play(call).played
    assert (played.outcome, played.cause) == (outcome, cause)


def test_the_cause_of_an_error_of_a_route():
    """It is the scenario's."""
    text = "scenario: r\nroute: GET /x\nturns: [{answer: {status: 503}}, {answer: {text: ok}}]"
    player, session = Player(loads(text)), Session("s")
    request = RouteRequest("GET", "/x", "", {}, b"")
    causes = [player.play_route(request, session).played.cause for _ in range(2)]
    assert causes == ["scenario", ""]


def test_whoever_makes_an_error_names_its_cause():
    """Otherwise a report would take it for the scenario's."""
    nameless = [
        f"{path.relative_to(SOURCES)}:{call.lineno}"
        for path in SOURCES.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and _is_error(call)
        if "cause" not in {keyword.arg for keyword in call.keywords}
    ]
    assert nameless == []


def _is_error(call: ast.Call) -> bool:
    """Whether a call makes the entry of an error: `Played("error")`, or with that outcome."""
    values = [keyword.value for keyword in call.keywords if keyword.arg == "outcome"]
    if isinstance(call.func, ast.Name) and call.func.id == "Played":
        values += call.args[:1]
    texts = [node for value in values for node in ast.walk(value)]
    return any(isinstance(node, ast.Constant) and node.value == "error" for node in texts)
