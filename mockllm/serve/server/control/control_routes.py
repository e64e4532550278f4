"""The routes under `/_mockllm/`: what a test asks the server about itself.

`access` decides who may use them. Journals hold hundreds of megabytes. So no list of all entries is
made, and no text of all of them: what is made at a time is one entry.
"""

from __future__ import annotations

import asyncio
import uuid
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from mockllm.core.errors import RequestError, UsageError
from mockllm.core.jsontext import json_bytes
from mockllm.core.record import record
from mockllm.core.text import did_you_mean
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session, Sessions
from mockllm.scenario.model import Scenario
from mockllm.serve.interception.headers import DEFAULT, SESSION_HEADER
from mockllm.serve.server.http.request_reading import (
    Arrival,
    duration,
    flag,
    names,
    whole_number,
)
from mockllm.serve.server.sessions.session_setup import (
    SessionRequest,
    SessionSetup,
    read_session_request,
    session_gone,
)
from mockllm.serve.server.sources import Sources
from mockllm.serve.server.state.store import Names
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import dumps

if TYPE_CHECKING:
    from mockllm.checking.conversations.mcp.executed_calls import ExecutedCall
    from mockllm.serve.server.gates import Gates
    from mockllm.serve.server.state.shared_sessions import SharedSessions

CONTROL_PREFIX = "/_mockllm/"


def base_urls(root: str) -> dict[str, str]:
    """The base URL to give to a client of each protocol; `root` has no slash at its end."""
    return {name: root + address.base_path for name, address in PROTOCOLS.addresses.items()}


def scenario_summary(scenario: Scenario) -> dict[str, Any]:
    """A scenario as JSON values; without `apis` of its own it plays over all protocols."""
    return {
        "name": scenario.name,
        "description": scenario.description,
        "route": None if scenario.route is None else str(scenario.route),
        "apis": [] if not scenario.is_conversation else list(scenario.apis or PROTOCOLS),
        "turns": len(scenario.turns),
        "tools": [tool.name for tool in (scenario.server or scenario).tools],
    }


