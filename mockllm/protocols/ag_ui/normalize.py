"""What an AG-UI agent makes up in its events."""

from __future__ import annotations

from mockllm.protocols.base import Normalisation

__all__ = ["NORMALISATION"]

NORMALISATION = Normalisation(
    made_up=frozenset({"timestamp", "threadId", "runId", "messageId", "parentMessageId"}),
)
