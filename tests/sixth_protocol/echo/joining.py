"""Two acts as one."""

from __future__ import annotations

from mockllm.core.events import Frame
from tests.sixth_protocol.echo.acts import act_of, frame_of

_JOINED = ("line", "musing", "balk", "setting")


def join(first: Frame, second: Frame) -> Frame | None:
    """One act with the bits of two; None where they are not of one part and kind."""
    one, other = act_of(first), act_of(second)
    if one is None or other is None or one["act"] not in _JOINED:
        return None
    if {**one, "bit": ""} != {**other, "bit": ""}:
        return None
    return frame_of(one["act"], part=one["part"], bit=one["bit"] + other["bit"])
