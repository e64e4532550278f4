"""Sessions with a setup of their own: the scenarios that answer, and a recorder."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mockllm.core.record import record
from mockllm.errors import RequestError
from mockllm.replay.fault_plan import FaultPlan
from mockllm.replay.player import Player
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import scenario_key
from mockllm.server.options import RecordOptions

if TYPE_CHECKING:
    from mockllm.matching.index import ScenarioIndex
    from mockllm.server.recording.proxy import Proxy

_MOST_BYTES = 64 * 1024 * 1024
_MOST_NAMES = 65_536
"""How many evicted sessions are remembered."""


@record
class SessionRequest:
    """A session with scenarios or options of its own, as it was requested.

    Args:
        name: None: the server chooses one.
        named: the scenario that answers every request that names none.
        served: whether the scenarios of the server answer, too.
        has_setup: whether the session is to differ from one that its first request makes.
        faults: of its answers; None: those of the server.
    """

    name: str | None = None
    scenarios: tuple[Scenario, ...] = ()
    quirks: tuple[str, ...] = ()
    named: str | None = None
    served: bool = True
    has_setup: bool = False
    size: int = 0
    faults: FaultPlan | None = None


@dataclass(slots=True)
class SessionSetup:
    """The setup of one session: `player` chooses its answers, `proxy` records.

    Args:
        request: the body that made the session over HTTP; None for one that Python made.
        base: the player of the server that `player` was made from; None: of none.
        gone: whether the session was evicted, so that its scenarios are not known any more.
    """

    player: Player
    proxy: Proxy | None = None
    request: SessionRequest | None = None
    base: Player | None = None
    gone: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether neither the server's scenarios nor its recorder answer in this session."""
        return self.request is not None and not self.request.served


class SessionSetups:
    """The setups of sessions, by their names.

    Args:
        make: a player with the options of the server and of a session, of scenarios or the index
            of another player.
    """

    def __init__(
        self,
        make: Callable[[Iterable[Scenario] | ScenarioIndex, SessionRequest], Player],
        *,
        max_bytes: int = _MOST_BYTES,
    ) -> None:
        self._make = make
        self._max_bytes = max_bytes
        self._size = 0
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._setups: dict[str, SessionSetup] = {}
        self.find: Callable[[str], SessionSetup | None] = self._setups.get
        """The setup of a session; None where it has that of the server."""

    def assign(
        self, session: str, request: SessionRequest, record: RecordOptions | None = None
    ) -> None:
        """Serves a session from scenarios of its own, from the next request on, and records it.

        Raises:
            ScenarioError: the folder of `record` has scenarios that cannot be loaded.
        """
        before = self._setups.get(session)
        proxy = before.proxy if before is not None else None
        if record is not None:
            from mockllm.server.recording.proxy import Proxy

            proxy = Proxy(record, None, [scenario.name for scenario in request.scenarios])
        player = self._make(request.scenarios, request)
        self.release(session)
        self._setups[session] = SessionSetup(player, proxy)

    def make_player(self, request: SessionRequest, served: Player) -> Player:
        """The player of a session. It uses no state, so any thread may call it."""
        own: Iterable[Scenario] | ScenarioIndex = request.scenarios
        if request.served and not request.scenarios:
            own = served.served
        elif request.served:
            own = _mixed(request.scenarios, served.served.scenarios)
        return self._make(own, request)

    def add(self, session: str, request: SessionRequest, player: Player, served: Player) -> None:
        """Sets up a session that was requested over HTTP; it has no setup yet.

        Raises:
            RequestError: the sessions are too large together.
        """
        if self._size + request.size > self._max_bytes:
            raise RequestError(
                "The session was not made: the scenarios of all sessions take more than "
                f"{self._max_bytes} bytes. Delete sessions that are over: DELETE "
                "/_mockllm/sessions/NAME.",
                status=507,
            )
        self.release(session)
        self._size += request.size
        base = served if request.served else None
        self._setups[session] = SessionSetup(player, None, request, base)

    def player(self, setup: SessionSetup, served: Player) -> Player:
        """What decides about the answers in a session, with the scenarios that are served now."""
        if setup.base is not None and setup.base is not served and setup.request is not None:
            setup.player, setup.base = self.make_player(setup.request, served), served
        return setup.player

    async def end_recording(self, session: str) -> None:
        """Forwards nothing more in a session; every exchange is on the disk afterwards."""
        setup = self._setups.get(session)
        if setup is not None and setup.proxy is not None:
            await setup.proxy.close()
            setup.proxy = None

    async def close(self) -> None:
        for session in tuple(self._setups):
            await self.end_recording(session)

    def release(self, session: str) -> None:
        setup = self._setups.pop(session, None)
        self._gone.pop(session, None)
        if setup is not None and setup.request is not None:
            self._size -= setup.request.size

    def evict(self, session: str) -> None:
        """Drops the scenarios of a session that was evicted, if it was made over HTTP. Its name
        stays: the server's scenarios do not answer in place of its own."""
        setup = self._setups.get(session)
        if setup is not None and setup.request is not None:
            self.note_evicted(session)

    def note_evicted(self, session: str) -> None:
        """Refuses the requests of a session whose scenarios were dropped."""
        self.release(session)
        self._setups[session] = SessionSetup(_NOTHING, gone=True)
        self._gone[session] = None
        if len(self._gone) > _MOST_NAMES:
            self.release(next(iter(self._gone)))


_NOTHING = Player(())


def _mixed(own: tuple[Scenario, ...], served: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    """All scenarios, but the served ones that have the name or the `match` of an own one."""
    names = {scenario.name for scenario in own}
    keys: dict[object, list[Scenario]] = {}
    for scenario in own:
        keys.setdefault(scenario_key(scenario), []).append(scenario)
    keys.pop(None, None)  # of scenarios that play only when they are named
    return own + tuple(
        one
        for one in served
        if one.name not in names and not any(map(one.shares_api, keys.get(scenario_key(one), ())))
    )
