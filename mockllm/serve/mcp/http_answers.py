"""Answers of MCP servers over HTTP: what `play.mcp` decides, as the bytes of JSON or of events."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mockllm.core.events import Frame
from mockllm.core.http import TimedBytes
from mockllm.core.jsontext import json_bytes, parse
from mockllm.play.faults.transmission import Circumstances
from mockllm.play.mcp.replies import McpReply
from mockllm.play.mcp.rpc import STDIO_HEADER, Operation
from mockllm.play.replay.broken_answer import broken, circumstances
from mockllm.play.replay.call import Answered
from mockllm.play.replay.compilation.http_answer import CORS, HttpAnswer, bytes_answer
from mockllm.play.replay.filling import played_turn
from mockllm.play.replay.sessions.exchange import Played
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.part_model import tool_parts
from mockllm.wire.framing import sse
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import dumps

if TYPE_CHECKING:
    from mockllm.play.replay.player import Player

MCP = "mcp"
"""What a journal has as the API of requests to MCP servers."""

_PATH = re.compile(r"/mcp/([^/]+)/?")
_WELL_KNOWN = re.compile(r"/\.well-known/(?:oauth|openid)-.*")
_EVENTS = {"content-type": "text/event-stream", "cache-control": "no-cache, no-transform"}


def server_in(path: str) -> str | None:
    """The name of the MCP server that a path is of; None for other paths. A client that is to
    authorize itself looks for how, where there is nothing."""
    if _WELL_KNOWN.fullmatch(path):
        return ""
    match = _PATH.fullmatch(path)
    return None if match is None else match[1]


def answer(
    player: Player,
    name: str,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    session: Session,
) -> Answered:
    """The answer to a request for an MCP server.

    Args:
        name: of the server; "" for a path that no server has.
    """
    mcp = player.mcp
    if not name:
        nothing = _plain(404, Operation("", ""))
        return replace(nothing, played=replace(nothing.played, outcome="auxiliary"))
    if method == "DELETE":
        return _plain(200, Operation(name, "DELETE"))
    if method == "GET":
        rest = mcp.resume(name, headers)
        return _plain(405, Operation(name, "GET")) if rest is None else _encode(rest, player)
    if method != "POST":
        return _plain(405, Operation(name, method))
    find_open = partial(open_scenarios, player, session)
    reply = mcp.answer(name, body, headers, session.add_to, find_open)
    answered = _encode(reply, player)
    if not reply.faults:
        stdio = dict(reply.headers).get(STDIO_HEADER)
        if stdio is not None and STDIO_HEADER not in headers:
            missed = f"{stdio}: strikes over stdio alone; let the client start `mockllm mcp {name}`"
            answered = replace(answered, played=replace(answered.played, missed=missed))
        return answered
    made = broken(answered.answer, reply.faults, _around(path), player.speed)
    return Answered(made, replace(answered.played, status=made.status, cause="scenario"))


def _plain(status: int, operation: Operation) -> Answered:
    made = bytes_answer(status, CORS.items(), [], streamed=False)
    return Answered(made, Played("played", status, api=MCP, mcp=operation))


def _encode(reply: McpReply, player: Player) -> Answered:
    parts = _parts(reply)
    usual = {"content-type": "application/json"} if parts else {}
    headers = [*(_EVENTS if reply.streamed else usual).items(), *CORS.items(), *reply.headers]
    made: HttpAnswer = bytes_answer(reply.status, headers, parts, streamed=reply.streamed)
    outcome: Any = reply.outcome
    played = Played(
        outcome,
        reply.status,
        cause=reply.cause,
        problems=(reply.problem,) if outcome in ("unmatched", "invalid") else (),
        api=MCP,
        mcp=reply.operation,
    )
    return Answered(made, played)


def _parts(reply: McpReply) -> list[TimedBytes]:
    if reply.last is None:
        return []
    last = json_bytes(dumps(reply.last))
    if not reply.streamed:
        return [TimedBytes(reply.after, last)]
    parts = [_event(0, dumps(message)) for message in reply.messages]
    if reply.event_id in ("", "resumed"):
        return [*parts, _event(reply.after, dumps(reply.last))]
    frame = Frame(data="", id=reply.event_id, retry=_RESUME_AFTER)
    return [*parts, TimedBytes(0, sse.encode(frame))]


_RESUME_AFTER = 200
"""Milliseconds until a client asks for the rest of a stream."""


def _event(at: int, data: str) -> TimedBytes:
    return TimedBytes(at, sse.encode(Frame(event="message", data=data)))


def _around(path: str) -> Circumstances:
    """The circumstances of faults. Their places are those of any stream of events: none of an API
    is asked for what is in them."""
    return circumstances(next(iter(PROTOCOLS.values())), None, path)


def open_scenarios(
    player: Player,
    session: Session,
    names: Sequence[str],
    tool: str,
    arguments: Mapping[str, Any],
) -> list[str]:
    """Of scenarios, those of which a call of a tool with these arguments was streamed more often
    than made. Where processes share the state, no journal is at hand, and none is known."""
    waiting: Counter[str] = Counter()
    for exchange in tuple(getattr(session, "journal", ())):
        played = exchange.played
        if played.mcp is not None:
            operation = Operation(*played.mcp)
            if operation.method == "tools/call":
                waiting[operation.scenario] -= 1
        elif played.outcome == "played" and played.scenario in names:
            scenario = player.served.by_name.get(played.scenario or "")
            turn = None if scenario is None else played_turn(scenario, played)
            calls = tool_parts(turn.reply) if turn is not None else ()
            waiting[played.scenario or ""] += sum(
                call.name == tool and _same(call.arguments, arguments) for call in calls
            )
    return [name for name in names if waiting[name] > 0]


def _same(written: str | None, arguments: Mapping[str, Any]) -> bool:
    try:
        value: object = parse(written or "{}")
    except ValueError:
        return False
    return value == arguments
