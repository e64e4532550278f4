"""The routes of the live page, below `/_mockllm/ui`: its files, and the JSON that they show.

`ControlAccess` has let the request in.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from mockllm.core.errors import MockLLMError, RequestError, UsageError
from mockllm.core.http import TimedBytes
from mockllm.play.replay.compilation.http_answer import HttpAnswer, bytes_answer, json_answer
from mockllm.play.replay.sessions.exchange import Exchange, Sent
from mockllm.play.replay.sessions.session import Session
from mockllm.play.replay.turn_answer import route_turn_answer, turn_answer, usual_request
from mockllm.scenario.model import Scenario
from mockllm.serve.server.control.server_view import ServerView
from mockllm.serve.server.http.delivery import deliver
from mockllm.serve.server.http.request_reading import Arrival, whole_number
from mockllm.serve.ui.live import Live, row
from mockllm.serve.ui.masking import mask_target
from mockllm.serve.ui.shown_answers import made_answer, sent_of, stream_json
from mockllm.wire.protocols import PROTOCOLS

PREFIX = "/_mockllm/ui"


class LivePage:
    """Answers the requests of the live page."""

    def __init__(self, server: ServerView) -> None:
        self._server, self._sources = server, server.sources
        self.live = Live(server)
        self.close, self.announce_reload = self.live.close, self.live.announce_reload
        recorded = self._sources.recorded
        if recorded is not None:
            recorded.publish = lambda line: self.live.publish("recorded", [line])

    async def respond(
        self, arrival: Arrival, sent: Sent, fields: Mapping[str, str]
    ) -> web.StreamResponse:
        request, headers = arrival.request, arrival.headers
        steps = [unquote(step) for step in arrival.path.removeprefix(PREFIX).strip("/").split("/")]
        if request.method not in ("GET", "HEAD"):
            raise RequestError(f"{PREFIX} is only read: send GET.", status=405)
        if steps == ["events"]:
            return await self.live.serve(request, dict(fields), headers.get("host", ""), sent)
        value = await self._read(steps, arrival.query, headers.get("host", ""))
        if value is None:
            return await deliver(request, file_answer("/".join(steps), headers), sent)
        fields = {"x-content-type-options": "nosniff", **fields}
        return await deliver(request, json_answer(200, value, fields), sent)

    async def _read(
        self, steps: list[str], query: Mapping[str, str], host: str
    ) -> dict[str, Any] | None:
        """The JSON of a route; None where the path names a file."""
        match steps:
            case ["request", session, number]:
                return await self._request(session, number)
            case ["scenarios"]:
                return await self._scenarios()
            case ["scenario", name]:
                return await self._scenario(name, host)
            case ["play", name]:
                return await self._play(name, query)
            case ["recording"]:
                if self._sources.recorded is None:
                    raise RequestError("Nothing is recorded here.", status=404)
                return self._sources.recorded.as_json()
        return None

    # One request

    async def _request(self, name: str, number: str) -> dict[str, Any]:
        session = await self._session(name)
        exchange = _find_entry(session, number)
        player = self._sources.player_of(name)
        scenario = player.served.by_name.get(exchange.scenario or "")
        return await asyncio.to_thread(self._detail, session, exchange, scenario)

    async def _session(self, name: str) -> Session:
        session = await self._server.sessions.find(name)
        if session is None:
            raise RequestError(f"There is no session {name[:128]!r} any more.", status=404)
        return session

    def _detail(
        self, session: Session, exchange: Exchange, scenario: Scenario | None
    ) -> dict[str, Any]:
        from mockllm.serve.ui.connection import connection_json
        from mockllm.serve.ui.explanation import (
            calls_json,
            conversation_json,
            explanation_json,
            findings_json,
        )
        from mockllm.serve.ui.recorded_request import recorded_json

        player = self._sources.player_of(session.name)
        protocol = PROTOCOLS.get(exchange.played.api or "")
        sent, why = sent_of(exchange, self._server.sent, scenario, self._sources.options.speed)
        findings, findings_why = findings_json(session, player.served.by_name, exchange.number)
        detail = {
            "entry": exchange.as_json(),
            "row": row(exchange),
            "conversation": conversation_json(exchange.played.api or "", exchange),
            "answer": None if sent is None else stream_json(sent, protocol),
            "answer_why": why,
            "socket": connection_json(session, exchange, self._server.sent, player.speed),
            "explanation": explanation_json(player, exchange),
            "recorded": recorded_json(exchange, scenario),
            "calls": calls_json(session, player.served.by_name, exchange.number),
            "findings": findings,
            "findings_why": findings_why,
        }
        return {name: mask_target(value, exchange) for name, value in detail.items()}

    # Scenarios

    async def _scenarios(self) -> dict[str, Any]:
        from mockllm.serve.ui.scenario_json import scenario_entry

        played = await self._play_counts()
        scenarios = self._sources.player.served.scenarios
        return {
            "scenarios": [
                scenario_entry(scenario, played.get(scenario.name, {})) for scenario in scenarios
            ],
            "problems": self.live.problems(),
            "at": self._server.loaded,
        }

    async def _scenario(self, name: str, host: str) -> dict[str, Any]:
        from mockllm.serve.ui.scenario_json import scenario_entry, scenario_json

        scenario = await self._find_scenario(name)
        entry = scenario_entry(scenario, (await self._play_counts()).get(name, {}))
        problems = self.live.problems()
        return await asyncio.to_thread(scenario_json, scenario, entry, problems, f"http://{host}")

    async def _play_counts(self) -> dict[str, dict[int, int]]:
        """The plays of each turn in all sessions, as far as journals have them."""
        played: dict[str, dict[int, int]] = defaultdict(Counter)
        for exchange in await self.live.exchanges():
            scenario, turn = exchange.scenario, exchange.turn
            if exchange.outcome in ("played", "error") and scenario and turn is not None:
                played[scenario][turn] += 1
        return played

    async def _find_scenario(self, name: str) -> Scenario:
        scenario = self._sources.player.served.by_name.get(name)
        if scenario is not None:
            return scenario
        names = await self._server.sessions.names()
        for session in names.known:  # which may have scenarios of their own
            scenario = self._sources.player_of(session).served.by_name.get(name)
            if scenario is not None:
                return scenario
        raise RequestError(f"No scenario {name[:128]!r} is served now.", status=404)

    async def _play(self, name: str, query: Mapping[str, str]) -> dict[str, Any]:
        scenario = await self._find_scenario(name)
        playable = [name for name in PROTOCOLS if scenario.plays_over(name)]
        api = query.get("api") or (playable[0] if playable else "")
        if scenario.route is None and api not in playable:
            raise RequestError(
                f"{name!r} does not play over {api!r}; it plays over: {', '.join(playable)}.",
                param="api",
            )
        turn, attempt = whole_number(query, "turn"), whole_number(query, "attempt") or None
        speed = self._sources.options.speed

        def make() -> dict[str, Any]:
            if scenario.route is not None:
                return stream_json(made_answer(route_turn_answer(scenario, turn), 1.0), None)
            protocol = PROTOCOLS[api]
            request = usual_request(scenario, protocol, stream=True, fields={})
            answer = turn_answer(scenario, turn, protocol, request, attempt=attempt)
            return stream_json(made_answer(answer, speed or 1.0), protocol)

        try:
            return await asyncio.to_thread(make)
        except UsageError as error:
            raise RequestError(f"{error}.", status=404) from None
        except (MockLLMError, OSError) as error:
            raise RequestError(f"The turn cannot be played: {error}", status=422) from None


def _find_entry(session: Session, number: str) -> Exchange:
    wanted = int(number) if number.isascii() and number.isdecimal() and len(number) < 18 else -1
    for entry in session.entries:
        if entry.number == wanted:
            return entry
    if 0 < wanted <= session.count:
        raise RequestError(
            f"Request {wanted} has left the journal of the session {session.name!r}: a journal "
            f"keeps the last {session.max_exchanges} requests, and of the others some "
            "that nothing answered.",
            status=404,
        )
    raise RequestError(f"The session {session.name!r} has no request {number[:40]!r}.", status=404)


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a page may load and run: only the files here, and nothing inline."""

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@cache
def names() -> frozenset[str]:
    """The names of the files."""
    site = files("mockllm.serve.ui") / "site"
    return frozenset(file.name for file in site.iterdir() if file.name.rpartition(".")[2] in _TYPES)


@cache
def _read(name: str) -> tuple[bytes, str]:
    """A file, and its tag: another one for other bytes."""
    data = (files("mockllm.serve.ui") / "site" / name).read_bytes()
    return data, f'"{hashlib.sha256(data).hexdigest()[:32]}"'


def file_answer(name: str, headers: Mapping[str, str]) -> HttpAnswer:
    """The answer with a file, or that the browser has it already."""
    name = name or "index.html"
    if name not in names():
        raise RequestError(f"The live page has no file {name[:80]!r}.", status=404)
    data, tag = _read(name)
    fields = {
        "content-type": _TYPES[name.rpartition(".")[2]],
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
        "etag": tag,
    }
    if headers.get("if-none-match") == tag:
        return bytes_answer(304, fields.items(), (), streamed=False, bodiless=True)
    return bytes_answer(200, fields.items(), [TimedBytes(0, data)], streamed=False)
