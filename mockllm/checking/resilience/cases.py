"""The cases with faults: scenarios, faults, and the rules that each can judge.

They stand in `cases.yaml`, which it reads; here are the answers that they share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import yaml

from mockllm.checking.resilience.model import FaultCase
from mockllm.errors import RequestError
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol, dumps
from mockllm.scenario.durations import read_duration
from mockllm.scenario.model import (
    ErrorSpec,
    Http,
    ParallelPart,
    Scenario,
    TextPart,
    Timing,
    ToolPart,
    ToolSpec,
    TurnSpec,
)
from mockllm.scenario.reading.faults import parse_faults

_TEXT = "The forecast for Paris is sunny, with a light wind."
_WEATHER = ToolSpec(
    "get_weather",
    "The weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
)
_ROME = '{"city":"Rome","days":1}'
_PARIS = '{"city":"Paris","days":12}'
_FRAGMENTS = ('{"ci', 'ty":"Pa', 'ris","days":1', "2}")
_QUOTA = "insufficient_quota"
_QUOTA_MESSAGE = "You exceeded your quota."


def _call(arguments: str, id: str, split: tuple[str, ...] | None = None) -> ToolPart:
    return ToolPart("get_weather", arguments=arguments, id=id, split=split)


_ANSWERS: Mapping[str, TurnSpec] = {
    "words": TurnSpec(reply=(TextPart(_TEXT, split="words"),)),
    "call": TurnSpec(reply=(_call(_PARIS, "call_1", _FRAGMENTS),)),
    "calls": TurnSpec(
        reply=(ParallelPart((_call(_ROME, "call_1"), _call(_PARIS, "call_2", _FRAGMENTS))),)
    ),
    "other_call": TurnSpec(reply=(_call(_ROME, "call_0"),)),
    "long": TurnSpec(reply=(TextPart(_TEXT * 4, split="words"),), timing=Timing(ttft=0)),
    "quota": TurnSpec(http=Http(429, error=ErrorSpec(_QUOTA_MESSAGE, _QUOTA, _QUOTA))),
}


@lru_cache(maxsize=16)
def fault_cases(api: str) -> tuple[FaultCase, ...]:
    """The cases for the clients of an API."""
    protocol = PROTOCOLS[api]
    return tuple(
        _case(dict(entry), api)
        for entry in _entries()
        if "needs" not in entry or _NEEDS[entry["needs"]](protocol)
    )


@cache
def _entries() -> tuple[dict[str, Any], ...]:
    text = (files(__package__ or "") / "cases.yaml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load(text))


def _has_quota_errors(protocol: WireProtocol) -> bool:
    """Whether an error of the API can say by its code that it stays."""
    error = RequestError(_QUOTA_MESSAGE, status=429, type=_QUOTA, code=_QUOTA)
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
    parts = [
        part
        for whole in turn.reply
        for part in (whole.calls if isinstance(whole, ParallelPart) else (whole,))
    ]
    calls = [part.arguments or "{}" for part in parts if isinstance(part, ToolPart)]
    tools = (_WEATHER,) if calls else ()
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
    turn = _ANSWERS[entry.pop("answer", "words")]
    every = entry.pop("every", None)
    if every is not None:
        turn = replace(turn, timing=replace(turn.timing or Timing(), every=read_duration(every)))
    first, reply = entry.pop("first_try", None), entry.pop("first_reply", None)
    if first is not None:
        begun = TurnSpec(reply=_ANSWERS[reply].reply if reply else (), fault=parse_faults(first))
        turn = replace(turn, attempts=(Http(200, reply=begun),))
    return turn
