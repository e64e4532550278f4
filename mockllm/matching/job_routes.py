"""Which job a request is about, of the scenarios whose turns have a `job` with routes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, get_args

from mockllm.core.record import record
from mockllm.matching.routes import normal_path, route_path_pattern
from mockllm.scenario.model import Scenario
from mockllm.scenario.route_model import JobSpec, RouteSpec

JobAction = Literal["poll", "result", "cancel", "delete", "list"]
"""What a route of a job is for; each is a key of `job`."""


@record
class JobFit:
    """A route of a job that fits a path.

    Args:
        turn: the index of the turn that makes such jobs.
        id: what stands at `{id}`; "" for a list.
    """

    scenario: Scenario
    turn: int
    action: JobAction
    id: str

    @property
    def job(self) -> JobSpec:
        """The job as it is written."""
        job = self.scenario.turns[self.turn].job
        assert job is not None
        return job


@record
class _JobPattern:
    method: str
    path: re.Pattern[str]
    scenario: Scenario
    turn: int
    action: JobAction


class JobIndex:
    """The routes of all jobs, found by method and path."""

    def __init__(self, scenarios: Iterable[Scenario]) -> None:
        self._patterns = [
            _JobPattern(
                route.method, route_path_pattern(normal_path(route.path)), scenario, turn, action
            )
            for scenario in scenarios
            for turn, spec in enumerate(scenario.turns)
            if scenario.route is not None and spec.job is not None
            for action, route in _routes(spec.job)
        ]

    def fitting(self, method: str, path: str) -> Iterator[JobFit]:
        """The jobs that a request may be about; whether they exist is not known here."""
        if not self._patterns:
            return
        path = normal_path(path)
        for pattern in self._patterns:
            match = pattern.path.fullmatch(path) if pattern.method == method else None
            if match is not None:
                id = match.groupdict().get("id") or ""
                yield JobFit(pattern.scenario, pattern.turn, pattern.action, id)


def _routes(job: JobSpec) -> Iterator[tuple[JobAction, RouteSpec]]:
    if job.poll is not None:
        yield "poll", job.poll
    for action in get_args(JobAction)[1:]:
        further = getattr(job, action)
        if further is not None:
            yield action, further.route
