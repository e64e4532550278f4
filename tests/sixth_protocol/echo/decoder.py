"""Reads answers of the Echo API: acts of a stream, or a script that is not live."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mockllm.core import events as ev
from mockllm.core.errors import WireError
from mockllm.core.events import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.values import string
from tests.sixth_protocol.echo.acts import (
    API,
    SILENCE,
    act_of,
    read_finish,
    read_mishap,
    read_tally,
)

_Act = Mapping[str, Any]

_DELTAS: dict[str, Callable[[int, str], ev.Event]] = {
    "line": ev.TextDelta,
    "musing": ev.ReasoningDelta,
    "balk": ev.RefusalDelta,
    "setting": ev.ToolArgs,
}


class Decoder:
    """The frames of one stream as events; parts come in the order in which they open."""

    def __init__(self) -> None:
        self.complete = False
        self._keys: dict[str, int] = {}
        self._cues: set[int] = set()
        self._next = 0

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of one frame; what is not known is kept as `Raw`."""
        if frame.data == SILENCE:
            self.complete = True
            return []
        act = act_of(frame)
        events = None if act is None else self._events(act)
        return [ev.Raw(self._key(), API, frame)] if events is None else list(events)

    def close(self) -> list[ev.Event]:
        """Nothing is left when the stream ends."""
        return []

    def _key(self) -> int:
        self._next += 1
        return self._next - 1

    def _part(self, act: _Act) -> int:
        name = string(act.get("part"))
        if name not in self._keys:
            self._keys[name] = self._key()
        return self._keys[name]

    def _events(self, act: _Act) -> Iterable[ev.Event] | None:
        match act["act"]:
            case "curtain":
                return (identity(act),)
            case "line" | "musing" | "balk" as kind:
                return (_DELTAS[kind](self._part(act), string(act.get("bit"))),)
            case "cue":
                self._cues.add(self._part(act))
                id, name = string(act.get("cue")), string(act.get("gadget"))
                return (ev.ToolStart(self._part(act), id, name),)
            case "setting" if self._keys.get(string(act.get("part"))) in self._cues:
                return (ev.ToolArgs(self._part(act), string(act.get("bit"))),)
            case "seal":
                return (ev.Signature(self._part(act), string(act.get("seal"))),)
            case "hush":
                return (ev.PartEnd(self._part(act)),)
            case "bow" | "heckle":
                return _ending(act)
        return None


def identity(value: _Act) -> ev.Start:
    """The id and the model that a request, an act or a script names."""
    return ev.Start(string(value.get("show")), string(value.get("speaker")))


def _ending(act: _Act) -> Iterator[ev.Event]:
    usage = read_tally(act.get("tally"))
    if usage is not None:
        yield usage
    error = read_mishap(act)
    yield error if error is not None else read_finish(string(act.get("why")))


def decode_body(body: _Act) -> Turn:
    """The turn of an answer that is not live.

    Raises:
        WireError: it has no script.
    """
    script = body.get("script")
    if not isinstance(script, list):
        raise WireError("an answer of the Echo API needs `script` (an array)")
    events = [event for key, entry in enumerate(script) for event in _entry(key, entry)]
    events += _ending(body)
    return fold(ev.Timed(0, event) for event in events)


def _entry(key: int, entry: _Act) -> Iterator[ev.Event]:
    kind, bit = string(entry.get("kind")), string(entry.get("bit"))
    if kind == "cue":
        yield ev.ToolStart(key, string(entry.get("cue")), string(entry.get("gadget")))
        yield ev.ToolArgs(key, bit)
    elif kind in _DELTAS:
        yield _DELTAS[kind](key, bit)
    if entry.get("seal") is not None:
        yield ev.Signature(key, string(entry["seal"]))
