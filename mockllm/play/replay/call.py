"""The input and the output of a `Player`: a request, and its answer. Only data may live here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from mockllm.core.errors import NoMatchError, RequestError
from mockllm.core.http import Target
from mockllm.core.jsontext import parse_object
from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.play.agents.agent_requests import read_request
from mockllm.play.replay.compilation.http_answer import HttpAnswer, error_answer
from mockllm.play.replay.sessions.exchange import NOTHING, Played
from mockllm.play.replay.sessions.session import Session
from mockllm.wire.protocols.base import WireProtocol


class ApiCall(NamedTuple):
    """One request to a `Player`.

    Args:
        path: as it was sent, with the query; "" where nothing was sent.
        at: when it came, in seconds after the start of the server.
        base: the URL by which the client reaches the server, without the path.
        received_at: when it arrived, in seconds since 1970, by the clock of the entries of its
            session.
        on_socket: whether it is a message of a WebSocket.
    """

    protocol: WireProtocol
    target: Target
    headers: Mapping[str, str]
    body: bytes
    session: Session
    path: str = ""
    at: float = 0.0
    base: str = ""
    received_at: float = 0.0
    on_socket: bool = False

    @property
    def request(self) -> Request | None:
        """The request for a model; None where that cannot be read."""
        try:
            return read_request(self.protocol, parse_object(self.body), self.target, self.headers)
        except RequestError:
            return None


@record
class Answered:
    """The answer to a request, and what a journal has of it."""

    answer: HttpAnswer
    played: Played


def refuse(
    protocol: WireProtocol,
    error: RequestError,
    known: Played = NOTHING,
    headers: Iterable[tuple[str, str]] = (),
) -> Answered:
    """The error answer to a refused request, in the shape of a protocol."""
    answer = error_answer(protocol, error, derive("refused", error.message), headers=headers)
    played = replace(
        known,
        outcome="unmatched" if isinstance(error, NoMatchError) else "invalid",
        status=error.status,
        problems=(error.message,),
        mistake=error.mistake,
    )
    return Answered(answer, played)
