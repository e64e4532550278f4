"""Latency of real services, from public measurements: `profiles.yaml` beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml

from mockllm.core.errors import UsageError
from mockllm.core.record import record
from mockllm.core.text import did_you_mean
from mockllm.scenario.latency_model import Latency
from mockllm.scenario.reading.latency import read_latency


@record
class Figure:
    """A value of a profile, as `--latency` has it, and what was measured."""

    key: str
    value: str
    measured: str


@record
class LatencyProfile:
    """The latency of one service, and the page that has the measurement of all its figures."""

    name: str
    title: str
    source: str
    date: str
    figures: tuple[Figure, ...]

    @property
    def latency(self) -> Latency:
        return read_latency(" ".join(f"{figure.key}={figure.value}" for figure in self.figures))


@cache
def profiles() -> Mapping[str, LatencyProfile]:
    """All profiles by their names."""
    table = files(__package__) / "profiles.yaml"
    return {
        name: LatencyProfile(
            name,
            fields.pop("title"),
            fields.pop("source"),
            fields.pop("date"),
            tuple(Figure(key, **figure) for key, figure in fields.items()),
        )
        for name, fields in yaml.safe_load(table.read_bytes()).items()
    }


def profile(name: str) -> LatencyProfile:
    """The profile with a name.

    Raises:
        UsageError: there is none.
    """
    known = profiles()
    if name not in known:
        hint = did_you_mean(name.lower(), known, f"there are: {', '.join(known)}")
        raise UsageError(f"there is no profile {name!r}; {hint}")
    return known[name]
