"""Anthropic Messages: reading requests."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import RequestError
from mockllm.core.http import NO_TARGET
from mockllm.core.request import CallEcho, Message, OfferedTool, Request, SentFile
from mockllm.wire.protocols.anthropic_messages.protocol import PROTOCOL
from tests.cases import for_all
from tests.corpus import needs_corpus, recorded_streams
from tests.strategies import json_values
from tests.wire.protocols.anthropic_turns import Json

USER = {"role": "user", "content": "hi"}
TOOL = {"name": "f", "description": "d", "input_schema": {"type": "object"}}


def body(*history: Any, **fields: Any) -> Json:
    return {"model": "m", "max_tokens": 9, "messages": list(history or [USER]), **fields}


def parsed(value: Json, *, strict: bool = True) -> Request:
    return PROTOCOL.parse(value, NO_TARGET, strict)


def user(*blocks: Any) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def text(value: Any = "x") -> Json:
    return {"type": "text", "text": value}


def use(id: str = "toolu_A", **fields: Any) -> Json:
    return {"type": "tool_use", "id": id, "name": "f", "input": {}, **fields}


def result(id: str = "toolu_A", content: Any = "42", **fields: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **fields}


def test_conversation_is_read() -> None:
    """System prompt, texts, calls and results become neutral messages, results first."""
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/"}}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    request = parsed(
        body(
            user(text("Look: "), image, text("what?")),
            assistant(thinking, text("Wait."), use(input={"a": "é", "b": [1]}), use("toolu_B")),
            user(
                result(content=[text("4"), image, text("2")]),
                result("toolu_B", "broken", is_error=True),
                text("And?"),
            ),
            {"role": "assistant", "content": "So"},
            system=[text("Be brief."), text(" Please.")],
            stream=True,
        )
    )
    assert request.messages == (
        Message("system", "Be brief. Please."),
        Message(
            "user", "Look: what?", files=(SentFile("image/*", reference="https://example.com/"),)
        ),
        Message(
            "assistant",
            "Wait.",
            (CallEcho("toolu_A", "f", '{"a":"é","b":[1]}'), CallEcho("toolu_B", "f", "{}")),
        ),
        Message("tool", "42", call_id="toolu_A"),
        Message("tool", "broken", call_id="toolu_B", error=True),
        Message("user", "And?"),
        Message("assistant", "So"),
    )
    assert (request.api, request.model, request.stream) == ("anthropic", "m", True)
    assert request.system == "Be brief. Please."


def test_results_alone_give_no_user_message() -> None:
    """A message that only has results is no user message."""
    request = parsed(body(USER, assistant(use()), user(result(content=None))))
    assert [message.role for message in request.messages] == ["user", "assistant", "tool"]
    assert request.messages[-1].text == ""


def test_a_system_message_in_the_conversation_is_read() -> None:
    """System messages in the conversation are part of the system prompt."""
    request = parsed(body(USER, {"role": "system", "content": "Now rhyme."}, system="Be brief."))
    assert request.system == "Be brief.\nNow rhyme."


def test_tools_of_the_client_are_offered() -> None:
    """Tools that the client runs are offered, those that the service runs are not."""
    tools = [
        TOOL,
        {"type": "custom", "name": "g", "input_schema": {"type": "object"}},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "mcp_toolset", "mcp_server_name": "s"},
    ]
    assert parsed(body(tools=tools)).tools == (
        OfferedTool("f", "d", {"type": "object"}),
        OfferedTool("g", "", {"type": "object"}),
        OfferedTool("bash"),
    )


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, "auto"),
        ({"type": "auto", "disable_parallel_tool_use": True}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "f"}, "f"),
    ],
)
def test_tool_choice(choice: Json | None, expected: str) -> None:
    """Every form of `tool_choice` has its neutral value."""
    assert parsed(body(tools=[TOOL], tool_choice=choice)).tool_choice == expected


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        (None, False),
        ({"type": "disabled"}, False),
        ({"type": "enabled", "budget_tokens": 1024}, True),
        ({"type": "adaptive", "display": "omitted"}, True),
    ],
)
def test_thinking_is_reasoning(thinking: Json | None, expected: bool) -> None:
    """Enabled thinking requests reasoning."""
    assert parsed(body(max_tokens=2000, thinking=thinking)).wants_reasoning is expected


@pytest.mark.parametrize("where", ["output_format", "output_config"])
def test_output_schema(where: str) -> None:
    """A JSON schema for the answer is read in both fields that clients use."""
    format = {"type": "json_schema", "schema": {"type": "object"}}
    value = format if where == "output_format" else {"effort": "low", "format": format}
    assert parsed(body(**{where: value})).output_schema == {"type": "object"}
    assert parsed(body()).output_schema is None


ACCEPTED: list[tuple[str, Json]] = [
    ("prefill", body(USER, {"role": "assistant", "content": ""})),
    ("users in a row", body(USER, USER)),
    (
        "results over two messages",
        body(USER, assistant(use(), use("b")), user(result()), user(result("b"))),
    ),
    (
        "hosted tools",
        body(USER, assistant({"type": "server_tool_use", "id": "s", "name": "w", "input": {}})),
    ),
    (
        "tools that change within the conversation",
        body(
            USER,
            {
                "role": "system",
                "content": [
                    {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "f"}},
                ],
            },
        ),
    ),
    (
        "results of hosted tools",
        body(
            USER,
            assistant(
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                {"type": "mcp_tool_use", "id": "m", "name": "f", "server_name": "x", "input": {}},
                {"type": "mcp_tool_result", "tool_use_id": "m", "content": []},
                text("found"),
            ),
            user(text("more")),
        ),
    ),
    ("redacted thinking", body(USER, assistant({"type": "redacted_thinking", "data": "x"}))),
    ("temperature of 1", body(temperature=1, top_p=0.5, top_k=5)),
    ("fields of later versions", body(mcp_servers=[], betas=[], container="c", speed="fast")),
    ("the same id in two turns", body(*[USER, assistant(use()), user(result())] * 2)),
    (
        "arguments that a body told as text",
        body(USER, assistant(use(input='{"a"')), user(result())),
    ),
    ("null where a field may be left out", body(system=None, tools=None, thinking=None)),
    ("thinking beyond the limit with tools", body(tools=[TOOL], thinking={"type": "adaptive"})),
]


@for_all("value", [pytest.param(v, id=name) for name, v in ACCEPTED])
def test_accepted(value: Json) -> None:
    """Requests that the service accepts are accepted."""
    assert parsed(value).model == "m"


likely = st.one_of(json_values, st.sampled_from([USER, TOOL, use(), result(), text(), "text"]))
bodies = st.fixed_dictionaries(
    {
        "messages": st.lists(
            likely | st.builds(user, likely) | st.builds(assistant, likely), max_size=3
        )
    },
    optional={
        "model": likely,
        "max_tokens": st.just(9) | likely,
        "system": likely | st.lists(likely, max_size=2),
        "tools": likely | st.lists(likely, max_size=2),
        "tool_choice": likely | st.just({"type": "tool", "name": "f"}),
        "thinking": likely,
        "output_config": likely,
    },
)


@given(bodies | json_values.filter(lambda value: isinstance(value, dict)))
def test_any_body_is_read_or_refused(value: Any) -> None:
    """Any JSON object is read when lenient, and read or refused when strict."""
    assert isinstance(parsed(value, strict=False), Request)
    with contextlib.suppress(RequestError):
        assert isinstance(parsed(value), Request)


@needs_corpus
@for_all("path", recorded_streams("anthropic"), ids=lambda path: path.parent.name)
def test_recorded_requests_are_accepted(path: Path) -> None:
    """Recorded requests of real clients are accepted when strict."""
    request = parsed(json.loads(path.with_name("request.json").read_bytes()))
    assert request.messages
    assert request.stream
