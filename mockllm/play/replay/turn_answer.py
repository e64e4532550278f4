"""The answer of one turn, compiled without a request of a client: to be shown, not sent. Pure but
for recordings, which are read from their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mockllm.core.errors import UsageError
from mockllm.core.http import TimedBytes
from mockllm.core.request import Request
from mockllm.core.text import quantity
from mockllm.play.agents.tools import usual_tool
from mockllm.play.matching.branching import way_to
from mockllm.play.matching.conversation import Selection, turn_at, turn_index
from mockllm.play.replay.client_requests import client_target, first_body, user_text
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.compilation.http_answer import HttpAnswer, bytes_answer
from mockllm.play.replay.compilation.tape_player import RecordedAnswer, Recordings
from mockllm.play.replay.decision import Decision, attempt_answer
from mockllm.play.replay.filling import fill_selection
from mockllm.play.replay.route_player import route_answer
from mockllm.play.replay.socket_player import read_script
from mockllm.play.replay.socket_script import SocketScript
from mockllm.scenario.model import Scenario, ToolSpec, TurnSpec
from mockllm.scenario.part_model import tool_parts
from mockllm.wire.protocols.base import WireProtocol


def usual_request(
    scenario: Scenario, protocol: WireProtocol, *, stream: bool, fields: Mapping[str, Any]
) -> Request:
    """The smallest request of a client that a scenario answers; it offers the tools of an agent
    where the scenario needs them."""
    model = f"mock/{scenario.name}"
    forms = (form for turn in scenario.turns for form in turn.every())
    calls = (call for form in forms for call in tool_parts(form.reply))
    actions = dict.fromkeys(call.action for call in calls if call.action)
    tools = [ToolSpec(usual_tool(action)) for action in actions]
    body = {**first_body(protocol, model, user_text(scenario), tools), **fields}
    target = client_target(protocol, model, stream=stream)
    return replace(protocol.parse(body, target, False), stream=stream)


def turn_answer(
    scenario: Scenario,
    position: int,
    protocol: WireProtocol,
    request: Request,
    *,
    attempt: int | None = None,
    form: int | None = None,
    quirks: tuple[str, ...] = (),
    on_reply: Callable[[RecordedAnswer], None] = lambda _: None,
) -> HttpAnswer:
    """The answer of a turn.

    Args:
        form: the number of the form that answers (`TurnSpec.forms`), of a scenario as it is
            written; None: that which answers where no condition holds, the first of several.
        attempt: which try of a turn that fails at first, from 1; None: the one that succeeds.
        on_reply: called where the reply is played, and not the recording, with the reason.
    """
    index = turn_index(scenario, position)
    if index is None:
        raise _no_turn(scenario, position)
    selection = Selection(scenario, position, index)
    if scenario.varies and not scenario.path:
        selection = _in_form(scenario, position, index, form, protocol, request)
        scenario, index = selection.scenario, selection.index
    elif scenario.turns[index].for_api(protocol.name).has_actions:
        selection = fill_selection(selection, request)
        scenario = selection.scenario
    spec = turn_at(scenario, position, protocol.name)
    assert spec is not None
    decision = Decision(request, selection, spec, quirks)
    number, recorded = _number(spec, attempt), None
    if number > len(spec.attempts):
        recorded = Recordings().play(
            scenario, index, protocol, stream=request.stream, quirks=bool(quirks)
        )
        if recorded.answer is None and recorded.why:
            on_reply(recorded)
    return attempt_answer(Replayer(), decision, protocol, number, recorded)


def _in_form(
    scenario: Scenario,
    position: int,
    index: int,
    form: int | None,
    protocol: WireProtocol,
    request: Request,
) -> Selection:
    turn = scenario.turns[index]
    own = next(n for n, spec in enumerate(turn.forms()) if spec is turn.for_api(protocol.name))
    known = turn.answering(protocol.name)
    number = min(turn.forms()[own].forms_to_draw(own)) if form is None else form
    if number not in known:
        raise UsageError(
            f"turn {index + 1} of {scenario.name!r} has no form {number} over {protocol.name}; "
            f"there are {', '.join(map(str, known))}"
        )
    way = way_to(scenario, position, index, number)
    return fill_selection(Selection(way, position, position), request)


def route_turn_answer(
    scenario: Scenario,
    index: int,
    *,
    on_reply: Callable[[RecordedAnswer], None] = lambda _: None,
) -> HttpAnswer:
    """The answer of a turn of a route that calls no model: its recording, or else what the turn
    describes; on a WebSocket its messages, a line for each."""
    if index >= len(scenario.turns):
        raise _no_turn(scenario, index)
    if scenario.socket and scenario.turns[index].answer is None:
        return _messages(read_script(scenario), index, on_reply)
    recorded = Recordings().play_route(scenario, index)
    if recorded.answer is None and recorded.why:
        on_reply(recorded)
    turn = scenario.turns[index]
    return (recorded.answer or route_answer(turn)).behind(turn.gate)


def _messages(
    script: SocketScript, index: int, on_reply: Callable[[RecordedAnswer], None]
) -> HttpAnswer:
    if script.recorded == "unreadable":
        on_reply(RecordedAnswer(None, script.recorded, script.problems))
    (turn,) = (t for turns in script.connections for t in turns if t.index == index)
    lines = [TimedBytes(one.at, one.data + b"\n") for one in turn.served if one.close is None]
    return bytes_answer(101, (), lines, streamed=True).behind(script.scenario.turns[index].gate)


def _no_turn(scenario: Scenario, position: int) -> UsageError:
    turns = quantity(len(scenario.turns), "turn")
    return UsageError(f"scenario {scenario.name!r} has {turns}, not {position + 1}")


def _number(spec: TurnSpec, attempt: int | None) -> int:
    """The number of the requested try, from 1."""
    tries = len(spec.attempts) + 1
    if attempt is not None and attempt > tries:
        raise UsageError(f"this turn has {quantity(tries, 'attempt')}, not {attempt}")
    return attempt or tries
