"""The decoded events of a compiled answer, for clients that take events and not bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from mockllm.checking.cases.case import Decoded, Events, decoded_once
from mockllm.framing.sse import decode
from mockllm.protocols import PROTOCOLS
from mockllm.quirks.base import Variant
from mockllm.replay.compilation.http_answer import HttpAnswer
from mockllm.scenario.model import Api

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
    try:
        events = _values(data, api)
    except ValueError:
        return None
    return Events(decoded_once(lambda: events))


def decoded_later(answer: HttpAnswer, api: Api) -> Events:
    """The decoded events of an answer whose data are known to be JSON. They are decoded when they
    are first needed, which they are not at the level of bytes."""
    return Events(decoded_once(lambda: _values(b"".join(answer.data), api)))


def _values(data: bytes, api: Api) -> Decoded:
    """The events of a stream."""
    end = PROTOCOLS[api].end_data
    events: Decoded = []
    for frame in decode(data):
        if frame.data is not None and frame.data == end:
            break  # clients stop reading here, and pass on nothing that follows
        if frame.data is not None and frame.data != "[DONE]":
            events.append((json.loads(frame.data), frame.event))
    return events
