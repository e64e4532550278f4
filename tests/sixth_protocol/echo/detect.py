"""How a recorded exchange is known as one of the Echo API."""

from __future__ import annotations

import re

from mockllm.protocols.records import Detection
from tests.sixth_protocol.echo.decoder import identity

__all__ = ["DETECTION"]

DETECTION = Detection(
    paths=(re.compile(r"/echo/v\d+/speak$"),),
    request=lambda body: {"speaker", "dialogue"} <= body.keys(),
    answer=lambda value: value.get("act") == "curtain" or {"show", "script"} <= value.keys(),
    identity=identity,
)
