"""A request as a person reads it, and why it was not answered.

Its messages, calls, results and tools are those of the neutral request, which matching reads; what
a body has besides (settings, images, files, reasoning) is in the body alone. A request that was
refused has the nearest scenarios, each of their conditions, and a scenario that would answer it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from mockllm.checking.conversations.judge import calls_of, verify
from mockllm.core.errors import MockLLMError
from mockllm.core.request import Message, Request
from mockllm.core.text import display_json, shorten
from mockllm.play.matching.conditions import JudgedCondition, judged_match, judged_message
from mockllm.play.matching.conversation import planned_calls, read_history
from mockllm.play.matching.index import ScenarioIndex, named_scenario, split_model
from mockllm.play.matching.mismatch import near_misses
from mockllm.play.matching.request_validation import judged_request
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.matching.select import Search, select
from mockllm.play.replay.filling import played_selection, played_turn
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session
from mockllm.record.redaction.credentials import MASK
from mockllm.scenario.model import Scenario
from mockllm.serve.ui.skeleton import find_turn, request_skeleton, route_skeleton
from mockllm.wire.protocols import PROTOCOLS

_NEAREST = 5
_LONGEST = 10_000
_OUTCOMES = ("unmatched", "invalid", "unknown route")


def explanation_json(player: Player, exchange: Exchange) -> dict[str, Any] | None:
    """Why a request was refused, or why its scenario answered; None where neither is known."""
    if exchange.outcome == "played":
        return _explain_answer(player, exchange)
    if exchange.outcome not in _OUTCOMES:
        return None
    message = "\n".join(exchange.problems)
    answer: dict[str, Any] = {
        "kind": exchange.outcome,
        "message": shorten(message, _LONGEST),
        "nearest": [],
        "skeleton": None,
        "skeleton_why": "",
        "file": "",
    }
    if exchange.outcome == "invalid" and exchange.scenario is not None:
        nearest = _explain_refusal(player, exchange)
        return answer | ({"kind": "refused", "nearest": [nearest]} if nearest else {})
    protocol = PROTOCOLS.get(exchange.played.api or "")
    if (
        exchange.outcome == "unmatched"
        and protocol is not None
        and exchange.received.target is not None
    ):
        request = _request(player, exchange)
        if request is None:
            return answer | {"skeleton_why": "Too little of the request is kept to read it."}
        return answer | _explain_unmatched(player, exchange, request)
    if exchange.outcome != "invalid":
        return answer | _route(player, exchange)
    return answer


def _request(player: Player, exchange: Exchange) -> Request | None:
    """The request as it was matched; None where too little of it is kept."""
    request = exchange.request
    if request is None:
        return None
    if player.named is not None and not named_scenario(player.served, request, exchange.headers):
        request = replace(request, scenario=player.named)
    plain, name = split_model(player.served, request.model)
    if "@" in request.model and name is not None and request.scenario is None:
        request = replace(request, model=plain, scenario=name)
    return request


# No scenario answers


def _explain_unmatched(player: Player, exchange: Exchange, request: Request) -> dict[str, Any]:
    headers = exchange.headers
    nearest = [
        _nearest(exchange, scenario, scenario_conditions(scenario, request, headers))
        for scenario, _ in near_misses(player.served, request, headers, _NEAREST)
    ]
    now = find_turn(player.served, request, exchange.headers)
    if now is not None:
        why = f"The scenario {now.scenario.name} answers such a request now."
    elif exchange.body_size is not None:
        why = "The request is too large to be kept whole, so nothing is written for it."
    else:
        skeleton = request_skeleton(player.served, request, exchange.headers)
        if skeleton is not None:
            return {"nearest": nearest, **skeleton}
        why = "No scenario can have the name that this request wants, or its calls."
    return {"nearest": nearest, "skeleton_why": why}


def _score(conditions: Iterable[JudgedCondition]) -> float:
    met = [condition.met for condition in conditions]
    return sum(met) / len(met) if met else 1.0


def _condition_json(condition: JudgedCondition, headers: Mapping[str, str]) -> dict[str, Any]:
    """A condition, with a note where the journal has a mask in place of the header."""
    note = shorten("\n".join(condition.problems), 1000)
    name = condition.path.removeprefix("match.headers.").rpartition(".")[0]
    if note and MASK in headers.get(name or condition.path[14:], ""):
        note = "the journal keeps no credentials, so this header is judged without its value"
    elif note and isinstance(condition.actual, dict):  # `any`, `all` or `not`
        sent = display_json(condition.actual)
        if '"headers.' in sent and MASK in sent:
            note = f"the journal keeps no credentials, so a header is judged without them; {note}"
    return {
        "path": condition.path,
        "met": condition.met,
        "expected": _value(condition.expected),
        "actual": _value(condition.actual),
        "note": note,
    }


def _value(value: object) -> str:
    text = "" if value is None else display_json(value)
    return shorten(text, _LONGEST, mark=f"… ({len(text)} characters)")


def _nearest(
    exchange: Exchange,
    scenario: Scenario,
    conditions: list[JudgedCondition],
    turn: int | None = None,
) -> dict[str, Any]:
    return {
        "scenario": scenario.name,
        "turn": turn,
        "file": scenario.file,
        "line": scenario.line or None,
        "score": round(_score(conditions), 3),
        "conditions": [_condition_json(condition, exchange.headers) for condition in conditions],
    }


# A scenario answers


def _explain_answer(player: Player, exchange: Exchange) -> dict[str, Any] | None:
    """The conditions of the scenario that answered, as it is served now, and those of the scenarios
    that came nearest to it; None where it is not served any more, or has a route."""
    scenario = player.served.by_name.get(exchange.scenario or "")
    request = None if scenario is None or scenario.route else _request(player, exchange)
    if scenario is None or request is None:
        return None
    headers = exchange.headers
    near = near_misses(player.served, request, headers, _NEAREST + 1)
    others = [other for other, _ in near if other.name != scenario.name][:_NEAREST]
    shown = [
        _nearest(exchange, one, scenario_conditions(one, request, headers), turn)
        | {"rank": list(one.specificity)}
        for one, turn in ((scenario, exchange.turn), *((other, None) for other in others))
    ]
    return {"kind": "played", "message": "", "nearest": shown, "skeleton": None}


# The turn refuses


def _explain_refusal(player: Player, exchange: Exchange) -> dict[str, Any] | None:
    """The conditions of the turn that refused a request; None where it is not served any more."""
    scenario = player.served.by_name.get(exchange.scenario or "")
    protocol = PROTOCOLS.get(exchange.played.api or "")
    if scenario is None or protocol is None or exchange.played.position is None:
        return None
    request = _request(player, exchange)
    spec = played_turn(scenario, exchange.played)
    selection = played_selection(scenario, exchange.played)
    if request is None or spec is None or spec.request is None or selection is None:
        return None
    try:
        chosen = select(player.served, request, exchange.headers)
        if chosen.scenario.name == scenario.name and chosen.position == selection.position:
            selection = chosen
    except MockLLMError:  # it continues an answer that only its session knows
        pass
    conditions = judged_request(selection, spec.request, request, protocol)
    return _nearest(exchange, scenario, conditions, selection.turn)


# Routes


def _route(player: Player, exchange: Exchange) -> dict[str, Any]:
    parts = urlsplit(exchange.path)
    request = RouteRequest(
        exchange.received.method, parts.path, parts.query, exchange.headers, exchange.body
    )
    nearest = [
        _nearest(exchange, scenario, conditions)
        for scenario, conditions in player.routes.index.judge_conditions(request)
    ]
    nearest.sort(key=lambda scored: -scored["score"])
    skeleton = route_skeleton(player.served, request)
    why = {"skeleton_why": "No scenario can have this route."}
    return {"nearest": nearest[:_NEAREST], **(skeleton or why)}


_LONGEST_FINDING = 4_000


def findings_json(
    session: Session, scenarios: Mapping[str, Scenario], number: int
) -> tuple[list[dict[str, str]], str]:
    """The rules that a request broke, and why there may be others that are not known."""
    verification = verify(session, scenarios, allow_unplayed=True, allow_no_requests=True)
    why = [f"{gap}" for gap in verification.gaps]
    if number in verification.not_judged:
        why.append("The request is too large to be kept whole, so it is not judged.")
    if verification.evicted or verification.forgotten:
        why.append("The journal has dropped requests before it, so they are not judged with it.")
    if number in verification.missed_faults:
        why.append("A fault did not strike in its answer, so its retries are not judged.")
    if number in verification.maybe_counted:
        why.append("A state store that was away may have counted it, although it was refused.")
    findings = [
        *((violation.invariant, violation) for violation in verification.violations),
        *((f"{remark.invariant} (a remark)", remark) for remark in verification.remarks),
    ]
    shown = [
        {"rule": rule, "message": shorten(finding.message, _LONGEST_FINDING)}
        for rule, finding in findings
        if finding.exchange == number
    ]
    return shown, " ".join(why)


def calls_json(
    session: Session, scenarios: Mapping[str, Scenario], number: int
) -> list[dict[str, Any]]:
    """The calls of the model that MCP servers executed and that a request has part in: its answer
    has the call, or it is the operation, or it brings the result."""
    calls = [call for call in calls_of(session, scenarios) if number in call.numbers]
    took = {entry.number: entry.sent.duration for entry in session.entries} if calls else {}
    return [
        call.as_json()
        | {"operations": [{"number": one, "duration": took.get(one)} for one in call.operations]}
        for call in calls
    ]


def scenario_conditions(
    scenario: Scenario, request: Request, headers: Mapping[str, str]
) -> list[JudgedCondition]:
    """All that must hold for a scenario to answer a request, if no other one competes.

    A request that names a scenario is answered by that one, and its `match` does not count.
    """
    served = ScenarioIndex((scenario,))
    named = named_scenario(served, request, headers)
    conditions: list[JudgedCondition] = []
    if named is not None:
        note = "" if named == scenario.name else "the request names another scenario"
        conditions.append(_condition("scenario", scenario.name, named, note))
    elif scenario.match is None:
        note = "a scenario without `match` answers only requests that name it"
        conditions.append(_condition("scenario", scenario.name, None, note))
    if scenario.apis:
        met = scenario.plays_over(request.api)
        note = "" if met else f"it does not play over {request.api!r}"
        conditions.append(_condition("apis", ", ".join(scenario.apis), request.api, note))
    if named is None and scenario.match is not None and not scenario.match.anything:
        message = judged_message(scenario.match, request, headers)
        judged = judged_match(scenario.match, request, headers, message=message)
        conditions += judged
    if all(condition.met for condition in conditions):
        conditions += _history(scenario, served, request, headers)
    return conditions


def _history(
    scenario: Scenario, served: ScenarioIndex, request: Request, headers: Mapping[str, str]
) -> list[JudgedCondition]:
    """The conditions on the history of a scenario whose other conditions hold."""
    search = Search(served, request, headers, read_history(request.messages).turns)
    begun = search.begins(scenario)
    if begun is None:
        note = "its tool calls are not those in the history of this request"
        expected = _planned_call_names(scenario, request)
        sent = [f"{call.name} {call.id}".strip() for m in request.messages for call in m.calls]
        return [_condition("history", expected, _names(sent), note)]
    position, playable = begun
    count = len(scenario.steps)
    note = "" if playable else "the conversation is past its end: add a turn, or `repeat: true`"
    expected = "any" if playable and position >= count else f"at most {count}"
    if playable and position == 0:
        return []
    return [_condition("turns", expected, str(position + 1), note)]


def _planned_call_names(scenario: Scenario, request: Request) -> str:
    """The calls of the turns that the history has, with their ids."""
    turns = len(read_history(request.messages).turns)
    names: list[str] = []
    for position in range(min(turns, len(scenario.steps))):
        planned = planned_calls(scenario, position, request.api)
        names += ["any"] if planned is None else [f"{call.name} {call.id}" for call in planned]
    return _names(names)


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _condition(path: str, expected: str, actual: str | None, note: str) -> JudgedCondition:
    return JudgedCondition(path, expected, actual, (note,) if note else ())


_LONGEST_TEXT = 100_000
"""Characters of a text that are sent."""

_LONGEST_NAME = 1_000

_MOST_MESSAGES = 2_000
"""Of a longer history the newest messages are sent."""


def conversation_json(api: str, exchange: Exchange) -> dict[str, Any] | None:
    """The request of an exchange as JSON values; None where it cannot be read as one of the API."""
    request = exchange.request if api == exchange.played.api else None
    if request is None:
        return None
    messages = request.messages[-_MOST_MESSAGES:]
    shown: list[dict[str, Any]] = [
        {"role": message.role, "parts": list(_parts(message))} for message in messages
    ]
    left_out = len(request.messages) - len(messages)
    if left_out:
        cut = _part("other", f"{left_out:,} earlier messages are not shown; see the body.")
        shown.insert(0, {"role": "system", "parts": [cut]})
    return {
        "messages": shown,
        "tools": [
            {
                "name": shorten(tool.name, _LONGEST_NAME),
                "description": shorten(tool.description, _LONGEST_TEXT),
            }
            for tool in request.tools
        ],
    }


# Messages


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield _part(
            "result", message.text, name=message.name, id=message.call_id, is_error=message.error
        )
        return
    if message.text:
        yield _part("text", message.text)
    for call in message.calls:
        yield _part("call", "", name=call.name, id=call.id, arguments=call.arguments)
    if message.ref:
        yield _part("other", f"an item that the service keeps: {message.ref}")
    elif not message.text and not message.calls:
        yield _part("other", "no text and no calls; see the body")


def _part(
    kind: str,
    text: str,
    *,
    name: str = "",
    id: str = "",
    arguments: str = "",
    is_error: bool = False,
) -> dict[str, Any]:
    return {
        "kind": kind,
        "text": shorten(text, _LONGEST_TEXT),
        "name": shorten(name, _LONGEST_NAME),
        "id": shorten(id, _LONGEST_NAME),
        "arguments": shorten(arguments, _LONGEST_TEXT),
        "is_error": is_error,
        "size": len(arguments if kind == "call" else text),
    }
