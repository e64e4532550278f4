"""How a recorded exchange is recognised as Anthropic Messages, also on Vertex AI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mockllm.core.events import Start
from mockllm.protocols.records import Detection, identity


def _identity(value: Mapping[str, Any]) -> Start:
    # `message_start` holds the message, a body is one.
    message = value.get("message")
    return identity(message if isinstance(message, dict) else value)


DETECTION = Detection(
    paths=(
        re.compile(
            r"^(?!.*/threads/).*/messages$"
        ),  # OpenAI's Assistants have /threads/ID/messages
        re.compile(r"/publishers/anthropic/models/(?P<model>[^/:]+):(?:streamR|r)awPredict$"),
    ),
    answer=lambda value: value.get("type") in ("message_start", "message"),
    identity=_identity,
)
