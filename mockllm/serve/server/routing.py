"""Paths to operations: one table made from PROTOCOLS and `--path`, and what answers other paths.

Services put prefixes before the paths of an API (`/api/v1/chat/completions`), so a path that is not
in the table is known by its end. A route that calls no model and that no scenario answers gets what
follows from the request alone (`--fallback auto`), or an error.

`--path API=TEMPLATE` adds a path, checked against all others. `{name}` in a template is one segment
of the path. An API may have parameters whose values its service makes (`Address.creates`), such as
the ids of a thread and a run. Where a template ends in them, a POST to the path before them answers
with new ones.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from mockllm.core.errors import NoMatchError, RequestError, UsageError
from mockllm.core.http import NO_TARGET, Target
from mockllm.core.record import record
from mockllm.core.text import common_length, did_you_mean
from mockllm.play.agents.auxiliary import auxiliary_route
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.call import Answered, refuse
from mockllm.play.replay.compilation.http_answer import bytes_answer
from mockllm.play.replay.lookups import find_fallback
from mockllm.play.replay.player import Player
from mockllm.play.replay.request_headers import FAULT_HEADER
from mockllm.play.replay.sessions.exchange import Played
from mockllm.serve.server.http.request_reading import Arrival
from mockllm.wire.protocols import Protocols
from mockllm.wire.protocols.base import Address, Operation, Route, WireProtocol
from mockllm.wire.protocols.route_matching import (
    detect,
    detected_target,
    is_other_model,
    path_target,
    route_pattern,
)

if TYPE_CHECKING:
    from mockllm.play.replay.service_jobs import ObjectEndpoint

NO_ROUTES: Mapping[str, tuple[Route, ...]] = {}

_CLOSE = 0.85
"""How similar a path must be to a known one of its method, for the error to name that one."""

_MOST_FOUND = 1024
"""How many paths of POST requests that are not in the table are remembered, also those that lead to
nothing. The dictionary is cleared when it is full: it is read for each request, and an LRU cache
takes more than twice the time."""


@record
class Endpoint:
    """The operation that answers a request, and what its path says; the query is not part of it."""

    protocol: WireProtocol
    operation: Operation
    target: Target = NO_TARGET


@record
class _Rule:
    method: str
    pattern: re.Pattern[str]
    header: str | None
    api: str
    operation: Operation


class Routes:
    """Finds the endpoint for a method and a path."""

    def __init__(
        self, protocols: Protocols, further: Mapping[str, tuple[Route, ...]] = NO_ROUTES
    ) -> None:
        self._protocols = protocols
        self._further = further
        self._exact: dict[tuple[str, str], tuple[str, Operation]] = {}
        self._rules: list[_Rule] = []
        self._found: dict[tuple[str, str, tuple[str, ...]], Endpoint | None] = {}
        self._marks: dict[str, str] = {}
        self._longest = 0
        for api in protocols:
            self._marks |= dict.fromkeys(protocols.addresses[api].marks, api)
            for route in self._routes(api):
                self._longest = max(self._longest, route.path.count("/"))
                self._add(api, route)
        # What asks for a header goes before what takes anybody.
        self._rules.sort(key=lambda rule: rule.header is None)
        self._deciding = {rule.header for rule in self._rules if rule.header is not None}

    def _routes(self, api: str) -> tuple[Route, ...]:
        return (*self._protocols.addresses[api].routes, *self._further.get(api, ()))

    def _add(self, api: str, route: Route) -> None:
        if "{" in route.path or route.header is not None:
            pattern = route_pattern(route.path)
            self._rules.append(_Rule(route.method, pattern, route.header, api, route.operation))
        else:
            self._exact.setdefault((route.method, route.path), (api, route.operation))

    def find(self, method: str, path: str, headers: Container[str] = ()) -> Endpoint | None:
        """The endpoint; None where the path, or this method of it, is not known.

        Args:
            path: as it was sent: a quoted slash is part of a name.
            headers: the names of the request's headers, in lower case.
        """
        found = self._find(method, path, headers)
        # Several services have files and batches at the same paths; what else they have, they have
        # at paths of their own, or with a header in the table.
        if found is None or found.operation not in found.protocol.jobs:
            return found
        owner = self.owner(headers)
        if owner in (None, found.protocol.name):
            return found
        return self._by_path(method, path, headers, owner)

    def owner(self, headers: Container[str]) -> str | None:
        """The API whose client sends a request, where its headers say so."""
        return next((api for mark, api in self._marks.items() if mark in headers), None)

    def _find(self, method: str, path: str, headers: Container[str]) -> Endpoint | None:
        deciding = tuple(header for header in self._deciding if header in headers)
        key = method, path, deciding
        if key not in self._found:
            if len(self._found) >= _MOST_FOUND:
                self._found.clear()
            self._found[key] = self._by_path(method, path, deciding) or self._by_end(
                method, path, deciding
            )
        return self._found[key]

    def _by_path(
        self, method: str, path: str, headers: Container[str], owner: str | None = None
    ) -> Endpoint | None:
        """The endpoint of the table for a path: rules with a header go before exact paths, and
        these before other rules.

        Args:
            owner: the API that it must be of; None: any.
        """
        exact = self._exact.get((method, path))
        if exact is not None and owner not in (None, exact[0]):
            exact = None
        for rule in self._rules:
            if rule.method != method or (rule.header is not None and rule.header not in headers):
                continue
            match = rule.pattern.fullmatch(path) if owner in (None, rule.api) else None
            if match is None or (rule.header is None and exact is not None):
                continue
            target = path_target(match)
            if rule.operation == "generate" and is_other_model(
                self._protocols.addresses[rule.api], target
            ):
                continue
            return Endpoint(self._protocols[rule.api], rule.operation, target)
        return None if exact is None else Endpoint(self._protocols[exact[0]], exact[1])

    def _by_end(self, method: str, path: str, headers: Container[str]) -> Endpoint | None:
        """The endpoint that the end of a path leads to: the paths of requests for an answer are
        those by which recordings are recognised, the others those of the table. Other services
        have files and batches, too, so that their paths have to be whole."""
        generating = self._generating(method, path)
        if generating is not None:
            return generating
        for end in _ends(path, self._longest):
            found = self._by_path(method, end, headers)
            if found is None or found.operation in ("generate", "create"):
                continue
            if found.operation not in found.protocol.jobs:
                return found
        return None

    def _generating(self, method: str, path: str) -> Endpoint | None:
        for api, address in self._protocols.addresses.items():
            target = detected_target(address, path) if address.method == method else None
            if target is not None:
                return Endpoint(self._protocols[api], "generate", target)
        return None

    def methods(self, path: str, headers: Container[str] = ()) -> list[str]:
        """The methods that a path is known for, to a client that sends these headers."""
        methods = ("GET", "POST", "DELETE")
        if self.owner(headers) is not None:
            return [method for method in methods if self.find(method, path, headers)]
        return [method for method in methods if self._find(method, path, self._deciding)]

    def nearest(self, path: str, headers: Container[str] = ()) -> WireProtocol:
        """The protocol whose shape an error for this path should have: that of the client, or else
        the one with the longest common beginning."""
        owner = self.owner(headers)
        if owner is not None:
            return self._protocols[owner]
        # A model of another vendor is called at a path of Bedrock, not of Anthropic.
        apis = [api for api in self._protocols if not self._names_other_model(api, path)]

        def common(api: str) -> int:
            return max(common_length(route.path, path) for route in self._routes(api))

        return self._protocols[max(apis, key=common)]

    def _names_other_model(self, api: str, path: str) -> bool:
        address = self._protocols.addresses[api]
        found = [match for pattern in address.paths if (match := pattern.search(path))]
        return any(is_other_model(address, path_target(match)) for match in found)

    def not_allowed(
        self, method: str, path: str, headers: Container[str] = ()
    ) -> tuple[RequestError, str] | None:
        """The error for another method than those of a path, and the `allow` header; None for a
        path that no method has."""
        methods = self.methods(path, headers)
        if not methods:
            return None
        allowed = ", ".join(methods)
        message = f"Not allowed to {method} on {path}; this path takes {allowed}."
        return RequestError(message, status=405), allowed

    def unknown(self, method: str, path: str, body: bytes, owner: str | None) -> RequestError:
        """The error for a route that nothing answers, in one line.

        Args:
            owner: the API whose client sends the request, where its headers say so.
        """
        known = [
            f"{method} {route.path}"
            for api in ([owner] if owner is not None else self._protocols)
            for route in self._routes(api)
            if route.method == method
        ]
        near = get_close_matches(f"{method} {path}", known, n=1, cutoff=_CLOSE)
        message = (
            f"mockllm knows no route {method} {path}: {_hint(method, path, body, owner)}. "
            f"{f'Did you mean {near[0]}? ' if near else ''}"
            f"To answer it, add a scenario with 'route: {method} {path}', or record it."
        )
        return RequestError(message, status=404, code="unknown_url")


def _is_answered_by_fallback(method: str, path: str, owner: str | None) -> bool:
    from mockllm.play.replay.service_jobs import find_place  # few requests need it

    fallback = find_fallback(method, path, owner)
    return fallback is not None or find_place(method, path, owner) is not None


def _hint(method: str, path: str, body: bytes, owner: str | None) -> str:
    """A hint at why nothing answers a route."""
    if _is_answered_by_fallback(method, path, owner):
        return (
            "no scenario has it, and --fallback auto would answer it, in pytest "
            "mockllm_session.use('auto')"
        )
    found = detect(method, path, body)
    if found.protocol is not None:
        address = found.protocol.address
        name, served = address.name, address.routes[0].path
        return (
            f"the body is a request of {address.title}, which is served at {served} (start "
            f"the server with --path {name}={path} to serve it here, too)"
        )
    return f"no scenario has it, and {found.reason}"


def _ends(path: str, most: int) -> Iterator[str]:
    """The shorter ends of a path, the longest first, of at most `most` segments."""
    segments = path.split("/")
    for size in range(min(most, len(segments) - 2), 0, -1):
        yield "/" + "/".join(segments[-size:])


class PlainRoutes:
    """Answers routes that call no model."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    def has(self, player: Player, arrival: Arrival, endpoint: Endpoint | None) -> bool:
        """Whether scenarios may answer a request. A path of a model's answers belongs to a scenario
        only if that has exactly this path as its route."""
        if not player.has_routes:
            return False
        place = arrival.method, arrival.path, arrival.host
        if endpoint is not None and endpoint.operation == "generate":
            return player.routes.index.fits_whole(*place)
        return player.routes.fits(*place)

    def without_faults(self, answered: Answered, headers: Mapping[str, str]) -> Answered:
        """The answer of a route; faults that its request asks for cannot strike."""
        if FAULT_HEADER not in headers:
            return answered
        return replace(answered, played=replace(answered.played, missed="the route calls no model"))

    def find_object(self, player: Player, request: RouteRequest) -> ObjectEndpoint | None:
        """The objects that a request is about; None where it is about none, and without the
        fallback."""
        if not player.fallback:
            return None
        from mockllm.play.replay.service_jobs import find_place  # few servers need it

        return find_place(request.method, request.path, self._routes.owner(request.headers))

    def answer_unmatched(self, player: Player, request: RouteRequest) -> Answered:
        """The answer to a request that no scenario answers, and that is for no path of an API."""
        method, path, headers = request.method, request.path, request.headers
        beside = auxiliary_route(method, path, request.host)
        if beside is not None:
            answer = bytes_answer(beside.status, (), (), streamed=False)
            name = f"{beside.agent} route"
            return Answered(answer, Played("auxiliary", beside.status, auxiliary=name))
        owner = self._routes.owner(headers)
        fallback = find_fallback(method, path, owner)
        if player.fallback and fallback is not None:
            known = Played(api=fallback.protocol.name, model=request.model or None)
            try:
                answer = fallback.answer(request)
            except RequestError as error:
                return refuse(fallback.protocol, error, known)
            return Answered(answer, replace(known, outcome="played", status=answer.status))
        shape = self._routes.nearest(path, headers)
        missing = player.routes.jobs.missing(method, path)
        if missing:
            message = f"No scenario answers {method} {path}: {missing}."
            return refuse(shape, NoMatchError(message, status=404, code="no_job"))
        mismatch = player.routes.index.explain(request)
        if mismatch:
            message = (
                f"No scenario answers {method} {path}. Nearest: {mismatch}. Change its match, or "
                "add a scenario."
            )
            return refuse(shape, NoMatchError(message, status=404, code="no_scenario"))
        other = self._routes.not_allowed(method, path, headers)
        if other is not None and not _is_answered_by_fallback(method, path, owner):
            wrong_method, allowed = other
            return refuse(shape, wrong_method, Played(api=shape.name), [("allow", allowed)])
        unknown = refuse(shape, self._routes.unknown(method, path, request.body, owner))
        return replace(unknown, played=replace(unknown.played, outcome="unknown route"))


