"""Where the requests of this process go that are for a session, and what says so in their headers.
Pure."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from mockllm.core.http import PORTS, netloc
from mockllm.core.record import record
from mockllm.serve.interception.headers import ORIGIN_HEADER, RUNNING_HEADER, SESSION_HEADER
from mockllm.serve.interception.hosts import Hosts

_CARRIERS = {"ws": "http", "wss": "https"}
"""The scheme of HTTP with which a WebSocket begins (RFC 6455, section 4.1)."""


@record
class Redirect:
    """Where requests go instead.

    Args:
        host, port: of mockllm's server.
        session: returns the name of the session that they belong to. It is asked when the first
            one goes there.
        hosts: that they are for; None: only those for the server itself.
        key: of the server (`InterceptOptions.key`), by which it takes the origins that are named.
    """

    host: str
    port: int
    session: Callable[[], str]
    hosts: Hosts | None
    key: str

    def headers(self, scheme: str, host: str, port: int | None) -> dict[str, str] | None:
        """The headers added to a request to an origin; None if it is not redirected.

        One to the server itself says for which session it is, should its URL leave that open.
        """
        scheme = _CARRIERS.get(scheme, scheme)
        if port == self.port and host == self.host:
            return {RUNNING_HEADER: self.session()}
        if self.hosts is None or not self.hosts.has(host, port or PORTS[scheme]):
            return None
        place = netloc(scheme, host, port)
        return {
            "host": place,
            ORIGIN_HEADER: f"{self.key} {scheme}://{place}",
            SESSION_HEADER: self.session(),
        }


def redirect_to(
    server_url: str, session: Callable[[], str], hosts: Hosts | None, key: str
) -> Redirect:
    """A redirect to a server.

    Args:
        server_url: without a path.
        session, hosts, key: as `Redirect` has them.
    """
    parts = urlsplit(server_url)
    return Redirect(parts.hostname or "", parts.port or 80, session, hosts, key)
