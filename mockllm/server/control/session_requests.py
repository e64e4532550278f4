"""What the body of `POST /_mockllm/sessions` says, or the list of everything that is wrong in it.

Nothing is made here: a body with a problem leaves no session behind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from mockllm.core.jsontext import parse_object
from mockllm.core.text import did_you_mean, json_as_yaml
from mockllm.errors import Problem, RequestError, ScenarioError, UsageError
from mockllm.replay.fault_plan import FaultPlan, read_plan
from mockllm.scenario.model import Scenario
from mockllm.server.control.session_setup import SessionRequest
from mockllm.server.http.request_target import SESSION_NAME

_SCENARIO = "a scenario: YAML text, or an object"


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
    faults = _faults(fields, problems)
    own = "scenarios" in fields
    with_served = fields.get("served", not own)
    if not own and not with_served:
        problems.append(
            _problem("served", "is false, and 'scenarios' is missing: nothing would answer")
        )
    named = fields.get("match")
    if named is not None and readable:
        known = {scenario.name: scenario for scenario in scenarios}
        _check_known(named, {**served(), **known} if with_served else known, problems)
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
    conversations = [scenario for scenario in scenarios if scenario.route is None]
    if len(conversations) == 1 and conversations[0].match is None:
        return conversations[0].name
    return None


def _check_known(name: str, known: Mapping[str, Scenario], problems: list[_Problem]) -> None:
    if name not in known:
        message = f"must be {_NAME} of the session, got {json.dumps(name)[:80]}"
        problems.append(_problem("match", f"{message}; {_hint(name, known)}"))


def _quirks(value: str | list[Any], problems: list[_Problem]) -> tuple[str, ...]:
    from mockllm.quirks import find

    names = [value] if isinstance(value, str) else value
    for index, name in enumerate(names):
        message = "must be the name of a quirk"
        if isinstance(name, str):
            try:
                find(name)
            except UsageError as error:
                message = f"is not known: {error}"
            else:
                continue
        problems.append(_problem(f"quirks[{index}]", message))
    return tuple(names)


def _faults(fields: Mapping[str, Any], problems: list[_Problem]) -> FaultPlan | None:
    texts = fields.get("fault")
    if texts is None:
        needless = [name for name in ("fault_rate", "fault_seed") if name in fields]
        problems += [_problem(name, "needs 'fault'") for name in needless]
        return None
    rate, seed = fields.get("fault_rate", 1), str(fields.get("fault_seed", "0"))
    try:
        plan = read_plan([texts] if isinstance(texts, str) else texts, rate=rate, seed=seed)
    except UsageError as error:
        problems.append(_problem("fault", f"is wrong: {error}"))
        return None
    if plan.limit is not None:
        message = "names a fault of connections, which only a whole server can have"
        problems.append(_problem("fault", message))
    return plan


def _scenarios(value: Any, problems: list[_Problem]) -> tuple[Scenario, ...]:
    from mockllm.replay.loading import loads_sent

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
        problems += map(_located, ordered)
        return ()


def _located(problem: Problem) -> _Problem:
    located = asdict(problem)
    return {"field": located.pop("file"), **located}


def _line(problem: Mapping[str, Any]) -> str:
    if "line" not in problem:
        return f"{problem['field']} {problem['message']}"
    located = (problem[name] for name in ("field", "line", "column", "path", "message"))
    return str(Problem(*located))
