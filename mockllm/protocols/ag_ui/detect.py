"""How a recorded exchange is recognised as one with an AG-UI agent, whatever its path."""

from __future__ import annotations

import re

from mockllm.protocols.records import Detection

DETECTION = Detection(
    paths=(re.compile(r"/agui(?:/(?P<scenario>[^/]+))?$"),),
    request=lambda body: {"threadId", "runId", "messages"} <= body.keys(),
    answer=lambda value: value.get("type") in ("RUN_STARTED", "RUN_ERROR"),
    any_path=True,
)
