"""Paths to operations: one table made from PROTOCOLS.

Services put prefixes before the paths of an API (`/api/v1/chat/completions`), so a path that is not
in the table is known by its end.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from mockllm.core.target import NO_TARGET, Target
from mockllm.errors import RequestError
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


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The operation that answers a request, and what its path says; the query is not part of it."""

    protocol: WireProtocol
    operation: Operation
    target: Target = NO_TARGET


@dataclass(frozen=True, slots=True)
class _Rule:
    method: str
    pattern: re.Pattern[str]
    header: str | None
    protocol: WireProtocol
    operation: Operation


class Routes:
    """Finds the endpoint for a method and a path.

    Args:
        further: routes besides those of the protocols, by the name of the protocol.
    """

    def __init__(
        self,
        protocols: Iterable[WireProtocol],
        further: Mapping[str, tuple[Route, ...]] = NO_ROUTES,
    ) -> None:
        self._protocols = tuple(protocols)
        self._further = further
        self._exact: dict[tuple[str, str], Endpoint] = {}
        self._rules: list[_Rule] = []
        self._found: dict[tuple[str, str], Endpoint | None] = {}
        self.known: list[tuple[str, str]] = []
        for protocol in self._protocols:
            for route in self._of(protocol):
                if (route.method, route.path) not in self.known:
                    self.known.append((route.method, route.path))
                self._add(protocol, route)
        self._longest = max(path.count("/") for _, path in self.known)
        # What asks for a header goes before what takes anybody.
        self._rules.sort(key=lambda rule: rule.header is None)

    def _of(self, protocol: WireProtocol) -> tuple[Route, ...]:
        return (*protocol.routes, *self._further.get(protocol.name, ()))

    def _add(self, protocol: WireProtocol, route: Route) -> None:
        if "{" in route.path or route.header is not None:
            pattern = route_pattern(route.path)
            self._rules.append(
                _Rule(route.method, pattern, route.header, protocol, route.operation)
            )
        else:
            endpoint = Endpoint(protocol, route.operation)
            self._exact.setdefault((route.method, route.path), endpoint)

    def find(self, method: str, path: str, headers: Container[str] = ()) -> Endpoint | None:
        """The endpoint; None where the path, or this method of it, is not known.

        Args:
            path: as it was sent: a quoted slash is part of a name.
            headers: the names of the request's headers, in lower case.
        """
        key = method, path
        exact = self._exact.get(key)
        if method != "POST":
            return self._by_rule(method, path, headers, exact) or self._by_end(
                method, path, headers
            )
        if exact is not None:
            return exact
        if key not in self._found:  # headers decide about no POST
            if len(self._found) >= _MOST_FOUND:
                self._found.clear()
            found = self._by_rule(method, path, headers, None)
            self._found[key] = found or self._by_end(method, path, headers)
        return self._found[key]

    def _by_rule(
        self, method: str, path: str, headers: Container[str], exact: Endpoint | None
    ) -> Endpoint | None:
        """The endpoint of the table for a path, which `exact` is but for rules with a header."""
        for rule in self._rules:
            if rule.method != method or (rule.header is not None and rule.header not in headers):
                continue
            match = rule.pattern.fullmatch(path)
            if match is not None and (rule.header is not None or exact is None):
                return Endpoint(rule.protocol, rule.operation, path_target(match, path))
        return exact

    def _by_end(self, method: str, path: str, headers: Container[str]) -> Endpoint | None:
        """The endpoint that the end of a path leads to: the paths of requests for an answer are
        those by which recordings are recognised, the others those of the table."""
        generating = self._generating(path) if method == "POST" else None
        if generating is not None:
            return generating
        for end in _ends(path, self._longest):
            exact = self._exact.get((method, end))
            found = self._by_rule(method, end, headers, exact)
            if found is not None and found.operation not in ("generate", "create"):
                return found
        return None

    def _generating(self, path: str) -> Endpoint | None:
        for protocol in self._protocols:
            target = detected_target(protocol, path)
            if target is not None:
                return Endpoint(protocol, "generate", target)
        return None

    def methods(self, path: str) -> list[str]:
        """The methods that a path is known for."""
        every = {rule.header for rule in self._rules if rule.header is not None}
        return [method for method in ("GET", "POST", "DELETE") if self.find(method, path, every)]

    def nearest(self, path: str) -> WireProtocol:
        """The protocol whose shape an error for this path should have: the one with the
        longest common beginning."""

        def common(protocol: WireProtocol) -> int:
            return max(_common(route.path, path) for route in self._of(protocol))

        return max(self._protocols, key=common)

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
        name, served = found.protocol.name, found.protocol.routes[0].path
        return (
            f"the body is a request of {found.protocol.title}, which is served at {served} (start "
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
