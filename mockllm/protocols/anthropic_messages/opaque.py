"""Whether a history has the thinking blocks of its latest turn as they were streamed.

With thinking enabled, the service refuses a continuation whose last assistant message does not
begin with a thinking block, and one whose thinking blocks were modified:
https://platform.claude.com/docs/en/build-with-claude/extended-thinking#preserving-thinking-blocks
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mockllm.core.request import Request
from mockllm.core.text import display
from mockllm.core.turn import Opaque, Reasoning, Turn
from mockllm.protocols.anthropic_messages.blocks import signature_of

__all__ = ["opaque_mistake"]


def opaque_mistake(request: Request, turn: Turn) -> str | None:
    """Why the service refuses the thinking blocks in the latest turn; None if it does not."""
    streamed = [part for part in turn.parts if isinstance(part, Reasoning)]
    thinking = request.body.get("thinking")
    if not streamed or not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return None
    blocks = [block for block in _latest_blocks(request) if block.get("type") in _THINKING]
    if not blocks and _begins_with_reasoning(turn):
        return (
            "the thinking block that was streamed before the calls is not sent back; with thinking "
            "enabled a client sends back all thinking blocks of a turn that calls tools"
        )
    known = {signature_of(part): part.text for part in streamed}
    for block in blocks:
        signature = block.get("signature")
        if block.get("type") == "thinking" and known.get(str(signature)) != block.get("thinking"):
            return (
                f"a thinking block is sent back with the signature {display(signature)} and the "
                f"text {display(block.get('thinking'))}, which were not streamed together; a "
                "client sends back thinking blocks unchanged"
            )
    return None


def _begins_with_reasoning(turn: Turn) -> bool:
    parts = [part for part in turn.parts if not isinstance(part, Opaque)]
    return isinstance(parts[0], Reasoning)


_THINKING = ("thinking", "redacted_thinking")


def _latest_blocks(request: Request) -> Iterator[Mapping[str, Any]]:
    """The content blocks of the last turn of the model in a history."""
    messages = request.body.get("messages")
    found = False
    for message in reversed(messages if isinstance(messages, list) else []):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "assistant":
            found = True
            content = message["content"] if isinstance(message.get("content"), list) else []
            yield from (block for block in content if isinstance(block, Mapping))
        elif found:
            return
