"""Requests of Ollama: the body and the path to the neutral request, with the service's validation.

https://github.com/ollama/ollama/blob/main/docs/api.md

Answers are streamed unless the body has `"stream": false`. Errors have the service's messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.request import Message, Request, system_text
from mockllm.core.text import display
from mockllm.wire.protocols.checks import Check
from mockllm.wire.protocols.ollama import API
from mockllm.wire.protocols.ollama.errors import BOOLEAN, CHECKS, OBJECT, TEXT
from mockllm.wire.protocols.ollama.objects import Options
from mockllm.wire.protocols.openai_common import read_call
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import (
    array,
    base64_bytes,
    mapping,
    objects,
    offered_tools,
    sent_as_base64,
    sent_files,
    string,
)
from mockllm.wire.protocols.writing import pair_results


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of a body; the path says which of the two operations it is for."""
    generate = target.segments.get("action") == "generate"
    if strict:
        (_GENERATE if generate else _CHAT)(_structure(generate), body)
    else:
        OBJECT(_structure(generate), body)
    history = _prompt(body) if generate else _messages(body.get("messages"))
    return Request(
        API,
        string(body.get("model")),
        body,
        body.get("stream") is not False,
        tuple(history),
        system_text(history),
        offered_tools(mapping(tool.get("function")) for tool in objects(body.get("tools"))),
        output_schema=_output_schema(body.get("format")),
        wants_reasoning=body.get("think") not in (None, False, ""),
        traits=frozenset({"generate"}) if generate else frozenset(),
    )


def options(request: Request) -> Options:
    """The options for the encoder; never fails, whatever the body holds."""
    return Options("generate" in request.traits)


def _structure(generate: bool) -> str:
    return "GenerateRequest" if generate else "ChatRequest"


def _prompt(body: Fields) -> list[Message]:
    system = string(body.get("system"))
    before = [Message("system", system)] if system else []
    return [*before, Message("user", string(body.get("prompt")))]


def _output_schema(format: object) -> Fields | None:
    """The JSON Schema in `format`; {} for `"json"`, None for text."""
    if isinstance(format, Mapping):
        return format
    return {} if format == "json" else None


# The history


def _messages(value: object) -> list[Message]:
    """The messages in order; those of other roles are ignored. A result without an id belongs to
    the first call of its tool that has none yet, and without a name to the first call of all."""
    messages = [message for item in objects(value) if (message := _message(item))]
    return pair_results(messages, make_ids=False, ids_may_lack=True)


def _message(value: Fields) -> Message | None:
    content = string(value.get("content"))
    match string(value.get("role")).lower():
        case "system":
            return Message("system", content)
        case "user":
            images = array(value.get("images"))
            files = sent_files(sent_as_base64(image, "image/*") for image in images)
            return Message("user", content, files=files)
        case "assistant":
            calls = (read_call(call, absent="{}") for call in objects(value.get("tool_calls")))
            return Message("assistant", content, tuple(calls))
        case "tool":
            id, name = string(value.get("tool_call_id")), string(value.get("tool_name"))
            return Message("tool", content, call_id=id, name=name)
    return None


# Refusals


def _check_format(where: str, value: object) -> None:
    if not isinstance(value, Mapping) and value not in ("", "json"):
        raise RequestError(
            f'invalid format: {display(value)}; expected "json" or a valid JSON Schema object'
        )


def _check_think(where: str, value: object) -> None:
    if not isinstance(value, bool) and value not in ("high", "medium", "low", "max", ""):
        raise RequestError(
            f'invalid think value: {display(value)} (must be "high", "medium", "low", true, or '
            "false)"
        )


def _check_keep_alive(where: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise RequestError(f"invalid type for keep_alive: {display(value)}")


_INTEGERS = frozenset({"num_ctx", "num_predict", "num_keep", "num_batch", "num_gpu", "num_thread"})
_INTEGERS |= {"main_gpu", "repeat_last_n", "seed", "top_k"}
_DECIMALS = frozenset({"temperature", "top_p", "min_p", "typical_p", "repeat_penalty"})
_DECIMALS |= {"presence_penalty", "frequency_penalty"}
_OPTION_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(_INTEGERS, ((int, float), "integer")),
    **dict.fromkeys(_DECIMALS, ((int, float), "float32")),
    "stop": ((list,), "array"),
}
"""By option: the types of its values in JSON, and its type in messages."""


def _check_options(where: str, value: Any) -> None:
    OBJECT(where, value)
    for name, given in value.items():
        kinds, expected = _OPTION_KINDS.get(name, ((object,), ""))
        if given is not None and (
            not isinstance(given, kinds) or (isinstance(given, bool) and expected)
        ):
            raise RequestError(f'option "{name}" must be of type {expected}')


def _check_image(where: str, value: object) -> None:
    """Raises unless a value is an image in base64."""
    TEXT(where, value)
    assert isinstance(value, str)
    if base64_bytes(value) is None:
        raise RequestError(f"illegal base64 data: {display(value[:40])}")


_IMAGES = CHECKS.list_of(_check_image, "[]api.ImageData")

_FUNCTION = CHECKS.fields(
    {},
    {
        "name": TEXT,
        "arguments": CHECKS.of_kind(Mapping, "api.ToolCallFunctionArguments"),
    },
)
_CALL = CHECKS.fields({}, {"id": TEXT, "function": _FUNCTION})
_MESSAGE = CHECKS.fields(
    {},
    {
        "role": TEXT,
        "content": TEXT,
        "thinking": TEXT,
        "images": _IMAGES,
        "tool_calls": CHECKS.list_of(_CALL, "[]api.ToolCall"),
        "tool_name": TEXT,
        "tool_call_id": TEXT,
    },
)
_MESSAGES = CHECKS.list_of(_MESSAGE, "[]api.Message")

_COMMON: dict[str, Check] = {
    "stream": BOOLEAN,
    "format": _check_format,
    "options": _check_options,
    "think": _check_think,
    "keep_alive": _check_keep_alive,
    "logprobs": BOOLEAN,
    "top_logprobs": CHECKS.of_kind(int, "int"),
}
_TOOL = CHECKS.fields(
    {},
    {
        "type": TEXT,
        "function": CHECKS.fields({}, {"name": TEXT, "description": TEXT, "parameters": OBJECT}),
    },
)
_CHAT = CHECKS.fields(
    {"model": TEXT}, {**_COMMON, "messages": _MESSAGES, "tools": CHECKS.list_of(_TOOL, "api.Tools")}
)
_GENERATE = CHECKS.fields(
    {"model": TEXT},
    {
        **_COMMON,
        **dict.fromkeys(("prompt", "suffix", "system", "template"), TEXT),
        "context": CHECKS.list_of(CHECKS.of_kind(int, "int"), "[]int"),
        "raw": BOOLEAN,
        "images": _IMAGES,
    },
)
