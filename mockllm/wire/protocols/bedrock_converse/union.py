"""An event stream of AWS whose events are members of a union, as Smithy calls it.

https://smithy.io/2.0/spec/streaming.html#event-streams

A frame's header has the name of the member, its payload the value. Here both are one JSON object
with one key, as SDKs return them: `{"messageStop": {"stopReason": "end_turn"}}`. Members that are
exceptions are named so. An error that no model has is `{"error": {"code", "message"}}`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from mockllm.core.events import Frame
from mockllm.wire.framing.carrier import wrapping
from mockllm.wire.framing.eventstream import EVENTSTREAM
from mockllm.wire.protocols.aws import is_exception
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.values import json_object, mapping, string

ERROR = "error"

_BROKEN = re.compile(r'\{"([^"\\]*)":(.*)\}', re.DOTALL)
"""A member whose value is no JSON."""


def is_error(name: str) -> bool:
    """Whether a member ends the stream as an error."""
    return name == ERROR or is_exception(name)


def _wrap(frame: Frame) -> Frame:
    """The frame as it is sent. One with a name of its own, or without a single key, stays."""
    if frame.event is not None:
        return frame
    value = json_object(frame.data)
    if value is None:
        broken = _BROKEN.fullmatch(frame.data or "")
        return frame if broken is None else Frame(broken[2], broken[1])
    if len(value) != 1:
        return frame
    ((name, member),) = value.items()
    if name == ERROR:
        fields = mapping(member)
        return Frame(string(fields.get("message")), string(fields.get("code")), kind="error")
    payload = member if isinstance(member, str) else dumps(member)
    return Frame(payload, name, kind="exception" if is_error(name) else "event")


def _unwrap(frame: Frame) -> Frame:
    """The frame with the name of its member in its data. A broken payload stays so; an empty one is
    an empty string."""
    name, payload = frame.event or "", frame.data or ""
    if frame.kind == "error":
        return Frame(dumps({ERROR: {"code": name, "message": payload}}), kind="error")
    return replace(frame, data=f"{{{dumps(name)}:{payload or dumps('')}}}", event=None)


UNION = wrapping(EVENTSTREAM, _wrap, _unwrap)
