"""Scripts of WebSockets: times, connections, and what is as it was recorded."""

from __future__ import annotations

from dataclasses import replace

from mockllm.play.replay.loading import loads
from mockllm.play.replay.socket_script import make_script
from mockllm.play.tapes.socket_session import SocketMessage, SocketSession
from mockllm.play.tapes.socket_turns import socket_turns
from mockllm.scenario.model import Scenario, Timing
from mockllm.scenario.route_model import MessageSpec, RouteSpec
from tests.play.tapes.test_socket_tape import session_of


def at(time: int, side: str, text: str, connection: int = 0) -> SocketMessage:
    """A text message."""
    return SocketMessage(time, connection, side, "text", text.encode())  # type: ignore[arg-type]


SESSION = session_of(
    at(1_000, "service", "hello"),
    at(50_000, "client", "a"),
    at(60_000, "client", "b"),
    at(75_000, "service", "one"),
    at(95_000, "service", "two"),
    SocketMessage(96_000, 0, "service", "close", code=1011),
    at(200_000, "service", "hello again", 1),
)


def scenario_of(session: SocketSession) -> Scenario:
    """The scenario of a session, as it is drafted."""
    return Scenario("a", socket_turns(session), route=RouteSpec("GET", "/x"), socket="text")


def times(scenario: Scenario, session: SocketSession | None) -> list[list[int]]:
    """When the messages of each turn are due, in milliseconds."""
    script = make_script(scenario, session)
    turns = (turn for connection in script.connections for turn in connection)
    return [[served.at // 1000 for served in turn.served] for turn in turns]


def test_recorded_times() -> None:
    """A message is due as long after the client's last one as it was recorded; the first of a later
    connection at once."""
    assert times(scenario_of(SESSION), SESSION) == [[1], [15, 35, 36], [0]]
    assert make_script(scenario_of(SESSION), SESSION).recorded == "exact"


def test_written_times() -> None:
    """Times in the scenario go before those of the tape."""
    drafted = scenario_of(SESSION)
    first, second, third = drafted.turns
    second = replace(second, timing=Timing(ttft=5_000, every=10_000))
    third = replace(third, timing=Timing(at=(7_000,)))
    edited = replace(drafted, turns=(first, second, third))
    assert times(edited, SESSION) == [[1], [5, 15, 25], [7]]
    assert times(edited, None) == [[0], [5, 15, 25], [7]]


def test_an_inserted_message_keeps_the_others() -> None:
    """A message that a person has added is due with the one before it, and the others have their
    bytes and times of the tape."""
    drafted = scenario_of(SESSION)
    first, second, third = drafted.turns
    one, *others = second.service
    second = replace(second, service=(one, MessageSpec("text", "new"), *others))
    edited = replace(drafted, turns=(first, second, third))
    assert times(edited, SESSION) == [[1], [15, 15, 35, 36], [0]]
    script = make_script(edited, SESSION)
    assert script.recorded == "edited"
    assert [served.data for served in script.connections[0][1].served] == [
        b"one",
        b"new",
        b"two",
        b"",
    ]


def test_connections_end_with_a_close_or_an_answer() -> None:
    """Each has the turns until then."""
    (scenario,) = loads(
        """
scenario: a
route: GET /x
socket: text
turns:
  - answer: {status: 503}
  - service: [{text: a}]
  - client: [{text: b}, {close: {}}]
  - service: [{text: c}, {close: {}}]
  - client: [{text: d}]
"""
    )
    script = make_script(scenario)
    assert [[turn.index for turn in turns] for turns in script.connections] == [
        [0],
        [1, 2],
        [3],
        [4],
    ]
