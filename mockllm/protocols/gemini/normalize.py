"""The fields of Gemini that the service generates anew for each answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.protocols.records import Normalisation
from mockllm.protocols.values import mapping

__all__ = ["NORMALISATION"]

_CONTENT = ("functionCall", "thought", "text")


def _shape(chunk: Mapping[str, Any]) -> str:
    """What a chunk of the encoder is: `finish`, `error`, or the kind of its first part."""
    candidates = chunk.get("candidates")
    if not candidates:
        return "error" if chunk.get("error") else "usage"
    candidate = mapping(candidates[0])
    if candidate.get("finishReason"):
        return "finish"
    parts = mapping(candidate.get("content")).get("parts")
    part = mapping(parts[0]) if parts else {}
    return next((key for key in _CONTENT if part.get(key) is not None), "other")


NORMALISATION = Normalisation(
    # Protocol buffers omit zeros, so servers may leave out the index of the first candidate.
    made_up=frozenset({"responseId", "modelVersion", "createTime", "candidates.index"}),
    usage="usageMetadata",
    content=frozenset({"candidates", "parts"}),
    shape=_shape,
)
