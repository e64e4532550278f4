"""How a recorded exchange is recognised as Responses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mockllm.core.events import Start
from mockllm.protocols.records import Detection, identity


def _answer(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return value.get("object") == "response" or (
        isinstance(kind, str) and kind.startswith("response.")
    )


def _identity(value: Mapping[str, Any]) -> Start:
    # Events hold the response, bodies are one.
    response = value.get("response")
    return identity(response if isinstance(response, dict) else value)


DETECTION = Detection(
    paths=(re.compile(r"/responses$"),),
    answer=_answer,
    likely_request=lambda body: "input" in body,
    identity=_identity,
)
