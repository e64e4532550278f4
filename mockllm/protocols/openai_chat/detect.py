"""How a recorded exchange is known as one of Chat Completions."""

from __future__ import annotations

import re

from mockllm.protocols.base import Detection

__all__ = ["DETECTION"]

DETECTION = Detection(
    paths=(re.compile(r"(?:/deployments/(?P<deployment>[^/]+))?/chat/completions$"),),
    answer=lambda value: "choices" in value,
    likely_request=lambda body: "messages" in body,
)
