"""Which turn answers a request for a route that calls no model, from the request and the session.

Of the scenarios whose route fits and whose conditions hold, those that were recorded from this very
request answer. If there are none, or an authored scenario has more conditions, the best fit of the
path answers, then the most conditions. The turns of the scenarios that are equally good are played
in order, and the last one repeats. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from mockllm.core.http import host_in, is_this_machine
from mockllm.core.record import record
from mockllm.core.text import display
from mockllm.play.matching.conditions import (
    JudgedCondition,
    first_problem,
    judged_body,
    judged_groups,
    judged_model,
    judged_values,
)
from mockllm.play.matching.fingerprint import form_fields, route_digest
from mockllm.play.matching.hidden import (
    HIDDEN_SEGMENT,
    body_text,
    hidden_tags,
    of_same_values,
    string_at,
    values_of_parameters,
)
from mockllm.play.matching.mismatch import NEAREST
from mockllm.play.matching.select import ambiguous, conditions_of
from mockllm.play.tapes.captured import Captured
from mockllm.scenario.model import Ignored, Match, Recorded, Scenario
from mockllm.scenario.precedence import is_recorded, precedence
from mockllm.scenario.route_model import RouteSpec
from mockllm.wire.protocols.route_matching import parse_query
from mockllm.wire.protocols.values import json_value


@dataclass(frozen=True)
class RouteRequest:
    """A request as it came.

    Args:
        path: as sent, without the query.
        query: as sent, without the `?`.
        headers: names in lower case.
        host: that the client means, as `RouteSpec` has it; "" where it does not say so, since it
            was given a base URL of ours.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""
    host: str = ""

    @classmethod
    def of_exchange(cls, exchange: Captured) -> RouteRequest:
        """The request of a recorded exchange."""
        parts = urlsplit(exchange.url)
        place = exchange.method, parts.path, parts.query
        headers = dict(exchange.request_headers)
        return cls(*place, headers, exchange.request_body, host_in(exchange.url))

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @cached_property
    def parameters(self) -> Mapping[str, str]:
        """The parameters of the query, the last value of each name."""
        return parse_query(self.query)

    @cached_property
    def fields(self) -> Any:
        """The body as a JSON value, of a form its fields; None for any other body."""
        value = json_value(self.body)  # first, since curl declares JSON as a form
        return form_fields(self.content_type, self.body) if value is None else value

    @cached_property
    def model(self) -> str:
        """The model that the body names; "" for none."""
        model = self.fields.get("model") if isinstance(self.fields, dict) else None
        return model if isinstance(model, str) else ""


def _conditions(fit: _Fit, request: RouteRequest) -> Iterator[JudgedCondition]:
    """Every condition of a route's `match`."""
    match = fit.scenario.match
    if match is None or match.anything:
        return
    yield from _judged_entry("match", match, request, request.model or fit.model)


def _judged_entry(
    path: str, match: Match, request: RouteRequest, model: str
) -> Iterator[JudgedCondition]:
    """The conditions of a route's `match`, or of an entry of its groups."""
    yield from judged_model(match, model, path)
    yield from judged_values(f"{path}.headers", "the header", match.headers, request.headers)
    yield from judged_values(f"{path}.query", "the parameter", match.query, request.parameters)
    if match.body is not None and request.fields is None:
        kind = display(request.content_type) if request.content_type else "no content type"
        problem = (
            f"{path}.body: the body must be JSON or a form, got {len(request.body)} bytes, {kind}"
        )
        yield JudgedCondition(f"{path}.body", match.body, None, (problem,))
    else:
        yield from judged_body(f"{path}.body", match.body, request.fields, match.ignore)
    judge = partial(_judged_entry, request=request, model=model)
    yield from judged_groups(path, match, judge)


OPENING = "WebSocket"
"""In place of a method: the request opens a WebSocket. Its routes answer no other request."""

