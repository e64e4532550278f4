"""What the body of `POST /_mockllm/sessions` says, or the list of everything that is wrong in it.

Nothing is made here: a body with a problem leaves no session behind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from typing import Any

from mockllm.errors import Problem, RequestError, ScenarioError, UsageError
from mockllm.replay.body import parse_object
from mockllm.replay.faults.fault_plan import FaultPlan, read_plan
from mockllm.scenario.model import Scenario
from mockllm.server.http.request_target import SESSION_NAME

__all__ = ["SessionRequest", "SessionRequestError", "as_yaml", "read_session_request"]

_KEYS = (
    "session",
    "scenarios",
    "quirks",
    "match",
    "served",
    "fault",
    "fault_rate",
    "fault_seed",
)
_MATCH_KEYS = ("scenario", "in_order")

_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
"""Characters that JSON takes as they are, and YAML does not."""


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A session as it was requested.

    Args:
        name: None: the server chooses one.
        scenarios: of the session alone.
        named: the scenario that answers every request that names none.
        in_order: recordings of the same request are played one after the other.
        served: whether the scenarios of the server answer, too.
        has_setup: whether the session is to differ from one that its first request makes.
        size: of the body, in bytes.
        faults: of its answers; None: those of the server.
    """

    name: str | None = None
    scenarios: tuple[Scenario, ...] = ()
    quirks: tuple[str, ...] = ()
    named: str | None = None
    in_order: bool = False
    served: bool = True
    has_setup: bool = False
    size: int = 0
    faults: FaultPlan | None = None


class SessionRequestError(RequestError):
    """A session that is not made.

    Args:
        problems: each with `field` and `message`; those of scenarios also with `line`, `column`
            and `path`.
    """

    def __init__(self, problems: list[dict[str, Any]], status: int = 400) -> None:
        self.problems = problems
        lines = [_line(problem) for problem in problems]
        count = "" if len(lines) == 1 else f" ({len(lines)} problems)"
        super().__init__("\n".join([f"The session was not made{count}:", *lines]), status=status)


@dataclass(slots=True)
class _Problems:
    found: list[dict[str, Any]] = field(default_factory=list)

    def add(self, where: str, message: str) -> None:
        self.found.append({"field": where, "message": message})


def read_session_request(
    body: bytes, served: Callable[[], Mapping[str, Scenario]]
) -> SessionRequest:
    """The session that a body asks for.

    Args:
        served: the scenarios of the server by their names.

    Raises:
        RequestError: the body is no JSON object; or a `SessionRequestError` with every problem.
    """
    fields = parse_object(body) if body.strip() else {}
    problems = _Problems()
    _check_keys(fields, _KEYS, "", problems)
    name = _name(fields.get("session"), problems)
    before = len(problems.found)
    scenarios = _scenarios(fields.get("scenarios"), problems)
    readable = len(problems.found) == before
    quirks = _quirks(fields.get("quirks"), problems)
    faults = _faults(fields, problems)
    own = fields.get("scenarios") is not None
    with_served = _flag(fields.get("served"), "served", not own, problems)
    if not own and not with_served:
        problems.add("served", "is false, and 'scenarios' is missing: nothing would answer")
    known = {one.name: one for one in scenarios}
    if with_served:
        known = {**served(), **known}
    named, in_order = _match(fields.get("match"), known if readable else None, problems)
    if problems.found:
        raise SessionRequestError(problems.found)
    if named is None and own and not with_served:
        named = _only(scenarios)
    setup = any(fields.get(key) is not None for key in _KEYS if key != "session")
    size = len(body) if setup else 0
    return SessionRequest(
        name, scenarios, quirks, named, in_order, with_served, setup, size, faults
    )


def _only(scenarios: tuple[Scenario, ...]) -> str | None:
    """The name of the only scenario, if it has no `match`: it would answer nothing otherwise."""
    conversations = [one for one in scenarios if one.route is None]
    if len(conversations) == 1 and conversations[0].match is None:
        return conversations[0].name
    return None


def _check_keys(
    fields: Mapping[str, Any], known: tuple[str, ...], where: str, problems: _Problems
) -> None:
    for key in fields:
        if key not in known:
            near = get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
            problems.add(f"{where}{key}", f"is an unknown key; {hint}")


def _name(value: object, problems: _Problems) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and re.fullmatch(SESSION_NAME, value):
        return value
    message = "must be a name of 1 to 128 letters, digits, '.', '_' and '-', got "
    problems.add("session", message + json.dumps(value)[:80])
    return None


def _flag(value: object, where: str, default: bool, problems: _Problems) -> bool:
    if value is None:
        return default
    if not isinstance(value, bool):
        problems.add(where, f"must be true or false, got {json.dumps(value)[:80]}")
    return value is True


