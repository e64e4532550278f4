"""The five accumulators of the kit: how a stream of each protocol is put together correctly.

They are there to be read by whoever writes one, in whatever language, and they are what the kit
itself is measured with. So they share no code with the decoders of `mockllm.protocols`: the two
are independent readings of the same wire.

`answer` has what all of them share, `lines` puts bytes before them.
"""

from __future__ import annotations

from typing import TypeAlias

from mockllm.checking.reference.agui import AGUIAccumulator
from mockllm.checking.reference.anthropic import AnthropicAccumulator
from mockllm.checking.reference.chat import ChatAccumulator
from mockllm.checking.reference.gemini import GeminiAccumulator
from mockllm.checking.reference.responses import ResponsesAccumulator

__all__ = [
    "REFERENCES",
    "AGUIAccumulator",
    "AnthropicAccumulator",
    "ChatAccumulator",
    "GeminiAccumulator",
    "Reference",
    "ResponsesAccumulator",
]

Reference: TypeAlias = (
    ChatAccumulator
    | ResponsesAccumulator
    | AnthropicAccumulator
    | GeminiAccumulator
    | AGUIAccumulator
)
"""Any of them."""

REFERENCES: dict[str, type[Reference]] = {
    "chat": ChatAccumulator,
    "responses": ResponsesAccumulator,
    "anthropic": AnthropicAccumulator,
    "gemini": GeminiAccumulator,
    "agui": AGUIAccumulator,
}
"""By the name of the API."""
