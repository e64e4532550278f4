"""The routes under `/_mockllm/`: what a test asks the server about itself.

They show what clients sent, so they answer only to clients that address the server by a name
of this machine: a page in a browser must not read them, whatever name it gives to 127.0.0.1.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mockllm.errors import RequestError, UsageError
from mockllm.protocols.base import WireProtocol
from mockllm.replay.body import parse_object
from mockllm.replay.player import Player
from mockllm.replay.session import Session, Sessions
from mockllm.scenario.model import Scenario

__all__ = ["CONTROL_PREFIX", "Control", "base_urls"]

CONTROL_PREFIX = "/_mockllm/"
SESSION_NAME = r"[A-Za-z0-9._-]{1,128}"


def base_urls(protocols: Mapping[str, WireProtocol], root: str) -> dict[str, str]:
    """The base URL to give to a client of each protocol; `root` has no slash at its end."""
    return {name: root + protocol.base_path for name, protocol in protocols.items()}


def _own_name(name: str, allowed: tuple[str, ...]) -> bool:
    if name in ("localhost", *allowed) or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _flag(query: Mapping[str, str], name: str) -> bool:
    value = query.get(name, "false")
    if value not in ("true", "false"):
        raise RequestError(f"{name} must be true or false, got {value!r}.", param=name)
    return value == "true"


def _names(query: Mapping[str, str], name: str) -> frozenset[str]:
    return frozenset(filter(None, query.get(name, "").split(",")))


class Control:
    """Answers the control routes; a method each, found by method and path."""

    def __init__(
        self,
        sessions: Sessions,
        protocols: Mapping[str, WireProtocol],
        allowed_hosts: tuple[str, ...],
        player_of: Callable[[str], Player],
    ) -> None:
        self._sessions = sessions
        self._player_of = player_of
        self._protocols = protocols
        self._allowed = allowed_hosts

    def handle(
        self,
        player: Player,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON body.

        Args:
            path: with the query, without the session prefix.

        Raises:
            RequestError: refused, or not known.
        """
        self._guard(headers)
        parts = urlsplit(path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        steps = parts.path.removeprefix(CONTROL_PREFIX).strip("/").split("/")
        match method, *steps:
            case "GET", "health":
                return 200, self._health(player)
            case "GET", "scenarios":
                return 200, self._scenarios(player)
            case "GET", "journal":
                return 200, self._journal(query)
            case "GET", "verify":
                return 200, self._verify(query)
            case "GET", "sessions":
                return 200, self._list()
            case "POST", "sessions":
                return self._create(headers, body)
            case "GET", "sessions", name:
                return 200, self._summary(self._find(name))
            case "DELETE", "sessions", name:
                self._find(name)
                self._sessions.delete(name)
                return 200, {"session": name, "deleted": True}
        raise RequestError(
            f"{method} {parts.path} is not a control route. There are: GET health, scenarios, "
            "journal[?session=], verify[?session=], sessions, sessions/{name}; POST sessions; "
            "DELETE sessions/{name}.",
            status=404,
        )

    def _guard(self, headers: Mapping[str, str]) -> None:
        host = headers.get("host", "")
        name = (urlsplit(f"//{host}").hostname or "") if host else ""
        if not _own_name(name, self._allowed):
            raise RequestError(
                f"The control routes do not answer to the host {host!r}. Use 127.0.0.1 or "
                f"localhost, or start the server with --allow-host {name or 'NAME'}.",
                status=403,
            )
        origin = headers.get("origin")
        if origin is not None and not self._same(origin, host):
            raise RequestError(
                f"The control routes do not answer to pages from {origin!r}. Start the server "
                f"with --allow-host {urlsplit(origin).hostname or 'NAME'} to allow it.",
                status=403,
            )

    def _same(self, origin: str, host: str) -> bool:
        parts = urlsplit(origin)
        return parts.netloc == host or (parts.hostname or "") in self._allowed

    def _health(self, player: Player) -> dict[str, Any]:
        return {
            "status": "ok",
            "scenarios": len(player.served.scenarios),
            "apis": list(self._protocols),
            "sessions": len(self._sessions),
        }

    def _scenarios(self, player: Player) -> dict[str, Any]:
        return {
            "scenarios": [
                {
                    "name": scenario.name,
                    "description": scenario.description,
                    "route": None if scenario.route is None else str(scenario.route),
                    "apis": self._apis(scenario),
                    "turns": len(scenario.turns),
                    "tools": [tool.name for tool in scenario.tools],
                }
                for scenario in player.served.scenarios
            ]
        }

    def _apis(self, scenario: Scenario) -> list[str]:
        return [] if scenario.route is not None else list(scenario.apis or self._protocols)

    def _journal(self, query: Mapping[str, str]) -> dict[str, Any]:
        name = query.get("session")
        sessions = list(self._sessions) if name is None else [self._find(name)]
        return {
            "exchanges": [
                exchange.as_json() for session in sessions for exchange in session.journal
            ],
            "dropped": sum(session.dropped for session in sessions),
        }

    def _verify(self, query: Mapping[str, str]) -> dict[str, Any]:
        # Imported here: serving does not need it.
        from mockllm.checking.conversations.judge import verify

        session = self._find(query.get("session", "default"))
        given = query.get("depth", "50")
        if not given.isdecimal():
            raise RequestError(f"depth must be a whole number, got {given!r}.", param="depth")
        try:
            found = verify(
                session,
                self._player_of(session.name).served.by_name,
                depth=int(given),
                leave_out=_names(query, "leave_out"),
                require=_names(query, "require"),
                once=_flag(query, "once"),
                allow_unplayed=_flag(query, "allow_unplayed"),
            )
        except UsageError as error:
            raise RequestError(f"leave_out and require: {error}", param="leave_out") from None
        return {"session": session.name, **found.as_json()}

    def _list(self) -> dict[str, Any]:
        return {
            "sessions": [self._summary(session) for session in self._sessions],
            "evicted": list(self._sessions.evicted),
        }

    def _find(self, name: str) -> Session:
        session = self._sessions.find(name)
        if session is None:
            names = ", ".join(s.name for s in self._sessions) or "none"
            raise RequestError(f"There is no session {name!r}; there are: {names}.", status=404)
        return session

    def _summary(self, session: Session) -> dict[str, Any]:
        return {
            "session": session.name,
            "requests": session.count,
            "dropped": session.dropped,
            "evicted": session.evicted,
            "outcomes": dict(session.outcomes()),
            "played": {name: sorted(turns) for name, turns in session.played.items()},
        }

    def _create(self, headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
        import re
        import uuid

        fields = parse_object(body) if body.strip() else {}
        name = fields.get("session")
        if name is None:
            name = uuid.uuid4().hex[:12]
        if not isinstance(name, str) or not re.fullmatch(SESSION_NAME, name):
            raise RequestError(
                f"session must be a name of 1 to 128 letters, digits, '.', '_' and '-', got "
                f"{json.dumps(name)[:80]}.",
                param="session",
            )
        session = self._sessions.get(name)
        root = f"http://{headers['host']}/s/{name}"
        return 201, {
            "session": name,
            "evicted": session.evicted,
            "header": {"x-mockllm-session": name},
            "base_urls": base_urls(self._protocols, root),
        }
