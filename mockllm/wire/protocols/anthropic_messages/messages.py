"""The history in a Messages request: to neutral messages, with the service's validation.

https://docs.claude.com/en/docs/agents-and-tools/tool-use/overview
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.request import CallEcho, Message, SentFile
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.checks import Checks
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import (
    array,
    mapping,
    sent_as_base64,
    sent_by_url,
    sent_files,
    string,
)

_ROLES = ("user", "assistant", "system")
_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_ANY = ("text", "image", "document", "search_result", "container_upload")
_USER = ("tool_result",)
_SYSTEM = ("tool_addition", "tool_removal")
_ASSISTANT = ("tool_use", "thinking", "redacted_thinking")
# The blocks of hosted tools have a name for each tool.
_HOSTED = re.compile(r"\w+_(?:tool_use|tool_result|tool_listing)\Z|compaction\Z|fallback\Z")
_TAGS = tuple(sorted(_ANY + _USER + _SYSTEM + _ASSISTANT))


def field_error(where: str, problem: str) -> RequestError:
    """An error in the service's form: the path of the field, a colon, the problem."""
    return RequestError(f"{where}: {problem}", param=where)


def _outside(where: str, got: float, low: float, high: float | None, whole: bool) -> RequestError:
    relation, bound = ("greater", low) if got < low else ("less", high)
    return field_error(where, f"Input should be {relation} than or equal to {bound:g}")


CHECKS = Checks(
    lambda where, expected, _: field_error(where, f"Input should be a valid {expected}"),
    missing=lambda where: field_error(where, "Field required"),
    unknown=lambda where, _, known: field_error(where, f"Input should be {_alternatives(known)}"),
    a_string="string",
    an_object="dictionary",
    an_array="list",
    an_integer="integer",
    a_decimal="number",
    outside=_outside,
    item="{}.{}",
)
TEXT, DICTIONARY = CHECKS.text, CHECKS.mapping


def _alternatives(known: tuple[str, ...]) -> str:
    *most, last = (f"'{value}'" for value in known)
    return f"{', '.join(most)} or {last}" if most else last


def wrong_tag(where: str, kind: object, expected: str) -> RequestError:
    """The error for an object of an unknown `type`."""
    problem = f"Input tag '{kind}' found using 'type' does not match any of the expected tags"
    return field_error(where, f"{problem}: {expected}")


def text_of(content: object) -> str:
    """The text of a content: a string, or a list of blocks whose texts are joined."""
    return content if isinstance(content, str) else "".join(map(_text, _blocks(content)))


def _text(block: Fields) -> str:
    return string(block.get("text")) if block.get("type") == "text" else ""


def _blocks(content: object) -> list[Fields]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(map(mapping, array(content)))


def messages(value: object) -> list[Message]:
    """The neutral messages of `messages`. A user message becomes a tool message for each result,
    then a user message with its text; a message with only results has no user message."""
    if not isinstance(value, list):
        return []
    return [message for item in value for message in _neutral(mapping(item))]


def _neutral(item: Fields) -> Iterator[Message]:
    blocks = _blocks(item.get("content"))
    text = "".join(map(_text, blocks))
    match item.get("role"):
        case "assistant":
            calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
            yield Message("assistant", text, tuple(calls))
        case "system":
            yield Message("system", text)
        case _:
            results = [_result(block) for block in blocks if block.get("type") == "tool_result"]
            yield from results
            if len(results) < len(blocks) or not results:
                yield Message("user", text, files=sent_files(map(_file, blocks)))


def _file(block: Fields) -> SentFile | None:
    source = mapping(block.get("source"))
    if block.get("type") not in ("image", "document") or source.get("type") == "text":
        return None
    kind = "image/*" if block.get("type") == "image" else "*/*"
    if source.get("type") == "base64":
        return sent_as_base64(source.get("data"), string(source.get("media_type")) or kind)
    return sent_by_url(source.get("url") or source.get("file_id"), kind)


def _call(block: Fields) -> CallEcho:
    input = block.get("input")
    arguments = input if isinstance(input, str) else dumps({} if input is None else input)
    return CallEcho(string(block.get("id")), string(block.get("name")), arguments)


def _result(block: Fields) -> Message:
    return Message(
        "tool",
        text_of(block.get("content")),
        call_id=string(block.get("tool_use_id")),
        error=block.get("is_error") is True,
    )


# Refusals


def check_messages(value: object) -> None:
    """Raises for a history that the service would refuse."""
    if not isinstance(value, list):
        raise field_error("messages", "Input should be a valid list")
    if not value:
        raise field_error("messages", "at least one message is required")
    for i, item in enumerate(value):
        _check_message(item, f"messages.{i}", last=i == len(value) - 1)
    if value[0]["role"] != "user":
        raise field_error("messages", 'first message must use the "user" role')
    _check_pairs(value)


_TEXT_OR_LIST = CHECKS.of_kind((str, list), "list")
_MESSAGE = CHECKS.fields({"role": CHECKS.one_of(*_ROLES), "content": _TEXT_OR_LIST})


