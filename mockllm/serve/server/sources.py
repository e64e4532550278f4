"""The sources of a server's answers: its scenarios, those of sessions, and recorded services."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mockllm.core.errors import RequestError
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.replay.call import Answered, refuse
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.exchange import NOTHING, Played
from mockllm.scenario.ignoring import with_ignored
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import routes_of_several_hosts
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.routing import PlainRoutes, Routes, path_routes
from mockllm.serve.server.sessions.session_setup import SessionRequest, SessionSetups, session_gone
from mockllm.wire.protocols import PROTOCOLS

if TYPE_CHECKING:
    from mockllm.serve.server.options import RecordOptions
    from mockllm.serve.server.recording.proxy import Proxy
    from mockllm.serve.server.recording.recorded_lines import RecordedLines
    from mockllm.serve.server.sessions.session_setup import SessionSetup

_DEFAULT_SETUP = SessionRequest()
"""A session like all others of the server."""


class Sources:
    """Players and recorders of one server and its sessions, and its routes.

    Args:
        running: the number of answers that take time and are on their way.
        began: when the server started, in seconds of `time.perf_counter`.
    """

    def __init__(
        self,
        scenarios: Iterable[Scenario],
        options: ServerOptions,
        running: Callable[[], int],
        began: float = 0.0,
    ) -> None:
        self.options = options
        self.began = began
        self._running = running
        self.reload(scenarios)
        self.proxy: Proxy | None = None
        self.recorded: RecordedLines | None = None
        """What the recorder reported, for the live page; None where nothing is recorded."""
        self.setups = SessionSetups(self._make_player)
        self.routes = Routes(PROTOCOLS, path_routes(PROTOCOLS.addresses, options.paths))
        self.plain = PlainRoutes(self.routes)

    def _make_player(
        self,
        scenarios: Iterable[Scenario] | ScenarioIndex,
        session: SessionRequest = _DEFAULT_SETUP,
    ) -> Player:
        """A player with the options of the server and of a session."""
        options = self.options
        if options.ignore and not isinstance(scenarios, ScenarioIndex):
            scenarios = [with_ignored(scenario, options.ignore) for scenario in scenarios]
        return Player(
            scenarios,
            strict=options.strict,
            fallback=options.fallback,
            quirks=(*options.quirks, *session.quirks),
            named=session.named,
            speed=options.speed if session.speed is None else session.speed,
            faults=options.faults if session.faults is None else session.faults,
            latency=options.latency if session.latency is None else session.latency,
            running=self._running,
        )

    def reload(self, scenarios: Iterable[Scenario]) -> None:
        """Serves other scenarios from the next request on."""
        self._scenarios = tuple(scenarios)
        self.player = self._make_player(self._scenarios)
        if self.options.notice is not None and self.options.intercept is None:
            for _, warning in routes_of_several_hosts(self._scenarios):
                self.options.notice(f"warning: {warning}")

    def start_recording(self, options: RecordOptions) -> None:
        """Lets real services answer, as the options say, and records what they do.

        Raises:
            ScenarioError: what was recorded before cannot be loaded.
        """
        from mockllm.serve.server.recording.proxy import Proxy

        names = [scenario.name for scenario in self._scenarios]
        if self.options.page is not None and options.mode != "none":
            from mockllm.serve.server.recording.recorded_lines import RecordedLines

            self.recorded = RecordedLines(options)
            options = self.recorded.options
        faults, patience = self.options.faults, self.options.patience
        self.proxy = Proxy(options, self._serving, names, faults, patience, self.began)

    def _serving(self, recorded: tuple[Scenario, ...]) -> Callable[[], None]:
        """A function that serves recorded scenarios beside the others; they are indexed before, so
        that the event loop need not wait for it."""
        by_name = {scenario.name: scenario for scenario in (*self._scenarios, *recorded)}
        player = self._make_player(by_name.values())

        def swap() -> None:
            self.player = player

        return swap

    async def close(self) -> None:
        """Waits until everything that was recorded is on the disk."""
        await self.setups.close()
        if self.proxy is not None:
            await self.proxy.close()

    def player_of(self, session: str) -> Player:
        """The player that decides about the answers in a session."""
        setup = self.setups.find(session)
        return self.player if setup is None else self.setups.player(setup, self.player)

    def of_session(self, session: str, setup: SessionSetup) -> tuple[Player, Proxy | None]:
        """The player and the recorder of a session that has a setup.

        Raises:
            RequestError: it is over.
        """
        if setup.gone:
            raise session_gone(session, setup.why)
        proxy = setup.proxy or (None if setup.is_alone else self.proxy)
        return self.setups.player(setup, self.player), proxy

    def refusal(self, path: str, error: RequestError, known: Played = NOTHING) -> Answered:
        """The error answer in the form of the API that has a path."""
        return refuse(self.routes.nearest(path), error, known)
