"""Requests of Gemini: the body and the path to the neutral request, with the service's validation.

https://ai.google.dev/api/generate-content#request-body

The model, and whether and how the answer is streamed, are in the path and the query. Errors have
the service's messages. Only pure functions may live here.
"""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.core.http import Target
from mockllm.core.request import Message, Request
from mockllm.errors import RequestError
from mockllm.protocols.checks import Check
from mockllm.protocols.gemini import API
from mockllm.protocols.gemini.contents import check_contents, messages, text_of, without_ids
from mockllm.protocols.gemini.errors import CHECKS, OBJECT, TEXT
from mockllm.protocols.gemini.fields import Options
from mockllm.protocols.gemini.schema import get, snake
from mockllm.protocols.gemini.tools import (
    calling_config,
    offered_tools,
    output_schema,
    tool_choice,
)
from mockllm.protocols.records import Fields
from mockllm.protocols.values import mapping


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of a body and its path.

    Args:
        target: with the model, the method, and the form of a stream.
    """
    if strict:
        _check(body)
    config = get(body, "generationConfig")
    tools = offered_tools(get(body, "tools"), strict)
    model = model_of(target)
    history = messages(get(body, "contents"))
    if not _gives_ids(model, vertex="publisher" in target.segments):
        history = without_ids(history)
    system = text_of(get(body, "systemInstruction"))
    if system:
        history.insert(0, Message("system", system))
    stream = target.method == "streamGenerateContent"
    return Request(
        API,
        model,
        body,
        stream,
        tuple(history),
        system,
        tools,
        tool_choice(body, tools, strict),
        output_schema=output_schema(config),
        wants_reasoning=get(get(config, "thinkingConfig"), "includeThoughts") is True,
        traits=_traits(target, stream),
    )


def model_of(target: Target) -> str:
    """The model in a path, with its owner in front unless that is Google."""
    owner = target.segments.get("owner") or target.segments.get("publisher", "google")
    model = target.segments.get("model", "")
    return model if owner == "google" else f"{owner}/{model}"


def _traits(target: Target, stream: bool) -> frozenset[str]:
    traits = set()
    if stream and target.query.get("alt") != "sse":
        traits.add("array")
    if "publisher" in target.segments:
        traits.add("vertex")
    return frozenset(traits)


def options(request: Request) -> Options:
    """The options for the encoder; never fails, whatever the body holds."""
    vertex = "vertex" in request.traits
    count = get(get(request.body, "generationConfig"), "candidateCount")
    return Options(
        array="array" in request.traits,
        ids=_gives_ids(request.model, vertex=vertex),
        partial=get(calling_config(request.body), "streamFunctionCallArguments") is True,
        candidates=min(max(count, 1), _MOST_CANDIDATES) if type(count) is int else 1,
        vertex=vertex,
    )


def _gives_ids(model: str, *, vertex: bool) -> bool:
    """Whether calls have ids: from models of the third generation, but not on Vertex AI."""
    return model.startswith("gemini-3") and not vertex


# Refusals

_MOST_CANDIDATES = 8
_LIST = CHECKS.of_kind(list, "TYPE_MESSAGE")

_CHECKS: dict[str, Check] = {
    "systemInstruction": OBJECT,
    "toolConfig": OBJECT,
    "generationConfig": OBJECT,
    "safetySettings": _LIST,
    "cachedContent": TEXT,
}
_CONFIG_CHECKS: dict[str, Check] = {
    "temperature": CHECKS.number(0, 2),
    "topP": CHECKS.number(0, 1),
    "topK": CHECKS.number(1),
    "maxOutputTokens": CHECKS.number(1, whole=True),
    "candidateCount": CHECKS.number(1, _MOST_CANDIDATES, whole=True),
    "stopSequences": _LIST,
    "seed": CHECKS.number(-(2**31), 2**31 - 1, whole=True),
    "presencePenalty": CHECKS.number(-2, 2),
    "frequencyPenalty": CHECKS.number(-2, 2),
    "responseMimeType": TEXT,
    "responseSchema": OBJECT,
    "responseJsonSchema": CHECKS.of_kind((Mapping, bool), "TYPE_MESSAGE"),
    "responseLogprobs": CHECKS.of_kind(bool, "TYPE_BOOL"),
    "logprobs": CHECKS.number(0, 20, whole=True),
    "thinkingConfig": OBJECT,
}
_FOREIGN = frozenset(
    {"max_completion_tokens", "max_output_tokens", "max_tokens", "messages", "input"}
    | {"instructions", "n", "prompt", "reasoning_effort", "response_format", "stop"}
    | {"stream", "stream_options", "system", "temperature", "tool_choice", "top_p"}
)
"""Parameters of other APIs that clients send by mistake."""


def _check(body: Fields) -> None:
    for name in body:
        if name in _FOREIGN:
            raise RequestError(
                f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.',
                param=name,
            )
    for name, check in _CHECKS.items():
        value = get(body, name)
        if value is not None:
            check(snake(name), value)
    check_contents(get(body, "contents"))
    config = mapping(get(body, "generationConfig"))
    for name, check in _CONFIG_CHECKS.items():
        value = get(config, name)
        if value is not None:
            check(f"generation_config.{snake(name)}", value)
    calling = get(get(body, "toolConfig"), "functionCallingConfig")
    if calling is not None:
        OBJECT("tool_config.function_calling_config", calling)
