"""How a recorded exchange is recognised as Gemini, also on Vertex AI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mockllm.core.events import Start
from mockllm.protocols.records import Detection
from mockllm.protocols.values import string


def _identity(value: Mapping[str, Any]) -> Start:
    model = string(value.get("model")) or string(value.get("modelVersion"))
    return Start(string(value.get("responseId")), model.removeprefix("models/"))


DETECTION = Detection(
    paths=(
        re.compile(
            r"/(?:publishers/(?P<publisher>[^/]+)/models|models(?:/(?P<owner>[^/:]+))?)"
            r"/(?P<model>[^/:]+):(?:streamGenerateContent|generateContent)$"
        ),
    ),
    request=lambda body: "contents" in body,
    answer=lambda value: "candidates" in value or "promptFeedback" in value,
    identity=_identity,
)
