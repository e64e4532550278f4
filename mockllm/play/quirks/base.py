"""The types of a quirk, a named change of a stream, and of what people read about it.

A quirk changes a correct stream: its frames, the bytes they are encoded to, or how HTTP frames the
answer. Every change is a pure function. A change that does not apply (one of tool calls, to an
answer without calls) returns its input.

Playing a quirk needs none of the prose, so `quirks.yaml` of each folder is read when somebody asks.
They are the only files that this room reads.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, wraps
from importlib.resources import files
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import yaml

from mockllm.core.events import Frame, FrameKind
from mockllm.core.http import Ending, TimedBytes
from mockllm.core.turn import Turn
from mockllm.scenario.model import Api, Scenario
from mockllm.wire.framing.carrier import CarrierName
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.values import value_or_text

Right = Literal["same", "error", "either"]
"""What a correct client does: return the same answer as without the quirk (or the one that is sent,
with `Variant.as_sent`), report a clear error, or either of them."""

TOPICS = (
    "index",
    "ids",
    "names",
    "arguments",
    "calls",
    "content",
    "blocks",
    "signatures",
    "unknown events",
    "ends",
    "errors",
    "usage",
    "framing",
    "other",
)
"""What quirks are about, in the order of reports."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Prose:
    """The description of a quirk.

    Args:
        group: the letter of its group, a section of docs/quirks.md; that of its folder (`_GROUPS`),
            unless it says another.
        topic: what it is about (`TOPICS`), whatever the API; reports group cases by it.
        title: one line.
        servers: where it was seen.
        correct: what a correct client does, as an instruction to its author.
        faults: what clients get wrong, in the third person.
        invariant: the invariant that a faulty client breaks.
        variants: what the bytes look like, one line for each variant, by its name.
        right: what a correct client does.
        sources: `owner/repository#number` of reports, and addresses of the clauses and pages of
            documentation that have it.
        unsourced: the names of variants that no source shows.
        invalid: the names of variants that break their protocol, by its own reference; or whether
            all do.
        fields: of an outcome, which it is about; () where its topic says that.
    """

    group: str
    topic: str
    title: str
    servers: str
    correct: str
    faults: str
    invariant: str
    variants: Mapping[str, str]
    right: Right = "same"
    sources: tuple[str, ...] = ()
    unsourced: tuple[str, ...] = ()
    invalid: bool | tuple[str, ...] = False
    fields: tuple[str, ...] = ()

    def is_sourced(self, variant: str) -> bool:
        """Whether a source shows a variant, so that a client can be blamed for it."""
        return bool(self.sources) and variant not in self.unsourced

    def is_invalid(self, variant: str) -> bool:
        """Whether a variant breaks its protocol, so that a client may refuse it."""
        names = self.invalid
        return names if isinstance(names, bool) else variant in names


_GROUPS = {
    "framing": "F",
    "anthropic": "H",
    "responses": "I",
    "gemini": "J",
    "agui": "K",
    "ollama": "L",
    "bedrock": "M",
    "cohere": "N",
    "completions": "O",
    "interactions": "P",
}


@cache
def prose() -> Mapping[str, Prose]:
    """The descriptions of all quirks, by their names."""
    room = files(__package__)
    folders = [folder for folder in (room, *room.iterdir()) if folder.is_dir()]
    return {
        name: _prose({"group": _GROUPS.get(folder.name), **fields})
        for folder in folders
        if (table := folder / "quirks.yaml").is_file()
        for name, fields in yaml.load(table.read_bytes(), _Loader).items()  # noqa: S506 - a safe one
    }


def _prose(fields: Mapping[str, Any]) -> Prose:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
    }
    return Prose(**values)