_MOST_FOUND = 1024
"""How many paths are remembered with the scenarios that fit them."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}|\*")
_FREE = "/:@!$&'()*+,;=~"
"""Characters that a path has unquoted."""


@record
class _Fit:
    """A scenario whose route fits a path.

    Args:
        how: 2 for the whole path; 1 where the route is its end (`/v1/embeddings` for
            `/openai/v1/embeddings`); 0 where the path is the end of the route.
        exactness: of the route: the fewer placeholders, the higher.
        path: the part of the path that the route stands for, for digests.
        model: in the path, at `{model}`; "" for none.
    """

    scenario: Scenario
    how: int
    exactness: tuple[int, int, int]
    path: str
    model: str = ""

    @property
    def rank(self) -> tuple[int, tuple[int, int, int], bool, tuple[int, int], bool]:
        """The highest rank answers."""
        exactness = self.exactness if self.how else (0, 0, 0)
        route = self.scenario.route
        has_host = route is not None and bool(route.host)
        specificity = self.scenario.specificity
        return self.how, exactness, has_host, specificity, not is_recorded(self.scenario)


class RouteIndex:
    """The scenarios with a route, found by method and path."""

    def __init__(self, scenarios: Iterable[Scenario]) -> None:
        self._routes = [
            (
                RouteSpec(
                    OPENING if scenario.socket else route.method,
                    normal_path(route.path),
                    route.host,
                ),
                scenario,
            )
            for scenario in scenarios
            if (route := scenario.route) is not None
        ]
        self._found: dict[tuple[str, str, str], tuple[_Fit, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._routes)

    def fitting(self, method: str, path: str, host: str) -> tuple[_Fit, ...]:
        """The scenarios whose route fits, whatever their conditions are. A route with GET answers
        HEAD, too, where no route with HEAD does.

        Args:
            host: that of the request; "" where it is not known.
        """
        key = method, path, host
        fits = self._found.get(key)
        if fits is None:
            wanted = RouteSpec(method, normal_path(path), host)
            fits = tuple(self._fitting(wanted))
            if not fits and method == "HEAD":
                fits = tuple(self._fitting(replace(wanted, method="GET")))
            if len(self._found) >= _MOST_FOUND:
                self._found.clear()
            self._found[key] = fits
        return fits

    def fits_whole(self, method: str, path: str, host: str) -> bool:
        """Whether a route without placeholders is exactly this one."""
        normal = normal_path(path)
        routes = (fit.scenario.route for fit in self.fitting(method, path, host) if fit.how == 2)
        return any(route is not None and normal_path(route.path) == normal for route in routes)

    def _fitting(self, wanted: RouteSpec) -> list[_Fit]:
        fits = [
            (route.host, fit)
            for route, scenario in self._routes
            if route.method == wanted.method
            and (fit := _fit(scenario, route.path, wanted.path)) is not None
        ]
        own = [fit for host, fit in fits if host == wanted.host or not (host and wanted.host)]
        return own or [fit for host, fit in fits if _stands_in(host) or _stands_in(wanted.host)]

    def select(
        self, request: RouteRequest, named: str | None = None
    ) -> tuple[tuple[Scenario, int], ...]:
        """The turns that answer a request one after the other, each a scenario and an index; the
        last one repeats. Empty where no scenario answers.

        Args:
            named: the name of a scenario, which then answers if its route fits.
        """
        fits = self.fitting(request.method, request.path, request.host)
        chosen = [fit for fit in fits if fit.scenario.name == named]
        holding = chosen or [
            fit for fit in fits if first_problem(_conditions(fit, request)) is None
        ]
        if not holding:
            return ()
        best = max(holding, key=lambda fit: fit.rank)
        recorded = _recorded_from(request, holding)
        if recorded and not _overrides(best.scenario, recorded):
            return recorded
        equal = [fit.scenario for fit in holding if fit.rank == best.rank]
        if len(equal) > 1 and not is_recorded(equal[0]):
            raise ambiguous([scenario.name for scenario in equal], "route")
        equal.sort(key=precedence)
        return tuple(
            (scenario, index) for scenario in equal for index in range(len(scenario.turns))
        )

    def judge_conditions(
        self, request: RouteRequest
    ) -> Iterator[tuple[Scenario, list[JudgedCondition]]]:
        """The scenarios whose route fits, the best fit and then the nearest first, with each of
        their conditions."""
        fits = self.fitting(request.method, request.path, request.host)
        judged = [(fit, list(_conditions(fit, request))) for fit in fits]
        judged.sort(key=lambda pair: (-pair[0].how, _distance(pair[1])))
        return ((fit.scenario, conditions) for fit, conditions in judged)

    def explain(self, request: RouteRequest) -> str:
        """Why no scenario answers, in one line: the first failed condition of the nearest ones;
        "" where no route fits."""
        reasons = [
            f"{scenario.name}: {problem}"
            for scenario, judged in self.judge_conditions(request)
            if (problem := first_problem(judged)) is not None
        ]
        more = f"; and {len(reasons) - NEAREST} more" if len(reasons) > NEAREST else ""
        return "; ".join(reasons[:NEAREST]) + more


def _distance(judged: Iterable[JudgedCondition]) -> tuple[int, int]:
    """How far a request is from meeting conditions: what was not sent is farther than a wrong
    value."""
    failed = [condition.actual for condition in judged if not condition.met]
    return failed.count(None), len(failed)


_PORT = re.compile(r":\d+\Z")


def _stands_in(host: str) -> bool:
    """Whether a host is this machine: something stands there for a service, a gateway or a fake, in
    one run and not in the next."""
    return is_this_machine(_PORT.sub("", host))


def _overrides(best: Scenario, recorded: Sequence[tuple[Scenario, int]]) -> bool:
    """Whether an authored scenario has more conditions than the recordings of a request."""
    most = max(conditions_of(scenario) for scenario, _ in recorded)
    return not is_recorded(best) and conditions_of(best) > most


def _recorded_from(request: RouteRequest, fits: Sequence[_Fit]) -> tuple[tuple[Scenario, int], ...]:
    """The turns that were recorded from this very request, in the order of their recording, of the
    routes that fit best."""
    digests: dict[tuple[str, str, tuple[str, ...], Ignored], str] = {}
    same: list[_RecordedTurn] = []
    for fit in fits:
        route = fit.scenario.route
        assert route is not None
        path = _with_hidden_segments(route.path, fit.path)
        for index, turn in enumerate(fit.scenario.turns):
            recorded = turn.recorded
            if recorded is None or not recorded.request:
                continue
            key = (route.method, path, recorded.redacted, recorded.ignore)
            if key not in digests:
                form, body = request.content_type, request.body
                digests[key] = route_digest(*key[:2], request.query, form, body, *key[2:])
            if digests[key] == recorded.request:
                same.append(_RecordedTurn(fit, recorded, index))

    def has_values(turn: _RecordedTurn) -> bool:
        route, recorded = turn.fit.scenario.route, turn.recorded
        assert route is not None
        return hidden_tags(recorded.redacted, hidden_value_at(route, request)) == recorded.hidden

    turns = of_same_values(same, has_values)
    best = max((turn.fit.how for turn in turns), default=0)
    turns = [turn for turn in turns if turn.fit.how == best]
    turns.sort(key=lambda turn: (turn.recorded.order, precedence(turn.fit.scenario), turn.index))
    return tuple((turn.fit.scenario, turn.index) for turn in turns)


@record
class _RecordedTurn:
    """A turn that was recorded from a request, but for what is hidden of it."""

    fit: _Fit
    recorded: Recorded
    index: int


def hidden_value_at(route: RouteSpec, request: RouteRequest) -> Callable[[str], str | None]:
    """A function that gives the value of a request at a place that a recording hides; None where it
    has none there."""
    of_path, of_query = placeholder_values(route, request.path), values_of_parameters(request.query)

    def value_at(place: str) -> str | None:
        if place.startswith("{"):
            return of_path.get(place[1:-1])
        if not place and request.fields is None:
            return body_text(request.body)
        return of_query.get(place) if place[:1] == "?" else string_at(request.fields, place)

    return value_at


# Paths


def normal_path(path: str) -> str:
    """A path with the quoting that clients agree on; a quoted slash stays quoted."""
    if "%" not in path:
        return path
    return "%2F".join(quote(unquote(part), _FREE) for part in re.split("%2[fF]", path))


_HIDDEN = f"{{{HIDDEN_SEGMENT}"


def _with_hidden_segments(route: str, path: str) -> str:
    """A path with the placeholders of its route for the segments that a recording hides."""
    if _HIDDEN not in route:
        return path
    hidden, sent = route.split("/"), path.split("/")
    if len(hidden) != len(sent):  # somebody has written a `*`
        return path
    pairs = zip(hidden, sent, strict=True)
    return "/".join(name if name.startswith(_HIDDEN) else segment for name, segment in pairs)


def _fit(scenario: Scenario, route: str, path: str) -> _Fit | None:
    """The fit of a route to a path; None where it does not."""
    exactness = _exactness(route)
    if _PLACEHOLDER.search(route):
        match = route_path_pattern(route).fullmatch(path)
        if match is None:
            return None
        before, model = match["before"], unquote(match.groupdict().get("model") or "")
        return _Fit(scenario, 1 if before else 2, exactness, path[len(before) :], model)
    if path == route:
        return _Fit(scenario, 2, exactness, route)
    if len(route) > 1 and path.endswith(route):
        return _Fit(scenario, 1, exactness, route)
    return _Fit(scenario, 0, exactness, route) if path != "/" and route.endswith(path) else None


@lru_cache(maxsize=_MOST_FOUND)
def route_path_pattern(path: str) -> re.Pattern[str]:
    """The pattern of a route with placeholders, which are groups. What stands before the route is
    `before`; it is empty where the route begins with a placeholder."""
    parts: list[str] = []
    last = 0
    for placeholder in _PLACEHOLDER.finditer(path):
        parts.append(re.escape(path[last : placeholder.start()]))
        parts.append(_stands_for(placeholder[1]))
        last = placeholder.end()
    parts.append(re.escape(path[last:]))
    anywhere = not path.startswith(("/{", "/*"))
    return re.compile(rf"(?P<before>{'(?:/[^/]+)*?' if anywhere else ''})" + "".join(parts))


def _stands_for(name: str | None) -> str:
    """The pattern of a placeholder."""
    if name is None:
        return ".*"
    return f"(?P<{name}>[^/]+)" if name != "before" else "[^/]+"


def placeholder_values(route: RouteSpec, path: str) -> dict[str, str]:
    """The values in a path for the placeholders of its route, by their names."""
    match = route_path_pattern(normal_path(route.path)).fullmatch(normal_path(path))
    values = {} if match is None else match.groupdict()
    return {name: unquote(value) for name, value in values.items() if name != "before" and value}


def _exactness(path: str) -> tuple[int, int, int]:
    """The exactness of a route: the fewest `*`, then the fewest names, then the longest text."""
    names = len(re.findall(r"\{\w+\}", path))
    return -path.count("*"), -names, len(_PLACEHOLDER.sub("", path))
