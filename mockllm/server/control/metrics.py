"""What a server counts about itself, and how Prometheus reads it.

No figure names a session, a path, a client or a model: they may be private, and there may be any
number of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockllm.replay.sessions.exchange import Exchange

LATENESS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""The upper bounds of the classes of lateness, in seconds."""

_MOST_SERIES = 2000
_OTHER = "(other)"
"""Stands for the scenarios of sessions, and for all beyond the number of series that is kept."""

_NONE = "(none)"

Key = tuple[str, str, str]
"""API, scenario and outcome of a request."""


@dataclass(slots=True)
class Figures:
    """What one server process counts. Those of several can be added up.

    Args:
        late: how many chunks were written in each class of `LATENESS`, and later than all.
        late_seconds: the sum of the lateness of all chunks.
        open_streams: the answers that take time and are not over.
        dropped: the entries that left a journal because it was full.
    """

    requests: dict[Key, int] = field(default_factory=dict)
    late: list[int] = field(default_factory=lambda: [0] * (len(LATENESS) + 1))
    late_seconds: float = 0.0
    store_errors: int = 0
    open_streams: int = 0
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

    def note_late(self, seconds: float, chunks: int = 1) -> None:
        """Counts chunks that were written some seconds after their time, or before it."""
        self.late[bisect_left(LATENESS, seconds)] += chunks
        if seconds > 0:
            self.late_seconds += seconds * chunks

    def note_store_error(self) -> None:
        self.store_errors += 1

    def add(self, other: Figures) -> None:
        for key, count in other.requests.items():
            self.requests[key] = self.requests.get(key, 0) + count
        self.late = [sum(counts) for counts in zip(self.late, other.late, strict=True)]
        for name in ("late_seconds", "store_errors", "open_streams", "dropped"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def as_json(self) -> dict[str, Any]:
        requests = [[*key, count] for key, count in self.requests.items()]
        return {**asdict(self), "requests": requests}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Figures:
        requests = {(api, name, outcome): n for api, name, outcome, n in value["requests"]}
        return cls(**{**value, "requests": requests})

    def copy(self, open_streams: int, dropped: int) -> Figures:
        """The figures now, with those that the server knows."""
        return replace(
            self,
            requests=dict(self.requests),
            late=list(self.late),
            open_streams=open_streams,
            dropped=dropped,
        )


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_FAMILIES = (
    ("requests_total", "counter", "Requests whose answer is over."),
    ("open_streams", "gauge", "Answers that take time and are not over."),
    ("chunk_lateness_seconds", "histogram", "How long after its time a timed chunk was written."),
    ("journal_dropped_total", "counter", "Entries that left a journal because it was full."),
    ("store_errors_total", "counter", "Requests for state that the state store did not answer."),
)
"""Name, type and meaning of each figure."""


def render(figures: Figures) -> bytes:
    """The figures in the text format of Prometheus, version 0.0.4."""
    requests = [
        (_labels(api=api, scenario=scenario, outcome=outcome), count)
        for (api, scenario, outcome), count in figures.requests.items()
    ]
    counts = list(accumulate(figures.late))
    bounds = [*map(str, LATENESS), "+Inf"]
    late: list[tuple[str, float]]
    late = [("_bucket" + _labels(le=bound), n) for bound, n in zip(bounds, counts, strict=True)]
    late += [("_count", counts[-1]), ("_sum", figures.late_seconds)]
    open_streams, dropped = [("", figures.open_streams)], [("", figures.dropped)]
    errors = [("", figures.store_errors)]
    samples: list[Iterable[tuple[str, float]]]
    samples = [requests, open_streams, late, dropped, errors]
    lines = []
    for (name, kind, meaning), values in zip(_FAMILIES, samples, strict=True):
        lines += [f"# HELP mockllm_{name} {meaning}", f"# TYPE mockllm_{name} {kind}"]
        lines += [f"mockllm_{name}{labels} {float(value)}" for labels, value in values]
    return "".join(f"{line}\n" for line in lines).encode()


def _labels(**values: str) -> str:
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in values.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
