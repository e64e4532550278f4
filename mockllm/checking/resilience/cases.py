"""The cases with faults: scenarios, faults, and the rules that each can judge.

It reads `cases.yaml`, where they stand, and the answers that they share, in `answers.yaml`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from mockllm.checking.resilience.model import FaultCase
from mockllm.checking.rules import table
from mockllm.errors import RequestError
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol, dumps
from mockllm.replay.loading import loads
from mockllm.scenario.durations import read_duration
from mockllm.scenario.model import Scenario, TextPart, Timing, ToolPart, TurnSpec, members
from mockllm.scenario.reading.faults import parse_faults

_QUOTA = "insufficient_quota"


@cache
def _answers() -> Mapping[str, Scenario]:
    """What is answered, by name."""
    text = files(__package__).joinpath("answers.yaml").read_text(encoding="utf-8")
    return {scenario.name: scenario for scenario in loads(text, "answers.yaml")}


@lru_cache(maxsize=16)
def fault_cases(api: str) -> tuple[FaultCase, ...]:
    """The cases for the clients of an API."""
    protocol = PROTOCOLS[api]
    return tuple(
        _case(dict(entry), api)
        for entry in table("resilience/cases.yaml")
        if "needs" not in entry or _NEEDS[entry["needs"]](protocol)
    )


def _has_quota_errors(protocol: WireProtocol) -> bool:
    """Whether an error of the API can say by its code that it stays."""
    error = RequestError("", status=429, type=_QUOTA, code=_QUOTA)
    return _QUOTA in dumps(protocol.error_body(error))


def _has_milliseconds(protocol: WireProtocol) -> bool:
    """Whether the service sends `retry-after-ms`."""
    return "retry-after-ms" in protocol.error_headers("", RequestError("", status=429), 1.0)


_NEEDS: Mapping[str, Callable[[WireProtocol], bool]] = {
    "quota": _has_quota_errors,
    "milliseconds": _has_milliseconds,
}


def _case(entry: dict[str, Any], api: str) -> FaultCase:
    """The case of an entry of the file; what is left of the entry are fields of the case."""
    entry.pop("needs", None)
    turn = _turn(entry)
    parts = tuple(members(turn.reply))
    calls = [part.arguments or "{}" for part in parts if isinstance(part, ToolPart)]
    tools = _answers()["call"].tools if calls else ()
    fault = entry.pop("fault", None)
    name = entry.pop("name")
    return FaultCase(
        name=f"{api}/{name}",
        api=api,
        rules=(*entry.pop("rules"), "leaves-nothing"),
        scenario=Scenario(name, (turn,), apis=(api,), tools=tools),
        text="".join(part.text for part in parts if isinstance(part, TextPart)),
        calls=tuple(calls),
        faults=() if fault is None else (fault,),
        tools=tools,
        kinds=frozenset(entry.pop("kinds", ())),
        **entry,
    )


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
