"""Figures that a server counts about itself.

No figure names a session, a path or a client: they may be private, and there may be any number of
them. Figures of models are counted only where they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from mockllm.play.replay.compilation.http_answer import Generated, HttpAnswer
from mockllm.play.replay.sessions.exchange import Exchange, Sent, Times
from mockllm.serve.server.metrics.by_model import Models
from mockllm.serve.server.metrics.histogram import Histogram

LATENESS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""The upper bounds of the classes of lateness, in seconds."""

_STEPS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0)  # ISO 3, series R10
DURATIONS = (*(step * tenth / 1000 for tenth in (1, 10, 100, 1000, 10_000) for step in _STEPS), 100)
"""The upper bounds of the classes of times of answers, in seconds: each some quarter above the
last."""

TIMES = ("ttft", "itl", "duration")
"""The times of an answer that are counted, as fields of `Times`."""

_MOST_SERIES = 2000
_OTHER = "(other)"
"""Stands for the scenarios of sessions, and for all beyond the number of series that is kept."""

_NONE = "(none)"

Key = tuple[str, str, str]
"""API, scenario and outcome of a request."""


Figure = tuple[str, str]
"""`planned` or `delivered`, and one of `TIMES`."""


def _histograms() -> dict[Figure, Histogram]:
    return {
        (when, time): Histogram(DURATIONS) for when in ("planned", "delivered") for time in TIMES
    }


@dataclass(slots=True)
class Figures:
    """The figures of one server process. Those of several can be added up.

    Args:
        late: how long after its time each chunk was written, in seconds.
        times: of timed answers, as they were due and as they were written.
        models: what is counted of each model; None: nothing is.
        open_streams: the answers that take time and are not over.
        waiting: the requests that wait for a slot.
        dropped: the entries that left a journal because it was full.
    """

    requests: dict[Key, int] = field(default_factory=dict)
    late: Histogram = field(default_factory=partial(Histogram, LATENESS))
    times: dict[Figure, Histogram] = field(default_factory=_histograms)
    models: Models | None = None
    store_errors: int = 0
    open_streams: int = 0
    waiting: int = 0
    dropped: int = 0

    def note_answered(self, exchange: Exchange, known: Mapping[str, object]) -> None:
        """Counts a request whose answer is over.

        Args:
            known: the scenarios of the server, by name; others have no name in the figures.
        """
        played = exchange.played
        name = played.scenario
        if name is None:
            name = _NONE
        elif name not in known:
            name = _OTHER
        requests = self.requests
        key = (played.api or _NONE, name, exchange.outcome)
        if len(requests) >= _MOST_SERIES and key not in requests:
            key = (key[0], _OTHER, key[2])
        requests[key] = requests.get(key, 0) + 1

    def note_sent(self, exchange: Exchange, answer: HttpAnswer, speed: float) -> None:
        """Counts the times of an answer that is over, and notes them in its exchange.

        Args:
            speed: of timed answers; 0: they were sent without their pauses.
        """
        writes = content_writes(answer, exchange.sent) if answer.timed and speed else ()
        if writes:
            both = times_of(answer, writes, speed)
            exchange.sent.note_times(*both)
            for when, times in zip(("planned", "delivered"), both, strict=True):
                for name in TIMES:
                    seconds = getattr(times, name)
                    if seconds is not None:
                        self.times[when, name].note(seconds)
        if self.models is not None:
            self.models.note(exchange, answer, writes)

    def note_store_error(self) -> None:
        self.store_errors += 1

    def add(self, other: Figures) -> None:
        for key, count in other.requests.items():
            self.requests[key] = self.requests.get(key, 0) + count
        self.late.add(other.late)
        for figure, histogram in other.times.items():
            self.times[figure].add(histogram)
        if self.models is not None and other.models is not None:
            self.models.add(other.models)
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def as_json(self) -> dict[str, Any]:
        return {
            "requests": [[*key, count] for key, count in self.requests.items()],
            "late": self.late.as_json(),
            "times": [[*figure, one.as_json()] for figure, one in self.times.items()],
            "models": None if self.models is None else self.models.as_json(),
            **{name: getattr(self, name) for name in _NUMBERS},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Figures:
        models = value["models"]
        return cls(
            {(api, name, outcome): n for api, name, outcome, n in value["requests"]},
            Histogram(LATENESS, *value["late"]),
            {(when, name): Histogram(DURATIONS, *own) for when, name, own in value["times"]},
            None if models is None else Models.from_json(models),
            **{name: value[name] for name in _NUMBERS},
        )

    def copy(self, open_streams: int, dropped: int, waiting: int = 0) -> Figures:
        """The figures now, with those that the server knows."""
        now = Figures.from_json(self.as_json())
        return replace(now, open_streams=open_streams, dropped=dropped, waiting=waiting)


_NUMBERS = ("store_errors", "open_streams", "waiting", "dropped")


def content_writes(answer: HttpAnswer, sent: Sent) -> Sequence[float]:
    """When each write of a timed answer was, in seconds after its start, from the first one with
    content on; () for an answer that is not timed, or has a fault or a gate, or was not sent
    whole."""
    made, marks = answer.generated, sent.marks
    if made is None or not marks or answer.fault is not None or answer.gates:
        return ()
    if sent.client_gone or sent.ended is None or not sent.complete:
        return ()
    through = sum(map(len, answer.data[: made.first + 1]))
    first = next((at for at in range(0, len(marks), 2) if marks[at] >= through), len(marks))
    return marks[first + 1 :: 2]


def times_of(answer: HttpAnswer, writes: Sequence[float], speed: float) -> tuple[Times, Times]:
    """When a timed answer was due, and when it was written.

    Args:
        writes: of `content_writes`, at least one.
    """
    made, rate = answer.generated, speed * 1_000_000
    assert made is not None
    return (
        _times(answer, made, answer.times[made.first] / rate, answer.times[-1] / rate),
        _times(answer, made, writes[0], writes[-1]),
    )


def _times(answer: HttpAnswer, made: Generated, first: float, last: float) -> Times:
    if not answer.streamed:
        return Times(last)
    return Times(last, first, (last - first) / (made.beats - 1) if made.beats > 1 else None)
