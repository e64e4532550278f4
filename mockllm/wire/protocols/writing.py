"""Common parts of the writers of requests: histories that every API takes, parameters, and the next
request of a conversation.

A neutral history may be one that an API has no form for: Responses has a message for each call,
Gemini calls without ids. A writer first brings it into the form of its API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, groupby
from typing import Any

from mockllm.core.request import CallEcho, Message, OfferedTool, Parameters, Request, SentFile
from mockllm.core.turn import ToolCall
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Feature, Fields, Json, with_messages
from mockllm.wire.protocols.values import (
    array,
    base64_bytes,
    mapping,
    objects,
    sendable_value,
    whole,
)

# Histories


def joined_answers(messages: Sequence[Message]) -> list[Message]:
    """The messages with each run of assistant messages as one: its texts joined, then its calls."""
    joined: list[Message] = []
    for role, run in groupby(messages, lambda message: message.role):
        if role == "assistant":
            answers = list(run)
            text = "".join(answer.text for answer in answers)
            calls = tuple(call for answer in answers for call in answer.calls)
            joined.append(Message(role, text, calls))
        else:
            joined += run
    return joined


def pair_results(
    messages: Sequence[Message], *, make_ids: bool = True, ids_may_lack: bool = False
) -> list[Message]:
    """The messages where each result has the id and a name of its call. A result without an id is
    that of the first call of its name that has none yet, and without a name that of the first call.

    Args:
        make_ids: whether calls without an id get one.
        ids_may_lack: whether a result with an id may be that of a call without one, by its name.
    """
    given = {call.id for message in messages for call in message.calls}
    free = (id for number in count(1) if (id := f"call_{number}") not in given)
    waiting: list[CallEcho] = []
    out: list[Message] = []
    for message in messages:
        if message.calls and make_ids:
            calls = [call if call.id else replace(call, id=next(free)) for call in message.calls]
            message = replace(message, calls=tuple(calls))
        waiting += message.calls
        is_result = message.role == "tool"
        out.append(_with_call(message, waiting, ids_may_lack) if is_result else message)
    return out


def _with_call(result: Message, waiting: list[CallEcho], ids_may_lack: bool) -> Message:
    # Two calls may have one name and equal arguments: then only their order tells them apart.
    for call in waiting:
        by_id = result.call_id and (call.id or not ids_may_lack)
        if call.id == result.call_id if by_id else result.name in ("", call.name):
            waiting.remove(call)
            return replace(result, call_id=call.id, name=result.name or call.name)
    return result


def leading_system(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """The text of the system messages that a history begins with, as lines, and the rest of it."""
    rest = list(messages)
    texts: list[str] = []
    while rest and rest[0].role == "system":
        texts.append(rest.pop(0).text)
    return "\n".join(filter(None, texts)), rest


_INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def with_function_tools(request: Request) -> Request:
    """The request with functions in place of custom tools: the text of a call becomes the field
    `input`, as in answers (`custom_calls`)."""
    custom = custom_names(request)
    if not custom:
        return request
    tools = [
        OfferedTool(tool.name, tool.description, _INPUT) if tool.custom else tool
        for tool in request.tools
    ]
    messages = [
        replace(message, calls=tuple(_function(call, custom) for call in message.calls))
        for message in request.messages
    ]
    return replace(request, tools=tuple(tools), messages=tuple(messages))


def _function(call: CallEcho, custom: frozenset[str]) -> CallEcho:
    if call.name not in custom:
        return call
    return replace(call, arguments=dumps({"input": call.arguments}))


def custom_names(request: Request) -> frozenset[str]:
    """The names of the custom tools that a request offers."""
    return frozenset(tool.name for tool in request.tools if tool.custom)


def arguments_value(call: CallEcho) -> Json | str:
    """The arguments of a call as a JSON object, {} for none; their text where it is no object."""
    value = sendable_value(call.arguments)
    return value if isinstance(value, dict) else call.arguments or {}


# The next request of a conversation


def history_appender(
    write: Callable[[Sequence[Message]], list[Json]],
) -> Callable[[Json, str, Sequence[Message], Sequence[ToolCall]], Json]:
    """A function for `ClientRequests.next_body`, from the writer of an API's messages, where each
    request has all `messages`."""
    return lambda body, _answer, messages, _calls: with_messages(body, *write(messages))


def without_ids(messages: Sequence[Message]) -> list[Message]:
    """The messages without the ids of calls."""
    return [
        replace(message, call_id="", calls=tuple(replace(call, id="") for call in message.calls))
        for message in messages
    ]


# Features


def field_feature(*path: str) -> Feature:
    """The feature of a field, by the names that lead to it."""

    def put(body: Json, value: Any) -> Json:
        for name in reversed(path[1:]):
            value = {name: value}
        return {**body, path[0]: value}

    def find(body: Fields) -> Any:
        value: Any = body
        for name in path:
            value = mapping(value).get(name)
        return value

    return Feature(put, find)


def strict_tools(inner: str = "") -> Feature:
    """The feature that arguments follow the schema of their tool: `strict` of each.

    Args:
        inner: the field of a tool that has it; "": the tool itself.
    """

    def put(body: Json, value: Any) -> Json:
        said = {"strict": value}
        tools = [
            {**tool, **({inner: {**tool[inner], **said}} if inner else said)}
            for tool in objects(body.get("tools"))
        ]
        return {**body, "tools": tools}

    def find(body: Fields) -> Any:
        tools = objects(body.get("tools"))
        found = [mapping(tool.get(inner, tool) if inner else tool).get("strict") for tool in tools]
        return found[0] if found and all(value == found[0] for value in found) else None

    return Feature(put, find)


def with_content(
    body: Json, content: Sequence[Json], messages: str, role: str, contents: str
) -> Json:
    """The body with contents at the begin of the last message of a role.

    Args:
        messages, contents: the names of the lists of messages, and of contents in one.
    """
    given = list(body[messages])
    for at in range(len(given) - 1, -1, -1):
        if given[at]["role"] == role:
            own = given[at][contents]
            own = [{"type": "text", "text": own}] if isinstance(own, str) else own
            given[at] = {**given[at], contents: [*content, *own]}
            break
    return {**body, messages: given}


def contents_in(body: Fields, messages: str, contents: str) -> Iterator[Json]:
    """The contents of all messages of a body."""
    for message in objects(body.get(messages)):
        yield from objects(message.get(contents))


# Files

_BEGINNINGS = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


def known_type(file: SentFile) -> str:
    """The media type of a file; of an image whose type the request did not say (Ollama), that which
    its bytes begin like."""
    if file.media_type != "image/*":
        return file.media_type
    begin = base64_bytes(file.data[:8]) or b""
    types = (type for bytes, type in _BEGINNINGS.items() if begin.startswith(bytes))
    return next(types, file.media_type)


def data_url(file: SentFile) -> str:
    """A file as a data URL, or what it is referred to by."""
    return file.reference or f"data:{known_type(file)};base64,{file.data}"


def is_url(file: SentFile) -> bool:
    """Whether a file is referred to by a URL, not by an id."""
    return "://" in file.reference


# Parameters


def parameter_fields(parameters: Parameters, names: Mapping[str, str]) -> Json:
    """The fields of an API with the parameters that a request sets.

    Args:
        names: the API's name of each field of `Parameters` that it has.
    """
    values = {name: getattr(parameters, neutral) for neutral, name in names.items()}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value not in (None, ())
    }


def read_parameters(names: Mapping[str, str], get: Callable[[str], object]) -> Parameters:
    """The parameters in the fields of an API, the inverse of `parameter_fields`.

    Args:
        get: the value of a field by the API's name; None where there is none.
    """
    found = {neutral: _READERS[neutral](get(name)) for neutral, name in names.items()}
    return Parameters(**found)


def _decimal(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _texts(value: object) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else array(value)
    return tuple(text for text in given if isinstance(text, str))


_READERS: Mapping[str, Callable[[object], Any]] = {
    "max_tokens": whole,
    "temperature": _decimal,
    "top_p": _decimal,
    "stop": _texts,
    "seed": whole,
    "parallel_calls": _flag,
    "min_tokens": whole,
    "ignore_eos": _flag,
}
