"""A failed case is reduced to what still breaks, and to nothing else."""

from __future__ import annotations

from mockllm.checking.cases.build import case
from mockllm.checking.cases.scenarios import Variation
from mockllm.checking.reports.shrinking import shrink
from mockllm.play.quirks.samples import TEXT_AND_TWO_CALLS, UNICODE
from mockllm.play.replay.loading import loads
from mockllm.scenario.part_model import ToolPart

VARIED = Variation(split=(3, 1), group=2, line_end="crlf", bom=True, comments=2, cut=(5, 7))


def test_parts_and_arguments_that_break_nothing_are_left_out() -> None:
    """One of three parts, its text or its arguments in as few fragments as can be."""
    long = case(TEXT_AND_TWO_CALLS, "chat", VARIED)
    small = shrink(long, lambda one: any(c.name == "get_time" for c in one.expected.tool_calls))
    (call,) = small.expected.tool_calls
    assert (call.name, call.arguments, small.expected.text) == ("get_time", {}, "")
    assert small.variation == Variation()
    assert len(small.scenario.tools) == 1
    text = shrink(long, lambda one: bool(one.expected.text))
    assert (text.expected.text, text.expected.tool_calls) == ("H", ())


def test_the_input_of_a_custom_call_is_shortened_as_text() -> None:
    """It is free text. The raw input of a service's tool may be no JSON either."""
    (scenario,) = loads(CUSTOM)
    small = shrink(case(scenario, "chat", VARIED), lambda one: b"run" in b"".join(one.chunks))
    assert small.scenario.turns[0].reply == (ToolPart("run", "call_1", "l", custom=True),)


CUSTOM = """
scenario: custom
turns:
  - reply:
      - {tool: run, id: call_1, input: ls -la}
      - {server_tool: web_search, input: {raw: "{"}}
      - {text: Done.}
"""

INTERLEAVED = """
scenario: interleaved
tools:
  - {name: f, parameters: {type: object}}
  - {name: g, parameters: {type: object}}
turns:
  - reply:
      interleaved:
        - {text: "Hi there", split: words}
        - {tool: f, id: call_1, arguments: {}}
      order: [0, 1, 0]
"""


def test_the_tools_of_interleaved_calls_stay() -> None:
    """Without its tool, the scenario of a report would call what the request does not offer."""
    (scenario,) = loads(INTERLEAVED)
    small = shrink(case(scenario, "chat", VARIED), lambda one: bool(one.expected.tool_calls))
    assert small.variation == Variation()
    assert [tool.name for tool in small.scenario.tools] == ["f"]


def test_the_part_of_a_variation_that_breaks_stays() -> None:
    """The others go, and sizes that repeat become one."""
    long = case(UNICODE, "anthropic", VARIED)
    assert shrink(long, lambda one: one.variation.bom).variation == Variation(bom=True)
    small = shrink(long, lambda one: bool(one.variation.cut))
    assert small.variation == Variation(cut=(5,))
    assert small.quirk == ""


def test_a_quirk_stays_and_nothing_larger_is_found() -> None:
    """The quirk is what the case is about; where nothing smaller breaks, it is the case itself."""
    quirky = case(TEXT_AND_TWO_CALLS, "chat", quirk="chat-args-whole")
    small = shrink(quirky, lambda one: len(one.expected.tool_calls) == 2)
    assert small.quirk == "chat-args-whole"
    assert small.answer.size < quirky.answer.size
    assert shrink(quirky, lambda _: False) is quirky
    tried: list[object] = []
    shrink(quirky, lambda one: bool(tried.append(one)), tries=3)
    assert len(tried) <= 3
