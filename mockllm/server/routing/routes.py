"""Paths to operations: one table made from PROTOCOLS.

Services put prefixes before the paths of an API (`/api/v1/chat/completions`), so a path that is not
in the table is known by its end.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from difflib import get_close_matches

from mockllm.core.http import NO_TARGET, Target
from mockllm.core.record import record
from mockllm.errors import RequestError
from mockllm.protocols import Protocols
from mockllm.protocols.base import Operation, Route, WireProtocol
from mockllm.protocols.detection import detect
from mockllm.protocols.routes import detected_target, path_target, route_pattern
from mockllm.replay.fallback_routes import find_fallback

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
        self,
        protocols: Protocols,
        further: Mapping[str, tuple[Route, ...]] = NO_ROUTES,
    ) -> None:
        self._protocols = protocols
        self._further = further
        self._exact: dict[tuple[str, str], tuple[str, Operation]] = {}
        self._rules: list[_Rule] = []
        self._found: dict[tuple[str, str], Endpoint | None] = {}
        self.known: list[tuple[str, str]] = []
        for api in protocols:
            for route in self._routes(api):
                if (route.method, route.path) not in self.known:
                    self.known.append((route.method, route.path))
                self._add(api, route)
        self._longest = max(path.count("/") for _, path in self.known)
        # What asks for a header goes before what takes anybody.
        self._rules.sort(key=lambda rule: rule.header is None)

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
        key = method, path
        if method != "POST":
            return self._by_path(method, path, headers) or self._by_end(method, path, headers)
        if key not in self._found:  # headers decide about no POST
            if len(self._found) >= _MOST_FOUND:
                self._found.clear()
            self._found[key] = self._by_path(method, path, ()) or self._by_end(method, path, ())
        return self._found[key]

    def _by_path(self, method: str, path: str, headers: Container[str]) -> Endpoint | None:
        """The endpoint of the table for a path: rules with a header go before exact paths, and
        these before other rules."""
        exact = self._exact.get((method, path))
        for rule in self._rules:
            if rule.method != method or (rule.header is not None and rule.header not in headers):
                continue
            match = rule.pattern.fullmatch(path)
            if match is not None and (rule.header is not None or exact is None):
                protocol = self._protocols[rule.api]
                return Endpoint(protocol, rule.operation, path_target(match, path))
        return None if exact is None else Endpoint(self._protocols[exact[0]], exact[1])

    def _by_end(self, method: str, path: str, headers: Container[str]) -> Endpoint | None:
        """The endpoint that the end of a path leads to: the paths of requests for an answer are
        those by which recordings are recognised, the others those of the table."""
        generating = self._generating(path) if method == "POST" else None
        if generating is not None:
            return generating
        for end in _ends(path, self._longest):
            found = self._by_path(method, end, headers)
            if found is not None and found.operation not in ("generate", "create"):
                return found
        return None

    def _generating(self, path: str) -> Endpoint | None:
        for api, address in self._protocols.addresses.items():
            target = detected_target(address, path)
            if target is not None:
                return Endpoint(self._protocols[api], "generate", target)
        return None

    def methods(self, path: str) -> list[str]:
        """The methods that a path is known for."""
        every = {rule.header for rule in self._rules if rule.header is not None}
        return [method for method in ("GET", "POST", "DELETE") if self.find(method, path, every)]

    def nearest(self, path: str) -> WireProtocol:
        """The protocol whose shape an error for this path should have: the one with the
        longest common beginning."""

        def common(api: str) -> int:
            return max(_common(route.path, path) for route in self._routes(api))

        return self._protocols[max(self._protocols, key=common)]

    def not_allowed(self, method: str, path: str) -> tuple[RequestError, str] | None:
        """The error for another method than those of a path, and the `allow` header; None for a
        path that no method has."""
        methods = self.methods(path)
        if not methods:
            return None
        allowed = ", ".join(methods)
        message = f"Not allowed to {method} on {path}; this path takes {allowed}."
        return RequestError(message, status=405), allowed

    def unknown(self, method: str, path: str, body: bytes) -> RequestError:
        """The error for a route that nothing answers, in one line."""
        known = [f"{method} {known}" for other, known in self.known if other == method]
        near = get_close_matches(f"{method} {path}", known, n=1, cutoff=_CLOSE)
        message = (
            f"mockllm knows no route {method} {path}: {_known(method, path, body)}. "
            f"{f'Did you mean {near[0]}? ' if near else ''}"
            f"To answer it, add a scenario with 'route: {method} {path}', or record it."
        )
        return RequestError(message, status=404, code="unknown_url")


def _known(method: str, path: str, body: bytes) -> str:
    """What is known of a route that nothing answers."""
    fallback = find_fallback(method, path)
    if fallback is not None:
        return "no scenario has it, and --fallback auto would answer it"
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


def _common(left: str, right: str) -> int:
    size = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        size += 1
    return size
