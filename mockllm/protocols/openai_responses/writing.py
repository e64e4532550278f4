"""Writes requests of the Responses API: the inverse of `request`. The history is a list of items:
messages, calls and their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mockllm.core.request import CallEcho, Message, OfferedTool, Parameters, Request, SentFile
from mockllm.protocols.openai_common import json_schema_format, sent_document
from mockllm.protocols.records import Fields, Json
from mockllm.protocols.values import function_tool
from mockllm.protocols.writing import (
    custom_names,
    data_url,
    is_url,
    paired,
    parameter_fields,
    read_parameters,
)

_NAMES = {
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "parallel_calls": "parallel_tool_calls",
}

CLIENT_RESULTS = ("function_call_output", "custom_tool_call_output")
"""The types of input items with the result of a call of the client; the second of a custom one."""


def write(request: Request, parameters: Parameters) -> Json:
    """The body of a request."""
    history, custom = paired(request.messages), custom_names(request)
    body: Json = {"model": request.model, **({"stream": True} if request.stream else {})}
    if history and history[0].role == "system" and history[0].text:
        body["instructions"] = history.pop(0).text
    body["input"] = _input(history, custom)
    if request.previous is not None:
        body["previous_response_id"] = f"resp_{request.previous}"
    if request.conversation is not None:
        body["conversation"] = request.conversation
    fields = parameter_fields(parameters, _NAMES)
    if request.tools:
        body["tools"] = list(map(_tool, request.tools))
        body |= _tool_choice(request.tool_choice, custom)
    else:
        fields.pop("parallel_tool_calls", None)  # it is about tools
    if request.output_schema is not None:
        body["text"] = {"format": json_schema_format(request.output_schema)}
    if request.wants_reasoning:
        body["reasoning"] = {"effort": "medium"}
    return body | fields


def parameters(body: Fields) -> Parameters:
    """The parameters in a body."""
    return read_parameters(_NAMES, body.get)


def _input(messages: list[Message], custom: frozenset[str]) -> str | list[Json]:
    match messages:
        case [Message(role="user", text=text, files=())]:
            return text
    called = {call.id for message in messages for call in message.calls if call.name in custom}
    return [item for message in messages for item in _items(message, custom, called)]


def _items(message: Message, custom: frozenset[str], called: set[str]) -> Iterator[Json]:
    """The items of a message; none for an answer that says nothing."""
    role, text = message.role, message.text
    if message.ref:
        yield {"type": "item_reference", "id": message.ref}
    elif role == "tool":
        kind = CLIENT_RESULTS[message.call_id in called]
        yield {"type": kind, "call_id": message.call_id, "output": text}
    elif text or role != "assistant":
        parts = list(_parts(message.files))
        texts = [{"type": "input_text", "text": text}] if text else []
        yield {"type": "message", "role": role, "content": [*texts, *parts] if parts else text}
    for call in message.calls:
        yield _call(call, call.name in custom)


def _call(call: CallEcho, custom: bool) -> Json:
    named = {"call_id": call.id, "name": call.name}
    if custom:
        return {"type": "custom_tool_call", **named, "input": call.arguments}
    return {"type": "function_call", **named, "arguments": call.arguments}


def _parts(files: Iterable[SentFile]) -> Iterator[Json]:
    """Images and other files; recordings have no part."""
    for file in files:
        by_id = bool(file.reference) and not is_url(file)
        if file.media_type.startswith("image/"):
            source = {"file_id": file.reference} if by_id else {"image_url": data_url(file)}
            yield {"type": "input_image", "detail": "auto", **source}
        elif not file.media_type.startswith("audio/"):
            yield {"type": "input_file", **(sent_document(file) or {"file_url": file.reference})}


def _tool(tool: OfferedTool) -> Json:
    if not tool.custom:
        return {"type": "function", **function_tool(tool)}
    # The neutral form has no syntax of a grammar.
    grammar = {"type": "grammar", "syntax": "lark", "definition": tool.grammar}
    format = {"format": grammar} if tool.grammar else {}
    return {"type": "custom", "name": tool.name, "description": tool.description, **format}


def _tool_choice(choice: str, custom: frozenset[str]) -> Json:
    if choice == "auto":
        return {}
    if choice in ("none", "required"):
        return {"tool_choice": choice}
    return {"tool_choice": {"type": "custom" if choice in custom else "function", "name": choice}}
