"""The automatic reply of `auto: true`, made from the request.

It calls the tool that `tool_choice` demands, or has an object that satisfies the requested schema;
otherwise it echoes the latest message, or has words, as many as are drawn for the request.
Reasoning comes first where the request enables it. The same request gives the same reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.jsontext import compact
from mockllm.core.later import later
from mockllm.core.request import OfferedTool, Request
from mockllm.core.seeded import derive
from mockllm.core.tokens_and_fragments import tokens
from mockllm.play.replay.auto.schema_sample import (
    MAX_LEVELS,
    Sample,
    UnsatisfiableError,
    bounded_sample,
    measure,
)
from mockllm.play.replay.auto.words import words
from mockllm.scenario.lengths import MAX_TOKENS, read_tokens
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.scenario.part_model import AnyPart, AutoPart, ReasoningPart, TextPart, ToolPart
from mockllm.wire.protocols.base import WireProtocol

_REASONING = "The request asks for reasoning, so here is some."

_SMALL = 64
"""Schemas with up to so many values are sampled at once, in some milliseconds."""

_FEW_STEPS = 2_000
_MOST_SAMPLES = 128
_LONGEST_SCHEMA = 64 * 1024
_samples: dict[str, Sample] = {}
"""The latest samples, by their schemas: clients send the same tools again and again."""


def auto_parts(request: Request, words: str = "") -> tuple[AnyPart, ...]:
    """The parts of an automatic reply.

    Args:
        words: what a reply says that is text; "": it is an echo.

    Raises:
        RequestError: no value is found for a JSON Schema of the request.
    """
    return tuple(_parts(request, words))


def automatic_reply(
    spec: TurnSpec, scenario: Scenario, request: Request, protocol: WireProtocol
) -> tuple[AnyPart, ...]:
    """The parts of a turn's automatic reply, as long as its distribution draws.

    Raises:
        RequestError: no value is found for a JSON Schema of the request.
    """
    part = next(part for part in spec.reply if isinstance(part, AutoPart))
    if not part.tokens:
        return auto_parts(request)
    seed = derive(scenario.seeded, "words", _content(request, protocol), length=32)
    (drawn,) = read_tokens(part.tokens).draw(seed, count=1)
    count = max(1, min(round(drawn), MAX_TOKENS))
    reasoning = tokens(_REASONING) if request.wants_reasoning else 0
    return auto_parts(request, words(max(1, count - reasoning), seed)[1:])


def _content(request: Request, protocol: WireProtocol) -> str:
    """The content of a request, as text: the streamed answer is that of the body."""
    apart = {protocol.client.stream_field, *protocol.client.usage}
    body = {name: value for name, value in request.body.items() if name not in apart}
    return json.dumps([request.model, body], sort_keys=True)


def sample_notes(request: Request) -> tuple[str, ...]:
    """Why the automatic reply to a request does not satisfy its JSON Schema; empty where it does,
    or where there is no schema, or no reply.

    A `Player` calls this before it counts anything.

    Raises:
        NotDoneError: the sample is to be made in a thread; see `mockllm.core.later`.
    """
    schema, what = _schema(request)
    if schema is None:
        return ()
    try:
        sample = _sample(schema, what)
    except RequestError:
        return ()  # refused later, when it is the turn of this reply
    if not sample.gave_up:
        return ()
    return (f"mockllm gave up a value for the JSON Schema of {what}: {sample.gave_up}",)


def _parts(request: Request, words: str) -> Iterator[AnyPart]:
    if request.wants_reasoning:
        yield ReasoningPart(_REASONING, split="words")
    tool = _required_tool(request)
    if tool is not None and tool.custom:
        yield ToolPart(tool.name, arguments=_custom_input(tool, request), split=8, custom=True)
        return
    schema, what = _schema(request)
    if tool is not None:
        value = _sample(schema, what).value
        arguments = compact(value) if value else None
        yield ToolPart(tool.name, arguments=arguments, split=8)
    elif schema is not None:
        yield TextPart(compact(_sample(schema, what).value), split=8)
    else:
        yield TextPart(words or _echo(request), split="words")


def _schema(request: Request) -> tuple[Any, str]:
    """The schema that the reply must satisfy, None for none; and what it is of, for messages."""
    tool = _required_tool(request)
    if tool is not None:
        return None if tool.custom else dict(tool.parameters), f"tool {tool.name!r}"
    return None if request.output_schema is None else dict(request.output_schema), "the response"


def _required_tool(request: Request) -> OfferedTool | None:
    """The tool that the reply must call; with `tool_choice: required`, the first one offered."""
    if request.tool_choice == "required":
        return request.tools[0] if request.tools else None
    if request.tool_choice in ("auto", "none"):
        return None
    for tool in request.tools:
        if tool.name == request.tool_choice:
            return tool
    return None


def _custom_input(tool: OfferedTool, request: Request) -> str:
    """The input of a tool that has free text: the latest message."""
    if tool.grammar:
        raise RequestError(
            f"mockllm cannot make up a text for the grammar of tool {tool.name!r}. "
            "Write a scenario with the input you want in place of `auto: true`.",
            code="unsatisfiable_schema",
        )
    return _echo(request)


def _sample(schema: dict[str, Any], what: str) -> Sample:
    whole = {"type": "object", **schema} if "$ref" not in schema else schema
    try:
        return _sample_of(whole)
    except UnsatisfiableError as error:
        raise RequestError(
            f"mockllm cannot make up a value for the JSON Schema of {what}: {error}. "
            "Write a scenario with the arguments you want in place of `auto: true`.",
            code="unsatisfiable_schema",
        ) from error


def _sample_of(schema: dict[str, Any]) -> Sample:
    """The sample of a schema: a kept one, or made now or, from an event loop, in a thread."""
    nodes, levels = measure(schema)
    if levels > MAX_LEVELS:
        return bounded_sample(schema)
    key = compact(schema)
    sample = _samples.get(key)
    if sample is None and nodes <= _SMALL:
        sample = bounded_sample(schema, _FEW_STEPS)
        if sample.gave_up:
            sample = None
    if sample is None:
        sample = later(("sample", key), partial(bounded_sample, schema))
    if len(key) <= _LONGEST_SCHEMA:
        if len(_samples) >= _MOST_SAMPLES:
            _samples.clear()
        _samples[key] = sample
    return sample


def _echo(request: Request) -> str:
    """The latest tool results, else the text of the latest user message."""
    if request.new_results:
        return "\n".join([result.text for result in request.new_results]) or "(nothing to echo)"
    texts = [message.text for message in request.users if message.text]
    return texts[-1] if texts else "(nothing to echo)"
