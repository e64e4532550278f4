"""The automatic answer: made from the request where a scenario says `auto: true`.

A call of the tool that `tool_choice` demands, an object that satisfies the schema asked for,
reasoning where the request wants it; otherwise an echo. The same request gives the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mockllm.core.request import OfferedTool, Request
from mockllm.errors import RequestError
from mockllm.replay.schema_sample import UnsatisfiableError, sample
from mockllm.scenario.jsontext import compact
from mockllm.scenario.model import AnyPart, ReasoningPart, TextPart, ToolPart

__all__ = ["answer"]


def answer(request: Request) -> tuple[AnyPart, ...]:
    """The parts of an automatic answer.

    Raises:
        RequestError: no value can be found for the schema that the request demands.
    """
    return tuple(_parts(request))


def _parts(request: Request) -> Iterator[AnyPart]:
    if request.wants_reasoning:
        yield ReasoningPart("The request asks for reasoning, so here is some.", split="words")
    tool = _demanded(request)
    if tool is not None:
        value = _sample(dict(tool.parameters), f"tool {tool.name!r}")
        arguments = compact(value) if value else None
        yield ToolPart(tool.name, arguments=arguments, split=8)
    elif request.output_schema is not None:
        yield TextPart(compact(_sample(dict(request.output_schema), "the response")), split=8)
    else:
        yield TextPart(_echo(request), split="words")


def _demanded(request: Request) -> OfferedTool | None:
    """The tool that must be called; with `required`, the first one offered."""
    if request.tool_choice == "required":
        return request.tools[0] if request.tools else None
    if request.tool_choice in ("auto", "none"):
        return None
    for tool in request.tools:
        if tool.name == request.tool_choice:
            return tool
    return None


def _sample(schema: dict[str, Any], what: str) -> Any:
    try:
        value = sample({"type": "object", **schema} if "$ref" not in schema else schema)
    except UnsatisfiableError as error:
        raise RequestError(
            f"mockllm cannot make up a value for the JSON Schema of {what}: {error}. "
            "Write a scenario with the arguments you want in place of `auto: true`.",
            code="unsatisfiable_schema",
        ) from error
    return value


def _echo(request: Request) -> str:
    """The latest tool results, else the latest words of the user."""
    results: list[str] = []
    for message in reversed(request.messages):
        if message.role == "tool":
            results.append(message.text)
        elif results:
            return "\n".join(reversed(results))
        elif message.role == "user" and message.text:
            return message.text
    return "\n".join(reversed(results)) or "(nothing to echo)"
