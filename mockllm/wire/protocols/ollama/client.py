"""The requests that a client of `/api/chat` sends; each has the whole history. The Python SDK keeps
no ids of calls, so the history of a conversation has none; the name of its tool says to which call
a result belongs. The API has no choice of tools, no form for tools that failed, and of files only
images, without their types."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.request import CallEcho, Message, Parameters, Request
from mockllm.wire.protocols.records import ClientRequests, Json
from mockllm.wire.protocols.values import function_tool, mapping
from mockllm.wire.protocols.writing import (
    arguments_value,
    history_appender,
    joined_answers,
    pair_results,
    parameter_fields,
    read_parameters,
    with_function_tools,
    without_ids,
)

_NAMES = {
    "max_tokens": "num_predict",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop",
    "seed": "seed",
}


def _write(request: Request, parameters: Parameters) -> Json:
    """The body of a request; without a field the service would stream."""
    request = with_function_tools(request)
    history = joined_answers(pair_results(request.messages, make_ids=False))
    body: Json = {
        "model": request.model,
        "messages": _write_messages(history),
        "stream": request.stream,
    }
    if request.tools:
        body["tools"] = [
            {"type": "function", "function": function_tool(tool)} for tool in request.tools
        ]
    if request.output_schema is not None:
        body["format"] = request.output_schema or "json"
    if request.wants_reasoning:
        body["think"] = True
    options = parameter_fields(parameters, _NAMES)
    return body | ({"options": options} if options else {})


def _write_messages(messages: Sequence[Message]) -> list[Json]:
    """Messages as the API has them."""
    return list(map(_message, messages))


def _message(message: Message) -> Json:
    written: Json = {"role": message.role}
    if message.role == "tool":
        written |= {"tool_name": message.name} | _optional("tool_call_id", message.call_id)
    images = [
        file.data for file in message.files if file.data and file.media_type.startswith("image/")
    ]
    calls = list(map(_call, message.calls))
    return {**written, "content": message.text, **_optional("images", images)} | _optional(
        "tool_calls", calls
    )


def _call(call: CallEcho) -> Json:
    arguments = arguments_value(call)
    # Arguments are an object; what is none is lost.
    function = {"name": call.name, "arguments": arguments if isinstance(arguments, dict) else {}}
    return {**_optional("id", call.id), "function": function}


def _optional(name: str, value: str | list[Json] | list[str]) -> Json:
    return {name: value} if value else {}


CLIENT = ClientRequests(
    write=_write,
    parameters=lambda body: read_parameters(_NAMES, mapping(body.get("options")).get),
    next_body=history_appender(lambda messages: _write_messages(without_ids(messages))),
    path="/api/chat",
    service="http://127.0.0.1:11434",
    group="ollama",
    stream_field="stream",
    arguments_are_values=True,
    may_lack_call_ids=lambda _: True,
)
