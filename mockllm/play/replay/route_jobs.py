"""Jobs that scenarios with a `route` describe: creation, polls, results, cancellation, lists.

The id of a job is derived from the number of the jobs that the scenario made in the session before.
It stands wherever the scenario has `{id}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal, get_args

from mockllm.core.errors import RequestError
from mockllm.core.http import TimedBytes
from mockllm.core.record import record
from mockllm.core.seeded import derive
from mockllm.play.matching.route_selection import RouteRequest, normal_path, route_path_pattern
from mockllm.play.replay.call import Answered
from mockllm.play.replay.compilation.http_answer import HttpAnswer, bytes_answer
from mockllm.play.replay.jobs import JobProgress, delete_job, is_deleted
from mockllm.play.replay.sessions.exchange import Exchange, Played
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario
from mockllm.scenario.route_model import JobRoute, JobSpec, RouteAnswer, RouteSpec

_ID = "{id}"
_JOBS = b'"{jobs}"'

MakeAnswer = Callable[[Scenario, int, RouteAnswer, str], HttpAnswer]
"""The HTTP answer that is written in a turn of a scenario, under some key."""

JobAction = Literal["poll", "result", "cancel", "delete", "list"]
"""What a route of a job is for; each is a key of `job`."""


@record
class JobFit:
    """A route of a job, and of which one where it fits a path.

    Args:
        turn: the index of the turn that makes such jobs.
        id: what stands at `{id}` in the path; "" for a list, and before a path is compared.
    """

    scenario: Scenario
    turn: int
    action: JobAction
    id: str = ""

    @property
    def job(self) -> JobSpec:
        """The job as it is written."""
        job = self.scenario.turns[self.turn].job
        assert job is not None
        return job


class RouteJobs:
    """The jobs of some scenarios.

    Args:
        speed: of the times for which jobs are pending.
    """

    def __init__(self, scenarios: Iterable[Scenario], make: MakeAnswer, speed: float) -> None:
        self._routes: list[tuple[str, re.Pattern[str], JobFit]] = [
            (
                route.method,
                route_path_pattern(normal_path(route.path)),
                JobFit(scenario, turn, action),
            )
            for scenario in scenarios
            for turn, spec in enumerate(scenario.turns)
            if scenario.route is not None and spec.job is not None
            for action, route in _routes(spec.job)
        ]
        self._make, self._speed = make, speed

    def fits(self, method: str, path: str) -> bool:
        """Whether a route of a job fits."""
        return next(self._fitting(method, path), None) is not None

    def _fitting(self, method: str, path: str) -> Iterator[JobFit]:
        """The jobs that a request may be about; whether they exist is not known here."""
        if not self._routes:
            return
        path = normal_path(path)
        for own_method, pattern, fit in self._routes:
            match = pattern.fullmatch(path) if own_method == method else None
            if match is not None:
                yield replace(fit, id=match.groupdict().get("id") or "")

    def create(
        self, answered: Answered, scenario: Scenario, written: RouteAnswer, session: Session
    ) -> Answered:
        """The answer to a request that makes a job, with the id of that."""
        id = _job_id(scenario, session.add_to(_counter(scenario)))
        answer = _with_id(answered.answer, written, id)
        return Answered(answer, replace(answered.played, answer_id=_key(id), begins=True))

    def play(self, request: RouteRequest, session: Session, now: float) -> Answered | None:
        """The answer to a request about a job; None where there is no such job.

        Raises:
            RequestError: its result is requested before it is done.
        """
        for fit in self._fitting(request.method, request.path):
            if fit.action == "list":
                return self._list(fit, session, now)
            created = _find_creation(fit, session)
            if created is not None:
                return self._answer(fit, created, session, now)
        return None

    def missing(self, method: str, path: str) -> str:
        """Why there is no answer to a request about a job; "" for one that is about none."""
        for fit in self._fitting(method, path):
            if fit.action != "list":
                route = fit.scenario.route
                return (
                    f"there is no job {fit.id!r} in this session; {route} makes jobs of the "
                    f"scenario {fit.scenario.name}"
                )
        return ""

    def _answer(self, fit: JobFit, created: Exchange, session: Session, now: float) -> Answered:
        job, key = fit.job, _key(fit.id)
        progress = JobProgress(session, key, created, job.pending, now, self._speed)
        if fit.action == "delete":
            delete_job(session, key)
            return self._show(fit, "delete", key)
        state = progress.cancel() if fit.action == "cancel" else None
        state = state or progress.state(polled=fit.action == "poll")
        if fit.action == "result":
            if state != "done":
                reason = "was cancelled" if state == "cancelled" else "is not done yet"
                raise RequestError(f"The job {fit.id!r} {reason}.", status=404)
            return self._show(fit, "result", key)
        if state == "cancelled":
            return self._show(fit, "cancel", key)
        if state == "done":
            return self._show(fit, "then", *([key] if job.result is None else []))
        return self._show(fit, "answer" if job.wait is None else "wait")

    def _show(self, fit: JobFit, key: str, *settled: str) -> Answered:
        """The answer that a key of the job has, or of the turn: `answer`; with the keys of the jobs
        of which the client has all that it will get."""
        turn = fit.scenario.turns[fit.turn]
        found: Any = turn.answer if key == "answer" else getattr(turn.job, key)
        written: RouteAnswer = found.answer if isinstance(found, JobRoute) else found
        answer = _with_id(self._make(fit.scenario, fit.turn, written, key), written, fit.id)
        is_error = answer.status >= 400
        settled += (_key(fit.id),) if is_error else ()
        known = Played(
            "error" if is_error else "played",
            answer.status,
            cause="scenario" if is_error else "",
            scenario=fit.scenario.name,
            turn=fit.turn,
            settles=settled,
        )
        return Answered(answer, known)

    def _list(self, fit: JobFit, session: Session, now: float) -> Answered:
        """All jobs of a scenario, the latest first, each as a poll would get it."""
        bodies: list[bytes] = []
        settled: list[str] = []
        for number in reversed(range(session.add_to(_counter(fit.scenario), 0))):
            listed_fit = replace(fit, action="result", id=_job_id(fit.scenario, number))
            created = _find_creation(listed_fit, session)
            if created is not None:
                listed = self._answer(replace(listed_fit, action="list"), created, session, now)
                bodies.append(b"".join(listed.answer.data))
                settled += listed.played.settles
        shown = self._show(fit, "list", *settled)
        body = b"".join(shown.answer.data).replace(_JOBS, b"[%b]" % b",".join(bodies))
        return Answered(_with_body(shown.answer, body), shown.played)


def _routes(job: JobSpec) -> Iterator[tuple[JobAction, RouteSpec]]:
    if job.poll is not None:
        yield "poll", job.poll
    for action in get_args(JobAction)[1:]:
        further = getattr(job, action)
        if further is not None:
            yield action, further.route


def _counter(scenario: Scenario) -> str:
    return f"jobs of {scenario.name}"


def _job_id(scenario: Scenario, number: int) -> str:
    return derive(scenario.seeded, scenario.name, "job", number)


def _key(id: str) -> str:
    """The id by which the session finds the request that made a job."""
    return f"job {id}"


def _find_creation(fit: JobFit, session: Session) -> Exchange | None:
    """The request that made the job; None where there is none, or it is deleted."""
    key = _key(fit.id)
    if is_deleted(session, key):
        return None
    created = session.answer(key)
    if created is None or (created.scenario, created.turn) != (fit.scenario.name, fit.turn):
        return None
    return created


def _with_id(answer: HttpAnswer, written: RouteAnswer, id: str) -> HttpAnswer:
    headers = tuple((name, value.replace(_ID, id)) for name, value in answer.headers)
    body = b"".join(answer.data)
    if written.kind in ("json", "text"):
        body = body.replace(_ID.encode(), id.encode())
    return _with_body(replace(answer, headers=headers), body)


def _with_body(answer: HttpAnswer, body: bytes) -> HttpAnswer:
    parts = [TimedBytes(answer.times[0] if answer.times else 0, body)] if body else []
    status, headers, bodiless = answer.status, answer.headers, answer.bodiless
    return bytes_answer(status, headers, parts, streamed=False, bodiless=bodiless)
