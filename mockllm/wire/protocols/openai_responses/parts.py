"""The kinds of parts on the wire: their items, and the names of their events and fields.

Encoder and decoder read the same table. Only data may live here.
"""

from __future__ import annotations

from dataclasses import dataclass

from mockllm.wire.protocols.native import Shape, keys, text
from mockllm.wire.protocols.openai_responses.server_tools import SERVER_TOOLS


@dataclass(frozen=True, slots=True)
class PartType:
    """One kind of part.

    Args:
        item: the type of its item.
        kind: the kind of text.
        stem: of the events `.delta` and `.done` with its fragments and its whole value.
        value: the field of `.done` events and contents with the whole value.
        index: the field of events with its index in the item; "" where the item has no others.
        around: the stem of the events `.added` and `.done` around them; "" if there are none.
    """

    item: str
    kind: str
    stem: str
    value: str
    index: str = ""
    around: str = ""


_CONTENT = ("content_index", "content_part")
_SUMMARIES = ("summary_index", "reasoning_summary_part")

OUTPUT_TEXT = PartType("message", "text", "output_text", "text", *_CONTENT)
REFUSAL = PartType("message", "refusal", "refusal", "refusal", *_CONTENT)
REASONING = PartType("reasoning", "reasoning", "reasoning_text", "text", *_CONTENT)
SUMMARY = PartType("reasoning", "summary", "reasoning_summary_text", "text", *_SUMMARIES)

CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""The types of calls that the client answers, with the field of their input."""

INPUTS = {
    **{
        type: PartType(type, "arguments", f"{type}_{field}", field) for type, field in CALLS.items()
    },
    **{
        tool.type: PartType(
            tool.type, "code" if tool.value == "code" else "arguments", tool.delta, tool.value
        )
        for tool in SERVER_TOOLS.values()
        if tool.delta
    },
}
"""The inputs that are streamed, by the type of their item."""

EVENT_PARTS = {
    part_type.stem: part_type
    for part_type in (OUTPUT_TEXT, REFUSAL, REASONING, SUMMARY, *INPUTS.values())
}
"""By the part of the type that `.delta` and `.done` events share."""

CONTENT_PARTS = {
    "output_text": OUTPUT_TEXT,
    "text": OUTPUT_TEXT,
    "refusal": REFUSAL,
    "reasoning_text": REASONING,
    "summary_text": SUMMARY,
}
"""By the `type` of contents and summaries."""

KINDS = frozenset({"message", "reasoning", *CALLS, *SERVER_TOOLS})
"""The types of items that have neutral parts; others are kept as frames."""


# Parts that only this API has. https://platform.openai.com/docs/api-reference/responses-streaming
_FRAGMENT, _END = keys({"delta": text}), keys({})

NATIVE: dict[str, Shape] = {
    "response.audio.delta": _FRAGMENT,
    "response.audio.done": _END,
    "response.audio.transcript.delta": _FRAGMENT,
    "response.audio.transcript.done": _END,
}
"""The shapes of the events of sound, by their types; the encoder numbers them. No item holds what
they say, so a body has none."""
