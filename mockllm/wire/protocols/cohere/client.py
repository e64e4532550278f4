"""The requests that a client of Cohere sends. The API has no choice of one tool by its name, and no
form for tools that failed."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.request import Message, Parameters, Request
from mockllm.wire.protocols.openai_common import function_call
from mockllm.wire.protocols.records import ClientRequests, Json
from mockllm.wire.protocols.values import function_tool
from mockllm.wire.protocols.writing import (
    data_url,
    history_appender,
    joined_answers,
    pair_results,
    parameter_fields,
    read_parameters,
    with_function_tools,
)

_NAMES = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "p",
    "stop": "stop_sequences",
    "seed": "seed",
}
_CHOICES = {"required": "REQUIRED", "none": "NONE"}


def _write(request: Request, parameters: Parameters) -> Json:
    """The body of a request."""
    request = with_function_tools(request)
    body: Json = {
        "model": request.model,
        "messages": _write_messages(joined_answers(pair_results(request.messages))),
        **({"stream": True} if request.stream else {}),
    }
    if request.tools:
        tools = [{"type": "function", "function": function_tool(tool)} for tool in request.tools]
        choice = _CHOICES.get(request.tool_choice)
        body |= {"tools": tools, **({"tool_choice": choice} if choice else {})}
    if request.output_schema is not None:
        schema = {"json_schema": request.output_schema} if request.output_schema else {}
        body["response_format"] = {"type": "json_object", **schema}
    if request.wants_reasoning:
        body["thinking"] = {"type": "enabled"}
    return body | parameter_fields(parameters, _NAMES)


def _write_messages(messages: Sequence[Message]) -> list[Json]:
    """Messages as the API has them."""
    return list(map(_message, messages))


def _message(message: Message) -> Json:
    text = message.text
    match message.role:
        case "assistant":
            calls = [function_call(call.id, call.name, call.arguments) for call in message.calls]
            said = {"content": [{"type": "text", "text": text}]} if text or not calls else {}
            return {"role": "assistant", **said, **({"tool_calls": calls} if calls else {})}
        case "tool":
            document = {"type": "document", "document": {"data": text}}
            return {"role": "tool", "tool_call_id": message.call_id, "content": [document]}
    images = [
        {"type": "image_url", "image_url": {"url": data_url(file)}}
        for file in message.files
        if file.media_type.startswith("image/")
    ]
    said_too = [{"type": "text", "text": text}] if text else []
    return {"role": message.role, "content": [*said_too, *images] if images else text}


CLIENT = ClientRequests(
    write=_write,
    parameters=lambda body: read_parameters(_NAMES, body.get),
    next_body=history_appender(_write_messages),
    path="/v2/chat",
    service="https://api.cohere.com",
    group="cohere",
    tool_fields=("tools", "tool_choice"),
    headers={"authorization": "Bearer mock-key"},
    stream_field="stream",
)
