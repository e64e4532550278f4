"""How a recorded exchange is known as one of Responses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mockllm.protocols.base import Detection

__all__ = ["DETECTION"]


def _answer(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return value.get("object") == "response" or (
        isinstance(kind, str) and kind.startswith("response.")
    )


DETECTION = Detection(
    paths=(re.compile(r"/responses$"),),
    answer=_answer,
    likely_request=lambda body: "input" in body,
)
