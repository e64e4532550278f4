"""The figures in the text format of Prometheus, version 0.0.4, under mockllm's own names, those of
vLLM, or those of the conventions of OpenTelemetry for generative AI.

The names of OpenTelemetry are as its exporters for Prometheus write them: `_` for `.`, and the unit
at the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Literal

from mockllm.core.record import record
from mockllm.serve.server.metrics.by_model import (
    ABORT,
    BETWEEN,
    ERROR,
    FIRST,
    OTHER,
    TOKENS,
    WHOLE,
    WHOLE_OTEL,
    WHOLE_VLLM,
    ModelFigures,
    Models,
)
from mockllm.serve.server.metrics.figures import DURATIONS, LATENESS, Figures
from mockllm.serve.server.metrics.histogram import Histogram
from mockllm.serve.server.options import MetricNames
from mockllm.wire.protocols import PROTOCOLS

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format"""


def render(figures: Figures, names: Sequence[MetricNames] = ("mockllm",)) -> bytes:
    """The figures as text, under each of these names."""
    return _text(family for name in names for family in _FAMILIES[name](figures))


_Labels = tuple[tuple[str, str], ...]

_Sample = tuple[str, _Labels, float]
"""What follows the name of the family, the labels, and the value."""


@record
class _Family:
    """A figure with all its samples."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    meaning: str
    samples: Iterable[_Sample]


def _text(families: Iterable[_Family]) -> bytes:
    """Families as text."""
    lines = []
    for family in families:
        lines += [f"# HELP {family.name} {family.meaning}", f"# TYPE {family.name} {family.kind}"]
        for suffix, labels, value in family.samples:
            lines.append(f"{family.name}{suffix}{_label_text(labels)} {float(value)}")
    return "".join(f"{line}\n" for line in lines).encode()


def _label_text(labels: _Labels) -> str:
    shown = ",".join(f'{name}="{_escape(text)}"' for name, text in labels)
    return f"{{{shown}}}" if shown else ""


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _single(value: float) -> Iterator[_Sample]:
    """The sample of a figure that has only one."""
    yield "", (), value


def _classes(
    histogram: Histogram, bounds: Sequence[float], labels: _Labels = ()
) -> Iterator[_Sample]:
    """The samples of a histogram, with some of its bounds."""
    for bound, count in zip(bounds, histogram.below(bounds), strict=True):
        yield "_bucket", (*labels, ("le", str(bound))), count
    yield "_bucket", (*labels, ("le", "+Inf")), histogram.count
    yield "_count", labels, histogram.count
    yield "_sum", labels, histogram.total


# mockllm's own names


_TIMES = {
    "ttft": "Time to the first event with content",
    "itl": "Mean time between two events with content",
    "duration": "Whole time",
}
_WHEN = {"planned": "were due", "delivered": "were written"}


def _mockllm_families(figures: Figures) -> Iterator[_Family]:
    """The figures under mockllm's own names."""
    requests = [
        ("", (("api", api), ("scenario", scenario), ("outcome", outcome)), float(count))
        for (api, scenario, outcome), count in figures.requests.items()
    ]
    yield _Family("mockllm_requests_total", "counter", "Requests whose answer is over.", requests)
    meaning = "Answers that take time and are not over."
    yield _Family("mockllm_open_streams", "gauge", meaning, _single(figures.open_streams))
    meaning = "Requests that wait for a slot."
    yield _Family("mockllm_waiting_requests", "gauge", meaning, _single(figures.waiting))
    meaning = "How long after its time a timed chunk was written."
    late = _classes(figures.late, LATENESS)
    yield _Family("mockllm_chunk_lateness_seconds", "histogram", meaning, late)
    for (when, time), histogram in figures.times.items():
        meaning = f"{_TIMES[time]} of timed answers, as they {_WHEN[when]}."
        samples = _classes(histogram, DURATIONS)
        yield _Family(f"mockllm_{when}_{time}_seconds", "histogram", meaning, samples)
    meaning = "Entries that left a journal because it was full."
    yield _Family("mockllm_journal_dropped_total", "counter", meaning, _single(figures.dropped))
    meaning = "Requests for state that the state store did not answer."
    yield _Family("mockllm_store_errors_total", "counter", meaning, _single(figures.store_errors))


# Figures of models


_Row = tuple[
    str, Literal["counter", "gauge", "histogram"], str, Callable[[ModelFigures], Iterable[_Sample]]
]
"""Name, kind and meaning of a family, and its samples of one model."""

_FIRST = "Time to the first event with content."
_BETWEEN = "Time between two writes of a stream."
_MEAN = "Mean time of a token after the first, for each stream."


def _value(field: str) -> Callable[[ModelFigures], Iterable[_Sample]]:
    value_of = attrgetter(field)
    return lambda figures: _single(value_of(figures))


