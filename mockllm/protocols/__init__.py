"""The wire protocols; `PROTOCOLS` is the table of them all."""

from __future__ import annotations

from mockllm.protocols import ag_ui, anthropic_messages, gemini, openai_chat, openai_responses
from mockllm.protocols.base import WireProtocol

__all__ = ["PROTOCOLS"]

PROTOCOLS: dict[str, WireProtocol] = {
    protocol.name: protocol
    for protocol in (
        openai_chat.PROTOCOL,
        openai_responses.PROTOCOL,
        anthropic_messages.PROTOCOL,
        gemini.PROTOCOL,
        ag_ui.PROTOCOL,
    )
}
"""Every protocol by its name, in the order of lists for users."""
