"""The parts of HTTP that all wings share: hosts and their usual ports, the target of a request, the
reason phrases of statuses, and the timed bytes of which the body of an answer consists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from mockllm.core.record import record

_EMPTY: Mapping[str, str] = MappingProxyType({})


@record
class Target:
    """The target of a request (RFC 9112, section 3.2), read by the route that matched it.

    Args:
        segments: the named segments of the path (`model`, `deployment`, ...), unquoted.
        method: the text after the last colon of the path, where Google's APIs have the method
            (`streamGenerateContent`); "" without a colon.
        query: the parameters of the query, the last value of each name.
    """

    segments: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    method: str = ""
    query: Mapping[str, str] = field(default_factory=lambda: _EMPTY)

    @property
    def key(self) -> tuple[str, ...]:
        """A hashable value that is equal for equal targets, with their names in the same order."""
        if not self.segments and not self.query:
            return self.method, "?"
        return (
            self.method,
            *(text for pair in self.segments.items() for text in pair),
            "?",
            *(text for pair in self.query.items() for text in pair),
        )


NO_TARGET = Target()
"""The target of a request whose path has no named segments and that has no query."""


PORTS = {"http": 80, "https": 443}
"""The usual port of each scheme (RFC 9110, sections 4.2.1 and 4.2.2)."""


def is_this_machine(host: str) -> bool:
    """Whether a host, without its port, is the loopback address, however it is written."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761, section 6.3
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def netloc(scheme: str, host: str, port: int | None) -> str:
    """Host and port of an origin, as they stand in a URL: without the usual port."""
    name = f"[{host}]" if ":" in host else host
    return name if not port or port == PORTS.get(scheme) else f"{name}:{port}"


@lru_cache(maxsize=1024)
def host_in(url: str) -> str:
    """The host of a URL, in lower case, with its port where that is not the usual one of its
    scheme; "" for a URL without one."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # brackets or a port that are none
        return ""
    return netloc(parts.scheme, host, port)


MOST_REASON = 123
"""Bytes that a close frame of a WebSocket has for its reason (RFC 6455, section 5.5)."""


def close_reason(text: str) -> str:
    """As much of a text as a close frame has room for."""
    return text.encode("utf-8", "replace")[:MOST_REASON].decode("utf-8", "ignore")


def reason_phrase(status: int) -> str:
    """The usual reason phrase of a status (RFC 9112, section 4)."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else "Unknown"


def unusual_reason(status: int, reason: str | None) -> str | None:
    """A reason phrase as received, which may be empty; None for the usual one, or an unknown
    one."""
    return None if reason == reason_phrase(status) else reason


def stated_wait(headers: Iterable[tuple[str, str]]) -> float | None:
    """The seconds that the headers of an answer say to wait; None where they do not say it."""
    own = dict(headers)
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return float(own.get(name, "")) / unit
        except ValueError:
            continue
    return None


Ending = Literal["complete", "closed", "reset", "chunk", "open"]
"""How the bytes of an answer end: as HTTP ends them; or before that, when the connection is
`closed` (FIN) or `reset` (RST), when the HTTP `chunk` that began breaks off and the connection is
closed, or not at all: it stays `open` until the client leaves."""


@record
class TimedBytes:
    """Bytes that are sent together, and when, in microseconds after the request."""

    at: int
    data: bytes

    def __reduce__(self) -> tuple[type[TimedBytes], tuple[int, bytes]]:
        # Recorded answers of thousands of chunks go to another process.
        return TimedBytes, (self.at, self.data)
