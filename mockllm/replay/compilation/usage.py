"""The usage of a turn: token counts as written, or counted from the text by a fixed rule."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mockllm.core.seeded import tokens
from mockllm.core.turn import Part, Reasoning, Refusal, Text, TokenUsage, ToolCall
from mockllm.matching.positions import tool_parts
from mockllm.scenario.model import (
    InterleavedPart,
    ReasoningPart,
    RefusalPart,
    Scenario,
    TextPart,
    TurnSpec,
    UsageSpec,
)


def usage(
    scenario: Scenario, index: int, spec: TurnSpec, parts: Sequence[Part]
) -> TokenUsage | None:
    """The usage of a turn: as written, else counted; None where the scenario has `usage: none`.

    Input tokens are counted from what the scenario has of the prompt: its tools, the texts of
    its conditions, and the turns before this one with the results that they expect.

    Args:
        index: of the turn in the scenario.
        spec: the turn, as the protocol plays it.
        parts: the neutral parts of the turn.
    """
    written = spec.usage
    default = scenario.defaults.usage
    if not (written or default or UsageSpec()).sent:
        return None

    def given(name: str) -> int | None:
        for usage in (written, default):
            value: int | None = None if usage is None else getattr(usage, name)
            if value is not None:
                return value
        return None

    reasoning = given("reasoning")
    if reasoning is None:
        reasoning = sum(tokens(part.text) for part in parts if isinstance(part, Reasoning))
    output = given("output")
    if output is None:
        output = reasoning + sum(_size(part) for part in parts if not isinstance(part, Reasoning))
    input = given("input")
    if input is None:
        input = _prompt_size(scenario, index)
    return TokenUsage(input, output, reasoning, given("cached") or 0)


def _size(part: Part) -> int:
    match part:
        case Text(text=text) | Refusal(text=text):
            return tokens(text)
        case ToolCall(name=name, arguments=arguments):
            return tokens(name) + tokens(arguments)
        case _:
            return 0


def _prompt_size(scenario: Scenario, index: int) -> int:
    size = 0
    if scenario.match is not None:
        for condition in (scenario.match.user, scenario.match.system):
            size += tokens(condition.value) if condition is not None else 0
    for tool in scenario.tools:
        size += tokens(tool.name) + tokens(tool.description)
        size += tokens(json.dumps(tool.parameters)) if tool.parameters is not None else 0
    for spec in scenario.turns[:index]:
        for part in spec.reply:
            for member in part.parts if isinstance(part, InterleavedPart) else (part,):
                if isinstance(member, TextPart | ReasoningPart | RefusalPart):
                    size += tokens(member.text)
        for call in tool_parts(spec.reply):
            size += tokens(call.name) + tokens(call.arguments or "{}")
        for _, result in spec.request.results if spec.request else ():
            size += tokens(result.text.value) if result.text is not None else 0
    return max(1, size)