@dataclass(slots=True)
class Item:
    """A frame that a quirk may change: the fields of `Frame`, with JSON data as a value.

    Args:
        at: when the frame is due, in microseconds after the request.
        data: a JSON value (mutable, not shared with other items); a string where the data are not
            JSON (`[DONE]`); None where the frame has no data.
        text: sent as the data instead of `data`: JSON in an unusual form, or no JSON.
    """

    at: int
    data: Any = None
    event: str | None = None
    id: str | None = None
    retry: int | None = None
    comment: str | None = None
    raw: str | None = None
    text: str | None = None
    kind: FrameKind = "event"
    _source: Frame | None = None

    @classmethod
    def from_frame(cls, at: int, frame: Frame) -> Item:
        """The item for a frame."""
        return cls(
            at,
            _value(frame.data),
            frame.event,
            frame.id,
            frame.retry,
            frame.comment,
            frame.raw,
            kind=frame.kind,
            _source=frame,
        )

    def copy(self) -> Item:
        """A deep copy."""
        return replace(self, data=copy.deepcopy(self.data))

    def frame(self) -> Frame:
        """The frame. Data that were not changed keep their original bytes."""
        fields = (self.event, self.id, self.retry, self.comment, self.raw, self.kind)
        return Frame(self._text(), *fields)

    def _text(self) -> str | None:
        if self.text is not None:
            return self.text
        if self._source is not None and _value(self._source.data) == self.data:
            return self._source.data
        return self.data if self.data is None or isinstance(self.data, str) else dumps(self.data)


