"""How a recorded exchange is known as one of Gemini, on Vertex AI as well."""

from __future__ import annotations

import re

from mockllm.protocols.base import Detection

__all__ = ["DETECTION"]

DETECTION = Detection(
    paths=(
        re.compile(
            r"/(?:publishers/(?P<publisher>[^/]+)/models|models(?:/(?P<owner>[^/:]+))?)"
            r"/(?P<model>[^/:]+):(?:streamGenerateContent|generateContent)$"
        ),
    ),
    request=lambda body: "contents" in body,
    answer=lambda value: "candidates" in value or "promptFeedback" in value,
)
