"""What a quirk is: a named, sourced way in which real servers' streams differ from their rules.

A quirk changes a stream that is otherwise right: its frames, the bytes that they become, or how
the answer is framed by HTTP. Every change is a pure function; one that finds nothing to change
(a quirk of tool calls, in an answer without any) gives back what it got.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mockllm.core.frame import Frame
from mockllm.core.timed_bytes import TimedBytes
from mockllm.core.turn import Turn
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import Reply, dumps
from mockllm.scenario.model import Api, Scenario

__all__ = [
    "BytesChange",
    "Context",
    "Ending",
    "FramesChange",
    "Item",
    "Quirk",
    "Right",
    "Variant",
    "change_frames",
]

Right = Literal["same", "error", "either"]
"""What a correct client makes of it: what the stream would mean without the quirk (or what
`Variant.meaning` says), a clear error, or either of them."""

Ending = Literal["complete", "closed", "reset"]
"""How the HTTP answer ends: as it should; the connection is closed before the last chunk; the
connection is reset."""


@dataclass(slots=True)
class Item:
    """A frame in the works: the fields of `Frame`, with JSON data as a value to be changed.

    `data` is a JSON value (mutable, the item's own), or text where the data are no JSON
    (`[DONE]`), or None where the frame has no data. With `text`, that is sent as the data in
    place of `data` (JSON in an unusual spelling, or no JSON at all). `at` is in microseconds.
    """

    at: int
    data: Any = None
    event: str | None = None
    id: str | None = None
    retry: int | None = None
    comment: str | None = None
    raw: str | None = None
    text: str | None = None
    _source: Frame | None = None

    @classmethod
    def of(cls, at: int, frame: Frame) -> Item:
        """The item for a frame."""
        return cls(
            at,
            _value(frame.data),
            frame.event,
            frame.id,
            frame.retry,
            frame.comment,
            frame.raw,
            _source=frame,
        )

    def copy(self) -> Item:
        """Another item that says the same and shares nothing."""
        return replace(self, data=copy.deepcopy(self.data))

    def frame(self) -> Frame:
        """The frame; data that were not changed keep their spelling."""
        return Frame(self._text(), self.event, self.id, self.retry, self.comment, self.raw)

    def _text(self) -> str | None:
        if self.text is not None:
            return self.text
        if self._source is not None and _value(self._source.data) == self.data:
            return self._source.data
        return self.data if self.data is None or isinstance(self.data, str) else _spelled(self.data)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _spelled(value: Any) -> str:
    """JSON text that UTF-8 can hold: halves of surrogate pairs stay escaped."""
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", dumps(value))


def _value(data: str | None) -> Any:
    """JSON objects and lists as values; everything else as the text that it is."""
    if data is None or data[:1] not in ("{", "["):
        return data
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


@dataclass(frozen=True, slots=True)
class Context:
    """What a change may know besides the stream: the turn that is told and its circumstances."""

    api: Api
    turn: Turn
    reply: Reply


FramesChange = Callable[[list[Item], Context], list[Item]]
"""Changes the frames; it owns the items it is given."""

BytesChange = Callable[[list[TimedBytes], Context], list[TimedBytes]]
"""Changes the encoded stream: a piece for each frame."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One form of a quirk.

    Args:
        name: `""` for the only or usual one.
        says: what the bytes look like, one line.
        frames, bytes: the changes.
        content_type: of the answer, in place of the API's own; `""` is none at all.
        ending: how the answer ends.
        writes: whether the pieces that `bytes` gives have to leave as separate writes.
        right: where it is another than the quirk's.
        meaning: what the stream still says, from what it said before; None: the same.
        ids: whether the calls keep the ids that the scenario gives; otherwise any unique,
            non-empty ids are right.
    """

    name: str = ""
    says: str = ""
    frames: FramesChange | None = None
    bytes: BytesChange | None = None
    content_type: str | None = None
    ending: Ending = "complete"
    writes: bool = False
    right: Right | None = None
    meaning: Callable[[Turn], Turn] | None = None
    ids: bool = True


@dataclass(frozen=True, slots=True)
class Quirk:
    """A quirk of real servers.

    Args:
        name: in lower-case words joined by hyphens.
        group: the letter of its group, `A` to `L`.
        title: one line.
        only: the protocols it is met in; () where it is met in all.
        servers: where it was seen, in words.
        sources: `owner/repository#number` of reports, where there are any.
        right: what is right.
        correct: the same in words: what a client should do.
        faults: what clients got wrong, in words.
        invariant: the invariant that a client breaks that gets it wrong.
        sample: the scenario that shows it best.
        variants: at least one; the first is meant where none is named.
    """

    name: str
    group: str
    title: str
    servers: str
    right: Right
    correct: str
    faults: str
    invariant: str
    sample: Scenario
    variants: tuple[Variant, ...]
    sources: tuple[str, ...] = field(default=())
    only: tuple[str, ...] = ()

    @property
    def apis(self) -> tuple[str, ...]:
        """The names of the protocols that it is met in."""
        return self.only or tuple(PROTOCOLS)

    def applies_to(self, api: str) -> bool:
        """Whether it is met in a protocol."""
        return not self.only or api in self.only

    def variant(self, name: str = "") -> Variant | None:
        """The variant of that name; the first for an empty name."""
        if not name:
            return self.variants[0]
        return next((variant for variant in self.variants if variant.name == name), None)


def change_frames(
    change: FramesChange, frames: Sequence[tuple[int, Frame]], context: Context
) -> list[tuple[int, Frame]]:
    """Timed frames with a change made to them; times never go back."""
    items = change([Item.of(at, frame) for at, frame in frames], context)
    changed = []
    latest = 0
    for item in items:
        latest = max(latest, item.at)
        changed.append((latest, item.frame()))
    return changed
