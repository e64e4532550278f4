"""The neutral request of a journal entry."""

from __future__ import annotations

from mockllm.core.request import Request
from mockllm.core.target import NO_TARGET
from mockllm.errors import RequestError
from mockllm.protocols import PROTOCOLS
from mockllm.replay.body import parse_object
from mockllm.replay.sessions.exchange import Exchange


def parsed_request(exchange: Exchange) -> Request | None:
    """What an exchange requests of a model; None where that is nothing, or cannot be read."""
    protocol = PROTOCOLS.get(exchange.api or "")
    if protocol is None or not exchange.body:
        return None
    try:
        return protocol.parse(parse_object(exchange.body), exchange.target or NO_TARGET, False)
    except RequestError:
        return None
