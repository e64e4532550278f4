"""Requests of Gemini: the body and the path to the neutral request, with the service's validation.

https://ai.google.dev/api/generate-content#request-body

The model, and whether and how the answer is streamed, are in the path and the query. Errors have
the service's messages. Only pure functions may live here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.request import Message, OfferedTool, Request
from mockllm.wire.protocols.checks import Check
from mockllm.wire.protocols.gemini import API
from mockllm.wire.protocols.gemini.contents import check_contents, without_ids
from mockllm.wire.protocols.gemini.errors import CHECKS, OBJECT, TEXT, invalid, unfit
from mockllm.wire.protocols.gemini.fields import Options
from mockllm.wire.protocols.gemini_common import (
    declarations,
    get,
    json_schema,
    messages,
    read_function,
    snake,
    text_of,
)
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import array, mapping


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


# Tools, their choice, and the output schema


_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}\Z")
_NAME_RULE = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric "
    "(a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum "
    "length of 64."
)
_MODE = "type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode"
_MODES = {"MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"}
_TEXTS = CHECKS.list_of(TEXT, "TYPE_STRING")
_CONFIG = "tool_config.function_calling_config"


def offered_tools(value: object, strict: bool) -> tuple[OfferedTool, ...]:
    """The functions that the client runs itself, without tools that the service hosts."""
    if strict and value is not None and not isinstance(value, list):
        raise invalid(
            "tools", "type.googleapis.com/google.ai.generativelanguage.v1beta.Tool", value
        )
    tools: dict[str, OfferedTool] = {}
    for where, declaration in declarations(value):
        if strict:
            schema = get(declaration, "parametersJsonSchema")
            _check_name(declaration.get("name"), where, tools)
            _check_parameters(get(declaration, "parameters"), schema, where)
        tool = read_function(declaration)
        if tool is not None:
            tools[tool.name] = tool
    return tuple(tools.values())


def _check_name(name: object, where: str, others: Mapping[str, object]) -> None:
    if name is not None:
        TEXT(f"{where}.name", name)
    if not name or not _NAME.match(str(name)):
        raise unfit(f"{where}.name", _NAME_RULE)
    if name in others:
        raise unfit(f"{where}.name", f"Duplicate function declaration found: {name}")


def _check_parameters(parameters: object, schema: object, where: str) -> None:
    if parameters is not None and schema is not None:
        raise unfit(where, "only one of parameters and parameters_json_schema can be set.")
    for field, value in (("parameters", parameters), ("parameters_json_schema", schema)):
        if value is None:
            continue
        OBJECT(f"{where}.{field}", value)
        assert isinstance(value, Mapping)
        kind = value.get("type", "object")
        if not isinstance(kind, str) or kind.lower() != "object":
            raise unfit(f"{where}.{field}", "schema should be of type OBJECT.")
        properties = value.get("properties", {})
        OBJECT(f"{where}.{field}.properties", properties)
        required = value.get("required") or []
        _TEXTS(f"{where}.{field}.required", required)
        for i, name in enumerate(required):
            if field == "parameters" and name not in properties:
                raise unfit(f"{where}.{field}.required[{i}]", f"property is not defined: {name}")


def calling_config(body: object) -> Fields:
    """The `functionCallingConfig` of a request; {} where it has none."""
    return mapping(get(get(body, "toolConfig"), "functionCallingConfig"))


def tool_choice(body: object, tools: tuple[OfferedTool, ...], strict: bool) -> str:
    """`auto`, `none`, `required`, or the name of the tool that must be called. For mode `ANY` with
    several allowed functions, it is the first of them."""
    config = calling_config(body)
    mode, allowed = get(config, "mode"), get(config, "allowedFunctionNames")
    if strict:
        _check_choice(mode, allowed, tools)
    names = array(allowed)
    named = [name for name in names if isinstance(name, str)]
    match mode.upper() if isinstance(mode, str) else "AUTO":
        case "NONE":
            return "none"
        case "ANY":
            return named[0] if named else "required"
    return "auto"


def _check_choice(mode: object, allowed: object, tools: tuple[OfferedTool, ...]) -> None:
    if mode is not None and not (isinstance(mode, str) and mode in _MODES):
        raise invalid(f"{_CONFIG}.mode", _MODE, mode)
    if mode == "ANY" and not tools:
        raise unfit(_CONFIG, "Function calling config is set without function_declarations.")
    if allowed is None:
        return
    where = f"{_CONFIG}.allowed_function_names"
    _TEXTS(where, allowed)
    assert isinstance(allowed, list)
    if allowed and mode not in ("ANY", "VALIDATED"):
        raise unfit(where, "can only be set when function calling mode is ANY or VALIDATED.")
    offered = {tool.name for tool in tools}
    for i, name in enumerate(allowed):
        if name not in offered:
            raise unfit(f"{where}[{i}]", f"no function declaration is named {name!r}.")


def output_schema(config: object) -> Fields | None:
    """The JSON Schema in a `generationConfig`; {} for any JSON, None for plain text."""
    schema = get(config, "responseJsonSchema")
    if isinstance(schema, Mapping):
        return schema
    own = get(config, "responseSchema")
    if isinstance(own, Mapping):
        return json_schema(own)
    return {} if get(config, "responseMimeType") == "application/json" else None
