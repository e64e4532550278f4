"""The service behind a gateway: a server in a thread, which knows each case by the nonce in it."""

from __future__ import annotations

import re
import time
from types import TracebackType
from typing import Self

from mockllm.gateway.cases import GatewayCase
from mockllm.protocols import PROTOCOLS
from mockllm.replay.sessions.exchange import Exchange
from mockllm.scenario.model import Api
from mockllm.server.control.routes import base_urls
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread

NONCE = re.compile(rb"gw-[0-9a-f]{16}")
"""How a case is named in the text of its user. It is the name of the session, too."""

_LOOK = 0.02


class GatewayUpstream:
    """Plays cases while the `with` block lasts.

    Args:
        port: 0 picks a free one.
    """

    def __init__(self, port: int = 0) -> None:
        options = ServerOptions(port=port, grace=0, session_in_body=NONCE)
        self._thread = ServerThread([], options)

    def base_url(self, api: Api) -> str:
        """The base URL, as a client of an API is given it."""
        return base_urls(PROTOCOLS, self._thread.url)[api]

    @property
    def url(self) -> str:
        """`http://HOST:PORT`."""
        return self._thread.url

    @property
    def strangers(self) -> tuple[Exchange, ...]:
        """The requests that belong to no case, such as probes."""
        return self._exchanges("default")

    def begin(self, case: GatewayCase, nonce: str) -> None:
        """Answers the requests with a nonce as a case says."""
        scenario = case.scenario
        self._thread.ask(
            self._thread.server.assign,
            nonce,
            (scenario,),
            named=scenario.name,
            faults=(case.fault,) if case.fault else (),
        )

    def settled(self, nonce: str, seconds: float) -> tuple[Exchange, ...]:
        """The requests with a nonce, once all of their answers are over or the time is."""
        until = time.monotonic() + seconds
        while True:
            exchanges = self._exchanges(nonce)
            if not any(entry.in_use for entry in exchanges) or time.monotonic() > until:
                return exchanges
            time.sleep(_LOOK)

    def end(self, nonce: str) -> None:
        """Breaks off what is not over, and forgets a case."""
        self._thread.ask(self._thread.server.break_off, nonce)
        self._thread.ask(self._thread.server.end, nonce)

    def _exchanges(self, session: str) -> tuple[Exchange, ...]:
        return self._thread.ask(self._copied, session)

    def _copied(self, session: str) -> tuple[Exchange, ...]:
        found = self._thread.server.sessions.find(session)
        return () if found is None else tuple(exchange.copy() for exchange in found.journal)

    def __enter__(self) -> Self:
        self._thread.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.__exit__(kind, error, trace)
