"""The service behind a gateway: a server in a thread, which knows each case by the nonce in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mockllm.gateway.cases import GatewayCase
from mockllm.replay.sessions.exchange import Exchange
from mockllm.scenario.model import Api
from mockllm.server.control.routes import base_urls
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread

NONCE = re.compile(rb"gw-[0-9a-f]{16}")
"""How a case is named in the text of its user. It is the name of the session, too."""


@contextmanager
def gateway_upstream(port: int = 0) -> Iterator[GatewayUpstream]:
    """Listens while the `with` block lasts.

    Args:
        port: 0 picks a free one.
    """
    with ServerThread([], ServerOptions(port=port, grace=0, session_in_body=NONCE)) as thread:
        yield GatewayUpstream(thread)


@dataclass(frozen=True, slots=True)
class GatewayUpstream:
    """Plays cases."""

    thread: ServerThread

    def base_url(self, api: Api) -> str:
        """The base URL, as a client of an API is given it."""
        return base_urls(self.thread.url)[api]

    @property
    def url(self) -> str:
        """`http://HOST:PORT`."""
        return self.thread.url

    @property
    def strangers(self) -> tuple[Exchange, ...]:
        """The requests that belong to no case, such as probes."""
        return self.thread.exchanges("default")

    def begin(self, case: GatewayCase, nonce: str) -> None:
        """Answers the requests with a nonce as a case says."""
        scenario = case.scenario
        self.thread.ask(
            self.thread.server.assign,
            nonce,
            (scenario,),
            named=scenario.name,
            faults=(case.fault,) if case.fault else (),
        )

    def settled(self, nonce: str, seconds: float) -> tuple[Exchange, ...]:
        """The requests with a nonce, once all of their answers are over or the time is."""
        return self.thread.settled(nonce, seconds)

    def end(self, nonce: str) -> None:
        """Breaks off what is not over, and forgets a case."""
        self.thread.ask(self.thread.server.break_off, nonce)
        self.thread.ask(self.thread.server.end, nonce)
