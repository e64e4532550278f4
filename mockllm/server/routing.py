"""Paths to operations: one table made from PROTOCOLS."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from mockllm.errors import RequestError
from mockllm.protocols.base import Operation, WireProtocol

__all__ = ["Endpoint", "Routes"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What answers a request, and the named segments of its path."""

    protocol: WireProtocol
    operation: Operation
    params: dict[str, str] = field(default_factory=dict)


class Routes:
    """Finds the endpoint for a method and a path."""

    def __init__(self, protocols: Iterable[WireProtocol]) -> None:
        self._protocols = tuple(protocols)
        self._exact: dict[tuple[str, str], Endpoint] = {}
        self._patterns: list[tuple[str, re.Pattern[str], WireProtocol, Operation]] = []
        self.known: list[tuple[str, str]] = []
        for protocol in self._protocols:
            for route in protocol.routes:
                self.known.append((route.method, route.path))
                if "{" in route.path:
                    pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(route.path))
                    self._patterns.append(
                        (route.method, re.compile(pattern), protocol, route.operation)
                    )
                else:
                    endpoint = Endpoint(protocol, route.operation)
                    self._exact.setdefault((route.method, route.path), endpoint)

    def find(self, method: str, path: str) -> Endpoint | None:
        """The endpoint; None where the path, or this method of it, is not known."""
        endpoint = self._exact.get((method, path))
        if endpoint is not None:
            return endpoint
        for own, pattern, protocol, operation in self._patterns:
            if own == method and (match := pattern.fullmatch(path)):
                return Endpoint(protocol, operation, match.groupdict())
        return None

    def methods(self, path: str) -> list[str]:
        """The methods that a path is known for."""
        return [method for method in ("GET", "POST", "DELETE") if self.find(method, path)]

    def nearest(self, path: str) -> WireProtocol:
        """The protocol whose shape an error for this path should have: the one with the
        longest common beginning."""

        def common(protocol: WireProtocol) -> int:
            return max(_common(route.path, path) for route in protocol.routes)

        return max(self._protocols, key=common)

    def refusal(self, method: str, path: str) -> tuple[WireProtocol, RequestError, str | None]:
        """Why nothing answers: the protocol to say it in, the error, and the `allow` header."""
        methods = self.methods(path)
        if methods:
            endpoint = self.find(methods[0], path)
            assert endpoint is not None
            allowed = ", ".join(methods)
            message = f"Not allowed to {method} on {path}; this path takes {allowed}."
            return endpoint.protocol, RequestError(message, status=405), allowed
        known = "\n".join(f"  {method} {known}" for method, known in self.known)
        message = f"Invalid URL ({method} {path}). mockllm answers:\n{known}"
        error = RequestError(message, status=404, code="unknown_url")
        return self.nearest(path), error, None


def _common(left: str, right: str) -> int:
    size = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        size += 1
    return size
