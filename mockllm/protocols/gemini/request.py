"""Requests of Gemini: the body and the path to the neutral request, with the service's validation.

https://ai.google.dev/api/generate-content#request-body

The model, and whether and how the answer is streamed, are in the path and the query. Errors have
the service's messages. Only pure functions may live here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mockllm.core.request import Message, Request
from mockllm.core.target import Target
from mockllm.errors import RequestError
from mockllm.protocols.gemini import API
from mockllm.protocols.gemini.contents import check_contents, messages, text_of, without_ids
from mockllm.protocols.gemini.errors import invalid, unfit
from mockllm.protocols.gemini.fields import Options
from mockllm.protocols.gemini.schema import get, snake
from mockllm.protocols.gemini.tools import (
    calling_config,
    offered_tools,
    output_schema,
    tool_choice,
)
from mockllm.protocols.values import mapping

_Body = Mapping[str, Any]


def parse(body: Mapping[str, Any], target: Target, strict: bool) -> Request:
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
_Check = Callable[[str, object], None]


def _number(low: float, high: float | None = None, *, whole: bool = False) -> _Check:
    def check(where: str, value: object) -> None:
        kinds = (int,) if whole else (int, float)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise invalid(where, "TYPE_INT32" if whole else "TYPE_FLOAT", value)
        if value < low or (high is not None and not value <= high):
            bounds = f"at least {low:g}" if high is None else f"in the range [{low:g}, {high:g}]"
            raise unfit(where, f"{where.rpartition('.')[2]} must be {bounds}.")

    return check


def _kind(kinds: type | tuple[type, ...], type_: str) -> _Check:
    def check(where: str, value: object) -> None:
        if not isinstance(value, kinds):
            raise invalid(where, type_, value)

    return check


_OBJECT = _kind(Mapping, "TYPE_MESSAGE")
_STRING = _kind(str, "TYPE_STRING")
_LIST = _kind(list, "TYPE_MESSAGE")
_BOOLEAN = _kind(bool, "TYPE_BOOL")

_CHECKS: dict[str, _Check] = {
    "systemInstruction": _OBJECT,
    "toolConfig": _OBJECT,
    "generationConfig": _OBJECT,
    "safetySettings": _LIST,
    "cachedContent": _STRING,
}
_CONFIG_CHECKS: dict[str, _Check] = {
    "temperature": _number(0, 2),
    "topP": _number(0, 1),
    "topK": _number(1),
    "maxOutputTokens": _number(1, whole=True),
    "candidateCount": _number(1, _MOST_CANDIDATES, whole=True),
    "stopSequences": _LIST,
    "seed": _number(-(2**31), 2**31 - 1, whole=True),
    "presencePenalty": _number(-2, 2),
    "frequencyPenalty": _number(-2, 2),
    "responseMimeType": _STRING,
    "responseSchema": _OBJECT,
    "responseJsonSchema": _kind((Mapping, bool), "TYPE_MESSAGE"),
    "responseLogprobs": _BOOLEAN,
    "logprobs": _number(0, 20, whole=True),
    "thinkingConfig": _OBJECT,
}
_FOREIGN = frozenset(
    {
        "max_completion_tokens",
        "max_output_tokens",
        "max_tokens",
        "messages",
        "input",
        "instructions",
        "n",
        "prompt",
        "reasoning_effort",
        "response_format",
        "stop",
        "stream",
        "stream_options",
        "system",
        "temperature",
        "tool_choice",
        "top_p",
    }
)
"""Parameters of other APIs that clients send by mistake."""


def _check(body: _Body) -> None:
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
        _OBJECT("tool_config.function_calling_config", calling)
