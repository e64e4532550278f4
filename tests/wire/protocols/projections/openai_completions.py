"""What the legacy Completions cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Turn

__all__ = ["project"]


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn, with `include_usage`: one text, of
    all texts and refusals, and then the frames of this API."""
    timed = []
    for number, item in enumerate(expand(turn), 1):
        event = _decoded(item.event, number, failed=turn.error is not None)
        if event is not None:
            timed.append(ev.Timed(item.at, event))
    return fold(timed)


def _decoded(event: ev.Event, number: int, *, failed: bool) -> ev.Event | None:
    match event:
        case ev.TextDelta():
            return replace(event, part=0, tokens=None)
        case ev.RefusalDelta(text=text):
            return ev.TextDelta(0, text)
        case ev.Raw(api="completions"):
            return replace(event, part=number)
        case ev.Finish(reason=reason):
            kept = reason in ("length", "content_filter")
            return ev.Finish(reason if kept else "stop")
        case ev.StreamError():
            return replace(event, type=event.type or "server_error")
        case ev.Usage() if not failed:
            return event
    return None
