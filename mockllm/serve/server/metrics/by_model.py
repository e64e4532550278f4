"""Figures of each model, for dashboards that know model servers.

The names of models come from clients. So these figures are counted only where they are asked for,
and only so many models have figures of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mockllm.serve.server.metrics.histogram import Histogram

if TYPE_CHECKING:
    from mockllm.play.replay.compilation.http_answer import Generated, HttpAnswer
    from mockllm.play.replay.sessions.exchange import Exchange

# The bounds of vLLM (vllm/v1/metrics/loggers.py) and of OpenTelemetry (semantic conventions for
# generative AI, metrics). Where both have bounds for a figure, it is counted with all of them.
FIRST = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
"""Of the time to the first token, in seconds; OpenTelemetry has those up to 10."""
BETWEEN = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5),
    *(5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
"""Of the time between tokens, in seconds; OpenTelemetry has those up to 2.5."""
# Of whole requests, in seconds.
WHOLE_VLLM = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
WHOLE_OTEL = tuple(2**step / 100 for step in range(14))
WHOLE = tuple(sorted({*WHOLE_VLLM, *WHOLE_OTEL}))
TOKENS = tuple(float(4**step) for step in range(14))
"""Of the tokens of an answer: those of OpenTelemetry."""

ABORT, ERROR = "abort", "error"

MOST_MODELS = 100
_LONGEST = 200
OTHER = "(other)"
"""Stands for all models beyond that number, and for names that are longer."""

Key = tuple[str, str]
"""API and model of a request."""


@dataclass(slots=True)
class ModelFigures:
    """The figures of one model.

    Args:
        running: the answers that are on their way.
        waiting: the requests that wait for a slot; known only of a server with one model.
        first: the time to the first token of streams that ended well, in seconds.
        between: the time between two writes of them.
        per_token: of each of them, the mean time for a token after the first.
        input, output: the tokens of each answer, as its usage has them.
        whole: the time of each request, by how it ended: `stop`, `length`, `abort` (the client
            left, or the answer broke off), `error` (in the stream), or a status that is an error.
    """

    running: int = 0
    waiting: int = 0
    first: Histogram = field(default_factory=partial(Histogram, FIRST))
    between: Histogram = field(default_factory=partial(Histogram, BETWEEN))
    per_token: Histogram = field(default_factory=partial(Histogram, BETWEEN))
    input: Histogram = field(default_factory=partial(Histogram, TOKENS))
    output: Histogram = field(default_factory=partial(Histogram, TOKENS))
    whole: dict[str, Histogram] = field(default_factory=dict)

    def note_stream(self, made: Generated, whole: float, writes: Sequence[float]) -> None:
        """Counts the times of a stream that ended well.

        Args:
            whole: the time of its request.
            writes: as of `content_writes`; () for one that was sent at once.
        """
        rest = writes[-1] - writes[0] if writes else 0.0
        self.first.note(whole - rest)  # with what the request waited before its answer started
        for one, other in pairwise(writes):
            self.between.note(other - one)
        if made.usage.output > 1:
            self.per_token.note(rest / (made.usage.output - 1))

    def add(self, other: ModelFigures) -> None:
        self.running += other.running
        for name in _SINGLE:
            getattr(self, name).add(getattr(other, name))
        for ending, histogram in other.whole.items():
            self.whole.setdefault(ending, Histogram(WHOLE)).add(histogram)

    def as_json(self) -> dict[str, Any]:
        whole = {ending: one.as_json() for ending, one in self.whole.items()}
        single = {name: getattr(self, name).as_json() for name in _SINGLE}
        return {"running": self.running, "whole": whole, **single}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ModelFigures:
        whole = {ending: Histogram(WHOLE, *own) for ending, own in value["whole"].items()}
        single: Any = {name: Histogram(bounds, *value[name]) for name, bounds in _SINGLE.items()}
        return cls(value["running"], whole=whole, **single)


_SINGLE = {
    "first": FIRST,
    "between": BETWEEN,
    "per_token": BETWEEN,
    "input": TOKENS,
    "output": TOKENS,
}


class Models:
    """The figures of each model in one server process."""

    def __init__(self, figures: Iterable[tuple[Key, ModelFigures]] = ()) -> None:
        self._figures = dict(figures)

    def __iter__(self) -> Iterator[tuple[Key, ModelFigures]]:
        return iter(self._figures.items())

    def _of(self, exchange: Exchange) -> ModelFigures:
        api, model = exchange.played.api or "", exchange.played.model or ""
        if len(model) > _LONGEST or (
            len(self._figures) >= MOST_MODELS and (api, model) not in self._figures
        ):
            model = OTHER
        return self._figures.setdefault((api, model), ModelFigures())

    def begin(self, exchange: Exchange) -> None:
        """Counts an answer that is on its way, until its `end`."""
        self._of(exchange).running += 1

    def end(self, exchange: Exchange) -> None:
        self._of(exchange).running -= 1

    def note(self, exchange: Exchange, answer: HttpAnswer, writes: Sequence[float]) -> None:
        """Counts an answer that is over; one that no model would have made is not counted."""
        made, sent, status = answer.generated, exchange.sent, exchange.status
        if exchange.played.model is None or (made is None and status < 400):
            return
        figures = self._of(exchange)
        ending = _ending(exchange, made)
        # The writes count from when the request came; the process may have read it later.
        whole = max(sent.duration, writes[-1] if writes else 0.0)
        figures.whole.setdefault(ending, Histogram(WHOLE)).note(whole)
        if made is None or status >= 400:
            return
        figures.input.note(made.usage.input)
        figures.output.note(made.usage.output)
        if answer.streamed and ending not in (ABORT, ERROR) and answer.fault is None:
            figures.note_stream(made, whole, writes)

    def add(self, other: Models) -> None:
        for key, figures in other:
            mine = self._figures.setdefault(key, ModelFigures())
            mine.add(figures)

    def as_json(self) -> list[Any]:
        return [[*key, figures.as_json()] for key, figures in self]

    @classmethod
    def from_json(cls, value: list[Any]) -> Models:
        return cls(((api, model), ModelFigures.from_json(own)) for api, model, own in value)


def _ending(exchange: Exchange, made: Generated | None) -> str:
    if exchange.status >= 400 or made is None:
        return str(exchange.status)
    if exchange.broken_off or not exchange.sent.complete:
        return ABORT
    if made.failed:
        return ERROR
    return "length" if made.finish == "length" else "stop"
