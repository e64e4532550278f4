"""The automatic reply: what is called, what is filled in, what is echoed."""

from __future__ import annotations

import pytest

from mockllm.core.errors import RequestError
from mockllm.core.request import Message, OfferedTool, Request
from mockllm.play.replay.auto.autoreply import auto_parts
from mockllm.scenario.part_model import AnyPart, ReasoningPart, TextPart, ToolPart

NUMBER = {"properties": {"n": {"type": "integer", "minimum": 5}}, "required": ["n"]}
TOOLS = (OfferedTool("plain"), OfferedTool("count", parameters=NUMBER))


def reply(*messages: Message, **fields: object) -> tuple[AnyPart, ...]:
    request = Request("chat", "m", {}, messages=messages, **fields)  # type: ignore[arg-type]
    return auto_parts(request)


def echo(*messages: Message) -> str:
    (part,) = reply(*messages)
    assert isinstance(part, TextPart)
    assert part.split == "words"
    return part.text


def user(text: str) -> Message:
    return Message("user", text)


def result(text: str) -> Message:
    return Message("tool", text, call_id="c")


def test_the_latest_message_is_echoed() -> None:
    """The results since the last other message, else the last user message with a text."""
    assert echo(user("a"), user("b")) == "b"
    assert echo(user("a"), user("")) == "a"
    assert echo(user("a"), Message("assistant", "x"), Message("system", "y")) == "a"
    assert echo(user("a"), Message("assistant", "x"), result("1"), result("2")) == "1\n2"
    assert echo(user("a"), result("0"), user("b"), result("1")) == "1"
    assert echo(result("1"), result("2")) == "1\n2"
    assert echo(result("")) == "(nothing to echo)"
    assert echo(user("a"), result("")) == "(nothing to echo)"
    assert echo() == "(nothing to echo)"
    assert echo(Message("assistant", "x")) == "(nothing to echo)"


def test_the_tool_that_is_demanded() -> None:
    """The named one, or the first one; its arguments satisfy its schema."""
    named = ToolPart("count", arguments='{"n":5}', split=8)
    assert reply(user("a"), tools=TOOLS, tool_choice="count") == (named,)
    first = ToolPart("plain", arguments=None, split=8)
    assert reply(user("a"), tools=TOOLS, tool_choice="required") == (first,)


@pytest.mark.parametrize("choice", ["auto", "none", "unknown"])
def test_no_tool_is_demanded(choice: str) -> None:
    """Then none is called, also where a tool has such a name."""
    tools = (*TOOLS, OfferedTool("auto"), OfferedTool("none"))
    assert reply(user("a"), tools=tools, tool_choice=choice) == (TextPart("a", split="words"),)
    assert reply(user("a"), tool_choice="required") == (TextPart("a", split="words"),)


def test_the_schema_of_the_response() -> None:
    """A text that satisfies it; the empty schema asks for any object."""
    assert reply(user("a"), output_schema=NUMBER) == (TextPart('{"n":5}', split=8),)
    assert reply(user("a"), output_schema={}) == (TextPart("{}", split=8),)
    reference = {"$ref": "#/$defs/n", "$defs": {"n": {"enum": [[1, 2]]}}}
    assert reply(user("a"), output_schema=reference) == (TextPart("[1,2]", split=8),)
    tool = ToolPart("count", arguments='{"n":5}', split=8)
    assert reply(user("a"), tools=TOOLS, tool_choice="count", output_schema={}) == (tool,)


def test_reasoning_comes_first() -> None:
    """Where the request enables it, before whatever follows."""
    thought = ReasoningPart("The request asks for reasoning, so here is some.", split="words")
    text = TextPart("a", split="words")
    assert reply(user("a"), wants_reasoning=True) == (thought, text)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"tools": (OfferedTool("f", parameters={"type": "nope"}),), "tool_choice": "f"},
         "tool 'f'"),
        ({"output_schema": {"type": "nope"}}, "the response"),
    ],
)  # fmt: skip
def test_a_schema_without_a_value(fields: dict[str, object], what: str) -> None:
    """A clear refusal that says what to do instead."""
    with pytest.raises(RequestError) as caught:
        reply(user("a"), **fields)
    assert caught.value.message == (
        f"mockllm cannot make up a value for the JSON Schema of {what}: the schema is not valid: "
        "'nope' is not valid under any of the given schemas. Write a scenario with the arguments "
        "you want in place of `auto: true`."
    )
    assert caught.value.code == "unsatisfiable_schema"


def test_a_custom_tool_gets_text() -> None:
    """The input of a tool that has free text is the latest message, and no JSON."""
    tools = (OfferedTool("shell", custom=True),)
    named = ToolPart("shell", arguments="a", split=8, custom=True)
    assert reply(user("a"), tools=tools, tool_choice="required") == (named,)


def test_a_grammar_is_refused() -> None:
    """No text is made up for the grammar of a custom tool; the message says what to do."""
    tools = (OfferedTool("sql", custom=True, grammar="start: WORD"),)
    with pytest.raises(RequestError, match=r"grammar of tool 'sql'.*Write a scenario"):
        reply(user("a"), tools=tools, tool_choice="sql")
