"""The requests that a client of Chat Completions sends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mockllm.core.request import CallEcho, Message, OfferedTool, Parameters, Request, SentFile
from mockllm.wire.protocols.openai_common import (
    function_call,
    json_schema_format,
    sent_audio,
    sent_document,
)
from mockllm.wire.protocols.records import ClientRequests, Feature, Fields, Json
from mockllm.wire.protocols.values import function_tool, objects
from mockllm.wire.protocols.writing import (
    custom_names,
    data_url,
    field_feature,
    history_appender,
    joined_answers,
    pair_results,
    parameter_fields,
    read_parameters,
    strict_tools,
)

_NAMES = {
    "max_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop",
    "seed": "seed",
    "parallel_calls": "parallel_tool_calls",
    "min_tokens": "min_tokens",  # of vLLM, and the next one
    "ignore_eos": "ignore_eos",
}


def _write(request: Request, parameters: Parameters) -> Json:
    """The body of a request."""
    custom = custom_names(request)
    body: Json = {"model": request.model, **({"stream": True} if request.stream else {})}
    body["messages"] = _write_messages(joined_answers(pair_results(request.messages)), custom)
    fields = parameter_fields(parameters, _NAMES)
    if request.tools:
        body["tools"] = list(map(_tool, request.tools))
        body |= _tool_choice(request.tool_choice, custom)
    else:
        fields.pop("parallel_tool_calls", None)  # the service refuses it without tools
    schema = request.output_schema
    if schema is not None:
        named = json_schema_format(schema)
        inner = {key: value for key, value in named.items() if key != "type"}
        body["response_format"] = {"type": named["type"], "json_schema": inner} if inner else named
    if request.wants_reasoning:
        body["reasoning_effort"] = "medium"
    return body | fields


def _parameters(body: Fields) -> Parameters:
    """The parameters in a body; `max_tokens` is the older name of a field."""
    older = {"max_completion_tokens": body.get("max_tokens")}
    return read_parameters(_NAMES, {**older, **body}.get)


def _write_messages(
    messages: Sequence[Message], custom: frozenset[str] = frozenset()
) -> list[Json]:
    """Messages as the API has them; `custom` are the names of the tools with free text."""
    return [_message(message, custom) for message in messages]


def _message(message: Message, custom: frozenset[str]) -> Json:
    match message.role:
        case "assistant":
            calls = [_call(call, custom) for call in message.calls]
            called = {"tool_calls": calls} if calls else {}
            text = message.text or (None if calls else "")
            return {"role": "assistant", "content": text, **called}
        case "tool":
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    return {"role": message.role, "content": _content(message)}


def _call(call: CallEcho, custom: frozenset[str]) -> Json:
    if call.name in custom:
        used = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": used}
    return function_call(call.id, call.name, call.arguments)


def _content(message: Message) -> str | list[Json]:
    parts = list(_parts(message.files))
    if not parts:
        return message.text
    return [*([{"type": "text", "text": message.text}] if message.text else []), *parts]


def _parts(files: Iterable[SentFile]) -> Iterable[Json]:
    for file in files:
        if file.media_type.startswith("image/"):
            yield {"type": "image_url", "image_url": {"url": data_url(file)}}
        elif file.media_type.startswith("audio/"):
            yield from sent_audio(file)
        elif document := sent_document(file):
            yield {"type": "file", "file": document}


def _tool(tool: OfferedTool) -> Json:
    if not tool.custom:
        return {"type": "function", "function": function_tool(tool)}
    # The neutral form has no syntax of a grammar.
    grammar = {"syntax": "lark", "definition": tool.grammar}
    format = {"format": {"type": "grammar", "grammar": grammar}} if tool.grammar else {}
    described = {"name": tool.name, "description": tool.description}
    return {"type": "custom", "custom": {**described, **format}}


def _tool_choice(choice: str, custom: frozenset[str]) -> Json:
    if choice == "auto":
        return {}
    if choice in ("none", "required"):
        return {"tool_choice": choice}
    form = "custom" if choice in custom else "function"
    return {"tool_choice": {"type": form, form: {"name": choice}}}


def _as_developer(body: Json, _value: object) -> Json:
    """The system messages as those of the developer, whose name newer models have for it."""
    messages = [
        {**message, "role": "developer"} if message["role"] == "system" else message
        for message in body["messages"]
    ]
    return {**body, "messages": messages}


def _name_user(body: Json, name: str) -> Json:
    *earlier, last = body["messages"]
    return {**body, "messages": [*earlier, {**last, "name": name}]}


def _user_name(body: Fields) -> object:
    users = [message for message in objects(body.get("messages")) if message.get("role") == "user"]
    return users[-1].get("name") if users else None


CLIENT = ClientRequests(
    write=_write,
    parameters=_parameters,
    next_body=history_appender(_write_messages),
    path="/v1/chat/completions",
    service="https://api.openai.com",
    group="openai",
    tool_fields=("tools", "tool_choice", "functions", "function_call"),
    headers={"authorization": "Bearer mock-key"},
    stream_field="stream",
    usage={"stream_options": {"include_usage": True}},
    # `functions`, deprecated in favour of `tools` in 2023, has no call ids.
    may_lack_call_ids=lambda body: "functions" in body,
    features={
        "developer": Feature(_as_developer, lambda _: None),
        "user name": Feature(_name_user, _user_name),
        "end user": field_feature("user"),
        "metadata": field_feature("metadata"),
        "strict tools": strict_tools("function"),
    },
)
