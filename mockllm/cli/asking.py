"""What a request looks like in each API: enough for `mockllm show` and `mockllm demo`.

The continuations show both ways of going on: Chat Completions sends the whole history again,
Responses points at the earlier answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mockllm.scenario.model import Match, Scenario, ToolSpec
from mockllm.turn import ToolCall

__all__ = ["ASKING", "Asking", "Json", "first_body", "user_text"]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asking:
    """How one API is asked.

    Args:
        first: the messages of a conversation that begins with what a user says.
        tool: how a tool is offered.
        then: the body that brings results: from the body before, the id of the answer to it,
            the calls it made, and the result of each by its id.
    """

    first: Callable[[str], Json]
    tool: Callable[[ToolSpec], Json]
    then: Callable[[Json, str, Sequence[ToolCall], Mapping[str, str]], Json]


def user_text(scenario: Scenario) -> str:
    """What a user may say to get this scenario."""
    match = scenario.match or Match()
    return "Hello" if match.user is None or match.user.op == "regex" else match.user.value


def first_body(asking: Asking, model: str, text: str, tools: Sequence[ToolSpec] = ()) -> Json:
    """The body of the first request of a conversation, for a streamed answer."""
    offered = {"tools": [asking.tool(tool) for tool in tools]} if tools else {}
    return {"model": model, "stream": True, **asking.first(text), **offered}


def _chat_first(text: str) -> Json:
    return {"messages": [{"role": "user", "content": text}]}


def _chat_tool(tool: ToolSpec) -> Json:
    return {"type": "function", "function": _function(tool)}


def _chat_then(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Mapping[str, str]
) -> Json:
    made = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]
    told = [{"role": "tool", "tool_call_id": id, "content": text} for id, text in results.items()]
    said = {"role": "assistant", "content": None, "tool_calls": made}
    return {**body, "messages": [*body["messages"], said, *told]}


def _responses_first(text: str) -> Json:
    return {"input": text}


def _responses_tool(tool: ToolSpec) -> Json:
    return {"type": "function", **_function(tool)}


def _responses_then(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Mapping[str, str]
) -> Json:
    told = [
        {"type": "function_call_output", "call_id": id, "output": text}
        for id, text in results.items()
    ]
    return {**body, "previous_response_id": answer, "input": told}


def _function(tool: ToolSpec) -> Json:
    parameters = tool.parameters or {"type": "object", "properties": {}}
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


ASKING: dict[str, Asking] = {
    "chat": Asking(_chat_first, _chat_tool, _chat_then),
    "responses": Asking(_responses_first, _responses_tool, _responses_then),
}
