"""The request of an answer: session, items and the fields of the response, to the neutral request.

The body is made by `conversation`: over the wire its parts come in several messages.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from mockllm.core.http import Target
from mockllm.core.record import record
from mockllm.core.request import CallEcho, Message, Request, system_text
from mockllm.core.tokens_and_fragments import tokens
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.openai_common import CHECKS, OBJECT, OBJECTS, TEXT, files_of, text_of
from mockllm.wire.protocols.openai_realtime import API
from mockllm.wire.protocols.openai_realtime.session import choice_of, sound_type
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import mapping, objects, offered_tools, string

_BODY = CHECKS.fields({"model": TEXT, "session": OBJECT, "items": OBJECTS}, {"response": OBJECT})


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of a session at a `response.create`."""
    (_BODY if strict else CHECKS.mapping)("", body)
    settings = settings_of(body)
    instructions = string(settings.get("instructions"))
    system = (Message("system", instructions),) if instructions else ()
    messages = (*system, *_messages(body))
    tools = [tool for tool in objects(settings.get("tools")) if tool.get("type") == "function"]
    return Request(
        api=API,
        model=string(body.get("model")),
        body=body,
        stream=True,
        messages=messages,
        system=system_text(messages),
        tools=offered_tools(tools),
        tool_choice=choice_of(settings.get("tool_choice")) if tools else "auto",
    )


def settings_of(body: Fields) -> Fields:
    """The settings of an answer: those of the session, and of the response in their place."""
    session = mapping(body.get("session"))
    response = {
        name: value for name, value in mapping(body.get("response")).items() if value is not None
    }
    return {**session, **response}


def _messages(body: Fields) -> Iterator[Message]:
    for item in objects(body.get("items")):
        match item.get("type"):
            case "function_call":
                names = ("call_id", "name", "arguments")
                id, name, text = (string(item.get(field)) for field in names)
                yield Message("assistant", calls=(CallEcho(id, name, text),))
            case "function_call_output":
                id = string(item.get("call_id"))
                yield Message("tool", string(item.get("output")), call_id=id)
            case "message":
                yield _message(item)


def _message(item: Fields) -> Message:
    content, text = item.get("content"), content_text(item)
    match item.get("role"):
        case "assistant":
            return Message("assistant", text)
        case "system":
            return Message("system", text)
    return Message("user", text, files=files_of(_images(content)))


def content_text(item: Fields) -> str:
    """The text of an item: what was written or spoken."""
    parts = objects(item.get("content"))
    return "".join(string(part.get("transcript")) or text_of([part]) for part in parts)


def _images(content: object) -> list[Fields]:
    return [part for part in objects(content) if part.get("type") == "input_image"]


# What the bytes of an answer depend on


@record
class Options:
    """What an answer has of its request.

    Args:
        modality: `text` or `audio`.
        sound: the type of the format of audio.
        most: `max_output_tokens`.
        conversation: its id; None: the answer belongs to none.
        previous: the id of the item before the answer; None: there is none.
        metadata: as JSON text.
        heard: the tokens that were spoken.
    """

    modality: str = "text"
    sound: str = "audio/pcm"
    rate: int | None = 24000
    voice: str = "alloy"
    most: int | str = "inf"
    conversation: str | None = None
    previous: str | None = None
    metadata: str = "null"
    heard: int = 0


def options(request: Request) -> Hashable:
    """The options in the body of a request."""
    body, settings = request.body, settings_of(request.body)
    output = mapping(mapping(settings.get("audio")).get("output"))
    modalities, most = settings.get("output_modalities"), settings.get("max_output_tokens")
    items = objects(body.get("items"))
    spoken = [
        string(part.get("transcript"))
        for item in items
        for part in objects(item.get("content"))
        if part.get("type") == "input_audio"
    ]
    conversation = body.get("conversation")
    return Options(
        modality="text" if modalities == ["text"] else "audio",
        sound=sound_type(output),
        rate=24000 if sound_type(output) == "audio/pcm" else None,
        voice=_voice(output.get("voice")),
        most=most if type(most) is int else "inf",
        conversation=conversation if isinstance(conversation, str) else None,
        previous=string(items[-1].get("id")) or None if items else None,
        metadata=dumps(mapping(body.get("response")).get("metadata")),
        heard=sum(map(tokens, spoken)),
    )


def _voice(value: object) -> str:
    return string(mapping(value).get("id")) or string(value) or "alloy"
