"""Matching of paths with the routes of protocols. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import parse_qsl, unquote

from mockllm.core.http import Target
from mockllm.protocols.base import Address, Operation, WireProtocol


@lru_cache(maxsize=1024)
def route_pattern(path: str) -> re.Pattern[str]:
    """The pattern of a route's path, with a group for each named segment."""
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path)))


def path_target(match: re.Match[str], path: str) -> Target:
    """The target of a path that a route's pattern matched, without the query."""
    segments = {name: unquote(value) for name, value in match.groupdict().items() if value}
    return Target(segments, path.rpartition(":")[2] if ":" in path else "")


def detected_target(address: Address, path: str) -> Target | None:
    """The target of a path by whose end requests of a protocol are recognised, without the query;
    None where they are not."""
    for pattern in address.paths:
        match = pattern.search(path.rstrip("/"))
        if match is not None:
            segments = {name: unquote(value) for name, value in match.groupdict().items() if value}
            return Target(segments, path.rpartition(":")[2] if ":" in match[0] else "")
    return None


def parse_query(query: str) -> Mapping[str, str]:
    """The parameters of a query, the last value of each name."""
    return dict(parse_qsl(query, keep_blank_values=True))


def target_of(
    protocol: WireProtocol, path: str, query: str = "", operation: Operation = "generate"
) -> Target | None:
    """The target of a path and a query; None where no route of the protocol matches."""
    for route in protocol.address.routes:
        if route.operation == operation:
            match = route_pattern(route.path).fullmatch(path)
            if match is not None:
                target = path_target(match, path)
                return Target(target.segments, target.method, parse_query(query))
    return None
