"""Items of a conversation: those that a client adds, and those of an answer that was sent."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.wire.protocols.openai_common import bad_value, invalid_type, missing
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import array, mapping, string

_KINDS = ("message", "function_call", "function_call_output")
_PARTS: Mapping[str, tuple[str, ...]] = {
    "user": ("input_text", "input_audio", "input_image"),
    "assistant": ("output_text", "output_audio"),
    "system": ("input_text",),
}
"""The parts that a message may have, by its role."""


def check_item(item: object, known: Sequence[Json]) -> Json:
    """An item that a client adds.

    Raises:
        RequestError: the service refuses it.
    """
    if not isinstance(item, Mapping):
        raise missing("item")
    kind = item.get("type")
    if kind not in _KINDS:
        raise bad_value("item.type", str(kind), _KINDS)
    if kind == "message":
        _check_message(item)
    named = {"function_call": ("name", "arguments"), "function_call_output": ("call_id", "output")}
    for name in named.get(kind, ()):
        if not isinstance(item.get(name), str):
            raise missing(f"item.{name}")
    if kind == "function_call_output":
        id = item["call_id"]
        if not any(one.get("call_id") == id and one["type"] == "function_call" for one in known):
            raise RequestError(
                f"Tool call ID '{id}' not found in conversation.",
                param="item.call_id",
                code="invalid_tool_call_id",
                mistake="context-missing",
            )
    return dict(item)


def _check_message(item: Mapping[str, Any]) -> None:
    role, content = string(item.get("role")), item.get("content")
    if role not in _PARTS:
        raise bad_value("item.role", str(item.get("role")), (*_PARTS,))
    if not isinstance(content, list):
        raise invalid_type("item.content", "an array of content parts", content)
    for i, part in enumerate(content):
        kind = mapping(part).get("type")
        if kind not in _PARTS[role]:
            raise bad_value(f"item.content[{i}].type", str(kind), _PARTS[role])


@dataclass(slots=True)
class SentItem:
    """An item of an answer.

    Args:
        sound: how many bytes of it were sent.
    """

    item: Json
    sound: int = 0


@dataclass(slots=True)
class SentAnswer:
    """An answer as far as it was sent.

    Args:
        response: its object as it began.
        is_over: whether its end was sent.
    """

    response: Json = field(default_factory=dict)
    items: list[SentItem] = field(default_factory=list)
    is_over: bool = False


def follow(payloads: Iterable[str]) -> SentAnswer:
    """The answer in the events that were sent."""
    answer = SentAnswer()
    by_id: dict[str, SentItem] = {}
    for payload in payloads:
        event: Json = {}
        with suppress(ValueError):  # some are broken on purpose
            event = dict(mapping(json.loads(payload)))
        kind, item = string(event.get("type")), event.get("item")
        if kind == "response.created":
            answer.response = event["response"]
        elif kind == "response.done":
            answer.is_over = True
        elif kind == "response.output_item.added" and isinstance(item, dict):
            sent = by_id[string(item.get("id"))] = SentItem(item)
            answer.items.append(sent)
        elif kind == "response.output_item.done" and isinstance(item, dict):
            if item.get("id") in by_id:
                by_id[item["id"]].item = item
        elif kind.endswith(".delta") and event.get("item_id") in by_id:
            _add(by_id[event["item_id"]], kind, string(event.get("delta")))
    return answer


_SAID = {
    "response.output_text.delta": ("output_text", "text"),
    "response.output_audio_transcript.delta": ("output_audio", "transcript"),
}


def _add(sent: SentItem, kind: str, delta: str) -> None:
    item = sent.item
    if kind == "response.output_audio.delta":
        sent.sound += len(b64decode(delta))
    elif kind == "response.function_call_arguments.delta":
        item["arguments"] = string(item.get("arguments")) + delta
    elif kind in _SAID:
        type, name = _SAID[kind]
        parts = array(item.get("content")) or [{"type": type, name: ""}]
        parts[0][name] += delta
        item["content"] = parts
