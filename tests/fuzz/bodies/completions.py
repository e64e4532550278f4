"""Bodies of requests of the legacy Completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fuzz.bodies.values import MODEL

__all__ = ["bodies"]


def bodies() -> Iterator[dict[str, Any]]:
    """Prompts of every form; the first body has most fields."""
    yield {
        "model": MODEL,
        "prompt": ["hello 🎉", [1, 2, 3]],
        "suffix": "the end",
        "n": 2,
        "best_of": 2,
        "echo": True,
        "logprobs": 3,
        "max_tokens": 16,
        "stop": ["\n"],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "top_p": 0.9,
        "presence_penalty": 0.1,
        "frequency_penalty": -0.1,
        "logit_bias": {"50256": -100},
        "seed": 7,
        "user": "u",
    }
    yield {"model": MODEL, "prompt": "System: Be brief.\nHuman: hello\nAI:", "logprobs": 0}
    yield {"model": MODEL, "prompt": [5, 6], "echo": True}
