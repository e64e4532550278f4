"""The decoded events of a compiled answer, for clients that take events and not bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from mockllm.checking.cases.case import Events
from mockllm.framing.sse import decode
from mockllm.protocols import PROTOCOLS
from mockllm.quirks.base import Variant
from mockllm.replay.answer import HttpAnswer
from mockllm.scenario.model import Api

__all__ = ["decoded"]

_FIELD = re.compile(rb"\xef\xbb\xbf|(data|event|id|retry)?(:|$)")
"""How every line of an event stream begins (WHATWG SSE, 9.2.6: field names, comments, BOM)."""


def decoded(answer: HttpAnswer, api: Api, variants: Sequence[Variant]) -> Events | None:
    """The decoded events of an answer.

    None if what is special about the answer does not show in events: its bytes, its content
    type, a connection that breaks, or data that are not JSON.
    """
    if any(v.bytes is not None or v.content_type is not None for v in variants):
        return None
    if answer.ending != "complete":
        return None
    data = b"".join(answer.data)
    if variants and not all(map(_FIELD.match, data.splitlines())):
        return None
    events: list[tuple[Any, str | None]] = []
    for frame in decode(data):
        if frame.data is not None and frame.data == PROTOCOLS[api].end_data:
            break  # clients stop reading here, and pass on nothing that follows
        if frame.data is None or frame.data == "[DONE]":
            continue
        try:
            events.append((json.loads(frame.data), frame.event))
        except ValueError:
            return None
    return Events(events)
