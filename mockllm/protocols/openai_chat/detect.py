"""How a recorded exchange is recognised as Chat Completions."""

from __future__ import annotations

import re

from mockllm.protocols.records import Detection

DETECTION = Detection(
    paths=(re.compile(r"(?:/deployments/(?P<deployment>[^/]+))?/chat/completions$"),),
    answer=lambda value: "choices" in value,
    likely_request=lambda body: "messages" in body,
)
