"""A case with a fault before it has an API, and the turns that cases share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mockllm.checking.resilience.model import FaultCase
from mockllm.scenario.faults import parse_faults
from mockllm.scenario.model import (
    Http,
    ParallelPart,
    Scenario,
    TextPart,
    ToolPart,
    ToolSpec,
    TurnSpec,
)

__all__ = ["CALL", "CALLS", "ROME", "TEXT", "WORDS", "Written", "of_api", "tried"]

TEXT = "The forecast for Paris is sunny, with a light wind."
_WEATHER = ToolSpec(
    "get_weather",
    "The weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
)
_ARGUMENTS = '{"city":"Paris","days":12}'
_FRAGMENTS = ('{"ci', 'ty":"Pa', 'ris","days":1', "2}")
ROME = '{"city":"Rome","days":1}'
WORDS = TurnSpec(reply=(TextPart(TEXT, split="words"),))
CALL = TurnSpec(
    reply=(ToolPart("get_weather", arguments=_ARGUMENTS, id="call_1", split=_FRAGMENTS),)
)
CALLS = TurnSpec(
    reply=(
        ParallelPart(
            (
                ToolPart("get_weather", arguments=ROME, id="call_1"),
                ToolPart("get_weather", arguments=_ARGUMENTS, id="call_2", split=_FRAGMENTS),
            )
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Written:
    """A case before it has an API."""

    name: str
    about: str
    rules: tuple[str, ...]
    turn: TurnSpec
    options: dict[str, Any]


def of_api(written: Written, api: str) -> FaultCase:
    """The case for the clients of an API."""
    tools = (_WEATHER,) if any(not isinstance(p, TextPart) for p in written.turn.reply) else ()
    scenario = Scenario(written.name, (written.turn,), apis=(api,), tools=tools)
    calls = tuple(
        one.arguments or "{}"
        for part in written.turn.reply
        for one in (part.calls if isinstance(part, ParallelPart) else (part,))
        if isinstance(one, ToolPart)
    )
    text = "".join(part.text for part in written.turn.reply if isinstance(part, TextPart))
    return FaultCase(
        f"{api}/{written.name}",
        api,
        written.about,
        (*written.rules, "leaves-nothing"),
        scenario,
        text=text,
        calls=calls,
        tools=tools,
        **written.options,
    )


def tried(turn: TurnSpec, *faults: str, reply: tuple[Any, ...] = ()) -> TurnSpec:
    """A turn with earlier tries that have faults."""
    tries = tuple(
        Http(200, reply=TurnSpec(reply=reply, fault=parse_faults(fault))) for fault in faults
    )
    return replace(turn, attempts=tries)
