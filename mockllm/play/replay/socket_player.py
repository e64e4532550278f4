"""Plays WebSockets from the scenarios with a `socket`: which connection of which scenario a client
opens, and what a journal has of it. Tapes are read where the caller of `open` decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from cachetools import LRUCache

from mockllm.core.errors import MockLLMError, Problem, ScenarioError
from mockllm.core.http import TimedBytes
from mockllm.core.later import later
from mockllm.play.matching.index import SCENARIO_HEADER
from mockllm.play.matching.route_selection import RouteIndex, RouteRequest
from mockllm.play.replay.call import Answered
from mockllm.play.replay.compilation.http_answer import HttpAnswer, byte_bounded, bytes_answer
from mockllm.play.replay.sessions.exchange import Played
from mockllm.play.replay.sessions.session import Session
from mockllm.play.replay.socket_replay import DueTurn, SocketReplay
from mockllm.play.replay.socket_script import SocketScript, connections_of, make_script
from mockllm.play.tapes.socket_tape import load_session
from mockllm.scenario.model import Scenario, TurnSpec

_MAX_KEPT = 128 * 1024 * 1024
"""Bytes of all scripts that are kept."""

_REFUSED = 400
"""The status that a journal has of a message that is not the expected one."""


class SocketPlayer:
    """Opens WebSockets.

    Args:
        answer: makes the answer of a turn that refuses the opening.
    """

    def __init__(
        self,
        index: RouteIndex,
        named: str | None,
        answer: Callable[[Scenario, int, TurnSpec], HttpAnswer],
    ) -> None:
        self._index, self._named, self._answer = index, named, answer
        self._scripts: LRUCache[str, SocketScript] = byte_bounded(
            _MAX_KEPT, lambda script: 2 * script.size
        )

    def answers(self, request: RouteRequest) -> bool:
        """Whether a scenario answers the opening of a WebSocket.

        Raises:
            RequestError: several do so equally well.
        """
        return bool(self._select(request))

    def _select(self, request: RouteRequest) -> list[Scenario]:
        """The scenarios whose connections are played one after the other."""
        named = request.headers.get(SCENARIO_HEADER) or self._named
        selected = self._index.select(request, named)
        return list({scenario.name: scenario for scenario, _ in selected}.values())

    def open(self, request: RouteRequest, session: Session) -> SocketReplay | Answered:
        """The next connection that a scenario has for a client, or the answer that refuses its
        opening. After the last connection the first one comes again."""
        scenarios = self._select(request)
        scripts = [self._script(scenario) for scenario in scenarios]  # before anything is counted
        choices = [
            (script, number) for script in scripts for number in range(len(script.connections))
        ]
        before = session.add_to(f"connections to {scenarios[0].name}")
        script, number = choices[before % len(choices)]
        scenario = script.scenario
        index = connections_of(scenario)[number][0]
        turn = scenario.turns[index]
        if turn.answer is None:
            return SocketReplay(script, number)
        session.note_played(scenario.name, index)
        answer = self._answer(scenario, index, turn)
        played = Played(
            "played" if answer.status < 400 else "error",
            answer.status,
            cause="" if answer.status < 400 else "scenario",
            scenario=scenario.name,
            turn=index,
            position=index,
        )
        return Answered(answer.behind(turn.gate), played)

    def _script(self, scenario: Scenario) -> SocketScript:
        script = self._scripts.get(scenario.name)
        if script is None:
            script = later(("socket", scenario.name), partial(read_script, scenario))
            self._scripts[scenario.name] = script
        return script


def read_script(scenario: Scenario) -> SocketScript:
    """The script of a scenario with its tape; without it, where that cannot be read."""
    recorded = scenario.turns[0].recorded
    if recorded is None or scenario.turns[0].answer is not None:
        return make_script(scenario)
    try:
        if recorded.path is None:
            message = "the tape is not looked for, since its scenario was not loaded from a file"
            raise ScenarioError([Problem(recorded.file, 1, 1, "", message)])
        session = load_session(Path(recorded.path).read_bytes(), recorded.path)
    except (OSError, MockLLMError) as error:
        return replace(make_script(scenario), recorded="unreadable", problems=(str(error),))
    return make_script(scenario, session)


# What a journal has


def opening_answer(script: SocketScript) -> Answered:
    """The answer to an opening that is accepted."""
    played = Played("played", 101, scenario=script.scenario.name, problems=script.problems)
    return Answered(bytes_answer(101, script.headers, (), streamed=True), played)


def play_turn(script: SocketScript, due: DueTurn, session: Session) -> Answered:
    """The messages of a turn."""
    session.note_played(script.scenario.name, due.index)
    parts = [
        TimedBytes(message.at, message.data) for message in due.served if message.close is None
    ]
    played = Played(
        "played",
        101,
        stream=True,
        scenario=script.scenario.name,
        turn=due.index,
        position=due.index,
        recorded=script.recorded,
    )
    answer = bytes_answer(101, (), parts, streamed=True)
    gate = script.scenario.turns[due.index].gate if due.served else None
    return Answered(answer.behind(gate), played)


def refuse_message(script: SocketScript, problems: tuple[str, ...]) -> Answered:
    """The end of a connection on which the client sent another message than the expected one."""
    problem = f"{script.scenario.name}: {'; '.join(problems)}"
    played = Played("invalid", _REFUSED, (problem,), scenario=script.scenario.name)
    return Answered(bytes_answer(_REFUSED, (), (), streamed=True), played)


def finish(replay: SocketReplay, begun: bool) -> Answered | None:
    """What is left to say when the client has closed the connection: what it did not send, or what
    it streamed beyond the recording; None where that is nothing.

    Args:
        begun: whether a turn was played, so that those that were not are reported.
    """
    name = replay.script.scenario.name
    problem, changes = replay.unfinished(), replay.surplus()
    if problem and (replay.has_received or not begun):
        status = 101 if begun else _REFUSED
        problems = (f"{name}: {problem}",)
        played = Played("played" if begun else "invalid", status, problems, scenario=name)
    elif changes:
        turn = len(replay.script.scenario.turns) - 1
        played = Played("played", 101, scenario=name, turn=turn, changes=changes)
    else:
        return None
    return Answered(bytes_answer(played.status, (), (), streamed=True), played)
