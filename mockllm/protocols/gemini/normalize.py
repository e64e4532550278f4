"""What Gemini makes up in its events."""

from __future__ import annotations

from mockllm.protocols.base import Normalisation

__all__ = ["NORMALISATION"]

NORMALISATION = Normalisation(
    # The index of the only candidate is 0, which its servers may leave out.
    made_up=frozenset({"responseId", "modelVersion", "createTime", "candidates.index"}),
)
