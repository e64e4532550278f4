"""One exchange with a real service, as it was on the wire. Only data may live here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal
from urllib.parse import urlsplit

from mockllm.core.http import TimedBytes
from mockllm.core.record import record
from mockllm.framing.content_coding import decompressed

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