def _quirks(value: object, problems: _Problems) -> tuple[str, ...]:
    from mockllm.quirks import find

    names = [value] if isinstance(value, str) else value
    if names is None:
        return ()
    if not isinstance(names, list):
        problems.add("quirks", "must be a list of names of quirks")
        return ()
    for index, name in enumerate(names):
        if not isinstance(name, str):
            problems.add(f"quirks[{index}]", "must be the name of a quirk")
            continue
        try:
            find(name)
        except UsageError as error:
            problems.add(f"quirks[{index}]", f"is not known: {error}")
    return tuple(name for name in names if isinstance(name, str))


def _faults(fields: Mapping[str, Any], problems: _Problems) -> FaultPlan | None:
    """The faults of a session: a text or a list of texts, a share of its answers, and a seed."""
    value = fields.get("fault")
    rate, seed = fields.get("fault_rate", 1), fields.get("fault_seed", "0")
    if value is None:
        for key in ("fault_rate", "fault_seed"):
            if fields.get(key) is not None:
                problems.add(key, "needs 'fault'")
        return None
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        problems.add("fault", "must be a text such as 'cut:after=3 events', or a list of them")
        return None
    if type(rate) not in (int, float) or not 0 <= rate <= 1:
        problems.add("fault_rate", "must be a number from 0 to 1, the share of answers")
        return None
    try:
        plan = read_plan(texts, rate=rate, seed=str(seed))
    except UsageError as error:
        problems.add("fault", f"is wrong: {error}")
        return None
    if plan.limit is not None:
        problems.add("fault", "names a fault of connections, which only a whole server can have")
    return plan


def _match(
    value: object, known: Mapping[str, Scenario] | None, problems: _Problems
) -> tuple[str | None, bool]:
    """The scenario that answers whatever the request says, and whether recordings are played in
    their order.

    Args:
        known: the scenarios by their names; None: they cannot be read, so no name is checked.
    """
    if isinstance(value, str):
        return _known_name(value, "match", known, problems), False
    if value is None:
        return None, False
    if not isinstance(value, dict):
        message = "must be the name of a scenario, or an object with 'scenario' and 'in_order'"
        problems.add("match", message)
        return None, False
    _check_keys(value, _MATCH_KEYS, "match.", problems)
    name = value.get("scenario")
    if name is not None:
        name = _known_name(name, "match.scenario", known, problems)
    return name, _flag(value.get("in_order"), "match.in_order", False, problems)


def _known_name(
    name: object, where: str, known: Mapping[str, Scenario] | None, problems: _Problems
) -> str | None:
    if isinstance(name, str) and (known is None or name in known):
        return name
    known = known or {}
    near = get_close_matches(name, known, n=1, cutoff=0.5) if isinstance(name, str) else []
    listed = ", ".join(list(known)[:10]) or "none"
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {listed}"
    message = f"must be the name of a scenario of the session, got {json.dumps(name)[:80]}; {hint}"
    problems.add(where, message)
    return None


# Scenarios


def _scenarios(value: object, problems: _Problems) -> tuple[Scenario, ...]:
    from mockllm.replay.loading import loads_sent

    if value is None:
        return ()
    if isinstance(value, list):
        given = [(f"scenarios[{index}]", one) for index, one in enumerate(value)]
        if not given:
            problems.add("scenarios", "is empty; leave it out to play those of the server")
    else:
        given = [("scenarios", value)]
    texts = []
    for where, one in given:
        if isinstance(one, str | dict):
            texts.append((where, one if isinstance(one, str) else as_yaml(one)))
        else:
            problems.add(where, "must be a scenario: YAML text, or an object")
    try:
        return loads_sent(texts)
    except ScenarioError as error:
        problems.found += map(_located, _in_order(error.problems, [where for where, _ in texts]))
        return ()


def _in_order(found: tuple[Problem, ...], names: list[str]) -> list[Problem]:
    return sorted(found, key=lambda problem: names.index(problem.file))


def _located(problem: Problem) -> dict[str, Any]:
    located = asdict(problem)
    return {"field": located.pop("file"), **located}


def _line(problem: Mapping[str, Any]) -> str:
    if "line" not in problem:
        return f"{problem['field']} {problem['message']}"
    located = (problem[name] for name in ("field", "line", "column", "path", "message"))
    return str(Problem(*located))


def as_yaml(scenario: Mapping[str, Any]) -> str:
    """An object as YAML: its JSON text, indented by two spaces, in which YAML reads all strings as
    JSON does."""
    text = json.dumps(scenario, ensure_ascii=False, indent=2)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
