"""Usage: as written, or counted from the text by a fixed rule."""

from __future__ import annotations

import pytest

from mockllm.core.events import Frame
from mockllm.core.turn import (
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    TokenUsage,
    ToolCall,
)
from mockllm.play.replay.compilation.resolve import usage
from mockllm.play.replay.loading import loads

PARTS: tuple[Part, ...] = (
    Reasoning(("r" * 8,)),
    Text(("t" * 12, "t" * 4)),
    Refusal(("n" * 20,)),
    ToolCall("n" * 24, "id", ("{", "}" * 27)),
    ToolCall("f", "id"),
    Opaque("chat", Frame("x" * 100)),
)
COUNTED = 2 + 4 + 5 + 6 + 7 + 1 + 1
"""A token for four bytes: reasoning, text, refusal, name and arguments of each call."""


def counted(head: str = "", turn: str = "", *, index: int = 0) -> TokenUsage | None:
    turns = ["reply: {text: x}"] * index + ["reply: {text: x}" + turn]
    text = f"scenario: s\n{head}\nturns: [{', '.join('{' + one + '}' for one in turns)}]"
    (scenario,) = loads(text)
    return usage(scenario, index, scenario.turns[index], PARTS)


def test_everything_is_counted() -> None:
    """Output includes reasoning; the prompt has a token at least."""
    assert counted() == TokenUsage(1, COUNTED, 2, 0)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{input: 50}", TokenUsage(50, COUNTED, 2, 0)),
        ("{output: 9}", TokenUsage(1, 9, 2, 0)),
        ("{reasoning: 5}", TokenUsage(1, COUNTED + 3, 5, 0)),
        ("{input: 50, cached: 4}", TokenUsage(50, COUNTED, 2, 4)),
        ("{input: 50, cache_written: 6}", TokenUsage(50, COUNTED, 2, 0, 6)),
        ("{input: 0, output: 0, reasoning: 0, cached: 0}", TokenUsage(0, 0, 0, 0)),
    ],
)
def test_what_is_written_counts(written: str, expected: TokenUsage) -> None:
    """In the turn or in the defaults; the rest is counted."""
    assert counted(turn=f", usage: {written}") == expected
    assert counted(head=f"defaults: {{usage: {written}}}") == expected


def test_a_turn_goes_before_the_defaults() -> None:
    """Field by field."""
    head = "defaults: {usage: {input: 50, output: 9, reasoning: 3, cached: 4}}"
    assert counted(head, ", usage: {output: 0, cached: 0}") == TokenUsage(50, 0, 3, 0)


def test_no_usage() -> None:
    """`usage: none` of the turn or of the defaults; a turn may have one where the others have
    none."""
    assert counted(turn=", usage: none") is None
    assert counted("defaults: {usage: none}") is None
    assert counted("defaults: {usage: none}", ", usage: {input: 7}") == TokenUsage(7, COUNTED, 2, 0)
    assert counted("defaults: {usage: {input: 7}}", ", usage: none") is None


PROMPT = """
scenario: s
match: {user: "8 bytes.", system: "twelve bytes"}
tools:
  - {name: four, description: "eight by", parameters: {type: object}}
  - {name: none}
turns:
  - reply:
      - {reasoning: "16 bytes of text"}
      - {tool: four, id: a, arguments: {k: "0123456789"}}
      - parallel: [{tool: four, id: b}, {tool: none, id: c}]
  - request: {results: {a: "twenty bytes of text", b: {error: true}}}
    reply:
      - interleaved: [{text: "four"}, {refusal: "five!"}]
        order: [0, 1]
      - {pause: 1s}
  - reply: {text: last}
"""


def test_the_prompt_is_counted() -> None:
    """Conditions, tools, and the turns before with the results that they expect."""
    (scenario,) = loads(PROMPT)
    sizes = []
    for index in range(3):
        found = usage(scenario, index, scenario.turns[index], ())
        assert found is not None
        assert (found.output, found.reasoning, found.cached) == (0, 0, 0)
        sizes.append(found.input)
    conditions, tools = 2 + 3, 1 + 2 + 5 + 1 + 0
    first = 4 + (1 + 5) + (1 + 1) + (1 + 1)
    second = 1 + 2 + 5
    assert sizes == [
        conditions + tools,
        conditions + tools + first,
        conditions + tools + first + second,
    ]
