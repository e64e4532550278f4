"""Hypothesis strategies for scenarios with a route that can be loaded."""

from __future__ import annotations

import base64
from dataclasses import replace

from hypothesis import strategies as st

from mockllm.scenario import model as m
from mockllm.scenario.reading.routes import METHODS
from mockllm.scenario.route_model import (
    CloseSpec,
    JobRoute,
    JobSpec,
    MessageSpec,
    RouteAnswer,
    RouteSpec,
)
from tests.scenario.strategies import (
    conditions,
    header_names,
    header_values,
    json_mappings,
    lines,
    pendings,
)
from tests.strategies import json_values, texts

_FRAMING = {
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "trailer",
}
_segments = st.from_regex(r"\A(?:[a-z0-9.:%_-]{1,6}|\*)\Z")


@st.composite
def routes(draw: st.DrawFn) -> RouteSpec:
    """A route with names and `*` in its path."""
    names = st.sampled_from(["{id}", "{model}", "{file_id}:copy"])
    found = draw(st.lists(_segments, min_size=1, max_size=4))
    found += draw(st.lists(names, max_size=2, unique=True))
    path = "/" + "/".join(draw(st.permutations(found)))
    own = path.startswith(("/_mockllm/", "/s/"))
    return RouteSpec(draw(st.sampled_from(METHODS)), f"/x{path}" if own else path)


def _bodies() -> st.SearchStrategy[tuple[str, object]]:
    return st.one_of(
        st.tuples(st.just("json"), json_values | st.none()),
        st.tuples(st.just("text"), texts),
        st.tuples(st.just("base64"), st.binary().map(lambda data: base64.b64encode(data).decode())),
        st.tuples(st.just("file"), st.sampled_from(["a.bin", "sub/speech.mp3"])),
        st.just(("", None)),
    )


@st.composite
def answers(draw: st.DrawFn) -> RouteAnswer:
    """An answer with any kind of body."""
    kind, value = draw(_bodies())
    statuses = st.integers(200, 599)
    status = draw(statuses.filter(lambda status: not kind or status not in (204, 304)))
    names = header_names.filter(lambda name: name not in _FRAMING)
    headers = tuple(draw(st.dictionaries(names, header_values, max_size=2)).items())
    return RouteAnswer(status, headers, kind, value)  # type: ignore[arg-type]


_of_jobs = st.from_regex(r"\A/[a-z0-9]{1,6}/\{id\}\Z").map(lambda path: RouteSpec("GET", path))


def _job_routes(answer: st.SearchStrategy[RouteAnswer]) -> st.SearchStrategy[JobRoute | None]:
    return st.none() | st.builds(JobRoute, _of_jobs, answer)


_jobs = st.builds(
    JobSpec,
    pending=pendings,
    poll=_of_jobs,
    wait=st.none() | answers(),
    then=answers(),
    result=_job_routes(answers()),
    cancel=_job_routes(answers()),
    delete=_job_routes(answers()),
    list=_job_routes(st.just(RouteAnswer(kind="json", value={"data": "{jobs}"}))),
)
_created = st.just(RouteAnswer(kind="json", value={"id": "job-{id}"}))

_pairs = st.dictionaries(texts, conditions, max_size=2).map(lambda found: tuple(found.items()))
route_matches = st.just(m.Match(anything=True)) | st.builds(
    m.Match,
    model=st.none() | lines.filter(lambda text: "[" not in text),
    headers=st.dictionaries(header_names, conditions, max_size=2).map(lambda d: tuple(d.items())),
    query=_pairs,
    body=st.none() | json_mappings,
).filter(lambda match: match != m.Match())

_timings = st.builds(m.Timing, ttft=st.integers(0, 10**7))

_encoded = st.binary().map(lambda data: base64.b64encode(data).decode())
_sized = st.sampled_from(["<0 bytes>", "<4800 bytes>", "<48000 bytes in 10 messages>"])
_closes = st.builds(
    CloseSpec,
    code=st.sampled_from([0, 1000, 1011, 4000]),
    reason=texts,
    how=st.sampled_from(["", "eof", "reset"]),
).map(lambda close: MessageSpec("close", close))
_messages = st.one_of(
    st.builds(MessageSpec, st.just("json"), json_mappings | st.lists(json_values | _sized)),
    st.builds(MessageSpec, st.just("text"), texts),
    st.builds(MessageSpec, st.just("base64"), _encoded | _sized),
)
_said = st.lists(_messages, max_size=3).map(tuple)


@st.composite
def _socket_turns(draw: st.DrawFn) -> m.TurnSpec:
    """A turn on a WebSocket, which may end the connection."""
    client, service = draw(_said), draw(_said)
    closes = () if client and not service else (draw(_closes),)
    if draw(st.booleans()) or not (client or service):
        return m.TurnSpec(client=client, service=(*service, *(closes or (draw(_closes),))))
    timing = draw(st.none() | st.builds(m.Timing, every=st.integers(0, 10**7)))
    return m.TurnSpec(client=client, service=service, timing=timing)


socket_scenarios = st.builds(
    m.Scenario,
    name=st.from_regex(r"\A[a-z0-9][a-z0-9-]{0,9}\Z"),
    route=routes().map(lambda route: replace(route, method="GET")),
    socket=st.sampled_from(["text", "binary"]),
    turns=st.lists(
        _socket_turns() | st.builds(m.TurnSpec, answer=answers()), min_size=1, max_size=3
    ).map(tuple),
)

route_scenarios = socket_scenarios | st.builds(
    m.Scenario,
    name=st.from_regex(r"\A[a-z0-9][a-z0-9-]{0,9}\Z"),
    description=st.just("") | lines,
    route=routes(),
    match=st.none() | route_matches,
    restart=st.booleans(),
    turns=st.lists(
        st.builds(m.TurnSpec, answer=answers(), timing=st.none() | _timings)
        | st.builds(m.TurnSpec, answer=_created, job=_jobs),
        min_size=1,
        max_size=3,
    ).map(tuple),
)
