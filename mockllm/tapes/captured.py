"""One exchange with a real service, as it was on the wire; the tape that keeps it, and the neutral
request that it has. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal
from urllib.parse import urlsplit

from mockllm.core.http import TimedBytes
from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.errors import RequestError
from mockllm.framing.content_coding import decompressed
from mockllm.protocols.routes import Detected, detect
from mockllm.protocols.values import json_object
from mockllm.scenario.model import Api

Cut = Literal["", "client", "stalled", "upstream", "chunk", "reset"]
"""How the connection ended before the end of the answer: the `client` closed it, also after
the upstream had sent nothing for a long time (`stalled`), or the `upstream` closed it (FIN), also
in the middle of an HTTP `chunk`, or `reset` it (RST); "" if the answer is complete."""

CUTS: Mapping[Cut, str] = {
    "client": "cut by the client",
    "stalled": "cut by the client after the upstream stalled",
    "upstream": "cut by the upstream",
    "chunk": "cut by the upstream in an HTTP chunk",
    "reset": "reset by the upstream",
}
"""The descriptions of incomplete answers."""


@record
class Captured:
    """A request and its answer, names of headers in lower case.

    Args:
        method: "" where the request is not known.
        url: of the upstream, with the query.
        chunks: the body as it arrived, not decompressed, in microseconds after the request.
        at: when the request came, in seconds since 1970.
        source: the origin, for messages: a file and a number, or the proxy.
        reason: the reason phrase of the status line; None for the usual one of the status.
    """

    method: str
    url: str
    request_headers: tuple[tuple[str, str], ...]
    request_body: bytes
    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[TimedBytes, ...]
    cut: Cut = ""
    at: float = 0.0
    source: str = ""
    reason: str | None = None
    trailers: tuple[tuple[str, str], ...] = ()

    @property
    def body(self) -> bytes:
        """The whole body, not decompressed."""
        return b"".join(chunk.data for chunk in self.chunks)

    @property
    def path(self) -> str:
        """The path of the URL."""
        return urlsplit(self.url).path

    @property
    def host(self) -> str:
        """The host of the URL, without its port."""
        return urlsplit(self.url).hostname or ""

    def header(self, name: str) -> str:
        """A header of the answer, by its name in lower case; "" if it has none."""
        return next((value for key, value in self.headers if key == name), "")

    def plain(self) -> Captured:
        """The same exchange with decompressed chunks, each with the data that it completes.

        Raises:
            WireError: an unknown content coding, or data that are not compressed with it.
        """
        encoding = self.header("content-encoding").strip().lower()
        if encoding in ("", "identity"):
            return self
        headers = tuple(pair for pair in self.headers if pair[0] != "content-encoding")
        chunks = decompressed(self.chunks, encoding, self.source)
        return replace(self, headers=headers, chunks=chunks)


@record
class Tape:
    """An exchange as a file keeps it: all but `at` and `source`.

    Args:
        api: the name of its protocol; "" if the exchange has no known protocol.
        streamed: whether the request was for a stream.
    """

    api: Api
    streamed: bool
    exchange: Captured


def detected(exchange: Captured) -> Detected:
    """The API of an exchange, with its path and query; never fails."""
    return detect(exchange.method, exchange.url, exchange.request_body)


def request_of(exchange: Captured, found: Detected) -> Request:
    """The neutral request of an exchange of a known protocol.

    Raises:
        RequestError: its body is not a request of the protocol.
    """
    protocol = found.protocol
    assert protocol is not None
    body = json_object(exchange.request_body)
    if body is None:
        raise RequestError("the request is no JSON object")
    return protocol.parse(body, found.target, False)
