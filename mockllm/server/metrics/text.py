"""The text format of Prometheus, version 0.0.4, and the figures under mockllm's own names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from mockllm.core.record import record
from mockllm.server.metrics.figures import DURATIONS, LATENESS, Figures
from mockllm.server.metrics.histogram import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]

Sample = tuple[str, Labels, float]
"""What follows the name of the family, the labels, and the value."""


@record
class Family:
    """A figure with all its samples."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    meaning: str
    samples: Iterable[Sample]


def written(families: Iterable[Family]) -> bytes:
    """Families as text."""
    lines = []
    for family in families:
        lines += [f"# HELP {family.name} {family.meaning}", f"# TYPE {family.name} {family.kind}"]
        for suffix, labels, value in family.samples:
            lines.append(f"{family.name}{suffix}{_shown(labels)} {float(value)}")
    return "".join(f"{line}\n" for line in lines).encode()


def _shown(labels: Labels) -> str:
    shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
    return f"{{{shown}}}" if shown else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def one(value: float) -> Iterator[Sample]:
    """The sample of a figure that has only one."""
    yield "", (), value


def classes(own: Histogram, bounds: Sequence[float], labels: Labels = ()) -> Iterator[Sample]:
    """The samples of a histogram, with some of its bounds."""
    for bound, count in zip(bounds, own.below(bounds), strict=True):
        yield "_bucket", (*labels, ("le", str(bound))), count
    yield "_bucket", (*labels, ("le", "+Inf")), own.count
    yield "_count", labels, own.count
    yield "_sum", labels, own.total


_TIMES = {
    "ttft": "Time to the first event with content",
    "itl": "Mean time between two events with content",
    "duration": "Whole time",
}
_WHEN = {"planned": "were due", "delivered": "were written"}


def own_families(figures: Figures) -> Iterator[Family]:
    """The figures under mockllm's own names."""
    requests = [
        ("", (("api", api), ("scenario", scenario), ("outcome", outcome)), float(count))
        for (api, scenario, outcome), count in figures.requests.items()
    ]
    yield Family("mockllm_requests_total", "counter", "Requests whose answer is over.", requests)
    meaning = "Answers that take time and are not over."
    yield Family("mockllm_open_streams", "gauge", meaning, one(figures.open_streams))
    meaning = "Requests that wait for a slot."
    yield Family("mockllm_waiting_requests", "gauge", meaning, one(figures.waiting))
    meaning = "How long after its time a timed chunk was written."
    late = classes(figures.late, LATENESS)
    yield Family("mockllm_chunk_lateness_seconds", "histogram", meaning, late)
    for (when, time), own in figures.times.items():
        meaning = f"{_TIMES[time]} of timed answers, as they {_WHEN[when]}."
        samples = classes(own, DURATIONS)
        yield Family(f"mockllm_{when}_{time}_seconds", "histogram", meaning, samples)
    meaning = "Entries that left a journal because it was full."
    yield Family("mockllm_journal_dropped_total", "counter", meaning, one(figures.dropped))
    meaning = "Requests for state that the state store did not answer."
    yield Family("mockllm_store_errors_total", "counter", meaning, one(figures.store_errors))
