"""A request on its way through the server, and what is chosen to answer it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.record import record
from mockllm.play.replay.call import Answered
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.exchange import Played
from mockllm.play.replay.sessions.session import Session
from mockllm.serve.server.http.request_reading import Arrival
from mockllm.serve.server.routing import Endpoint
from mockllm.wire.protocols.base import WireProtocol

if TYPE_CHECKING:
    from mockllm.serve.server.http.socket_writing import MessageWriter
    from mockllm.serve.server.limits.capacity import Slot
    from mockllm.serve.server.limits.quotas import MeteredCall
    from mockllm.serve.server.recording.proxy import Proxy


@record
class Forward:
    """The real service of a protocol is to answer; it is recorded.

    Args:
        server: the name of the MCP server that is to answer instead; "" for none.
    """

    proxy: Proxy
    protocol: WireProtocol
    played: Played
    origin: str = ""
    server: str = ""


Chosen = Answered | Forward
"""What answers a request."""


@dataclass(slots=True)
class RequestContext:
    """A request on its way: each stage finds here what those before it have found out.

    Args:
        player, proxy: of its session.
        refusal: why it belongs to no session, or None.
        endpoint: where method and path lead; None: to no API, or it is not known yet.
        api, target: what a journal has of it, also if it is refused now.
        metered: what it takes of the quotas.
        slot: what it holds of the server's capacity; None where that is not bounded.
        closes: whether the connection has to be closed after the answer.
        socket: sends the answer as messages on a WebSocket; None: it goes over HTTP.
        play: answers it, where it is a part of a WebSocket on which a scenario is played.
    """

    arrival: Arrival
    session: Session
    player: Player
    refusal: RequestError | None
    proxy: Proxy | None = None
    endpoint: Endpoint | None = None
    api: str | None = None
    target: Target | None = None
    metered: MeteredCall | None = None
    slot: Slot | None = None
    closes: bool = False
    socket: MessageWriter | None = None
    play: Callable[[], Answered] | None = None
