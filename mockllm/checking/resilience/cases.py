"""The cases with faults: scenarios, faults, and the rules that each can judge.

It reads `cases.yaml`, where they stand, and the answers that they share, in `answers.yaml`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from mockllm.checking.cases.build import first_answer
from mockllm.checking.cases.case import Case, CaseFault
from mockllm.checking.cases.expected import outcome_of_turn
from mockllm.checking.cases.scenarios import single
from mockllm.checking.material import answers_of
from mockllm.checking.outcome import Outcome
from mockllm.checking.rules import table
from mockllm.core.errors import RequestError
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.compilation.http_answer import HttpAnswer, http_error_answer
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.scenario.durations import read_duration
from mockllm.scenario.model import Api, Scenario, Timing, TurnSpec
from mockllm.scenario.part_model import tool_parts
from mockllm.scenario.reading.faults import parse_faults
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol, dumps

_QUOTA = "insufficient_quota"


def _answers() -> Mapping[str, Scenario]:
    """The answers, by name."""
    return answers_of(__package__ or "")


@lru_cache(maxsize=16)
def fault_cases(api: Api) -> tuple[Case, ...]:
    """The cases for the clients of an API."""
    protocol = PROTOCOLS[api]
    cases = (
        _case(dict(entry), api)
        for entry in table("resilience/cases.yaml")
        if "needs" not in entry or _NEEDS[entry["needs"]](protocol)
    )
    # Where an API has no tools, no fault can strike in a call.
    return tuple(case for case in cases if protocol.client.tool_fields or not case.scenario.tools)


def _has_quota_errors(protocol: WireProtocol) -> bool:
    """Whether an error of the API can say by its code that it stays."""
    error = RequestError("", status=429, type=_QUOTA, code=_QUOTA)
    return _QUOTA in dumps(protocol.error_body(error))


def _has_milliseconds(protocol: WireProtocol) -> bool:
    """Whether the service sends `retry-after-ms`."""
    error = RequestError("", status=429, retry_after=1.0)
    return "retry-after-ms" in protocol.error_headers("", error)


_NEEDS: Mapping[str, Callable[[WireProtocol], bool]] = {
    "quota": _has_quota_errors,
    "milliseconds": _has_milliseconds,
    "checksums": lambda protocol: protocol.usual.name == "eventstream",
}


def _case(entry: dict[str, Any], api: Api) -> Case:
    """The case of an entry of the file; what is left of the entry are fields of the case."""
    entry.pop("needs", None)
    turn = _turn(entry)
    tools = _answers()["call"].tools if any(tool_parts(turn.reply)) else ()
    name = entry.pop("name")
    scenario = Scenario(name, (turn,), apis=(api,), tools=tools)
    fault = {key: entry.pop(key) for key in ("title", "wait", "final") if key in entry}
    answer, expected = _plain_answer(scenario, api)
    return Case(
        name=f"{api}/{name}",
        api=api,
        scenario=scenario,
        prompt="What is the weather in Paris?",
        tools=tools,
        answer=answer,
        events=None,
        expected=expected,
        rules=(*entry.pop("rules"), "leaves-nothing"),
        fault=CaseFault(
            texts=(entry.pop("fault"),) if "fault" in entry else (),
            kinds=frozenset(entry.pop("kinds", ())),
            **fault,
        ),
        **entry,
    )


def _plain_answer(scenario: Scenario, api: Api) -> tuple[HttpAnswer, Outcome]:
    """The answer without faults, and what a client has that got it as a whole."""
    turn, protocol = scenario.turns[0], PROTOCOLS[api]
    if turn.http is not None:
        selection = Selection(scenario, 0, 0)
        return http_error_answer(protocol, turn, selection, 1), Outcome()
    _, answer = first_answer(single(scenario), api)
    return answer, outcome_of_turn(protocol.project(resolve(scenario, 0, api)), turn, api)


def _turn(entry: dict[str, Any]) -> TurnSpec:
    """The turn that answers; its keys are taken from the entry."""
    turn = _answers()[entry.pop("answer", "words")].turns[0]
    every = entry.pop("every", None)
    if every is not None:
        turn = replace(turn, timing=replace(turn.timing or Timing(), every=read_duration(every)))
    first, reply = entry.pop("first_try", None), entry.pop("first_reply", None)
    if first is not None:
        begun = TurnSpec(
            reply=_answers()[reply].turns[0].reply if reply else (), fault=parse_faults(first)
        )
        turn = replace(turn, attempts=(begun,))
    return turn