def _value(data: str | None) -> Any:
    if data is None or data[:1] not in ("{", "["):
        return data
    return value_or_text(data)


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a change besides the stream: the protocol, the turn and the reply."""

    api: Api
    turn: Turn
    reply: Reply


FramesChange = Callable[[list[Item], Context], list[Item]]
"""Changes the frames. It may change the items in its input."""

BytesChange = Callable[[list[TimedBytes], Context], list[TimedBytes]]
"""Changes the encoded stream: one `TimedBytes` for each frame."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Another outcome that is acceptable.

    Args:
        reason: why a correct client may reach it.
        turn: the turn that such a client gets, from the turn without the quirk and the protocol.
            A turn without a finish is reported as cut, as it must be, unless it has its `end`.
    """

    reason: str
    turn: Callable[[Turn, Api], Turn]
    end: bool = False


@dataclass(frozen=True, slots=True)
class Variant:
    """One form of a quirk.

    Args:
        name: `""` for the only or usual one.
        frames, bytes: the changes.
        content_type: of the answer, instead of the API's own; `""` for no content type.
        ending: how the answer ends.
        writes: whether each item of the result of `bytes` must be a separate write.
        right: overrides `Quirk.right`.
        as_sent: whether the stream says something else: then a correct client gets the turn that
            our decoder reads in it. Otherwise it gets that of the scenario, whatever the decoder
            makes of the quirk.
        expected: what a correct client makes of that turn, where it has to report an error that
            our decoder does not.
        ids: whether the calls keep the ids of the scenario; otherwise any unique, non-empty ids
            are correct.
        tolerated: other outcomes that are acceptable.
        sample: the scenario that shows it best, if that of the quirk does not show it.
        only: the protocols in which the checking kit plays it; () for all of the quirk. In others
            it changes nothing, or does what another quirk does there.
        decoded: whether what is special about it is in the events that SDKs hand on, unless `bytes`
            and the others say that it is not.
    """

    name: str = ""
    frames: FramesChange | None = None
    bytes: BytesChange | None = None
    content_type: str | None = None
    ending: Ending = "complete"
    writes: bool = False
    right: Right | None = None
    as_sent: bool = False
    expected: Callable[[Turn], Turn] | None = None
    ids: bool = True
    tolerated: tuple[Tolerance, ...] = ()
    sample: Scenario | None = None
    only: tuple[str, ...] = ()
    decoded: bool = True

    def changes(self, api: str) -> bool:
        """Whether it changes streams of a protocol in a way of its own."""
        return not self.only or api in self.only

    @property
    def changes_bytes(self) -> bool:
        """Whether it is about how frames are written, so that it fits some carriers only."""
        return self.bytes is not None or self.content_type is not None

    @property
    def in_events(self) -> bool:
        """Whether it may show in decoded events, and not in bytes alone."""
        return self.decoded and not self.changes_bytes and self.ending == "complete"


@dataclass(frozen=True, slots=True)
class Quirk:
    """A quirk of real servers: how it is played. `prose` describes it.

    Args:
        name: in lower-case words joined by hyphens.
        sample: the scenario that shows it best.
        variants: at least one; the first is the default.
        only: the protocols in which it occurs; () for all that `carriers` name.
        carriers: the forms of frames in which it occurs.
    """

    name: str
    sample: Scenario
    variants: tuple[Variant, ...]
    only: tuple[str, ...] = ()
    carriers: tuple[CarrierName, ...] = ("sse",)

    @property
    def prose(self) -> Prose:
        """Its description for people."""
        return prose()[self.name]

    @property
    def apis(self) -> tuple[str, ...]:
        """The names of the protocols in which it occurs."""
        return tuple(filter(self.applies_to, self.only or PROTOCOLS))

    def applies_to(self, api: str) -> bool:
        """Whether it occurs in a protocol."""
        if self.only:
            return api in self.only
        # Of an API that has only WebSockets, no frames travel this way.
        return api in PROTOCOLS.over_http and PROTOCOLS[api].usual.name in self.carriers

    def variant(self, name: str = "") -> Variant | None:
        """The variant of that name; the first for an empty name."""
        if not name:
            return self.variants[0]
        return next((variant for variant in self.variants if variant.name == name), None)

    def sample_of(self, variant: Variant) -> Scenario:
        """The scenario that shows a variant best."""
        return variant.sample or self.sample


def quirks_of(*apis: str, carriers: tuple[CarrierName, ...] = ("sse",)) -> Callable[..., Quirk]:
    """A constructor of quirks that occur in some protocols (none named: in all over these
    carriers), from name, sample and variants. A change of the frames is a variant without a
    name."""

    def quirk(name: str, sample: Scenario, *variants: Variant | FramesChange) -> Quirk:
        made = (v if isinstance(v, Variant) else Variant(frames=v) for v in variants)
        return Quirk(name, sample, tuple(made), apis, carriers)

    return quirk


STREAMS: tuple[CarrierName, ...] = ("sse", "ndjson", "eventstream")
"""The carriers whose frames follow each other, with nothing between them."""

_Place = TypeVar("_Place")


def each(
    places: Callable[[list[Item]], Iterable[_Place]],
    change: Callable[[_Place], object],
    prepare: Callable[[list[Item]], list[Item]] = list,
) -> FramesChange:
    """A change of every place of one kind in a stream.

    Args:
        places: finds them all before the first one is changed.
        prepare: changes the frames before.
    """

    def change_places(items: list[Item], context: Context) -> list[Item]:
        items = prepare(items)
        for place in list(places(items)):
            change(place)
        return items

    return change_places


_Stream = TypeVar("_Stream")
_P = ParamSpec("_P")


def with_parameters(
    change: Callable[Concatenate[_Stream, Context, _P], _Stream],
) -> Callable[_P, Callable[[_Stream, Context], _Stream]]:
    """Decorates a change that has further parameters: from these it makes the change."""

    @wraps(change)
    def make(*args: _P.args, **kwargs: _P.kwargs) -> Callable[[_Stream, Context], _Stream]:
        return lambda stream, context: change(stream, context, *args, **kwargs)

    return make


def each_with(
    places: Callable[[list[Item]], Iterable[_Place]],
) -> Callable[[Callable[Concatenate[_Place, _P], object]], Callable[_P, FramesChange]]:
    """Decorates a change of one place that has further parameters: from these it makes the change
    of every place (`each`)."""

    def decorate(change: Callable[Concatenate[_Place, _P], object]) -> Callable[_P, FramesChange]:
        @wraps(change)
        def make(*args: _P.args, **kwargs: _P.kwargs) -> FramesChange:
            return each(places, lambda place: change(place, *args, **kwargs))

        return make

    return decorate


def drop(unwanted: Callable[[Item], object]) -> FramesChange:
    """A change that leaves frames out."""
    return lambda items, _context: [item for item in items if not unwanted(item)]


def spread(change: Callable[[Item], Iterable[Item]]) -> FramesChange:
    """A change that puts other frames in the place of each one."""
    return lambda items, _context: [new for item in items for new in change(item)]


def change_frames(
    change: FramesChange, frames: Sequence[tuple[int, Frame]], context: Context
) -> list[tuple[int, Frame]]:
    """The changed frames with their times in microseconds, which never decrease."""
    items = change([Item.from_frame(at, frame) for at, frame in frames], context)
    changed = []
    latest = 0
    for item in items:
        latest = max(latest, item.at)
        changed.append((latest, item.frame()))
    return changed
