"""One request on its way to an answer. Only data may live here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mockllm.core.target import Target
from mockllm.protocols.base import WireProtocol
from mockllm.replay.session import Exchange, Session

__all__ = ["Call"]


@dataclass(slots=True)
class Call:
    """One request to a `Player`.

    Args:
        protocol: the API that was called.
        target: what path and query say.
        headers: of the request, names in lower case.
        session: the one that the request belongs to.
        exchange: the journal's entry, with the body; what becomes of the request is written
            into it.
    """

    protocol: WireProtocol
    target: Target
    headers: Mapping[str, str]
    session: Session
    exchange: Exchange
