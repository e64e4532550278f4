"""Answers to routes without a scenario that follow from the request alone (`--fallback auto`):
embeddings, moderations, counts of tokens. Each protocol's package knows its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import unquote

from mockllm.core.http import Target
from mockllm.core.jsontext import parse_object
from mockllm.core.record import record
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol
from mockllm.protocols.records import FallbackRoute
from mockllm.replay.compilation.http_answer import CORS, HttpAnswer, json_answer


@record
class Fallback:
    """A route that can be answered without a scenario, as the path of a request has it."""

    protocol: WireProtocol
    route: FallbackRoute
    target: Target

    def answer(self, body: bytes, query: Mapping[str, str]) -> HttpAnswer:
        """The answer to a request."""
        target = replace(self.target, query=query)
        return json_answer(200, self.route.answer(parse_object(body), target), CORS)


def find_fallback(method: str, path: str) -> Fallback | None:
    """What answers a route without a scenario; None where nothing does.

    Args:
        path: without the query; only its end counts.
    """
    if method != "POST":
        return None
    path = path.rstrip("/")
    for protocol in PROTOCOLS.values():
        for route in protocol.fallback_routes:
            match = route.path.search(path)
            if match is not None:
                segments = {
                    name: unquote(value) for name, value in match.groupdict().items() if value
                }
                return Fallback(protocol, route, Target(segments))
    return None
