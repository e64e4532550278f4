"""Whether what was recorded is found again: its own request gets its own bytes back.

`mockllm import` asks for every exchange once all are written, in their order. A recorder asks for
those of a group once that is written, among the scenarios that compete with each: a player of
all would take a tenth of a second for each group of a folder of ten thousand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from json import dumps
from typing import Any

from mockllm.core.errors import MockLLMError
from mockllm.core.jsontext import json_bytes
from mockllm.play.matching.conditions import check_partial
from mockllm.play.matching.index import SCENARIO_HEADER
from mockllm.play.matching.route_selection import OPENING, RouteRequest
from mockllm.play.mcp.operations import McpPlayer
from mockllm.play.mcp.rpc import mapping
from mockllm.play.replay.call import Answered, ApiCall
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.exchange import Exchange, Received
from mockllm.play.replay.sessions.session import Session
from mockllm.play.replay.socket_replay import SocketReplay
from mockllm.play.replay.socket_script import connections_of
from mockllm.play.tapes.captured import Captured, Tape, detect_api, request_of
from mockllm.play.tapes.socket_session import Recording, SocketMessage, SocketSession
from mockllm.record.recording.drafting.draft import Draft
from mockllm.record.recording.drafting.mcp_drafts import (
    RecordedCall,
    is_http_error,
    listed_tools,
    plain_result,
)
from mockllm.record.redaction.placeholders import placeholder_spans
from mockllm.scenario.ignoring import competing
from mockllm.scenario.model import Scenario, TextCondition
from mockllm.scenario.route_model import RouteSpec
from mockllm.wire.protocols.route_matching import Detected


def player_of(scenarios: Mapping[str, Scenario], written: Iterable[Draft]) -> Player:
    """A player of scenarios, by their names, that reads no tape of a draft as it was written."""
    player = Player(scenarios.values())
    for draft in written:
        if draft.scenario is None:
            continue
        scenario = scenarios[draft.scenario.name]
        for index, turn in enumerate(scenario.turns):
            drafted = draft.recorded.get(turn.recorded.file) if turn.recorded is not None else None
            if drafted is not None and isinstance(drafted.tape, Tape):
                tape, content, decoded = drafted.tape, drafted.content, drafted.decoded
                player.recordings.know(scenario, index, tape, content, decoded)
    return player


def not_found(
    player: Player, exchange: Recording, scenario: str, turn: int, session: Session
) -> str:
    """Why the request of an exchange does not get back the recording of a turn, or a client of a
    WebSocket the recorded messages; "" if it does."""
    if isinstance(exchange, SocketSession):
        return _session_not_found(player, exchange, scenario, session)
    found = detect_api(exchange)
    # One of ours may name the scenario, and the question is whether the request alone finds it.
    sent = exchange.request_headers
    headers = {name: value for name, value in sent if not name.startswith("x-mockllm-")}
    if _plays_only_when_named(player, scenario, turn):
        headers[SCENARIO_HEADER] = scenario
    try:
        answered = _answer(player, exchange, found, headers, session)
    except MockLLMError as error:
        return f"its request is refused: {error}"
    if answered is None:
        return "no scenario answers its request"
    played = answered.played
    # Later requests may continue this answer by its id.
    session.record(Exchange(Received(exchange.method, "", {}, exchange.request_body), played))
    if (played.scenario, played.turn) != (scenario, turn):
        if played.scenario is None:
            return f"its request is refused: {'; '.join(played.problems)}"
        return f"turn {(played.turn or 0) + 1} of {played.scenario} answers its request"
    if played.recorded != "exact":
        return f"its recording is not played: {played.recorded or 'the turn has none'}"
    return ""


def sent_again(recorded: SocketSession, clean: SocketSession) -> SocketSession:
    """A session as a client of its replay has it: the service says it without its secrets, and the
    client sends its own secrets, but those that the service said as it got them."""
    said: set[str] = set()
    messages: list[SocketMessage] = []
    for before, after in zip(recorded.messages, clean.messages, strict=True):
        text = after.data.decode("latin-1")
        hidden = {text[start:end] for start, end in placeholder_spans(text)}
        if after.side == "service":
            said |= hidden
        messages.append(before if after.side == "client" and not hidden & said else after)
    return replace(recorded, messages=tuple(messages))


def _session_not_found(
    player: Player, recorded: SocketSession, scenario: str, session: Session
) -> str:
    """Why a client that sends what was recorded does not get the recorded messages back."""
    opening = replace(RouteRequest.of_exchange(recorded.opening), method=OPENING)
    numbers = sorted({message.connection for message in recorded.messages}) or [0]
    sockets = [one for one in player.served.by_name.values() if one.socket]
    # Connections to scenarios of one route are played one after the other.
    most = sum(len(connections_of(one)) for one in sockets)
    for number in numbers:
        try:
            if not player.routes.sockets.answers(opening):
                return "no scenario answers its opening"
            tries = (player.routes.sockets.open(opening, session) for _ in range(most))
            replay = next((one for one in tries if _is_of(one, scenario)), None)
        except MockLLMError as error:
            return f"its opening is refused: {error}"
        if replay is None:
            return "connections of other scenarios answer its opening"
        if isinstance(replay, SocketReplay):
            messages = [one for one in recorded.messages if one.connection == number]
            problem = _compare(replay, messages)
            if problem:
                return problem
    return ""


def _is_of(replay: SocketReplay | Answered, scenario: str) -> bool:
    if isinstance(replay, SocketReplay):
        return replay.script.scenario.name == scenario
    return replay.played.scenario == scenario


def _compare(replay: SocketReplay, messages: Sequence[SocketMessage]) -> str:
    """What is different where a client sends the recorded messages of a connection; "" if nothing
    is."""
    if replay.script.recorded not in ("exact", ""):
        return f"its recording is not played: {replay.script.recorded}"
    got: list[bytes] = []
    end = next((at for at, one in enumerate(messages) if one.kind == "close"), len(messages))
    for message in (None, *messages[: end + 1]):  # the service may speak first
        if message is not None and message.side == "client":
            problems: tuple[str, ...] = ()
            if message.kind == "close":
                replay.close()
            elif message.kind in ("text", "binary"):
                problems = replay.receive(message.data)
            if problems:
                return f"a message of its client is refused: {problems[0]}"
        while (due := replay.next_due()) is not None:
            got += [one.data for one in due.served if one.close is None]
    wanted = [
        one.data
        for one in messages[:end]
        if one.side == "service" and one.kind in ("text", "binary")
    ]
    if got == wanted:
        return ""
    same = next(
        (n for n, pair in enumerate(zip(got, wanted, strict=False)) if pair[0] != pair[1]), -1
    )
    return f"{len(got)} of its {len(wanted)} messages are played" + (
        f", number {same + 1} is another one" if same >= 0 else ""
    )


def _plays_only_when_named(player: Player, name: str, turn: int) -> bool:
    scenario = player.served.by_name.get(name)
    if scenario is None or scenario.match is not None or scenario.route is not None:
        return False
    recorded = scenario.turns[turn].recorded
    return recorded is None or not recorded.request


def _answer(
    player: Player, exchange: Captured, found: Detected, headers: dict[str, str], session: Session
) -> Answered | None:
    if found.protocol is not None:
        body = exchange.request_body
        return player.play(ApiCall(found.protocol, found.target, headers, body, session))
    return player.routes.play(replace(RouteRequest.of_exchange(exchange), headers=headers), session)


def not_found_after_write(player: Player, exchange: Recording, written: Scenario, turn: int) -> str:
    """Why the request of an exchange that was just written does not get back its recording."""
    session = Session("recording")
    if isinstance(exchange, SocketSession):
        return not_found(player, exchange, written.name, turn, session)
    for scenario, index in recorded_before(player, exchange, written.name, turn):
        session.note_played(scenario.name, index)
    for _ in written.turns[turn].attempts:
        session.attempt(written, turn)
    return not_found(player, exchange, written.name, turn, session)


class Competing:
    """The scenarios of a folder, so that those are found at once that compete for the requests of
    one: not each of thousands is looked at for each that is written."""

    def __init__(self, scenarios: Iterable[Scenario] = ()) -> None:
        self.by_name: dict[str, Scenario] = {}
        self._groups: dict[RouteSpec | TextCondition | None, dict[str, None]] = {}
        self._order: dict[str, int] = {}
        for scenario in scenarios:
            self.keep(scenario)

    def keep(self, scenario: Scenario) -> None:
        """Adds a scenario, in place of the one with its name."""
        old = self.by_name.get(scenario.name)
        if old is not None:
            del self._groups[_group(old)][old.name]
        self._order.setdefault(scenario.name, len(self._order))
        self.by_name[scenario.name] = scenario
        self._groups.setdefault(_group(scenario), {})[scenario.name] = None

    def of(self, scenario: Scenario) -> tuple[Scenario, ...]:
        """The others that may answer a request that a scenario was recorded from."""
        group = _group(scenario)
        names: Iterable[str] = self._groups.get(group, ())
        if scenario.route is None and (scenario.match is None or scenario.match.user is None):
            # It has no condition that tells the others apart.
            names = (name for name, other in self.by_name.items() if other.route is None)
        elif scenario.route is None:
            names = (*self._groups.get(None, ()), *names)
        others = set(names) - {scenario.name}
        return tuple(self.by_name[name] for name in sorted(others, key=self._order.__getitem__))


def _group(scenario: Scenario) -> RouteSpec | TextCondition | None:
    if scenario.route is not None:
        return scenario.route
    user = competing(scenario.match.user) if scenario.match is not None else None
    return user if user is not None and user.op == "equals" else None


def recorded_before(
    player: Player, exchange: Captured, scenario: str, turn: int
) -> tuple[tuple[Scenario, int], ...]:
    """The turns that were recorded from the same request before a turn, which a session plays
    first."""
    found = detect_api(exchange)
    if found.protocol is not None:
        same = player.served.recorded_turns(request_of(exchange, found))
    else:
        same = player.routes.index.select(RouteRequest.of_exchange(exchange))
    names = [(one.name, index) for one, index in same]
    if (scenario, turn) not in names:
        return ()
    return same[: names.index((scenario, turn))]


def calls_not_found(
    scenarios: Iterable[Scenario],
    server: str,
    sent: Sequence[RecordedCall],
    clean: Sequence[RecordedCall],
) -> list[str | None]:
    """Why each request to an MCP server does not get its answer from the server's document; "" if
    it does, and None where a document answers no such request.

    Args:
        sent, clean: the calls in their order, as they were recorded, and without secrets.
    """
    player, counters = McpPlayer(scenarios), Counter[str]()

    def count(name: str, added: int) -> int:
        counters[name] += added
        return counters[name] - added

    lists = dict(listed_tools(clean))
    reasons: list[str | None] = []
    for number, (before, call) in enumerate(zip(sent, clean, strict=True)):
        wanted = _outcome(call, lists.get(number))
        if not wanted:
            reasons.append(None if wanted is None else "")
            continue
        body = json_bytes(dumps(before.request))
        try:
            reply = player.answer(server, body, {}, count, lambda *_: ())
        except MockLLMError as error:
            reasons.append(f"{call.asked}: it is refused: {error}")
            continue
        again = call._replace(answer=reply.last or {}, status=reply.status)
        got = _outcome(again, again.result.get("tools"))
        problem = "" if got == wanted else _difference(wanted, got)
        reasons.append(f"{call.asked}: {problem}" if problem else "")
    return reasons


def _difference(wanted: Any, got: Any) -> str:
    what = "what it gets"
    problem = check_partial(what, wanted, got)
    return problem or f"recorded was less: {check_partial('it', got, wanted)}"


def _outcome(call: RecordedCall, tools: Any) -> dict[str, Any] | None:
    """The part of an answer that has to come again; None where a document does not answer. A
    further page of a list is with the first one."""
    match call.method:
        case "initialize" | "server/discover" if call.result:  # errors are how eras are found out
            return {"instructions": call.result.get("instructions")}
        case "tools/call" | "tools/list" if is_http_error(call):
            return {"status": call.status}
        case "tools/list" if "error" not in call.answer:
            return {} if tools is None else {"tools": tools}
        case "tools/call" if "error" not in call.answer:
            return {"result": plain_result(call.result)}
        case "tools/call":
            error = mapping(call.answer["error"])
            return {"error": {key: value for key, value in error.items() if value is not None}}
    return None
