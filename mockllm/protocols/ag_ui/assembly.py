"""Assembly of the parts of an answer from the events of a stream. Only that may live here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mockllm.core import events as ev

Kind = Literal["text", "reasoning", "call"]


@dataclass(slots=True)
class Part:
    """A message or a call. `used` is whether any event with its key was returned; `open` is
    whether more may come."""

    key: int
    kind: Kind
    id: str
    used: bool = False
    open: bool = True


class Assembly:
    """The parts of an answer while its events arrive."""

    def __init__(self) -> None:
        self.complete = False
        self.called = False
        self.parts: dict[tuple[Kind, str], Part] = {}
        self.others: set[str] = set()
        self._latest: dict[Kind, Part] = {}
        self._next = 0

    def new_key(self) -> int:
        """The key of the next part; keys count up in the order in which parts open."""
        self._next += 1
        return self._next - 1

    def open(self, kind: Kind, id: str) -> Part:
        """A new part."""
        part = Part(self.new_key(), kind, id)
        self.parts[kind, id] = self._latest[kind] = part
        return part

    def find(self, kind: Kind, id: object) -> Part | None:
        """The open part with an id, or without an id the latest one of its kind; None if it is not
        open."""
        part = self.parts.get((kind, id)) if isinstance(id, str) else self._latest.get(kind)
        return part if part is not None and part.open else None

    def close(self, part: Part) -> Iterator[ev.Event]:
        """The events that end a part; one without content becomes an empty one."""
        part.open = False
        if not part.used:
            yield delta(part, "")
        yield ev.PartEnd(part.key)

    def close_all(self) -> Iterator[ev.Event]:
        """The events that end all parts that are still open."""
        for part in self.parts.values():
            if part.open:
                yield from self.close(part)


def delta(part: Part, text: str) -> ev.Event:
    """The event for a fragment of a part."""
    part.used = True
    match part.kind:
        case "text":
            return ev.TextDelta(part.key, text)
        case "reasoning":
            return ev.ReasoningDelta(part.key, text)
        case "call":
            return ev.ToolArgs(part.key, text)
