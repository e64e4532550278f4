"""The requests that a client of Realtime makes of a session: written text, and written answers. The
API has no parameters but the most tokens, no form for tools that failed, and only images as files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.core.request import Message, Parameters, Request
from mockllm.core.turn import ToolCall
from mockllm.wire.protocols.records import ClientRequests, Json
from mockllm.wire.protocols.values import function_tool, mapping, objects
from mockllm.wire.protocols.writing import (
    data_url,
    leading_system,
    pair_results,
    parameter_fields,
    read_parameters,
    with_function_tools,
)

_NAMES = {"max_tokens": "max_output_tokens"}


def _write(request: Request, parameters: Parameters) -> Json:
    """The body of a request: a session that answers in text, and its items."""
    request = with_function_tools(request)
    instructions, history = leading_system(pair_results(request.messages))
    session: Json = {"type": "realtime", "output_modalities": ["text"]}
    if instructions:
        session["instructions"] = instructions
    if request.tools:
        session["tools"] = [{"type": "function", **function_tool(tool)} for tool in request.tools]
        session |= _tool_choice(request.tool_choice)
    session |= parameter_fields(parameters, _NAMES)
    return {"model": request.model, "session": session, "items": _items(history), "response": {}}


def _tool_choice(choice: str) -> Json:
    if choice == "auto":
        return {}
    named = choice not in ("none", "required")
    return {"tool_choice": {"type": "function", "name": choice} if named else choice}


def _items(messages: Sequence[Message]) -> list[Json]:
    return [item for message in messages for item in _of_message(message)]


def _of_message(message: Message) -> Iterator[Json]:
    role, text = message.role, message.text
    if role == "tool":
        yield {"type": "function_call_output", "call_id": message.call_id, "output": text}
    elif text or role != "assistant":
        kind = "output_text" if role == "assistant" else "input_text"
        parts: list[Json] = [{"type": kind, "text": text}] if text else []
        parts += [
            {"type": "input_image", "image_url": data_url(file)}
            for file in message.files
            if file.media_type.startswith("image/")
        ]
        yield {"type": "message", "role": role, "content": parts}
    for call in message.calls:
        named = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        yield {"type": "function_call", **named}


def _next_body(
    body: Json, _answer: str, messages: Sequence[Message], _calls: Sequence[ToolCall]
) -> Json:
    return {**body, "items": [*body["items"], *_items(messages)]}


def _needs_results(request: Request) -> bool:
    """Where the user speaks, the service asks for the answer, while a tool may still run."""
    items = objects(request.body.get("items"))
    content = objects(items[-1].get("content")) if items else []
    return not any(part.get("type") == "input_audio" for part in content)


CLIENT = ClientRequests(
    write=_write,
    parameters=lambda body: read_parameters(_NAMES, mapping(body.get("session")).get),
    next_body=_next_body,
    path="/v1/realtime?model={model}",
    service="https://api.openai.com",
    group="openai",
    headers={"authorization": "Bearer mock-key"},
    tool_fields=("session",),
    needs_results=_needs_results,
)