_NAMED = re.compile(r"\{([A-Za-z_]\w*)\}(:[A-Za-z]+)?")
_LITERAL = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%-]+")
_OWN = re.compile(r"/_mockllm(/|$)|/s/")
_ID = re.compile(r"_?id$", re.IGNORECASE)


@record
class _Placed:
    """A route, with the words for messages about it."""

    route: Route
    address: Address
    source: str


def path_routes(
    addresses: Mapping[str, Address], paths: Iterable[tuple[str, str]]
) -> dict[str, tuple[Route, ...]]:
    """The routes of templates, by the name of their API.

    Raises:
        UsageError: a template is malformed, or a request could be for two routes.
    """
    known = [
        _Placed(route, address, f"{route.path} of {address.name}")
        for address in addresses.values()
        for route in address.routes
        if route.method == address.method
    ]
    routes: dict[str, tuple[Route, ...]] = {}
    for api, template in paths:
        if api not in addresses:
            hint = did_you_mean(api, addresses, f"there are: {', '.join(addresses)}")
            raise UsageError(f"--path {api}={template}: there is no API {api!r}; {hint}")
        address = addresses[api]
        _check(template)
        own = _routes(address, template)
        for route in own:
            _check_clash(template, route, address, known)
            known.append(_Placed(route, address, f"{route.path} of --path {api}={template}"))
        routes[api] = (*routes.get(api, ()), *own)
    return routes


