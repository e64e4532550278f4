"""Sessions with a setup of their own: the scenarios that answer, and a recorder.

The body of `POST /_mockllm/sessions` says what a session is to have. Nothing is made while it is
read: a body with a problem leaves no session behind.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mockllm.core.errors import Problem, RequestError, ScenarioError, UsageError
from mockllm.core.jsontext import parse_object
from mockllm.core.record import record
from mockllm.core.text import did_you_mean, json_as_yaml
from mockllm.play.replay.fault_plan import FaultPlan, read_plan
from mockllm.play.replay.latency.schedule import LatencyPlan
from mockllm.play.replay.loading import loads_sent, quirk_problem
from mockllm.play.replay.player import Player
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import scenario_key
from mockllm.scenario.reading.latency import read_latency
from mockllm.serve.server.http.request_reading import SESSION_NAME
from mockllm.serve.server.options import RecordOptions

if TYPE_CHECKING:
    from mockllm.play.matching.index import ScenarioIndex
    from mockllm.serve.interception.hosts import Hosts
    from mockllm.serve.server.recording.proxy import Proxy

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
        latency: of its answers; None: that of the server.
        speed: of its timed streams; None: that of the server.
    """

    name: str | None = None
    scenarios: tuple[Scenario, ...] = ()
    quirks: tuple[str, ...] = ()
    named: str | None = None
    served: bool = True
    has_setup: bool = False
    size: int = 0
    faults: FaultPlan | None = None
    latency: LatencyPlan | None = None
    speed: float | None = None