def _times(name: str, meaning: str, field: str, bounds: Sequence[float]) -> _Row:
    return name, "histogram", meaning, lambda figures: _classes(getattr(figures, field), bounds)


def _families(
    rows: Sequence[_Row], models: Iterable[tuple[_Labels, ModelFigures]]
) -> Iterator[_Family]:
    models = list(models)
    for name, kind, meaning, samples_of in rows:
        samples = [
            (suffix, (*labels, *more), value)
            for labels, figures in models
            for suffix, more, value in samples_of(figures)
        ]
        yield _Family(name, kind, meaning, samples)


# vLLM: vllm/v1/metrics/loggers.py


def _vllm(figures: Figures) -> Iterable[_Family]:
    models: dict[str, ModelFigures] = defaultdict(ModelFigures)
    for (_, name), of_model in figures.models or Models():
        models[name].add(of_model)
    # A request that waits has not been read yet.
    where = next(iter(models)) if len(models) == 1 else OTHER
    if figures.waiting:
        models[where].waiting = figures.waiting
    labelled = [
        ((("model_name", name), ("engine", "0")), of_model) for name, of_model in models.items()
    ]
    return _families(_VLLM, labelled)


_COMPLETED = ("stop", "length")
_FINISHED = (*_COMPLETED, ABORT, ERROR)
"""How an answer ends that a model began; other requests were refused before."""


def _finish_counts(figures: ModelFigures) -> Iterator[_Sample]:
    for reason in _FINISHED:
        if reason in figures.whole:
            yield "", (("finished_reason", reason),), figures.whole[reason].count


def _latency(figures: ModelFigures) -> Iterable[_Sample]:
    return _classes(_together(figures, _FINISHED), WHOLE_VLLM)


def _together(figures: ModelFigures, endings: Iterable[str]) -> Histogram:
    """The times of requests that ended in any of these ways."""
    total = Histogram(WHOLE)
    for ending in endings:
        if ending in figures.whole:
            total.add(figures.whole[ending])
    return total


_VLLM: tuple[_Row, ...] = (
    ("vllm:num_requests_running", "gauge", "Answers that are on their way.", _value("running")),
    ("vllm:num_requests_waiting", "gauge", "Requests that wait.", _value("waiting")),
    ("vllm:prompt_tokens_total", "counter", "Input tokens.", _value("input.total")),
    ("vllm:generation_tokens_total", "counter", "Output tokens.", _value("output.total")),
    ("vllm:request_success_total", "counter", "Answers that are over.", _finish_counts),
    _times("vllm:time_to_first_token_seconds", _FIRST, "first", FIRST),
    _times("vllm:inter_token_latency_seconds", _BETWEEN, "between", BETWEEN),
    # The same, before vLLM 0.11.
    _times("vllm:time_per_output_token_seconds", _BETWEEN, "between", BETWEEN),
    _times("vllm:request_time_per_output_token_seconds", _MEAN, "per_token", BETWEEN),
    ("vllm:e2e_request_latency_seconds", "histogram", "Whole time.", _latency),
)


# OpenTelemetry: docs/gen-ai/gen-ai-metrics.md of its semantic conventions


def _otel(figures: Figures) -> Iterable[_Family]:
    return _families(_OTEL, [(_attributes(*key), each) for key, each in figures.models or Models()])


def _attributes(api: str, model: str) -> _Labels:
    address = PROTOCOLS.addresses[api]
    return (
        ("gen_ai_operation_name", address.task),
        ("gen_ai_provider_name", address.provider or api),
        ("gen_ai_request_model", model),
    )


def _durations(figures: ModelFigures) -> Iterator[_Sample]:
    yield from _classes(_together(figures, _COMPLETED), WHOLE_OTEL)
    for ending, seconds in figures.whole.items():
        if ending not in _COMPLETED:
            yield from _classes(seconds, WHOLE_OTEL, (("error_type", ending),))


def _usage(figures: ModelFigures) -> Iterator[_Sample]:
    yield from _classes(figures.input, TOKENS, (("gen_ai_token_type", "input"),))
    yield from _classes(figures.output, TOKENS, (("gen_ai_token_type", "output"),))


_OTEL: tuple[_Row, ...] = (
    ("gen_ai_server_request_duration_seconds", "histogram", "Whole time.", _durations),
    _times(
        "gen_ai_server_time_to_first_token_seconds", _FIRST, "first", FIRST[: FIRST.index(10.0) + 1]
    ),
    _times(
        "gen_ai_server_time_per_output_token_seconds",
        _MEAN,
        "per_token",
        BETWEEN[: BETWEEN.index(2.5) + 1],
    ),
    ("gen_ai_client_token_usage", "histogram", "Tokens of an answer.", _usage),
)

_FAMILIES: Mapping[MetricNames, Callable[[Figures], Iterable[_Family]]] = {
    "mockllm": _mockllm_families,
    "vllm": _vllm,
    "otel": _otel,
}
