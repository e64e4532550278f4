"""The requests that a client of Anthropic Messages sends.

With thinking enabled, the service refuses a continuation whose last assistant message does not
begin with a thinking block, and one whose thinking blocks were modified:
https://platform.claude.com/docs/en/build-with-claude/extended-thinking#preserving-thinking-blocks
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mockllm.core.request import Request
from mockllm.core.text import display
from mockllm.core.turn import Opaque, Reasoning, Turn
from mockllm.protocols.anthropic_messages.blocks import signature_of
from mockllm.protocols.anthropic_messages.writing import parameters, write, write_messages
from mockllm.protocols.records import ClientRequests, Fields
from mockllm.protocols.values import array, objects
from mockllm.protocols.writing import continuation, next_message


def _opaque_mistake(request: Request, turn: Turn) -> str | None:
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


def _latest_blocks(request: Request) -> Iterator[Fields]:
    reached = False
    for message in reversed(array(request.body.get("messages"))):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "assistant":
            reached = True
            yield from objects(message.get("content"))
        elif reached:
            return


CLIENT = ClientRequests(
    write=write,
    parameters=parameters,
    continuation=continuation(write_messages),
    next_message=next_message(write_messages),
    path="/v1/messages",
    service="https://api.anthropic.com",
    group="anthropic",
    tool_fields=("tools", "tool_choice"),
    headers={"x-api-key": "mock-key", "anthropic-version": "2023-06-01"},
    stream_field="stream",
    arguments_are_values=True,
    opaque_mistake=_opaque_mistake,
)
