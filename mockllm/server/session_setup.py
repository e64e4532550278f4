"""Sessions with a setup of their own: the scenarios that answer, and a recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mockllm.replay.player import Player
from mockllm.scenario.model import Scenario
from mockllm.server.options import RecordOptions

if TYPE_CHECKING:
    from mockllm.server.proxy import Proxy

__all__ = ["SessionSetup", "SessionSetups"]


@dataclass(slots=True)
class SessionSetup:
    """The setup of one session: `player` chooses its answers, `proxy` records."""

    player: Player
    proxy: Proxy | None = None


class SessionSetups:
    """The setups of sessions, by their names.

    Args:
        make: a player with the options of the server, of scenarios, the one that is named if
            any is, further quirks, and the kind of player.
    """

    def __init__(
        self,
        make: Callable[[Iterable[Scenario], str | None, Iterable[str], type[Player]], Player],
    ) -> None:
        self._make = make
        self._setups: dict[str, SessionSetup] = {}
        self.find: Callable[[str], SessionSetup | None] = self._setups.get
        """The setup of a session; None where it has that of the server."""

    def assign(
        self,
        session: str,
        scenarios: Iterable[Scenario],
        *,
        named: str | None = None,
        quirks: Iterable[str] = (),
        record: RecordOptions | None = None,
        in_order: bool = False,
    ) -> None:
        """Serves a session from scenarios of its own, from the next request on; the arguments
        are those of `MockServer.assign`.

        Raises:
            ScenarioError: the folder of `record` has scenarios that cannot be loaded.
        """
        served = tuple(scenarios)
        before = self._setups.get(session)
        proxy = before.proxy if before is not None else None
        if record is not None:
            from mockllm.server.proxy import Proxy

            proxy = Proxy(record, None, [scenario.name for scenario in served])
        player = self._make(served, named, quirks, _kind(in_order))
        self._setups[session] = SessionSetup(player, proxy)

    async def end_recording(self, session: str) -> None:
        """Forwards nothing more in a session; every exchange is on the disk afterwards."""
        setup = self._setups.get(session)
        if setup is not None and setup.proxy is not None:
            await setup.proxy.close()
            setup.proxy = None

    async def close(self) -> None:
        """Ends all recordings."""
        for session in tuple(self._setups):
            await self.end_recording(session)

    def release(self, session: str) -> None:
        """Removes the setup of a session."""
        self._setups.pop(session, None)


def _kind(in_order: bool) -> type[Player]:
    if not in_order:
        return Player
    from mockllm.replay.ordered import OrderedPlayer

    return OrderedPlayer
