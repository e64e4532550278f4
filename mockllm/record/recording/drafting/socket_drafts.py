"""Recorded WebSockets to exchanges, or to scenarios with a `socket`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Literal

from mockllm.core.events import Frame
from mockllm.core.http import TimedBytes
from mockllm.core.jsontext import json_bytes
from mockllm.core.text import quantity
from mockllm.play.tapes.captured import Captured, Cut
from mockllm.play.tapes.socket_session import SocketMessage, SocketSession
from mockllm.play.tapes.socket_turns import socket_turns
from mockllm.record.recording.drafting.draft import DraftedTurn, Line, Origin
from mockllm.record.recording.drafting.route_drafts import begun_route, route_of, route_turn
from mockllm.scenario.model import Recorded, Scenario
from mockllm.scenario.route_model import RouteSpec
from mockllm.wire.protocols.base import WireProtocol, dumps
from mockllm.wire.protocols.route_matching import detect
from mockllm.wire.protocols.sockets import SocketExchange
from mockllm.wire.protocols.values import json_object

_MOST_NAMED = 3
"""So many kinds of messages that are not kept are named."""


def exchanges_of(session: SocketSession) -> tuple[tuple[Captured, ...], str] | None:
    """The exchanges that a session is over HTTP, and what of it they do not have; None: its API has
    no such, or its opening was refused."""
    protocol = detect("POST", session.url, b"").protocol
    if protocol is None or protocol.exchanges is None or session.status != 101:
        return None
    exchanges: list[Captured] = []
    others: list[SocketMessage] = []
    for _, group in groupby(sorted(session.messages, key=_CONNECTION), _CONNECTION):
        messages = list(group)
        sent = [one for one in messages if one.kind in ("text", "binary")]
        found, left_out = protocol.exchanges([(m.side == "client", m.data) for m in sent])
        cut = _cut_of(messages)
        exchanges += (_capture(session, sent, one, protocol, cut) for one in found)
        others += (sent[number] for number in left_out)
    numbered = (
        replace(one, source=f"{session.source}.{number}") for number, one in enumerate(exchanges, 1)
    )
    nothing = "" if exchanges or others else "nothing was asked on it"
    return tuple(numbered), _not_kept(others) or nothing


_CONNECTION = attrgetter("connection")


def _capture(
    session: SocketSession,
    sent: list[SocketMessage],
    exchange: SocketExchange,
    protocol: WireProtocol,
    cut: Cut,
) -> Captured:
    """An exchange over HTTP, with the headers of the opening."""
    is_error, carrier = exchange.status >= 400, protocol.usual
    asked = sent[exchange.asked].at
    chunks = tuple(
        TimedBytes(
            sent[number].at - asked,
            json_bytes(data) if is_error else carrier.encode(_frame(data), protocol.line_end),
        )
        for number, data in exchange.answers
    )
    kind = "application/json" if is_error else carrier.content_type
    return Captured(
        "POST",
        session.url,
        (*_end_to_end(session.request_headers), ("content-type", "application/json")),
        json_bytes(dumps(exchange.body)),
        exchange.status,
        (*_end_to_end(session.headers), ("content-type", kind), *exchange.headers),
        chunks,
        "" if exchange.is_over else cut,
        at=session.at + asked / 1_000_000 if session.at else 0.0,
    )


def _frame(data: str) -> Frame:
    event = json_object(data) or {}
    return Frame(data, str(event["type"]) if "type" in event else None)


def _end_to_end(headers: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """The headers that an exchange over HTTP has, too."""
    for name, value in headers:
        own = name in ("connection", "upgrade", "content-type", "content-length")
        if not own and not name.startswith("sec-websocket-"):
            yield name, value


def _cut_of(messages: list[SocketMessage]) -> Cut:
    """The end of an answer that the end of its connection cut."""
    end = next((message for message in messages if message.kind == "close"), None)
    if end is None or end.side == "client":
        return "client"
    return "reset" if end.how == "reset" else "upstream"


def _not_kept(messages: list[SocketMessage]) -> str:
    if not messages:
        return ""
    kinds = [str((json_object(one.data) or {}).get("type", one.kind)) for one in messages]
    names = list(dict.fromkeys(kinds))
    more = ", ..." if len(names) > _MOST_NAMED else ""
    return (
        f"{quantity(len(messages), 'message')} of it belong to no answer and are not kept: "
        f"{', '.join(names[:_MOST_NAMED])}{more}"
    )


def socket_scenario(
    session: SocketSession, origin: Origin, free_name: Callable[[str], str]
) -> tuple[Scenario, DraftedTurn]:
    """The scenario of a session, and its first turn, which has the tape.

    Raises:
        WireError: no route has its path.
    """
    opening = session.opening
    route = RouteSpec("GET", *_place(opening))
    scenario = replace(begun_route(opening, route, origin, free_name), socket=_kind(session))
    if session.status != 101:
        turn = route_turn(scenario, opening.plain(), Recorded(""))
        return replace(scenario, turns=(turn.spec,)), turn
    first, *rest = socket_turns(session)
    first = replace(first, recorded=Recorded(f"{scenario.name}.1.draft"))
    return replace(scenario, turns=(first, *rest)), DraftedTurn(first, session)


def _place(opening: Captured) -> tuple[str, str]:
    """The path and the host of a route."""
    route = route_of(replace(opening, status=200))
    return route.path, route.host


def _kind(session: SocketSession) -> Literal["text", "binary"]:
    """In which frames the service sends JSON: that of its first message with some."""
    for message in session.messages:
        if message.side == "service" and json_object(message.data) is not None:
            return "binary" if message.kind == "binary" else "text"
    return "text"


def socket_line(session: SocketSession, scenario: Scenario) -> Line:
    """The line of the report for a session."""
    counts = Counter(message.side for message in session.messages if message.kind != "close")
    notes = [
        f"turn 1 of {scenario.name}",
        f"WebSocket {scenario.route.path if scenario.route else ''}",
        f"{quantity(counts['client'], 'message')} of the client, {counts['service']} of the service"
        if session.status == 101
        else f"refused with HTTP {session.status}",
    ]
    return Line(session.source, "neutral", "; ".join(notes), scenario.name, 0)
