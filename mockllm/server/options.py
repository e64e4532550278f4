"""What a server can be told. Only data may live here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from mockllm.session import Exchange


__all__ = ["ServerOptions"]


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a server behaves.

    Args:
        host: the address to bind; loopback unless told otherwise.
        port: 0 picks a free one.
        strict: refuse requests that the real services refuse.
        fallback: answer what no scenario answers with an automatic answer.
        quirks: what every streamed answer has, as in `wire.quirks`.
        speed: of timed replay; 2 is twice as fast, 0 removes all pauses.
        flush: `answer` sends as much as possible in one write; `event` writes each event by
            itself, so that it arrives in a segment of its own.
        grace: how long open streams may go on after a request to stop, in seconds.
        max_body: largest request body, in bytes.
        allowed_hosts: further host names that may use the control routes.
        log: called with each exchange when it is over.
    """

    host: str = "127.0.0.1"
    port: int = 0
    strict: bool = True
    fallback: bool = False
    quirks: tuple[str, ...] = ()
    speed: float = 1.0
    flush: Literal["answer", "event"] = "answer"
    grace: float = 5.0
    max_body: int = 16 * 1024 * 1024
    allowed_hosts: tuple[str, ...] = ()
    log: Callable[[Exchange], None] | None = None
