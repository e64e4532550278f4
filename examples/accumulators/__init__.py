"""Reference accumulators: how to put together a stream of each protocol, correctly.

Read them as a model for your own, in whatever language; the kit checks itself with them. They share
no code with the decoders of `mockllm.wire.protocols`, so that each reading of the wire checks the
other.

Start with the module of your protocol. `base` and `answer` have what they share, `values` reads
JSON of any shape, and `lines` and `frames` turn bytes into events.
"""

from __future__ import annotations

from examples.accumulators.agui import AGUIAccumulator
from examples.accumulators.anthropic import AnthropicAccumulator
from examples.accumulators.base import Accumulator
from examples.accumulators.bedrock import BedrockAccumulator
from examples.accumulators.chat import ChatAccumulator
from examples.accumulators.cohere import CohereAccumulator
from examples.accumulators.completions import CompletionsAccumulator
from examples.accumulators.gemini import GeminiAccumulator
from examples.accumulators.interactions import InteractionsAccumulator
from examples.accumulators.live import LiveAccumulator
from examples.accumulators.ollama import OllamaAccumulator
from examples.accumulators.realtime import RealtimeAccumulator
from examples.accumulators.responses import ResponsesAccumulator

__all__ = [
    "REFERENCES",
    "AGUIAccumulator",
    "Accumulator",
    "AnthropicAccumulator",
    "BedrockAccumulator",
    "ChatAccumulator",
    "CohereAccumulator",
    "CompletionsAccumulator",
    "GeminiAccumulator",
    "InteractionsAccumulator",
    "LiveAccumulator",
    "OllamaAccumulator",
    "RealtimeAccumulator",
    "ResponsesAccumulator",
]

REFERENCES: dict[str, type[Accumulator]] = {
    "chat": ChatAccumulator,
    "responses": ResponsesAccumulator,
    "anthropic": AnthropicAccumulator,
    "gemini": GeminiAccumulator,
    "interactions": InteractionsAccumulator,
    "agui": AGUIAccumulator,
    "ollama": OllamaAccumulator,
    "completions": CompletionsAccumulator,
    "cohere": CohereAccumulator,
    "bedrock": BedrockAccumulator,
    "realtime": RealtimeAccumulator,
    "live": LiveAccumulator,
}
"""The accumulator of each API, by the API's name."""
