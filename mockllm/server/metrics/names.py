"""Under which names the figures are shown: mockllm's own, those of vLLM, or those of the
conventions of OpenTelemetry for generative AI.

The names of OpenTelemetry are as its exporters for Prometheus write them: `_` for `.`, and the unit
at the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from mockllm.protocols import PROTOCOLS
from mockllm.server.metrics.by_model import (
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
from mockllm.server.metrics.figures import Figures
from mockllm.server.metrics.histogram import Histogram
from mockllm.server.metrics.text import (
    Family,
    Labels,
    Sample,
    classes,
    one,
    own_families,
    written,
)
from mockllm.server.options import MetricNames


def render(figures: Figures, names: Sequence[MetricNames] = ("mockllm",)) -> bytes:
    """The figures as text, under each of these names."""
    return written(family for name in names for family in _FAMILIES[name](figures))


_Row = tuple[
    str, Literal["counter", "gauge", "histogram"], str, Callable[[ModelFigures], Iterable[Sample]]
]
"""Name, kind and meaning of a family, and its samples of one model."""


def _families(
    rows: Sequence[_Row], models: Iterable[tuple[Labels, ModelFigures]]
) -> Iterator[Family]:
    models = list(models)
    for name, kind, meaning, samples_of in rows:
        samples = [
            (suffix, (*labels, *more), value)
            for labels, own in models
            for suffix, more, value in samples_of(own)
        ]
        yield Family(name, kind, meaning, samples)


# vLLM: vllm/v1/metrics/loggers.py


def _vllm(figures: Figures) -> Iterable[Family]:
    models: dict[str, ModelFigures] = defaultdict(ModelFigures)
    for (_, name), own in figures.models or Models():
        models[name].add(own)
    # A request that waits has not been read yet.
    where = next(iter(models)) if len(models) == 1 else OTHER
    if figures.waiting:
        models[where].waiting = figures.waiting
    labelled = [((("model_name", name), ("engine", "0")), own) for name, own in models.items()]
    return _families(_VLLM, labelled)


_WELL = ("stop", "length")
_FINISHED = (*_WELL, ABORT, ERROR)
"""How an answer ends that a model began; other requests were refused before."""


def _finished(own: ModelFigures) -> Iterator[Sample]:
    for reason in _FINISHED:
        if reason in own.whole:
            yield "", (("finished_reason", reason),), own.whole[reason].count


def _latency(own: ModelFigures) -> Iterable[Sample]:
    return classes(_together(own, _FINISHED), WHOLE_VLLM)


def _together(own: ModelFigures, endings: Iterable[str]) -> Histogram:
    """The times of requests that ended in any of these ways."""
    total = Histogram(WHOLE)
    for ending in endings:
        if ending in own.whole:
            total.add(own.whole[ending])
    return total


_BETWEEN = "Time between two writes of a stream."

_VLLM: tuple[_Row, ...] = (
    (
        "vllm:num_requests_running",
        "gauge",
        "Answers that are on their way.",
        lambda own: one(own.running),
    ),
    (
        "vllm:num_requests_waiting",
        "gauge",
        "Requests that wait.",
        lambda own: one(own.waiting),
    ),
    (
        "vllm:prompt_tokens_total",
        "counter",
        "Input tokens.",
        lambda own: one(own.input.total),
    ),
    (
        "vllm:generation_tokens_total",
        "counter",
        "Output tokens.",
        lambda own: one(own.output.total),
    ),
    ("vllm:request_success_total", "counter", "Answers that are over.", _finished),
    (
        "vllm:time_to_first_token_seconds",
        "histogram",
        "Time to the first event with content.",
        lambda own: classes(own.first, FIRST),
    ),
    (
        "vllm:inter_token_latency_seconds",
        "histogram",
        _BETWEEN,
        lambda own: classes(own.between, BETWEEN),
    ),
    (
        "vllm:time_per_output_token_seconds",  # the same, before vLLM 0.11
        "histogram",
        _BETWEEN,
        lambda own: classes(own.between, BETWEEN),
    ),
    (
        "vllm:request_time_per_output_token_seconds",
        "histogram",
        "Mean time of a token after the first, for each stream.",
        lambda own: classes(own.per_token, BETWEEN),
    ),
    ("vllm:e2e_request_latency_seconds", "histogram", "Whole time.", _latency),
)


# OpenTelemetry: docs/gen-ai/gen-ai-metrics.md of its semantic conventions


def _otel(figures: Figures) -> Iterable[Family]:
    return _families(_OTEL, [(_attributes(*key), own) for key, own in figures.models or Models()])


def _attributes(api: str, model: str) -> Labels:
    address = PROTOCOLS.addresses[api]
    return (
        ("gen_ai_operation_name", address.task),
        ("gen_ai_provider_name", address.provider or api),
        ("gen_ai_request_model", model),
    )


def _durations(own: ModelFigures) -> Iterator[Sample]:
    yield from classes(_together(own, _WELL), WHOLE_OTEL)
    for ending, seconds in own.whole.items():
        if ending not in _WELL:
            yield from classes(seconds, WHOLE_OTEL, (("error_type", ending),))


def _usage(own: ModelFigures) -> Iterator[Sample]:
    yield from classes(own.input, TOKENS, (("gen_ai_token_type", "input"),))
    yield from classes(own.output, TOKENS, (("gen_ai_token_type", "output"),))


_OTEL: tuple[_Row, ...] = (
    ("gen_ai_server_request_duration_seconds", "histogram", "Whole time.", _durations),
    (
        "gen_ai_server_time_to_first_token_seconds",
        "histogram",
        "Time to the first event with content.",
        lambda own: classes(own.first, FIRST[: FIRST.index(10.0) + 1]),
    ),
    (
        "gen_ai_server_time_per_output_token_seconds",
        "histogram",
        "Mean time of a token after the first, for each stream.",
        lambda own: classes(own.per_token, BETWEEN[: BETWEEN.index(2.5) + 1]),
    ),
    ("gen_ai_client_token_usage", "histogram", "Tokens of an answer.", _usage),
)

_FAMILIES: Mapping[MetricNames, Callable[[Figures], Iterable[Family]]] = {
    "mockllm": own_families,
    "vllm": _vllm,
    "otel": _otel,
}
