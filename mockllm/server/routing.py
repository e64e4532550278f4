"""Paths to operations: one table made from PROTOCOLS."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass

from mockllm.core.target import NO_TARGET, Target
from mockllm.errors import RequestError
from mockllm.protocols.base import Operation, Route, WireProtocol
from mockllm.protocols.routes import path_target, route_pattern

__all__ = ["Endpoint", "Routes"]


_NEAREST = 3
"""How many paths the error for an unknown one names."""

_MOST_FOUND = 1024
"""How many paths with names in them are remembered. The dictionary is cleared when it is full: it
is read for each request, and an LRU cache takes more than twice the time."""


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
    """Finds the endpoint for a method and a path."""

    def __init__(self, protocols: Iterable[WireProtocol]) -> None:
        self._protocols = tuple(protocols)
        self._exact: dict[tuple[str, str], Endpoint] = {}
        self._rules: list[_Rule] = []
        self._found: dict[tuple[str, str], Endpoint] = {}
        self.known: list[tuple[str, str]] = []
        for protocol in self._protocols:
            for route in protocol.routes:
                if (route.method, route.path) not in self.known:
                    self.known.append((route.method, route.path))
                self._add(protocol, route)
        # What asks for a header goes before what takes anybody.
        self._rules.sort(key=lambda rule: rule.header is None)

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
        exact = self._exact.get((method, path)) or self._found.get((method, path))
        if exact is not None and method == "POST":
            return exact
        for rule in self._rules:
            if rule.method != method or (rule.header is not None and rule.header not in headers):
                continue
            match = rule.pattern.fullmatch(path)
            if match is not None and (rule.header is not None or exact is None):
                endpoint = Endpoint(rule.protocol, rule.operation, path_target(match, path))
                if method == "POST":  # headers decide about none of these
                    if len(self._found) >= _MOST_FOUND:
                        self._found.clear()
                    self._found[method, path] = endpoint
                return endpoint
        return exact

    def methods(self, path: str) -> list[str]:
        """The methods that a path is known for."""
        every = {rule.header for rule in self._rules if rule.header is not None}
        return [method for method in ("GET", "POST", "DELETE") if self.find(method, path, every)]

    def nearest(self, path: str) -> WireProtocol:
        """The protocol whose shape an error for this path should have: the one with the
        longest common beginning."""

        def common(protocol: WireProtocol) -> int:
            return max(_common(route.path, path) for route in protocol.routes)

        return max(self._protocols, key=common)

    def refusal(self, method: str, path: str) -> tuple[WireProtocol, RequestError, str | None]:
        """Why nothing answers: the protocol whose error shape is used, the error, and the `allow`
        header."""
        methods = self.methods(path)
        if methods:
            allowed = ", ".join(methods)
            message = f"Not allowed to {method} on {path}; this path takes {allowed}."
            return self.nearest(path), RequestError(message, status=405), allowed
        near = sorted(self.known, key=lambda one: -_common(one[1], path))[:_NEAREST]
        paths = ", ".join(f"{method} {known}" for method, known in near)
        message = (
            f"Invalid URL ({method} {path}). mockllm does not know this path; the nearest that it "
            f"knows are {paths}."
        )
        error = RequestError(message, status=404, code="unknown_url")
        return self.nearest(path), error, None


def _common(left: str, right: str) -> int:
    size = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        size += 1
    return size
