"""The `usageMetadata` of an answer.

https://ai.google.dev/api/generate-content#UsageMetadata

Only pure functions may live here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.core.events import Usage

__all__ = ["read_usage", "write_usage"]


def write_usage(usage: Usage, visible: int, *, vertex: bool) -> dict[str, Any]:
    """The object in a chunk.

    Args:
        visible: the tokens of the visible answer so far.
        vertex: in the form of Vertex AI, which names the kind of traffic; the Gemini API names the
            service tier.
    """
    thoughts = {"thoughtsTokenCount": usage.reasoning} if usage.reasoning else {}
    details = _details(visible) if vertex and visible else []
    return {
        "promptTokenCount": usage.input,
        **({"candidatesTokenCount": visible} if visible else {}),
        "totalTokenCount": usage.input + visible + usage.reasoning,
        **({"cachedContentTokenCount": usage.cached} if usage.cached else {}),
        **({"trafficType": "ON_DEMAND"} if vertex else {}),
        "promptTokensDetails": _details(usage.input),
        **({"candidatesTokensDetails": details} if details else {}),
        **thoughts,
        **({} if vertex else {"serviceTier": "standard"}),
    }


def _details(count: int) -> list[dict[str, Any]]:
    return [{"modality": "TEXT", "tokenCount": count}]


def read_usage(value: object) -> Usage | None:
    """The tokens in the object. Tool use counts as input, thoughts as output: Gemini counts them
    beside `promptTokenCount` and `candidatesTokenCount`."""
    if not isinstance(value, Mapping) or not value:
        return None
    prompt, tool_use, visible, thoughts, cached = (
        count if type(count := value.get(name)) is int else 0
        for name in (
            "promptTokenCount",
            "toolUsePromptTokenCount",
            "candidatesTokenCount",
            "thoughtsTokenCount",
            "cachedContentTokenCount",
        )
    )
    return Usage(prompt + tool_use, visible + thoughts, thoughts, cached)
