"""What sessions have of their own: the scenarios that answer, and a recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mockllm.replay.player import Player
from mockllm.scenario.model import Scenario
from mockllm.server.options import RecordOptions

if TYPE_CHECKING:
    from mockllm.server.proxy import Proxy

__all__ = ["Assigned", "Own"]


@dataclass(slots=True)
class Own:
    """What one session has: `player` decides about its answers, `proxy` records."""

    player: Player
    proxy: Proxy | None = None


class Assigned:
    """What is assigned, by the names of the sessions.

    Args:
        make: a player with the options of the server, of scenarios, the one that is named if
            any is, further quirks, and the kind of player.
    """

    def __init__(
        self,
        make: Callable[[Iterable[Scenario], str | None, Iterable[str], type[Player]], Player],
    ) -> None:
        self._make = make
        self._own: dict[str, Own] = {}
        self.find: Callable[[str], Own | None] = self._own.get
        """What a session has; None where it has what all have."""

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
            ScenarioError: what is in the folder of `record` cannot be loaded.
        """
        served = tuple(scenarios)
        known = self._own.get(session)
        proxy = known.proxy if known is not None else None
        if record is not None:
            from mockllm.server.proxy import Proxy

            proxy = Proxy(record, None, [scenario.name for scenario in served])
        player = self._make(served, named, quirks, _kind(in_order))
        self._own[session] = Own(player, proxy)

    async def end_recording(self, session: str) -> None:
        """Asks no service any more in a session; what was recorded is on the disk afterwards."""
        own = self._own.get(session)
        if own is not None and own.proxy is not None:
            await own.proxy.close()
            own.proxy = None

    async def close(self) -> None:
        """Ends all that is recorded."""
        for session in tuple(self._own):
            await self.end_recording(session)

    def release(self, session: str) -> None:
        """Forgets what was assigned to a session."""
        self._own.pop(session, None)


def _kind(in_order: bool) -> type[Player]:
    if not in_order:
        return Player
    from mockllm.replay.ordered import InOrder

    return InOrder
