"""The reader of `job`, and the rules for it: how work goes on that a request only begins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mockllm.scenario import model as m
from mockllm.scenario.durations import read_duration
from mockllm.scenario.reading.nodes import KeyPath, Node, Scalar
from mockllm.scenario.reading.routes import answer, check_answer, route
from mockllm.scenario.reading.tables import table
from mockllm.scenario.reading.values import Findings, record
from mockllm.scenario.route_model import JobRoute, JobSpec, Pending, RouteAnswer

_POLLS = re.compile(r"([0-9]{1,9}) ?polls?")
_ID = "{id}"
_JOBS = "{jobs}"


def _pending(node: Node, findings: Findings) -> Pending | None:
    value = node.value if isinstance(node, Scalar) else ""
    polls = _POLLS.fullmatch(value)
    if polls is not None:
        return Pending(polls=int(polls[1]))
    try:
        return Pending(duration=read_duration(value))
    except ValueError:
        findings.must_be(node, "a number of polls such as '3 polls', or a duration such as '2s'")
        return None


_job_route = record(JobRoute, table("job_route", route=route, answer=answer))

job = record(
    JobSpec,
    table(
        "job",
        pending=_pending,
        poll=route,
        wait=answer,
        then=answer,
        result=_job_route,
        cancel=_job_route,
        delete=_job_route,
        list=_job_route,
    ),
)
"""Reads `job`."""


# Rules between values


def check_jobs(scenario: m.Scenario) -> Iterator[tuple[KeyPath, str]]:
    """The mistakes of a scenario that concern `job`."""
    for index, turn in enumerate(scenario.turns):
        if turn.job is None:
            continue
        path: KeyPath = ("turns", index, "job")
        if scenario.route is None:
            if not turn.reply and not turn.one_of:
                yield path, "needs a 'reply', which is what the job comes to"
            yield from _check_conversation(path, turn.job)
        elif turn.answer is not None:
            yield from _check_route(path, turn.answer, turn.job)


def _check_conversation(path: KeyPath, job: JobSpec) -> Iterator[tuple[KeyPath, str]]:
    for key in ("poll", "wait", "then", "result", "cancel", "delete", "list"):
        if getattr(job, key) is not None:
            message = "belongs to a turn of a route; here the API has its routes, and 'reply' is "
            yield (*path, key), f"{message}what the job comes to"


def _check_route(
    path: KeyPath, created: RouteAnswer, job: JobSpec
) -> Iterator[tuple[KeyPath, str]]:
    if job.expires:
        yield (*path, "expires"), "belongs to a conversation; write 'then' as it has expired"
    for key in ("poll", "then"):
        if getattr(job, key) is None:
            yield path, f"needs the key {key!r}, since its turn is one of a route"
    if _ID not in f"{created.value} {created.headers}":
        message = f"must have {_ID} somewhere, or no client knows which job it has to poll"
        yield (*path[:-1], "answer"), message
    for key in ("poll", "result", "cancel", "delete", "list"):
        written = getattr(job, key)
        route = written.route if isinstance(written, JobRoute) else written
        if route is not None and route.host:
            place = (*path, key) if route is written else (*path, key, "route")
            yield place, "has a host; a job is at that of its scenario, so leave it out"
    if job.poll is not None and _ID not in job.poll.path:
        yield (*path, "poll"), f"must have {_ID} in its path"
    for key in ("result", "cancel", "delete"):
        further: JobRoute | None = getattr(job, key)
        if further is not None and _ID not in further.route.path:
            yield (*path, key, "route"), f"must have {_ID} in its path"
    if job.list is not None and f"'{_JOBS}'" not in str(job.list.answer.value):
        yield (*path, "list", "answer"), f"must have the text {_JOBS} where the list of jobs stands"
    for key in ("wait", "then"):
        given: RouteAnswer | None = getattr(job, key)
        if given is not None:
            yield from check_answer((*path, key), given)
