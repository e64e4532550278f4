"""The conversation of a request as a person reads it: messages, calls, results, tools, settings.

It is made from the neutral request, so it shows what matching reads. What a body has besides texts,
calls and results (images, files, reasoning) is in the body alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mockllm.core.request import Message, OfferedTool, Request
from mockllm.core.text import display_json, shorten
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol
from mockllm.replay.client_requests import parsed_request
from mockllm.replay.sessions.exchange import Exchange

_LONGEST = 100_000
"""Characters of a text that are sent."""

_LONGEST_NAME = 1_000
_LONGEST_SETTING = 10_000
_MOST_NESTED = 200
"""Objects and lists of a setting; one with more is given as text."""

_MOST_MESSAGES = 2_000
"""Of a longer history the newest messages are sent."""


def conversation_json(api: str, exchange: Exchange) -> dict[str, Any] | None:
    """What the request of an exchange has; None where that cannot be read as one of the API."""
    request = parsed_request(exchange) if api == exchange.played.api else None
    if request is None:
        return None
    protocol = PROTOCOLS[api]
    messages = request.messages[-_MOST_MESSAGES:]
    shown: list[dict[str, Any]] = [
        {"role": message.role, "parts": list(_parts(message))} for message in messages
    ]
    left_out = len(request.messages) - len(messages)
    if left_out:
        cut = _part("other", f"{left_out:,} earlier messages are not shown; see the body.")
        shown.insert(0, {"role": "system", "parts": [cut]})
    return {
        "messages": shown,
        "tools": [
            {
                "name": shorten(tool.name, _LONGEST_NAME),
                "description": shorten(tool.description, _LONGEST),
            }
            for tool in request.tools
        ],
        "settings": _settings(request, protocol),
    }


# Messages


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield _part(
            "result",
            message.text,
            name=message.name,
            id=message.call_id,
            is_error=message.error,
        )
        return
    if message.text:
        yield _part("text", message.text)
    for call in message.calls:
        yield _part("call", "", name=call.name, id=call.id, arguments=call.arguments)
    if message.ref:
        yield _part("other", f"an item that the service keeps: {message.ref}")
    elif not message.text and not message.calls:
        yield _part("other", "no text and no calls; see the body")


def _part(
    kind: str,
    text: str,
    *,
    name: str = "",
    id: str = "",
    arguments: str = "",
    is_error: bool = False,
) -> dict[str, Any]:
    return {
        "kind": kind,
        "text": shorten(text, _LONGEST),
        "name": shorten(name, _LONGEST_NAME),
        "id": shorten(id, _LONGEST_NAME),
        "arguments": shorten(arguments, _LONGEST),
        "is_error": is_error,
        "size": len(arguments if kind == "call" else text),
    }


# Fields of the body


def _message_fields(request: Request, protocol: WireProtocol) -> set[str]:
    """The fields of the body that hold the messages: those in which clients write a user text,
    and those with the system prompt."""
    client = protocol.client
    probe, other = client.first_request("model", "one"), client.first_request("model", "two")
    fields = {name for name, value in probe.items() if value != other.get(name)}
    for name, value in request.body.items():
        texts = [text for text in _strings(value) if text.strip() in request.system]
        if request.system and sum(map(len, texts)) >= 0.9 * len(request.system):
            fields.add(name)
    return fields


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting += reversed(list(one.values()))
        elif isinstance(one, list):
            waiting += reversed(one)


def _settings(request: Request, protocol: WireProtocol) -> dict[str, Any]:
    """The fields of a body besides messages and tools, and the model that a path names."""
    tools = protocol.client.tools([OfferedTool("name")])
    left_out = {*_message_fields(request, protocol), *tools}
    settings: dict[str, Any] = {"model": request.model} if request.model else {}
    settings |= {name: value for name, value in request.body.items() if name not in left_out}
    return {shorten(name, _LONGEST_NAME): _setting(value) for name, value in settings.items()}


def _setting(value: Any) -> Any:
    if isinstance(value, int | float | bool) or value is None:
        return value
    text = display_json(value)
    deep = text.count("[") + text.count("{") > _MOST_NESTED
    if len(text) <= _LONGEST_SETTING and not deep:
        return value
    return shorten(text, _LONGEST_SETTING)
