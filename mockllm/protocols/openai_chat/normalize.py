"""The fields of Chat Completions that the service generates anew for each answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.protocols.records import Normalisation
from mockllm.protocols.values import mapping

__all__ = ["NORMALISATION"]

_CONTENT = ("tool_calls", "annotations", "refusal", "reasoning_content", "content")


def _shape(chunk: Mapping[str, Any]) -> str:
    """What a chunk of the encoder is: `first`, `finish`, `usage`, `error`, or its content."""
    choices = chunk.get("choices")
    if not choices:
        return "error" if chunk.get("error") else "usage"
    choice = mapping(choices[0])
    delta = mapping(choice.get("delta"))
    if choice.get("finish_reason"):
        return "finish"
    if "role" in delta:
        return "first"
    return next((key for key in _CONTENT if delta.get(key) is not None), "other")


NORMALISATION = Normalisation(
    made_up=frozenset(
        {"id", "created", "model", "service_tier", "system_fingerprint", "obfuscation"}
    ),
    content=frozenset({"choices", "tool_calls"}),
    shape=_shape,
)