def _check_message(item: Any, where: str, *, last: bool) -> None:
    _MESSAGE(where, item)
    role, content = item["role"], item["content"]
    # Claude Code 2.1.332 changes the effort from one turn on by such a message without content
    # (beta per-turn-control-2026-07-01).
    controls = role == "system" and "output_config" in item
    if not (content or controls or (last and role == "assistant")):
        raise field_error(
            where,
            "all messages must have non-empty content except for the optional final assistant "
            "message",
        )
    for k, block in enumerate(array(content)):
        _check_block(block, role, where, f"{where}.content.{k}")


def _check_block(block: Any, role: str, message: str, where: str) -> None:
    DICTIONARY(where, block)
    kind = block.get("type")
    if kind is None:
        raise field_error(f"{where}.type", "Field required")
    if not isinstance(kind, str) or (kind not in _TAGS and not _HOSTED.match(kind)):
        tags = ", ".join(f"'{tag}'" for tag in _TAGS)
        raise wrong_tag(where, kind, f"{tags}, or a block of a server tool")
    if (kind in _USER and role != "user") or (kind in _ASSISTANT and role != "assistant"):
        side = "user" if kind in _USER else "assistant"
        raise field_error(message, f"`{kind}` blocks can only be in `{side}` messages")
    check = _BLOCKS.get(kind)
    if check is not None:
        check(f"{where}.{kind}", block)
    if kind == "text" and not block["text"]:
        raise field_error("messages", "text content blocks must be non-empty")


def _check_id(where: str, value: object) -> None:
    TEXT(where, value)
    if not _ID.match(str(value)):
        raise field_error(where, "String should match pattern '^[a-zA-Z0-9_-]+$'")


def _check_error(where: str, value: object) -> None:
    if value not in (True, False):
        raise field_error(where, "Input should be a valid boolean")


def _check_content(where: str, value: object) -> None:
    _TEXT_OR_LIST(where, value)
    for k, inner in enumerate(array(value)):
        if not isinstance(inner, Mapping) or not isinstance(inner.get("type"), str):
            raise field_error(f"{where}.{k}.type", "Field required")
        if inner["type"] == "text" and not isinstance(inner.get("text"), str):
            raise field_error(f"{where}.{k}.text.text", "Field required")


_BLOCKS = {
    "text": CHECKS.fields({"text": TEXT}),
    "thinking": CHECKS.fields({"thinking": TEXT, "signature": TEXT}),
    "redacted_thinking": CHECKS.fields({"data": TEXT}),
    # Bodies that mockllm sends have malformed arguments as a string, so clients send strings back.
    "tool_use": CHECKS.fields(
        {"id": _check_id, "name": TEXT, "input": CHECKS.of_kind((Mapping, str), "dictionary")}
    ),
    "tool_result": CHECKS.fields(
        {"tool_use_id": TEXT}, {"content": _check_content, "is_error": _check_error}
    ),
    "image": CHECKS.fields({"source": DICTIONARY}),
    "document": CHECKS.fields({"source": DICTIONARY}),
}
"""The checks of blocks, by their types."""


def _check_pairs(value: list[Any]) -> None:
    """Raises for calls whose results are not in the next message, and for results without call.
    Consecutive messages of one role count as one. Results must come first in their message: the
    service does not find results after other content."""
    called: list[str] = []
    caller = 0
    for _, same_role in groupby(enumerate(value), key=lambda pair: pair[1]["role"]):
        run = list(same_role)
        blocks = [
            (f"messages.{i}.content.{k}", block)
            for i, item in run
            for k, block in enumerate(_blocks(item["content"]))
        ]
        leading = _answers(blocks, called)
        missing = [id for id in called if id not in leading]
        if missing:
            raise _results_missing(caller, missing)
        called = [block["id"] for _, block in blocks if block["type"] == "tool_use"]
        caller = run[-1][0]
        if len(set(called)) < len(called):
            raise field_error(f"messages.{caller}", "`tool_use` ids must be unique")
    if called:
        raise _results_missing(caller, called)


def _answers(blocks: list[tuple[str, Fields]], called: list[str]) -> set[str]:
    """The ids of the calls whose results come first in the blocks."""
    leading: set[str] = set()
    seen: set[str] = set()
    first = True
    for where, block in blocks:
        if block["type"] != "tool_result":
            first = False
            continue
        id = block["tool_use_id"]
        if id not in called:
            raise field_error(
                where,
                f"unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous "
                "message.",
            )
        if id in seen:
            raise field_error(
                where,
                "each tool_use must have a single result. Found multiple `tool_result` blocks "
                f"with id: {id}",
            )
        seen.add(id)
        if first:
            leading.add(id)
    return leading


def _results_missing(message: int, ids: list[str]) -> RequestError:
    return field_error(
        f"messages.{message}",
        "`tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block "
        "in the next message.",
    )
