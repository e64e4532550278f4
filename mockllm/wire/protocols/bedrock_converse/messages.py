"""The history in a Converse request: to neutral messages, with the service's validation.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html

A block is a union: an object with one key, which says what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mockllm.core.request import CallEcho, Message, SentFile
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.bedrock_converse.errors import CHECKS, TEXT, validation_error
from mockllm.wire.protocols.checks import Check
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import (
    array,
    mapping,
    objects,
    sent_as_base64,
    sent_by_url,
    sent_files,
    string,
)


def text_of(content: object) -> str:
    """The text of blocks, joined; a result may also be JSON. CountTokens takes bodies of other
    APIs, whose content may be a string."""
    return content if isinstance(content, str) else "".join(map(_text, objects(content)))


def _text(block: Fields) -> str:
    return dumps(block["json"]) if "json" in block else string(block.get("text"))


def messages(value: object) -> list[Message]:
    """The neutral messages of `messages`. A user message becomes a tool message for each result,
    then a user message with its text; a message with only results has no user message."""
    return [message for item in objects(value) for message in _neutral(item)]


def _neutral(item: Fields) -> Iterator[Message]:
    text, blocks = text_of(item.get("content")), objects(item.get("content"))
    match item.get("role"):
        case "assistant":
            yield Message("assistant", text, tuple(map(_call, _members(blocks, "toolUse"))))
        case "system":
            yield Message("system", text)
        case _:
            results = list(map(_result, _members(blocks, "toolResult")))
            yield from results
            if not results or any(not block.keys() & _NO_MESSAGE for block in blocks):
                yield Message("user", text, files=sent_files(map(_file, blocks)))


_NO_MESSAGE = {"toolResult", "cachePoint"}
"""Blocks of a user's message that the user did not write."""


def _file(block: Fields) -> SentFile | None:
    kind = next((kind for kind in ("image", "video", "audio", "document") if kind in block), "")
    media, format = mapping(block.get(kind)), string(mapping(block.get(kind)).get("format"))
    media_type = f"{kind}/{format or '*'}"
    if kind == "document":
        media_type = "application/pdf" if format == "pdf" else "*/*"
    source = mapping(media.get("source"))
    stored = sent_by_url(mapping(source.get("s3Location")).get("uri"), media_type)
    return sent_as_base64(source.get("bytes"), media_type) or stored


def _members(blocks: list[Any], name: str) -> list[Fields]:
    return [mapping(block[name]) for block in blocks if name in block]


def _call(use: Fields) -> CallEcho:
    input = use.get("input")
    arguments = input if isinstance(input, str) else dumps({} if input is None else input)
    return CallEcho(string(use.get("toolUseId")), string(use.get("name")), arguments)


def _result(result: Fields) -> Message:
    id, text = string(result.get("toolUseId")), text_of(result.get("content"))
    return Message("tool", text, call_id=id, error=result.get("status") == "error")


# Refusals


def is_tool_block(block: Fields) -> bool:
    """Whether a block is a call or a result, so that the request must have `toolConfig`."""
    return "toolUse" in block or "toolResult" in block


def _matching(pattern: str) -> Check:
    regex = re.compile(pattern)

    def check(where: str, value: object) -> None:
        TEXT(where, value)
        if not regex.fullmatch(str(value)):
            raise validation_error(
                f"1 validation error detected: Value '{value}' at '{where}' failed to satisfy "
                f"constraint: Member must satisfy regular expression pattern: {pattern}",
                where,
            )

    return check


# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolUseBlock.html
NAME = _matching("[a-zA-Z0-9_-]{1,64}")
_ID = _matching("[a-zA-Z0-9_.:-]{1,64}")
_ANY = CHECKS.mapping


def _union(members: Mapping[str, Check]) -> Check:
    """A check for an object with exactly one key, which is known."""

    def check(where: str, value: Any) -> None:
        _ANY(where, value)
        if len(value) != 1 or not members.keys() & value.keys():
            known, got = ", ".join(members), ", ".join(value) or "none"
            raise validation_error(
                f"The object at {where} must have exactly one of the members {known}; it has "
                f"{got}.",
                where,
            )
        ((name, member),) = value.items()
        members[name](f"{where}.{name}", member)

    return check


def _text_check(where: str, value: object) -> None:
    TEXT(where, value)
    if not str(value).strip():
        place = where.removesuffix(".text")
        raise validation_error(
            f"The text field in the ContentBlock object at {place} is blank. Add text to the text "
            "field, and try again.",
            where,
        )


_MEDIA = CHECKS.fields({"format": TEXT, "source": _ANY})
_RESULT_CONTENT = _union(
    {"text": TEXT, "json": _ANY, "image": _MEDIA, "document": _MEDIA, "video": _MEDIA}
    | {"searchResult": _ANY}
)
_REASONING = _union(
    {"reasoningText": CHECKS.fields({"text": TEXT}, {"signature": TEXT}), "redactedContent": TEXT}
)
# Bodies that mockllm sends have malformed arguments as a string, so clients send strings back.
_USE = CHECKS.fields(
    {"toolUseId": _ID, "name": NAME, "input": CHECKS.of_kind((dict, str), "an object")}
)
_RESULT = CHECKS.fields(
    {"toolUseId": _ID, "content": CHECKS.list_of(_RESULT_CONTENT)},
    {"status": CHECKS.one_of("success", "error")},
)
_OTHERS = ("guardContent", "cachePoint", "citationsContent", "searchResult", "toolAddition")
_BLOCK = _union(
    {"text": _text_check, "toolUse": _USE, "toolResult": _RESULT, "reasoningContent": _REASONING}
    | dict.fromkeys(("image", "document", "video", "audio"), _MEDIA)
    | dict.fromkeys((*_OTHERS, "toolRemoval"), _ANY)
)
_MESSAGE = CHECKS.fields(
    {"role": CHECKS.one_of("user", "assistant", "system"), "content": CHECKS.list_of(_BLOCK)}
)
_MESSAGES = CHECKS.list_of(_MESSAGE)


def check_messages(where: str, value: Any) -> None:
    """Raises for a history that the service would refuse."""
    _MESSAGES(where, value)
    if not value or value[0]["role"] == "assistant":
        raise validation_error("A conversation must start with a user message. Try again.", where)
    called: list[str] = []
    for i, item in enumerate(value):
        ids = [string(use.get("toolUseId")) for use in _members(item["content"], "toolUse")]
        results = [string(r.get("toolUseId")) for r in _members(item["content"], "toolResult")]
        missing = [id for id in called if id not in results]
        if missing:
            raise validation_error(
                f"Expected toolResult blocks at {where}.{i}.content for the following Ids: "
                f"{', '.join(missing)}",
                f"{where}.{i}.content",
            )
        if len(results) > len(called) or len(set(results)) < len(results):
            raise validation_error(
                f"The number of toolResult blocks at {where}.{i}.content exceeds the number of "
                "toolUse blocks of previous turn.",
                f"{where}.{i}.content",
            )
        # A server tool's result is in the message of its call.
        called = [id for id in ids if id not in results] if item["role"] == "assistant" else []


def has_tool_blocks(value: object) -> bool:
    """Whether a history has calls or results."""
    return any(
        is_tool_block(block)
        for item in objects(value)
        for block in objects(array(item.get("content")))
    )
