"""The conversation of a request as a person reads it: messages, calls, results, tools.

It is made from the neutral request, so it shows what matching reads. What a body has besides texts,
calls and results (settings, images, files, reasoning) is in the body alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mockllm.core.request import Message
from mockllm.core.text import shorten
from mockllm.replay.client_requests import parsed_request
from mockllm.replay.sessions.exchange import Exchange

_LONGEST = 100_000
"""Characters of a text that are sent."""

_LONGEST_NAME = 1_000

_MOST_MESSAGES = 2_000
"""Of a longer history the newest messages are sent."""


def conversation_json(api: str, exchange: Exchange) -> dict[str, Any] | None:
    """What the request of an exchange has; None where that cannot be read as one of the API."""
    request = parsed_request(exchange) if api == exchange.played.api else None
    if request is None:
        return None
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
