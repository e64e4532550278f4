"""The fields of Gemini that the service generates anew for each answer."""

from __future__ import annotations

from mockllm.protocols.records import Normalisation

__all__ = ["NORMALISATION"]

NORMALISATION = Normalisation(
    # Protocol buffers omit zeros, so servers may leave out the index of the first candidate.
    made_up=frozenset({"responseId", "modelVersion", "createTime", "candidates.index"}),
    usage="usageMetadata",
)
