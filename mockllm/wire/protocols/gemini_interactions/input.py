"""The `input` of a request: to steps, and to neutral messages.

https://ai.google.dev/gemini-api/docs/interactions

A text, a content, a list of contents and a list of steps mean the same, and clients send all four.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.request import CallEcho, Message, SentFile
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.checks import Check
from mockllm.wire.protocols.gemini_interactions.errors import CHECKS, invalid
from mockllm.wire.protocols.gemini_interactions.steps import CALL, TEXT, is_server_step
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import (
    array,
    mapping,
    objects,
    sent_as_base64,
    sent_by_url,
    sent_files,
    string,
)
from mockllm.wire.protocols.writing import joined_answers

USER, RESULT = "user_input", "function_result"
_STEPS = (USER, TEXT, "thought", CALL, RESULT)
_CONTENTS = ("text", "image", "audio", "video", "document")
_ANY_TYPE = {"audio": "audio/*", "image": "image/*", "video": "video/*", "document": "*/*"}


def steps_of(value: object) -> list[Json]:
    """The steps of an `input`; contents alone are one step of the user."""
    if isinstance(value, str):
        return [{"type": USER, "content": [{"type": "text", "text": value}]}]
    given = [value] if isinstance(value, Mapping) else objects(value)
    if given and all(_is_content(item) for item in given):
        return [{"type": USER, "content": list(given)}]
    return [dict(item) for item in given]


def _is_content(item: Fields) -> bool:
    return item.get("type") in _CONTENTS


def messages(value: object) -> list[Message]:
    """The messages of an `input`. The steps of the model in a row are one message."""
    return joined_answers([one for step in steps_of(value) for one in _messages(step)])


def _messages(step: Fields) -> Iterator[Message]:
    match step.get("type"):
        case "user_input":
            yield from _user(step.get("content"))
        case "function_result":
            yield _result(step)
        case "function_call":
            arguments = step.get("arguments")
            text = arguments if isinstance(arguments, str) else dumps(arguments or {})
            call = CallEcho(string(step.get("id")), string(step.get("name")), text)
            yield Message("assistant", calls=(call,))
        case _:
            yield Message("assistant", text_of(step.get("content")))


def _user(content: object) -> Iterator[Message]:
    """The messages of what the user says. The AI SDK has results of tools among the contents."""
    contents = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
    results = [item for item in contents if item.get("type") == RESULT]
    yield from map(_result, results)
    if len(results) < len(contents) or not results:
        yield Message("user", text_of(contents), files=sent_files(map(_file, contents)))


def _result(step: Fields) -> Message:
    result = step.get("result")
    is_contents = isinstance(result, list) and all(map(_is_content, map(mapping, result)))
    text = result if isinstance(result, str) else dumps(result)
    return Message(
        "tool",
        text_of(result) if is_contents else text,
        call_id=string(step.get("call_id")),
        name=string(step.get("name")),
        error=step.get("is_error") is True,
    )


def text_of(contents: object) -> str:
    """The text of a content, or of several."""
    if isinstance(contents, str):
        return contents
    texts = (item for item in objects(contents) if item.get("type") == "text")
    return "".join(string(item.get("text")) for item in texts)


def _file(content: Fields) -> SentFile | None:
    kind = string(content.get("type"))
    media_type = string(content.get("mime_type")) or _ANY_TYPE.get(kind, "*/*")
    if "data" in content:
        return sent_as_base64(content["data"], media_type)
    return sent_by_url(content.get("uri"), media_type)


# Refusals


def check_input(value: object, *, continues: bool) -> None:
    """Raises for an input that the service refuses.

    Args:
        continues: whether the service has earlier steps, so that it may know the call of a result.
    """
    if not isinstance(value, (str, list, Mapping)):
        raise invalid("input", "Invalid input at 'input'.")
    legacy = [item for item in objects(value) if "role" in item and "type" not in item]
    if legacy:
        raise invalid(
            "input",
            "The legacy Interactions API schema is no longer supported. Send steps with a 'type', "
            "not turns with a 'role'.",
        )
    for i, item in enumerate(array(value)):
        CHECKS.mapping(f"input[{i}]", item)
    steps = steps_of(value)
    for i, step in enumerate(steps):
        _check_step(f"input[{i}]", step)
    _check_pairs(steps, continues=continues)


def _check_step(where: str, step: Fields) -> None:
    _STEP(where, step)
    kind = step["type"]
    if kind not in _STEPS and not is_server_step(kind):
        raise invalid(where, f"The value '{kind}' is not supported for 'type' at '{where}'.")
    if kind in _FIELDS:
        _FIELDS[kind](where, step)
    for i, content in enumerate(objects(step.get("content")) if kind in (USER, TEXT) else ()):
        _check_content(f"{where}.content[{i}]", content)


def _check_content(where: str, content: Fields) -> None:
    if content.get("type") == RESULT:
        _FIELDS[RESULT](where, content)
    elif not _is_content(content):
        shown = content.get("type")
        raise invalid(where, f"The value '{shown}' is not supported for 'type' at '{where}'.")
    elif content["type"] == "text":
        CHECKS.text(f"{where}.text", content.get("text"))


def _present(where: str, value: object) -> None:
    """A check of a field that need only be there."""


_STEP = CHECKS.fields({"type": CHECKS.text})
_FIELDS: dict[str, Check] = {
    USER: CHECKS.fields({"content": CHECKS.of_kind((str, list), "an array")}),
    # Bodies that mockllm sends have malformed arguments as a text, so clients send texts back.
    CALL: CHECKS.fields(
        {
            "id": CHECKS.text,
            "name": CHECKS.text,
            "arguments": CHECKS.of_kind((Mapping, str), "an object"),
        }
    ),
    RESULT: CHECKS.fields({"call_id": CHECKS.text, "result": _present}),
}


def _check_pairs(steps: list[Json], *, continues: bool) -> None:
    """Raises for a result without a call before it, and for a call without a result."""
    called: dict[Any, str] = {}
    for i, step in enumerate(steps):
        if step["type"] == CALL:
            called[step["id"]] = f"input[{i}]"
        inner = [item for item in objects(step.get("content")) if item.get("type") == RESULT]
        for result in [step] if step["type"] == RESULT else inner:
            if called.pop(result["call_id"], None) is None and not continues:
                raise pairing_error(f"input[{i}].call_id")
    for where in called.values():
        raise pairing_error(where)


def pairing_error(where: str) -> RequestError:
    """The error for a call without a result, and for a result without a call."""
    return invalid(where, "Request contains an invalid argument.")
