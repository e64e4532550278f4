"""Anthropic Messages requests that the service refuses, and the errors."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.core.errors import RequestError
from mockllm.core.request import Request
from mockllm.wire.protocols.anthropic_messages.protocol import PROTOCOL
from tests.cases import for_all
from tests.wire.protocols.anthropic_turns import Json
from tests.wire.protocols.test_anthropic_request import (
    TOOL,
    USER,
    assistant,
    body,
    parsed,
    result,
    text,
    use,
    user,
)


def without(key: str) -> Json:
    value = body()
    del value[key]
    return value


def tool(**fields: Any) -> Json:
    return body(tools=[{**TOOL, **fields}])


def schema(**fields: Any) -> Json:
    return tool(input_schema={"type": "object", **fields})


CHOOSE = {"type": "tool", "name": "g"}
REFUSED: list[tuple[str, Json, str]] = [
    ("no model", without("model"), "model: Field required"),
    ("model a number", body(model=3), "model: Input should be a valid string"),
    ("model empty", body(model=""), "model: String should have at least 1 character"),
    ("no max_tokens", without("max_tokens"), "max_tokens: Field required"),
    ("max_tokens text", body(max_tokens="9"), "max_tokens: Input should be a valid integer"),
    ("max_tokens true", body(max_tokens=True), "max_tokens: Input should be a valid integer"),
    ("max_tokens below 0", body(max_tokens=-1), "max_tokens: Input should be greater than or"),
    ("no messages", without("messages"), "messages: Field required"),
    ("messages text", body() | {"messages": "hi"}, "messages: Input should be a valid list"),
    ("no message", body() | {"messages": []}, "messages: at least one message is required"),
    ("message text", body("hi"), "messages.0: Input should be a valid dictionary"),
    ("no role", body({"content": "x"}), "messages.0.role: Field required"),
    ("unknown role", body(USER, {**USER, "role": "tool"}), "messages.1.role: Input should be"),
    ("first assistant", body(assistant(text())), 'messages: first message must use the "user"'),
    ("no content", body({"role": "user"}), "messages.0.content: Field required"),
    ("content number", body({**USER, "content": 5}), "messages.0.content: Input should be a"),
    ("content empty", body({**USER, "content": ""}), "messages.0: all messages must have non-"),
    ("no blocks", body(USER, assistant(), USER), "messages.1: all messages must have non-empty"),
    ("block text", body(user("x")), "messages.0.content.0: Input should be a valid dictionary"),
    ("block untyped", body(user({"text": "x"})), "messages.0.content.0.type: Field required"),
    (
        "block of another API",
        body(user({"type": "image_url"})),
        "messages.0.content.0: Input tag 'image_url' found using 'type' does not match any of",
    ),
    ("text missing", body(user({"type": "text"})), "messages.0.content.0.text.text: Field"),
    ("text number", body(user(text(1))), "messages.0.content.0.text.text: Input should be a"),
    ("text empty", body(user(text(""))), "messages: text content blocks must be non-empty"),
    (
        "thinking unsigned",
        body(USER, assistant({"type": "thinking", "thinking": "x"})),
        "messages.1.content.0.thinking.signature: Field required",
    ),
    ("call of the user", body(user(use())), "messages.0: `tool_use` blocks can only be in `assis"),
    (
        "result of the assistant",
        body(USER, assistant(result())),
        "messages.1: `tool_result` blocks can only be in `user` messages",
    ),
    (
        "call without id",
        body(USER, assistant({"type": "tool_use", "name": "f", "input": {}})),
        "messages.1.content.0.tool_use.id: Field required",
    ),
    (
        "arguments a list",
        body(USER, assistant(use(input=[]))),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    (
        "call with a strange id",
        body(USER, assistant(use("a:b"))),
        "messages.1.content.0.tool_use.id: String should match pattern",
    ),
    (
        "call not answered",
        body(USER, assistant(use()), USER),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "toolu_A. Each `tool_use` block must have a corresponding `tool_result` block",
    ),
    (
        "call at the end",
        body(USER, assistant(use())),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after",
    ),
    (
        "one of two calls not answered",
        body(USER, assistant(use(), use("b")), user(result())),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b.",
    ),
    (
        "words before the result",
        body(USER, assistant(use()), user(text(), result())),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after",
    ),
    (
        "result without call",
        body(user(result("b"))),
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: b. Each",
    ),
    (
        "result too late",
        body(USER, assistant(use()), user(result()), assistant(text()), user(result())),
        "messages.4.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_A",
    ),
    (
        "two results",
        body(USER, assistant(use()), user(result(), result())),
        "messages.2.content.1: each tool_use must have a single result. Found multiple",
    ),
    (
        "the same id twice",
        body(USER, assistant(use(), use()), user(result())),
        "messages.1: `tool_use` ids must be unique",
    ),
    (
        "result without id",
        body(USER, assistant(use()), user({"type": "tool_result"})),
        "messages.2.content.0.tool_result.tool_use_id: Field required",
    ),
    (
        "result a number",
        body(USER, assistant(use()), user(result(content=42))),
        "messages.2.content.0.tool_result.content: Input should be a valid list",
    ),
    (
        "result of untyped blocks",
        body(USER, assistant(use()), user(result(content=["42"]))),
        "messages.2.content.0.tool_result.content.0.type: Field required",
    ),
    (
        "is_error text",
        body(USER, assistant(use()), user(result(is_error="no"))),
        "messages.2.content.0.tool_result.is_error: Input should be a valid boolean",
    ),
    ("system number", body(system=1), "system: Input should be a valid list"),
    ("system block", body(system=[{"type": "image"}]), "system.0.type: Input should be 'text'"),
    ("system text", body(system=[text(1)]), "system.0.text: Input should be a valid string"),
    ("system empty", body(system=[text("")]), "system: text content blocks must be non-empty"),
    ("stream text", body(stream="yes"), "stream: Input should be a valid boolean"),
    ("temperature high", body(temperature=2), "temperature: Input should be less than or equal"),
    ("stop list", body(stop_sequences="x"), "stop_sequences: Input should be a valid list"),
    ("another API's field", body(response_format={}), "response_format: Extra inputs are not"),
    ("tools not a list", body(tools={}), "tools: Input should be a valid list"),
    ("tool text", body(tools=["f"]), "tools.0: Input should be a valid dictionary"),
    (
        "tool of another API",
        body(tools=[{"type": "function", "function": TOOL}]),
        "tools.0: Input tag 'function' found using 'type' does not match any of",
    ),
    ("tool name", tool(name="a b"), "tools.0.custom.name: String should match pattern '^[a-zA"),
    ("tool name long", tool(name="a" * 129), "tools.0.custom.name: String should match pattern"),
    ("tool nameless", tool(name=None), "tools.0.custom.name: Field required"),
    ("tool name number", tool(name=1), "tools.0.custom.name: Input should be a valid string"),
    ("no schema", tool(input_schema=None), "tools.0.custom.input_schema: Field required"),
    ("schema text", tool(input_schema="{}"), "tools.0.custom.input_schema: Input should be a"),
    ("untyped schema", tool(input_schema={}), "tools.0.custom.input_schema.type: Field required"),
    ("schema type", schema(type="array"), "tools.0.custom.input_schema.type: Input should be 'o"),
    ("schema choice", schema(anyOf=[]), "tools.0.custom.input_schema: input_schema does not"),
    ("schema list", schema(properties=[1]), "tools.0.custom.input_schema: JSON schema is invalid"),
    (
        "schema of a property",
        schema(properties={"a": {"type": "text"}}),
        "tools.0.custom.input_schema: JSON schema is invalid",
    ),
    ("description", tool(description=1), "tools.0.custom.description: Input should be a valid"),
    ("tools of one name", body(tools=[TOOL, TOOL]), "tools: Tool names must be unique."),
    ("choice text", body(tool_choice="any"), "tool_choice: Input should be a valid dictionary"),
    (
        "choice unknown",
        body(tools=[TOOL], tool_choice={"type": "required"}),
        "tool_choice: Input tag 'required' found using 'type' does not match any",
    ),
    (
        "choice nameless",
        body(tools=[TOOL], tool_choice={"type": "tool"}),
        "tool_choice.tool.name: Field required",
    ),
    (
        "choice of an absent tool",
        body(tools=[TOOL], tool_choice=CHOOSE),
        "tool_choice: Tool 'g' not found in provided tools",
    ),
    (
        "choice without tools",
        body(tool_choice={"type": "any"}),
        "tool_choice: may only be specified while providing `tools`",
    ),
    ("thinking unknown", body(thinking={"type": "on"}), "thinking: Input tag 'on' found using"),
    (
        "thinking without budget",
        body(thinking={"type": "enabled"}),
        "thinking.enabled.budget_tokens: Field required",
    ),
    (
        "thinking too little",
        body(thinking={"type": "enabled", "budget_tokens": 9}),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    (
        "thinking beyond the limit",
        body(thinking={"type": "enabled", "budget_tokens": 2000}),
        "max_tokens: must be greater than `thinking.budget_tokens`",
    ),
    (
        "thinking and a forced tool",
        body(
            tools=[TOOL],
            tool_choice={"type": "any"},
            thinking={"type": "enabled", "budget_tokens": 2000},
        ),
        "thinking: may not be enabled when tool_choice forces tool use",
    ),
]


@for_all(("value", "message"), [pytest.param(v, message, id=name) for name, v, message in REFUSED])
def test_refused(value: Json, message: str) -> None:
    """A strict request is refused with the service's message and the path; a lenient one is
    accepted."""
    with pytest.raises(RequestError) as caught:
        parsed(value)
    assert caught.value.message.startswith(message)
    assert caught.value.status == 400
    assert caught.value.param == caught.value.message.partition(": ")[0]
    assert isinstance(parsed(value, strict=False), Request)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    "thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_01A"}]
)
def test_threads_are_not_kept(thread: Json, strict: bool) -> None:
    """A request to store the conversation is refused such that clients send the whole history,
    which decides the turn."""
    with pytest.raises(RequestError, match=r"^thread: ") as caught:
        parsed(body(thread=thread), strict=strict)
    assert PROTOCOL.error_body(caught.value)["error"]["details"] == {
        "error_code": "thread_unsupported_request",
        "unsupported": ["thread"],
    }
