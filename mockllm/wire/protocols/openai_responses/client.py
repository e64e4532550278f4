"""The requests that a client of Responses sends: the history is a list of items (messages, calls
and their results), and a continuation names the earlier answer by id.

With `store: false` the service keeps no items, so it refuses a reasoning item that has only its id.
It refuses encrypted content that it did not make:
https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mockllm.core.request import CallEcho, Message, OfferedTool, Parameters, Request, SentFile
from mockllm.core.text import display
from mockllm.core.turn import Reasoning, ToolCall, Turn
from mockllm.wire.protocols.openai_common import json_schema_format, sent_document
from mockllm.wire.protocols.openai_responses.parts import CALLS
from mockllm.wire.protocols.records import ClientRequests, Feature, Fields, Json
from mockllm.wire.protocols.values import array, function_tool, objects
from mockllm.wire.protocols.writing import (
    custom_names,
    data_url,
    field_feature,
    is_url,
    pair_results,
    parameter_fields,
    read_parameters,
    strict_tools,
)

_NAMES = {
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "parallel_calls": "parallel_tool_calls",
}

_CLIENT_RESULTS = ("function_call_output", "custom_tool_call_output")
"""The types of input items with the result of a call of the client; the second of a custom one."""


def _write(request: Request, parameters: Parameters) -> Json:
    """The body of a request."""
    history, custom = pair_results(request.messages), custom_names(request)
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
        kind = _CLIENT_RESULTS[message.call_id in called]
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


def _opaque_mistake(request: Request, turn: Turn) -> str | None:
    """Why the service refuses the reasoning items of the latest turn; None if it does not. Only
    encrypted content that the scenario gives is compared. To leave the item out is right."""
    streamed = [part.signature for part in turn.parts if isinstance(part, Reasoning)]
    if not streamed or not all(streamed) or request.body.get("store") is not False:
        return None
    calls = {call.id for call in turn.tool_calls}
    for item in _reasoning_before(request, calls):
        encrypted = item.get("encrypted_content")
        if encrypted is None:
            return (
                f"the reasoning item {display(item.get('id'))} is sent back without its encrypted "
                "content, and with `store: false` the service has no other copy; a client sends "
                "back `encrypted_content`"
            )
        if encrypted not in streamed:
            return (
                f"encrypted reasoning is sent back as {display(encrypted)}, but was streamed as "
                f"{display(streamed[0])}; a client sends back encrypted content unchanged"
            )
    return None


def _reasoning_before(request: Request, calls: set[str]) -> Iterator[Fields]:
    items = request.body.get("input")
    pending: list[Fields] = []
    for item in array(items):
        kind = item.get("type", "message") if isinstance(item, Mapping) else None
        if kind == "reasoning":
            pending.append(item)
        elif kind in CALLS and item.get("call_id") in calls:
            yield from pending
            pending = []
        elif kind != "message" or item.get("role") != "assistant":
            pending = []


_HOSTED_ID = ("call_id", "approval_request_id")


def _next_body(
    body: Json, answer: str, messages: Sequence[Message], calls: Sequence[ToolCall]
) -> Json:
    """The service has the answer already."""
    _, *given = messages
    outputs = [
        {"type": _CLIENT_RESULTS[call.custom], "call_id": call.id, "output": result.text}
        for call, result in zip(calls, given, strict=False)
    ]
    return {**body, "previous_response_id": answer, "input": outputs or given[-1].text}


def _hosted_results(body: Fields) -> frozenset[str]:
    return frozenset(
        item[name]
        for item in objects(body.get("input"))
        if item.get("type") not in _CLIENT_RESULTS
        # Results of a local shell have the id of the call as their own.
        for name in (*_HOSTED_ID, *["id"] * (item.get("type") == "local_shell_call_output"))
        if isinstance(item.get(name), str)
    )


def _as_developer(body: Json, _value: object) -> Json:
    """The instructions as a message of the developer."""
    rest = {name: value for name, value in body.items() if name != "instructions"}
    message = {"type": "message", "role": "developer", "content": body["instructions"]}
    return {**rest, "input": [message, *_input_items(body)]}


def _input_items(body: Fields) -> list[Json]:
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return objects(given)


def _put_reasoning(body: Json, pairs: Sequence[Sequence[str]]) -> Json:
    """The body with reasoning items, each of its summary and its encrypted content, before what the
    model did last."""
    items = _input_items(body)
    reasoning = [
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text}] if text else [],
            "encrypted_content": encrypted,
        }
        for text, encrypted in pairs
    ]
    own = [at for at, item in enumerate(items) if _is_models(item)]
    at = own[-1] if own else len(items)
    while at - 1 in own:
        at -= 1
    return {**body, "input": [*items[:at], *reasoning, *items[at:]]}


def _is_models(item: Fields) -> bool:
    return item.get("type") in CALLS or item.get("role") == "assistant"


def _reasoning_items(body: Fields) -> object:
    items = [item for item in _input_items(body) if item.get("type") == "reasoning"]
    texts = ["".join(text["text"] for text in objects(item.get("summary"))) for item in items]
    encrypted = [item.get("encrypted_content") for item in items]
    return [list(pair) for pair in zip(texts, encrypted, strict=True)] or None


CLIENT = ClientRequests(
    write=_write,
    parameters=lambda body: read_parameters(_NAMES, body.get),
    next_body=_next_body,
    path="/v1/responses",
    service="https://api.openai.com",
    group="openai",
    tool_fields=("tools", "tool_choice"),
    headers={"authorization": "Bearer mock-key"},
    stream_field="stream",
    hosted_results=_hosted_results,
    opaque_mistake=_opaque_mistake,
    features={
        "developer": Feature(_as_developer, lambda _: None),
        "end user": field_feature("user"),
        "metadata": field_feature("metadata"),
        "strict tools": strict_tools(),
        "signatures": Feature(_put_reasoning, _reasoning_items, "openai"),
    },
)
