"""How a recorded exchange is known as one of Anthropic Messages, on Vertex AI as well."""

from __future__ import annotations

import re

from mockllm.protocols.base import Detection

__all__ = ["DETECTION"]

DETECTION = Detection(
    paths=(
        re.compile(
            r"^(?!.*/threads/).*/messages$"
        ),  # OpenAI's Assistants have /threads/ID/messages
        re.compile(r"/publishers/anthropic/models/[^/]+:(?:streamR|r)awPredict$"),
    ),
    answer=lambda value: value.get("type") in ("message_start", "message"),
)
