"""Faults as they are written, and their text form. Only data may live here."""

from __future__ import annotations

from typing import Literal

from mockllm.core.record import record
from mockllm.scenario.durations import duration

PlaceKind = Literal[
    "events", "bytes", "time", "in event", "in character", "in content", "in call", "before"
]


@record
class Place:
    """A place in an answer.

    Args:
        kind: `events`, `bytes`, `time`: after so many events, bytes of the body, microseconds since
            the request; `in event`: in the middle of that event, or in a part of its frame;
            `in character`: in the first character of several bytes; `in content`, `in call`: in the
            middle of an event with content of that kind, or with arguments of that call; `before`:
            before an event.
        number: of events, bytes or microseconds; of the event, from 1.
        name: `text`, `reasoning`, `refusal`; the id or the name of a call; `prelude`, `headers`,
            `payload`, `checksum`; `headers`, `first`, `finish`, `usage`, `done`.
    """

    kind: PlaceKind
    number: int = 0
    name: str = ""

    @property
    def key(self) -> str:
        """The parameter that has it."""
        if self.kind in ("events", "bytes", "time"):
            return "after"
        return "before" if self.kind == "before" else "inside"

    def __str__(self) -> str:
        match self.kind:
            case "events":
                return "1 event" if self.number == 1 else f"{self.number} events"
            case "bytes":
                return "1 byte" if self.number == 1 else f"{self.number} bytes"
            case "time":
                return duration(self.number)
            case "in event":
                return f"event {self.number} {self.name}".rstrip()
            case "in character":
                return "character"
            case "in call":
                return f"{self.name} arguments"
            case _:
                return self.name


@record
class Fault:
    """A fault as it is written.

    Args:
        name: as in `mockllm.scenario.reading.faults.FAULTS`.
        place: where it strikes; None for a fault without such a parameter.
        values: the other parameters in the order of their table; durations are microseconds.
    """

    name: str
    place: Place | None = None
    values: tuple[tuple[str, str | int | bool], ...] = ()

    def get(self, key: str) -> str | int | bool | None:
        """A parameter; None where it is not written."""
        return dict(self.values).get(key)

    def text(self, key: str, default: str) -> str:
        """A parameter that is a text; `default` where it is not written."""
        value = self.get(key)
        return value if isinstance(value, str) else default

    def number(self, key: str, default: int = 0) -> int:
        """A parameter that is a whole number; `default` where it is not written."""
        value = self.get(key)
        return value if isinstance(value, int) else default

    def parameters(self) -> dict[str, str | int | bool]:
        """The parameters as YAML has them."""
        written: dict[str, str | int | bool] = {}
        if self.place is not None:
            written[self.place.key] = str(self.place)
        for key, value in self.values:
            if key in DURATIONS and isinstance(value, int):
                written[key] = duration(value)
            else:
                written[key] = value
        return written

    def __str__(self) -> str:
        """As options and headers have it: `cut:after=3 events,end=reset`."""
        texts = {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in self.parameters().items()
        }
        listed = ",".join(f"{key}={text}" for key, text in texts.items())
        return f"{self.name}:{listed}" if listed else self.name


DURATIONS = frozenset({"for", "pause", "retry_after", "every"})
"""The parameters that are durations."""


def faults_text(faults: tuple[Fault, ...]) -> str:
    """Several faults as options and headers have them, joined by `;`."""
    return "; ".join(map(str, faults))
