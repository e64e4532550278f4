"""What the list of the live page has of each request and session. Pure."""

from __future__ import annotations

import json
from typing import Any

from mockllm.core.text import shorten
from mockllm.matching.conditions import last_user_text
from mockllm.replay.client_requests import parsed_request
from mockllm.replay.sessions.exchange import Exchange
from mockllm.replay.sessions.session import Session
from mockllm.server.control.session_setup import SessionSetups

dumps = json.JSONEncoder(separators=(",", ":")).encode
"""JSON in ASCII, on one line: half of a surrogate pair is an escape there."""

_FIELDS = (
    "session",
    "number",
    "at",
    "api",
    "model",
    "scenario",
    "turn",
    "attempt",
    "outcome",
    "status",
    "stream",
    "duration",
    "bytes_sent",
    "client_gone",
    "stopped",
    "fault",
    "struck",
    "quirks",
    "recorded",
    "method",
    "path",
)
_LARGEST = 64 * 1024
"""The text of larger bodies is not read for the list, in bytes."""

_LONGEST = 2000
"""Of a name or a path, in characters."""


def key_of(exchange: Exchange) -> tuple[str, int]:
    """Which request a row is about."""
    return exchange.session, exchange.number


def row(exchange: Exchange) -> dict[str, Any]:
    """The row of a request, which may not be over yet."""
    fields = exchange.shown(_FIELDS)
    for name in ("model", "path", "scenario", "method"):
        if fields[name] is not None:
            fields[name] = shorten(fields[name], _LONGEST)
    problems = exchange.problems
    return {
        **fields,
        "open": exchange.in_use,
        "problem": shorten(problems[0], 300) if problems else "",
        "problems": len(problems),
        "text": user_text(exchange),
    }


def user_text(exchange: Exchange) -> str:
    """What the user said last, shortened; "" where that cannot be read, or not at once."""
    request = None if len(exchange.body) > _LARGEST else parsed_request(exchange)
    return "" if request is None else shorten(" ".join(last_user_text(request).split()), 200)


def session_json(session: Session, setups: SessionSetups) -> dict[str, Any]:
    """The entry of a session."""
    setup = setups.find(session.name)
    request = None if setup is None else setup.request
    return {
        "session": session.name,
        "requests": session.count,
        "dropped": session.dropped,
        "outcomes": dict(session.outcomes()),
        "scenarios": None if request is None else [own.name for own in request.scenarios],
    }
