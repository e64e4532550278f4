"""Whether a history has the encrypted reasoning of its latest turn as it was streamed.

With `store: false` the service keeps no items, so it refuses a reasoning item that has only its id.
It refuses encrypted content that it did not make:
https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mockllm.core.request import Request
from mockllm.core.text import display
from mockllm.core.turn import Reasoning, Turn
from mockllm.protocols.openai_responses.items import CALLS

__all__ = ["opaque_mistake"]


def opaque_mistake(request: Request, turn: Turn) -> str | None:
    """Why the service refuses the reasoning items of the latest turn; None if it does not.

    Only encrypted content that the scenario gives is compared. To leave the item out is right.
    """
    streamed = [part.signature for part in turn.parts if isinstance(part, Reasoning)]
    if not streamed or not all(streamed) or request.body.get("store") is not False:
        return None
    calls = {call.id for call in turn.tool_calls}
    for item in _reasoning_before(request, calls):
        encrypted = item.get("encrypted_content")
        if encrypted is None:
            return (
                f"the reasoning item {display(item.get('id'))} is sent back without its encrypted "
                "content, and with `store: false` the service has no other copy; a client sends "
                "back `encrypted_content`"
            )
        if encrypted not in streamed:
            return (
                f"encrypted reasoning is sent back as {display(encrypted)}, but was streamed as "
                f"{display(streamed[0])}; a client sends back encrypted content unchanged"
            )
    return None


def _reasoning_before(request: Request, calls: set[str]) -> Iterator[Mapping[str, Any]]:
    """The reasoning items that directly precede one of these calls."""
    items = request.body.get("input")
    pending: list[Mapping[str, Any]] = []
    for item in items if isinstance(items, list) else ():
        kind = item.get("type", "message") if isinstance(item, Mapping) else None
        if kind == "reasoning":
            pending.append(item)
        elif kind in CALLS and item.get("call_id") in calls:
            yield from pending
            pending = []
        elif kind != "message" or item.get("role") != "assistant":
            pending = []