@dataclass(slots=True)
class SessionSetup:
    """The setup of one session: `player` chooses its answers, `proxy` records.

    Args:
        request: the body that made the session over HTTP; None for one that Python made.
        base: the player of the server that `player` was made from; None: of none.
        gone: whether the session was evicted, so that its scenarios are not known any more.
        why: its requests are refused then; "" for the usual reasons.
        hosts: whose requests this process redirects to the session, besides those of the server.
    """

    player: Player
    proxy: Proxy | None = None
    request: SessionRequest | None = None
    base: Player | None = None
    gone: bool = False
    why: str = ""
    hosts: Hosts | None = None

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
        self, make: Callable[[Iterable[Scenario] | ScenarioIndex, SessionRequest], Player]
    ) -> None:
        self._make, self._max_bytes = make, _MOST_BYTES
        self._size = 0
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._setups: dict[str, SessionSetup] = {}
        self.find: Callable[[str], SessionSetup | None] = self._setups.get
        """The setup of a session; None where it has that of the server."""

    def assign(
        self,
        session: str,
        request: SessionRequest,
        record: RecordOptions | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        """Serves a session from scenarios of its own, from the next request on, and records it.

        Args:
            hosts: as of `SessionSetup`.

        Raises:
            ScenarioError: the folder of `record` has scenarios that cannot be loaded.
        """
        before = self._setups.get(session)
        proxy = before.proxy if before is not None else None
        if record is not None:
            from mockllm.serve.server.recording.proxy import Proxy

            proxy = Proxy(record, None, [scenario.name for scenario in request.scenarios])
        player = self._make(request.scenarios, request)
        self.release(session)
        self._setups[session] = SessionSetup(player, proxy, hosts=hosts)

    def make_player(self, request: SessionRequest, served: Player) -> Player:
        """The player of a session. It uses no state, so any thread may call it."""
        own: Iterable[Scenario] | ScenarioIndex = request.scenarios
        if request.served and not request.scenarios:
            own = served.served
        elif request.served:
            own = _merge(request.scenarios, served.served.scenarios)
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
        """The player of a session, with the scenarios that are served now."""
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
            self.note_gone(session)

    def note_gone(self, session: str, why: str = "") -> None:
        """Refuses the requests of a session whose scenarios were dropped.

        Args:
            why: a sentence for the error; default: that its test is over, or it was evicted.
        """
        self.release(session)
        self._setups[session] = SessionSetup(_NOTHING, gone=True, why=why)
        self._gone[session] = None
        if len(self._gone) > _MOST_NAMES:
            self.release(next(iter(self._gone)))


_NOTHING = Player(())


def session_gone(session: str, why: str = "") -> RequestError:
    """The error for a session whose scenarios were dropped."""
    usual = (
        f"The session {session!r} is gone with its scenarios: its test is over, or it was evicted, "
        "because the server keeps only the sessions that were used last. Make it again (POST "
        "/_mockllm/sessions), and delete sessions that are over."
    )
    return RequestError(why or usual, status=410, code="session_evicted")


def _merge(own: tuple[Scenario, ...], served: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    """All scenarios, but the served ones that have the name or the `match` of an own one."""
    names = {scenario.name for scenario in own}
    keys: dict[object, list[Scenario]] = {}
    for scenario in own:
        keys.setdefault(scenario_key(scenario), []).append(scenario)
    keys.pop(None, None)  # of scenarios that play only when they are named
    return own + tuple(
        scenario
        for scenario in served
        if scenario.name not in names
        and not any(map(scenario.shares_api, keys.get(scenario_key(scenario), ())))
    )


_SCENARIO = "a scenario: YAML text, or an object"


class SessionRequestError(RequestError):
    """A session that is not made.

    Args:
        problems: each with `field` and `message`; those of scenarios also with `line`, `column`
            and `path`.
    """

    def __init__(self, problems: list[dict[str, Any]]) -> None:
        self.problems = problems
        lines = [_line(problem) for problem in problems]
        count = "" if len(lines) == 1 else f" ({len(lines)} problems)"
        super().__init__("\n".join([f"The session was not made{count}:", *lines]))


_Problem = dict[str, Any]


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(SESSION_NAME, value) is not None


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


_FLAG = (lambda value: isinstance(value, bool), "true or false")
_NAME = "the name of a scenario"
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "session": (_is_name, "a name of 1 to 128 letters, digits, '.', '_' and '-'"),
    "scenarios": (lambda value: isinstance(value, str | dict | list), _SCENARIO),
    "quirks": (lambda value: isinstance(value, str | list), "a list of names of quirks"),
    "match": (lambda value: isinstance(value, str), f"{_NAME} of the session"),
    "served": _FLAG,
    "fault": (
        lambda value: isinstance(value, str) or _is_texts(value),
        "a text such as 'cut:after=3 events', or a list of them",
    ),
    "fault_rate": (
        lambda value: type(value) in (int, float) and 0 <= value <= 1,
        "a number from 0 to 1, the share of answers",
    ),
    "fault_seed": (lambda value: True, ""),
    "fault_burst": (
        lambda value: isinstance(value, str) and bool(value),
        "a text such as 'rate=50% every=60s for=5s'",
    ),
    "latency": (lambda value: isinstance(value, str), "a text such as 'ttft=300ms itl=20ms'"),
    "latency_seed": (lambda value: True, ""),
}
"""The fields of a body: whether a value is of the right kind, and what that is."""


def read_session_request(
    body: bytes, served: Callable[[], Mapping[str, Scenario]]
) -> SessionRequest:
    """The session that a body asks for.

    Raises:
        RequestError: the body is no JSON object; or a `SessionRequestError` with every problem.
    """
    problems: list[_Problem] = []
    fields = _right(parse_object(body) if body.strip() else {}, problems)
    before = len(problems)
    scenarios = _scenarios(fields.get("scenarios"), problems)
    readable = len(problems) == before
    quirks = _quirks(fields.get("quirks", []), problems)
    faults, latency = _faults(fields, problems), _latency(fields, problems)
    own = "scenarios" in fields
    with_served = fields.get("served", not own)
    if not own and not with_served:
        problems.append(
            _problem("served", "is false, and 'scenarios' is missing: nothing would answer")
        )
    named = fields.get("match")
    if named is not None and readable:
        names = [*(served() if with_served else ()), *(scenario.name for scenario in scenarios)]
        if named not in names:
            message = f"must be {_NAME} of the session, got {json.dumps(named)[:80]}"
            problems.append(_problem("match", f"{message}; {_hint(named, dict.fromkeys(names))}"))
    if problems:
        raise SessionRequestError(problems)
    if named is None and own and not with_served:
        named = _only(scenarios)
    has_setup = bool(fields.keys() - {"session"})
    return SessionRequest(
        fields.get("session"),
        scenarios,
        quirks,
        named,
        with_served,
        has_setup,
        len(body) if has_setup else 0,
        faults,
        latency,
    )


def _problem(where: str, message: str) -> _Problem:
    return {"field": where, "message": message}


def _right(given: Mapping[str, Any], problems: list[_Problem]) -> dict[str, Any]:
    """The fields that have a value of the right kind; the others are problems. A field that is null
    is absent."""
    right = {}
    for name, value in given.items():
        if name not in _FIELDS:
            message = f"is an unknown key; {_hint(name, _FIELDS)}"
        elif value is None:
            continue
        elif _FIELDS[name][0](value):
            right[name] = value
            continue
        else:
            message = f"must be {_FIELDS[name][1]}, got {json.dumps(value)[:80]}"
        problems.append(_problem(name, message))
    return right


def _hint(name: str, known: Iterable[str]) -> str:
    names = list(known)
    return did_you_mean(name, names, f"there are: {', '.join(names[:10]) or 'none'}")


def _only(scenarios: tuple[Scenario, ...]) -> str | None:
    """The name of the only scenario, if it has no `match`: it would answer nothing otherwise."""
    conversations = [scenario for scenario in scenarios if scenario.is_conversation]
    if len(conversations) == 1 and conversations[0].match is None:
        return conversations[0].name
    return None


def _quirks(value: str | list[Any], problems: list[_Problem]) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    for index, name in enumerate(names):
        if not isinstance(name, str):
            problems.append(_problem(f"quirks[{index}]", "must be the name of a quirk"))
        elif problem := quirk_problem(name):
            problems.append(_problem(f"quirks[{index}]", f"is not known: {problem}"))
    return tuple(names)


def _faults(fields: Mapping[str, Any], problems: list[_Problem]) -> FaultPlan | None:
    texts = fields.get("fault")
    if texts is None:
        needless = [name for name in ("fault_rate", "fault_seed", "fault_burst") if name in fields]
        problems += [_problem(name, "needs 'fault'") for name in needless]
        return None
    rate, seed = fields.get("fault_rate"), str(fields.get("fault_seed", "0"))
    written = [texts] if isinstance(texts, str) else texts
    try:
        plan = read_plan(written, rate=rate, seed=seed, burst=fields.get("fault_burst", ""))
    except UsageError as error:
        problems.append(_problem("fault", f"is wrong: {error}"))
        return None
    if plan.limit is not None:
        message = "names a fault of connections, which only a whole server can have"
        problems.append(_problem("fault", message))
    return plan


def _latency(fields: Mapping[str, Any], problems: list[_Problem]) -> LatencyPlan | None:
    text = fields.get("latency")
    if text is None:
        if "latency_seed" in fields:
            problems.append(_problem("latency_seed", "needs 'latency'"))
        return None
    try:
        return LatencyPlan(read_latency(text), str(fields.get("latency_seed", "0")))
    except ValueError as error:
        problems.append(_problem("latency", f"is wrong: {error}"))
        return None


def _scenarios(value: Any, problems: list[_Problem]) -> tuple[Scenario, ...]:
    if value is None:
        return ()
    if value == []:
        message = "is empty; leave it out to play those of the server"
        problems.append(_problem("scenarios", message))
    given = {"scenarios": value}
    if isinstance(value, list):
        given = {f"scenarios[{index}]": scenario for index, scenario in enumerate(value)}
    texts = []
    for where, scenario in given.items():
        if isinstance(scenario, str | dict):
            text = scenario if isinstance(scenario, str) else json_as_yaml(scenario)
            texts.append((where, text))
        else:
            problems.append(_problem(where, f"must be {_SCENARIO}"))
    try:
        return loads_sent(texts)
    except ScenarioError as error:
        places = [where for where, _ in texts]
        ordered = sorted(error.problems, key=lambda problem: places.index(problem.file))
        located = [asdict(problem) for problem in ordered]
        problems += ({"field": fields.pop("file"), **fields} for fields in located)
        return ()


def _line(problem: Mapping[str, Any]) -> str:
    if "line" not in problem:
        return f"{problem['field']} {problem['message']}"
    located = (problem[name] for name in ("field", "line", "column", "path", "message"))
    return str(Problem(*located))