def _check(template: str) -> None:
    """Checks the form of a template."""
    path = f"the path {template!r}"
    if not template.startswith("/") or template == "/":
        raise UsageError(f"{path} must begin with '/', such as /api/v1/agents/{{agent}}")
    if _OWN.match(template):
        raise UsageError(f"{path} is one of mockllm itself; choose another beginning")
    names = []
    for segment in template.split("/")[1:]:
        named = _NAMED.fullmatch(segment)
        if named is not None:
            names.append(named[1])
        elif not _LITERAL.fullmatch(segment):
            what = f"has the segment {segment!r}" if segment else "has an empty segment"
            raise UsageError(f"{path} {what}; write text, or a parameter as {{name}}")
    if len(set(names)) < len(names):
        raise UsageError(f"{path} has two parameters of one name; give each its own")


def _routes(address: Address, template: str) -> tuple[Route, ...]:
    routes = [Route(address.method, template, "generate")]
    before, _, last = template.rpartition("/")
    while before and _is_created(address, last):
        routes.append(Route("POST", before, "create"))
        before, _, last = before.rpartition("/")
    return tuple(routes)


def _is_created(address: Address, segment: str) -> bool:
    named = _NAMED.fullmatch(segment)
    return named is not None and _ID.sub("", named[1]).lower() in address.creates


def _check_clash(template: str, route: Route, address: Address, known: Iterable[_Placed]) -> None:
    for other in known:
        if _overlap(route.path, other.route.path):
            what = "" if route.operation == "generate" else f" (POST {route.path} makes ids)"
            raise UsageError(
                f"--path {address.name}={template}{what} clashes with {other.source}: one request "
                "could be for both. Put a segment before it that the other does not have"
            )


def _overlap(left: str, right: str) -> bool:
    """Whether one path fits both."""
    lefts, rights = left.split("/"), right.split("/")
    return len(lefts) == len(rights) and all(map(_segments_overlap, lefts, rights))


def _segments_overlap(left: str, right: str) -> bool:
    one, other = _NAMED.fullmatch(left), _NAMED.fullmatch(right)
    if one is None and other is None:
        return left == right
    if one is None:
        return _segments_overlap(right, left)
    end = one[2] or ""
    rest = right if other is None else other[2] or ""
    return rest.endswith(end) or (other is not None and end.endswith(rest))
