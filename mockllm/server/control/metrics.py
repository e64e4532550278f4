"""What a server counts about itself, and how Prometheus reads it.

Counting is plain Python; prometheus-client is imported when somebody reads the figures. No figure
names a session, a path, a client or a model: they may be private, and there may be any number of
them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mockllm.errors import RequestError

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


def render(figures: Figures, accept: str) -> tuple[str, bytes]:
    """The figures as Prometheus reads them: the content type, and the text.

    Args:
        accept: the header of the request; a Prometheus that knows OpenMetrics names it there.

    Raises:
        RequestError: prometheus-client is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import choose_encoder
    except ImportError:
        raise RequestError(
            "Metrics need prometheus-client, which is not installed. Install it "
            "(pip install 'mockllm-harness[metrics]') and start the server again.",
            status=501,
        ) from None
    registry = CollectorRegistry()
    registry.register(_Collector(figures))
    encode, kind = choose_encoder(accept)
    return kind, encode(registry)


class _Collector:
    """The figures as families of metrics: what a registry collects."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def describe(self) -> Iterable[Any]:
        return ()

    def collect(self) -> Iterable[Any]:
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        figures = self._figures
        requests = CounterMetricFamily(
            "mockllm_requests",
            "Requests whose answer is over.",
            labels=("api", "scenario", "outcome"),
        )
        for key, count in figures.requests.items():
            requests.add_metric(key, count)
        yield requests
        yield GaugeMetricFamily(
            "mockllm_open_streams",
            "Answers that take time and are not over.",
            value=figures.open_streams,
        )
        late = HistogramMetricFamily(
            "mockllm_chunk_lateness_seconds", "How long after its time a timed chunk was written."
        )
        late.add_metric((), _cumulative(figures.late), figures.late_seconds)
        yield late
        yield CounterMetricFamily(
            "mockllm_journal_dropped",
            "Entries that left a journal because it was full.",
            value=figures.dropped,
        )
        yield CounterMetricFamily(
            "mockllm_store_errors",
            "Requests for state that the state store did not answer.",
            value=figures.store_errors,
        )


def _cumulative(counts: Iterable[int]) -> list[tuple[str, float]]:
    total, buckets = 0, []
    for bound, count in zip((*LATENESS, float("inf")), counts, strict=True):
        total += count
        buckets.append(("+Inf" if bound == float("inf") else str(bound), float(total)))
    return buckets