@record
class Control:
    """Answers the control routes; a method each, found by method and path.

    Args:
        local: the sessions that this process has answered in.
        sessions: these, or those that other processes share.
        gates: of the server, made with the first one.
    """

    sources: Sources
    local: Sessions
    sessions: LocalSessions | SharedSessions
    gates: Callable[[], Gates]

    async def handle(
        self, arrival: Arrival, session: str | None = None
    ) -> tuple[int, dict[str, Any] | AsyncIterator[bytes]]:
        """Status and JSON body; of a journal, the text of the body in parts.

        Args:
            arrival: its body has been read.
            session: that the request names besides its query; None: none.
        """
        query = {} if session is None else {"session": session}
        query |= {name: value for name, value in arrival.query.items() if value}
        steps = arrival.path.removeprefix(CONTROL_PREFIX).strip("/").split("/")
        # Of an answer to HEAD, `deliver` leaves out the body.
        method = "GET" if arrival.method == "HEAD" else arrival.method
        match method, *steps:
            case "GET", "health":
                return 200, self.health()
            case "GET", "scenarios":
                return 200, await self._scenarios(query.get("session"))
            case "GET", "journal":
                return 200, await self._journal(query)
            case "GET", "verify":
                return 200, await self._verify(query)
            case "GET", "sessions":
                return 200, await self._list()
            case "POST", "sessions":
                return 201, await self._create(arrival)
            case "GET", "sessions", name:
                return 200, self._summary(await self._find(name))
            case "POST", "sessions", name, "reset":
                return 200, await self._reset(name)
            case "DELETE", "sessions", name:
                return 200, await self._delete(name)
            case "GET", "gates", gate:
                wait = duration(query, "wait")
                return 200, await self.show_gate(query.get("session", DEFAULT), gate, wait)
            case "POST", "gates", gate, "release":
                return 200, await self.release(query.get("session", DEFAULT), gate)
        wrong = f"{arrival.method} {CONTROL_PREFIX}{'/'.join(steps)}"
        raise RequestError(
            f"{wrong} is not a control route. There are: GET health, "
            "ready, metrics, scenarios[?session=], journal[?session=&after=&limit=], "
            "verify[?session=], sessions, sessions/{name}, gates/{name}[?session=&wait=]; "
            "POST sessions, sessions/{name}/reset, gates/{name}/release[?session=]; "
            "DELETE sessions/{name}.",
            status=404,
        )

    def health(self) -> dict[str, Any]:
        return {
            "status": "ok",
            "scenarios": len(self.sources.player.served.scenarios),
            "apis": list(PROTOCOLS),
            "sessions": len(self.local),
        }

    async def _scenarios(self, session: str | None) -> dict[str, Any]:
        player = self.sources.player
        if session is not None:
            await self.sessions.refresh(session)
            player = self.sources.player_of(session)
        return {"scenarios": [scenario_summary(scenario) for scenario in player.served.scenarios]}

    async def _journal(self, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        page = read_page(query)
        name = query.get("session")
        sessions = await self.sessions.load() if name is None else [await self._find(name)]
        return journal_parts(sessions, page, self._calls_of)

    def _calls_of(self, session: Session) -> Iterable[ExecutedCall]:
        player = self.sources.player_of(session.name)
        if not player.has_servers:
            return ()
        # Imported here: serving does not need it.
        from mockllm.checking.conversations.judge import calls_of

        return calls_of(session, player.served.by_name)

    async def _verify(self, query: Mapping[str, str]) -> dict[str, Any]:
        # Imported here: serving does not need it.
        from mockllm.checking.conversations.judge import verify

        session = await self._find(query.get("session", DEFAULT))
        try:
            verification = verify(
                session,
                self.sources.player_of(session.name).served.by_name,
                depth=whole_number(query, "depth", 50),
                leave_out=names(query, "leave_out"),
                require=names(query, "require"),
                once=flag(query, "once"),
                allow_unplayed=flag(query, "allow_unplayed"),
                allow_no_requests=flag(query, "allow_no_requests"),
            )
        except UsageError as error:
            raise RequestError(f"leave_out and require: {error}", param="leave_out") from None
        return {"session": session.name, **verification.as_json()}

    async def _list(self) -> dict[str, Any]:
        sessions = await self.sessions.load()
        for session in sessions:
            await self.sessions.refresh(session.name)
        evicted = (await self.sessions.names()).evicted
        return {"sessions": [*map(self._summary, sessions)], "evicted": list(evicted)}

    async def _find(self, name: str) -> Session:
        session = await self.sessions.find(name)
        if session is None:
            names = ", ".join((await self.sessions.names()).known) or "none"
            raise RequestError(f"There is no session {name!r}; there are: {names}.", status=404)
        return session

    def _summary(self, session: Session) -> dict[str, Any]:
        return session_summary(session, self.sources.setups.find(session.name))

    async def _delete(self, name: str) -> dict[str, Any]:
        await self._find(name)
        await self.sessions.delete(name)
        setup = self.sources.setups.find(name)
        if setup is not None and (setup.gone or setup.request is not None):
            self.sources.setups.release(name)
        return {"session": name, "deleted": True}

    async def _reset(self, name: str) -> dict[str, Any]:
        await self._find(name)
        setup = self.sources.setups.find(name)
        if setup is not None and setup.gone:
            raise session_gone(name)
        return {**self._summary(await self.sessions.reset(name)), "reset": True}

    async def release(self, session: str, gate: str) -> dict[str, Any]:
        """Opens a gate of a session, which need not have had a request yet.

        Raises:
            RequestError: none of its scenarios has the gate, or it is gone.
        """
        await self._check_gate(session, gate)
        await self.gates().release(session, gate)
        return {"session": session, "gate": gate, "open": True}

    async def show_gate(self, session: str, gate: str, seconds: float) -> dict[str, Any]:
        """Whether a gate is open, and the requests whose answers wait there; if it is closed, as
        soon as there are some.

        Args:
            seconds: after which there need not be any.

        Raises:
            RequestError: as `release`.
        """
        await self._check_gate(session, gate)
        is_open = await self.gates().is_open(session, gate)
        find = partial(self.sessions.find, session)
        waiting = await self.gates().find_waiting(find, gate, 0 if is_open else seconds)
        return {"session": session, "gate": gate, "open": is_open, "waiting": list(waiting)}

    async def _check_gate(self, session: str, gate: str) -> None:
        await self.sessions.refresh(session)
        setup = self.sources.setups.find(session)
        if setup is not None and setup.gone:
            raise session_gone(session)
        scenarios = self.sources.player_of(session).served.scenarios
        known = dict.fromkeys(name for scenario in scenarios for name in scenario.gates)
        if gate not in known:
            there_are = f"there are: {', '.join(known) or 'none'}."
            hint = did_you_mean(gate, known, there_are)
            message = f"No scenario of the session {session!r} has a gate {gate!r}; {hint}"
            raise RequestError(message, status=404)

    async def _create(self, arrival: Arrival) -> dict[str, Any]:
        served, body = self.sources.player, arrival.body

        def read() -> tuple[SessionRequest, Player | None]:
            request = read_session_request(body, lambda: served.served.by_name)
            player = self.sources.setups.make_player(request, served) if request.has_setup else None
            return request, player

        # Many scenarios take long to read; the other sessions do not wait for that.
        request, player = await asyncio.to_thread(read)
        name = request.name or uuid.uuid4().hex[:12]
        if player is not None:
            await self._check_new(name)
            self.sources.setups.add(name, request, player, served)
        session = await self.sessions.make(name, None if player is None else body)
        return self._creation_answer(session, arrival.headers["host"])

    async def _check_new(self, name: str) -> None:
        known = await self.sessions.find(name)
        setup = self.sources.setups.find(name)
        if (known is None or known.evicted) and (setup is None or setup.gone):
            return
        raise RequestError(
            f"The session was not made: there is a session {name!r}. Delete it (DELETE "
            f"/_mockllm/sessions/{name}), or choose another name.",
            status=409,
        )

    def _creation_answer(self, session: Session, host: str) -> dict[str, Any]:
        from mockllm.wire.protocols.environment import client_environment

        options = self.sources.options
        name, server = session.name, f"{'https' if options.tls else 'http'}://{host}"
        root = f"{server}/s/{name}"
        urls = base_urls(root)
        setup = self.sources.setups.find(name)
        answer = {
            "session": name,
            "evicted": session.evicted,
            "header": {SESSION_HEADER: name},
            "base_urls": urls,
            "url": root,
            "verify": f"{server}{CONTROL_PREFIX}verify?session={name}",
            "journal": f"{server}{CONTROL_PREFIX}journal?session={name}",
            "variables": {**client_environment(urls), "MOCKLLM_URL": root},
        }
        if options.paths:
            answer["paths"] = [{"api": api, "url": root + path} for api, path in options.paths]
        return answer | _setup_json(setup)


def session_summary(session: Session, setup: SessionSetup | None) -> dict[str, Any]:
    """A session as the control routes and the live page list it."""
    return {
        "session": session.name,
        "requests": session.count,
        "dropped": session.dropped,
        "evicted": session.evicted,
        "outcomes": dict(session.outcomes()),
        "played": {name: sorted(turns) for name, turns in session.played.items()},
        **_setup_json(setup),
    }


def _setup_json(setup: SessionSetup | None) -> dict[str, Any]:
    """The settings of a session that was made over HTTP."""
    if setup is None or setup.request is None:
        return {}
    scenarios = [scenario.name for scenario in setup.request.scenarios]
    return {"scenarios": scenarios, "quirks": list(setup.request.quirks)}


@record
class LocalSessions:
    """The sessions of this process, for control routes and pages. Nothing here waits."""

    shared = False

    _sessions: Sessions

    async def names(self) -> Names:
        """The names of all sessions."""
        return Names(self._sessions.names, self._sessions.evicted)

    async def load(self) -> list[Session]:
        """All sessions."""
        return list(self._sessions)

    async def find(self, name: str) -> Session | None:
        """A session; of one that was evicted only its name is known."""
        return self._sessions.find(name)

    async def refresh(self, name: str) -> None:
        """Sets a session up as it was requested last: it is, in the only process."""

    async def make(self, name: str, setup: bytes | None) -> Session:
        """A session, made if need be, or anew with the body that asks for its setup."""
        if setup is not None:
            self._sessions.delete(name)  # what is known of one that was evicted
        return self._sessions.get(name)

    async def reset(self, name: str) -> Session:
        """The session without what is known of it, but with its setup."""
        self._sessions.delete(name)
        return self._sessions.get(name)

    async def delete(self, name: str) -> None:
        """Deletes a session with its setup."""
        self._sessions.delete(name)


@record
class JournalPage:
    """The part of a journal that is requested.

    Args:
        after: the number of the entry before the first one.
        limit: the most entries; None: all.
        paged: whether the request is for a page: only its answer says what comes next.
    """

    after: int = 0
    limit: int | None = None
    paged: bool = False


def read_page(query: Mapping[str, str]) -> JournalPage:
    """The page that a query names; the whole journal without `after` and `limit`.

    Raises:
        RequestError: one of them is wrong, or there is no `session`, within which entries are
            numbered.
    """
    if "after" not in query and "limit" not in query:
        return JournalPage()
    if "session" not in query:
        raise RequestError(
            "after and limit are for the journal of one session, which numbers its entries. Add "
            "session=default, or the name of another one.",
            param="session",
        )
    limit = whole_number(query, "limit", least=1) if "limit" in query else None
    return JournalPage(whole_number(query, "after"), limit, paged=True)


async def journal_parts(
    sessions: Iterable[Session],
    page: JournalPage,
    calls_of: Callable[[Session], Iterable[ExecutedCall]] = lambda _: (),
) -> AsyncIterator[bytes]:
    """The JSON object of a journal or a page, in parts that are an entry each at most.

    The journals may change meanwhile: an entry that leaves its journal before it is written is
    left out, and counted in `dropped`.

    Args:
        calls_of: the calls of the model that operations of MCP servers executed.
    """
    yield b'{"exchanges":['
    separator = b""
    dropped = sent = 0
    gaps: dict[str, None] = {}
    last, more = page.after, False
    for session in sessions:
        entries = session.entries
        if not entries:
            last = max(last, session.count)
        shown_entries = _of_page(entries, page)
        calls: dict[int, ExecutedCall] = {}
        if any(entry.played.mcp for entry in shown_entries):  # all requests are read for them
            calls = {number: call for call in calls_of(session) for number in call.operations}
        for entry in shown_entries:
            if entry.dropped:
                continue
            shown = entry.as_json()
            if (call := calls.get(entry.number)) is not None:
                shown["mcp"]["call"] = {"exchange": call.exchange, "id": call.id}
            yield separator + json_bytes(dumps(shown))
            separator = b","
            last = entry.number
            sent += 1
        more = session.count > last
        dropped += session.dropped
        gaps |= dict.fromkeys(session.gaps)
    end: dict[str, Any] = {"dropped": dropped}
    if gaps:
        end["gaps"] = list(gaps)
    if page.paged:
        end |= {"missed": last - page.after - sent, "next": last, "more": more}
    yield b"]," + dumps(end).encode()[1:]


def _of_page(entries: tuple[Exchange, ...], page: JournalPage) -> tuple[Exchange, ...]:
    if not page.paged:
        return entries
    start = bisect_right(entries, page.after, key=lambda entry: entry.number)
    return entries[start:] if page.limit is None else entries[start : start + page.limit]
