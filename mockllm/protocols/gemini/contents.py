"""The `contents` of a Gemini request as neutral messages, and what the service refuses in them.

https://ai.google.dev/api/caching#Content

Only pure functions may live here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from mockllm.core.request import CallEcho, Message
from mockllm.errors import RequestError
from mockllm.protocols.gemini.errors import invalid, unfit
from mockllm.protocols.gemini.fields import compact
from mockllm.protocols.gemini.schema import get
from mockllm.protocols.values import mapping, string

__all__ = ["check_contents", "messages", "text_of", "without_ids"]

_TYPES = "type.googleapis.com/google.ai.generativelanguage.v1beta."
_ROLES = ("user", "model", "function")
_ALONE = ("result", "output", "return_value", "content", "error")
"""What libraries call the only field of a result that is no object."""

_DATA = (
    "text",
    "inlineData",
    "functionCall",
    "functionResponse",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
_FUNCTIONS = {
    "function_call": ("functionCall", "args", True),
    "function_response": ("functionResponse", "response", False),
}
"""How messages call a field -> the field, what it holds, whether it is the model's."""


def messages(contents: object) -> list[Message]:
    """The messages of a history: an answer of the model is one, each tool result is one.

    A result without an id has that of the first call of its name that is still unanswered.
    """
    if isinstance(contents, str):
        return [Message("user", contents)]
    out: list[Message] = []
    waiting: list[CallEcho] = []
    for content in contents if isinstance(contents, list) else [contents]:
        if isinstance(content, str):
            out.append(Message("user", content))
        elif get(content, "role") == "model":
            calls = [get(part, "functionCall") for part in _parts(content)]
            echoes = tuple(_echo(call) for call in calls if isinstance(call, Mapping))
            out.append(Message("assistant", text_of(content), echoes))
            waiting += echoes
        elif isinstance(content, Mapping):
            out += _user_messages(content, waiting)
    return out


def without_ids(history: list[Message]) -> list[Message]:
    """The same history without ids, the results of an answer in the order of its calls.

    Where the service gives calls no ids, those in a history are the client's own.
    """
    calls = [call for message in history for call in message.calls]
    place = {call.id: index for index, call in enumerate(calls)}
    out: list[Message] = []
    for role, group in groupby(history, lambda message: message.role):
        run = list(group)
        if role == "tool":
            run.sort(key=lambda message: place.get(message.call_id, len(place)))
        for one in run:
            id = "" if one.call_id in place else one.call_id
            out.append(replace(one, call_id=id, calls=tuple(replace(c, id="") for c in one.calls)))
    return out


def _user_messages(content: Mapping[str, Any], waiting: list[CallEcho]) -> list[Message]:
    results = [get(part, "functionResponse") for part in _parts(content)]
    found = [_result(result) for result in results if isinstance(result, Mapping)]
    told = [_identified(message, waiting) for message in found]
    text = text_of(content)
    return [*told, Message("user", text)] if text or not told else told


def _identified(message: Message, waiting: list[CallEcho]) -> Message:
    """The result with the id of its call, which then waits no more."""
    for call in waiting:
        if message.call_id == call.id if message.call_id else message.name == call.name:
            waiting.remove(call)
            return replace(message, call_id=call.id)
    return message


def _parts(content: object) -> list[Any]:
    parts = get(content, "parts")
    if isinstance(parts, list):
        return parts
    return [] if parts is None else [parts]


def text_of(content: object) -> str:
    """The words of a content, thoughts left out."""
    if isinstance(content, str):
        return content
    return "".join(
        part if isinstance(part, str) else string(get(part, "text"))
        for part in _parts(content)
        if not get(part, "thought")
    )


def _echo(call: Mapping[str, Any]) -> CallEcho:
    arguments = compact(call.get("args") or {})
    return CallEcho(string(call.get("id")), string(call.get("name")), arguments)


def _result(result: Mapping[str, Any]) -> Message:
    response, name = mapping(result.get("response")), result.get("name")
    error = response.get("error")
    # Vercel's AI SDK repeats the name of the function beside what it gave.
    said = {key: value for key, value in response.items() if (key, value) != ("name", name)}
    told: object = response
    if len(said) == 1:
        ((field, value),) = said.items()
        told = value if field in _ALONE else response
    return Message(
        "tool",
        told if isinstance(told, str) else compact(told),
        call_id=string(result.get("id")),
        name=string(name),
        error=error is not None and error != "",
    )


