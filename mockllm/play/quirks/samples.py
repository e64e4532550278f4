"""The scenarios that show the quirks: as small as they can be. Only data may live here."""

from __future__ import annotations

from dataclasses import replace

from mockllm.scenario import model
from mockllm.scenario.part_model import (
    AnyPart,
    ParallelPart,
    ReasoningPart,
    TextPart,
    ToolPart,
    tool_parts,
)


def _tool(name: str, parameter: str = "") -> model.ToolSpec:
    properties = {parameter: {"type": "string"}} if parameter else {}
    return model.ToolSpec(
        name, f"{name} of the samples", {"type": "object", "properties": properties}
    )


_TOOLS = (_tool("get_weather", "city"), _tool("get_time", "tz"), _tool("list_issues"))

_HELLO = TextPart("Hello", split=("Hel", "lo"))
_A1 = ToolPart("get_weather", "call_A1", '{"city":"Paris"}', split=('{"city":', '"Paris"}'))
_B2 = ToolPart("get_time", "call_B2", '{"tz":"CET"}', split=('{"tz":', '"CET"}'))
_C3 = ToolPart("get_weather", "call_C3", '{"city":"Rome"}', split=('{"city":', '"Rome"}'))
_Z0 = ToolPart("list_issues", "call_Z0")


def _sample(name: str, description: str, *reply: AnyPart, reasoning: int = 0) -> model.Scenario:
    called = any(tool_parts(reply))
    turn = model.TurnSpec(reply=reply, usage=model.UsageSpec(12, 7 + reasoning, reasoning, 0))
    return model.Scenario(
        name=f"sample-{name}",
        description=description,
        match=model.Match(anything=True),
        tools=_TOOLS if called else (),
        turns=(turn,),
    )


TEXT = _sample("text", "A text in two fragments.", _HELLO)
CALL = _sample("call", "One call, its arguments in two fragments.", _A1)
CALL_AT_LIMIT = _sample(
    "call-at-limit",
    "A call whose arguments lack their last bracket.",
    replace(_A1, arguments='{"city":"Paris"', split=('{"city":', '"Paris"'), malformed=True),
)
ZERO = _sample("zero", "A call without arguments.", _Z0)
ZERO_IN_FRAGMENTS = _sample(
    "zero-in-fragments",
    "A call whose arguments are {}, in two fragments.",
    replace(_Z0, arguments="{}", split=("{", "}")),
)
TWO_CALLS = _sample("two-calls", "Two calls, one after the other.", _A1, _B2)
TWO_SAME = _sample("two-same", "Two calls of one tool.", _A1, _C3)
INTERLEAVED = _sample("interleaved", "Two calls, interleaved.", ParallelPart((_A1, _B2)))
TEXT_AND_CALL = _sample("text-and-call", "A text, then a call.", _HELLO, _A1)
TEXT_AND_TWO_CALLS = _sample("text-and-two-calls", "A text, then two calls.", _HELLO, _A1, _B2)
_THINK = ReasoningPart("Let me think.", split=("Let me", " think."), signature="c2lnbmF0dXJl")
REASONING = _sample("reasoning", "Reasoning, then a text.", _THINK, _HELLO, reasoning=4)
REASONING_AND_CALL = _sample(
    "reasoning-and-call", "Reasoning, then a call.", _THINK, _A1, reasoning=4
)
SUMMARY = _sample(
    "summary",
    "A summary of reasoning, then a text.",
    ReasoningPart("Let me think.", split=("Let me", " think."), summary=True),
    _HELLO,
    reasoning=4,
)
UNICODE = _sample(
    "unicode",
    "Characters of two, three and four bytes.",
    TextPart("Grüße 你好 👋", split=("Grüße ", "你好 👋")),
)
LONG_TEXT = _sample("long-text", "A text of 1.2 MB.", TextPart("0123456789abcdef" * 75_000))
NOT_OFFERED = replace(
    _sample(
        "not-offered",
        "A text, a call, and a call of a tool that was not offered.",
        _HELLO,
        _A1,
        replace(_B2, malformed=True),
    ),
    tools=(_TOOLS[0],),
)

SAMPLES = {
    scenario.name: scenario
    for scenario in (
        TEXT,
        CALL,
        CALL_AT_LIMIT,
        ZERO,
        ZERO_IN_FRAGMENTS,
        TWO_CALLS,
        TWO_SAME,
        INTERLEAVED,
        TEXT_AND_CALL,
        TEXT_AND_TWO_CALLS,
        REASONING,
        REASONING_AND_CALL,
        SUMMARY,
        UNICODE,
        LONG_TEXT,
    )
}
