"""The blocks that only the Messages API has: their keys, and how they are streamed.

https://platform.claude.com/docs/en/api/messages and the pages about redacted thinking, compaction,
refusals with a fallback, MCP and containers

A block comes whole in its start. Of a compaction the summary follows in one delta.
"""

from __future__ import annotations

from mockllm.wire.protocols.native import Shape, items, keys, mapping, nullable, one_of, text
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import string

_MODEL = keys({"model": text})

NATIVE: dict[str, Shape] = {
    "redacted_thinking": keys({"data": text}),
    "compaction": keys(
        {"content": nullable(text)},
        {
            "encrypted_content": nullable(text),
            "signature": nullable(text),
            "tool_changes": nullable(items(mapping)),
        },
    ),
    "fallback": keys(
        {
            "from": _MODEL,
            "to": _MODEL,
            "trigger": keys({"type": one_of("refusal")}, {"category": nullable(text)}),
        }
    ),
    "mcp_tool_listing": keys(
        {
            "mcp_server_name": text,
            "tools": items(
                keys({"name": text, "input_schema": mapping}, {"description": nullable(text)})
            ),
        }
    ),
    "container_upload": keys({"file_id": text}),
}
"""The shapes of blocks by their types."""

_STREAMED = {"compaction": ("content", "encrypted_content")}
"""The fields that come in a delta."""


def opened_and_streamed(block: Json) -> tuple[Json, Json]:
    """A block as it is in its start, and the delta after it; {} where there is none."""
    type = string(block.get("type"))
    streamed = {name: block[name] for name in _STREAMED.get(type, ()) if name in block}
    if not any(streamed.values()):
        return block, {}
    begun = {name: value for name, value in block.items() if name not in streamed}
    return {**begun, "content": None}, {"type": f"{type}_delta", **streamed}


def streamed_fields(type: str, delta: Fields) -> Json | None:
    """The fields of a block of a type that are in a delta; None for a delta of another block."""
    if type not in _STREAMED or delta.get("type") != f"{type}_delta":
        return None
    return {name: delta[name] for name in _STREAMED[type] if name in delta}