# Refusals


def check_contents(contents: object) -> None:
    """Refuses a history that the service refuses.

    Raises:
        RequestError: something is of the wrong kind, or calls and results do not match.
    """
    if contents is None or contents == []:
        raise unfit("contents", "contents is not specified")
    if not isinstance(contents, list):
        raise invalid("contents", f"{_TYPES}Content", contents)
    for i, content in enumerate(contents):
        _check_content(content, f"contents[{i}]")
    _check_turns(contents)


def _check_content(content: object, where: str) -> None:
    if not isinstance(content, Mapping):
        raise invalid(where, f"{_TYPES}Content", content)
    role, parts = content.get("role"), content.get("parts")
    if role not in (None, "", *_ROLES):
        raise RequestError("Please use a valid role: user, model.", param=f"{where}.role")
    if not parts:
        raise unfit(f"{where}.parts", "contents.parts must not be empty.")
    if not isinstance(parts, list):
        raise invalid(f"{where}.parts", f"{_TYPES}Part", parts)
    for k, part in enumerate(parts):
        _check_part(part, f"{where}.parts[{k}]", role)


def _check_part(part: object, where: str, role: object) -> None:
    if not isinstance(part, Mapping):
        raise invalid(where, f"{_TYPES}Part", part)
    text = part.get("text")
    if text is not None and not isinstance(text, str):
        raise invalid(f"{where}.text", "TYPE_STRING", text)
    given = [name for name in _DATA if get(part, name) is not None]
    if not given and not get(part, "thoughtSignature"):
        raise unfit(f"{where}.data", "required oneof field 'data' must have one initialized field")
    if len(given) > 1:
        raise RequestError(
            f"Invalid value at '{where}' (oneof), oneof field 'data' is already set. Cannot set "
            f"'{given[1]}'",
            param=where,
        )
    for name, (field, arguments, model) in _FUNCTIONS.items():
        value = get(part, field)
        if value is not None:
            _check_function(value, f"{where}.{name}", arguments)
            if model != (role == "model"):
                wanted = "model" if model else "user"
                raise unfit(f"{where}.{name}", f"is only allowed with the role '{wanted}'.")


def _check_function(value: object, where: str, field: str) -> None:
    if not isinstance(value, Mapping):
        raise invalid(where, f"{_TYPES}Part", value)
    name, inner = value.get("name"), value.get(field)
    if name is not None and not isinstance(name, str):
        raise invalid(f"{where}.name", "TYPE_STRING", name)
    if not name:
        raise unfit(f"{where}.name", "Name cannot be empty.")
    if inner is not None and not isinstance(inner, Mapping):
        raise invalid(f"{where}.{field}", "type.googleapis.com/google.protobuf.Struct", inner)


def _check_turns(contents: list[Any]) -> None:
    """Each call must be answered in the turn after it, and each answer have its call."""
    calls: list[Any] = []
    for model, group in groupby(contents, lambda content: content.get("role") == "model"):
        parts = [part for content in group for part in content["parts"]]
        if model:
            calls = [get(part, "functionCall") for part in parts]
            calls = [call for call in calls if call is not None]
            continue
        results = [get(part, "functionResponse") for part in parts]
        results = [result for result in results if result is not None]
        if results and not calls:
            raise RequestError(
                "Please ensure that function response turn comes immediately after a function "
                "call turn.",
                param="contents",
            )
        _check_answered(calls, results)
        calls = []
    _check_answered(calls, [])


def _check_answered(calls: list[Any], results: list[Any]) -> None:
    if len(calls) != len(results):
        raise RequestError(
            "Please ensure that the number of function response parts is equal to the number of "
            "function call parts of the function call turn.",
            param="contents",
        )
    names = {call["name"] for call in calls}
    for result in results:
        if result["name"] not in names:
            raise RequestError(
                f"Please ensure that function response '{result['name']}' has a function call of "
                "the same name in the function call turn.",
                param="contents",
            )
