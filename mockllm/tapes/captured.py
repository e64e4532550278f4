"""One exchange with a real service, as it went over the wire. Only data may live here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

from mockllm.core.timed_bytes import TimedBytes
from mockllm.framing.content_coding import decompressed

__all__ = ["Captured", "Cut"]

Cut = Literal["", "client", "upstream"]
"""Who broke an answer off before its end; nobody, where it is whole."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A request and its answer.

    Args:
        method: `POST`, ...
        url: of the upstream, with the query.
        request_headers: names in lower case, in their order.
        request_body: as sent.
        status: of the answer.
        headers: of the answer, names in lower case, in their order.
        chunks: the body as it arrived, still compressed if it was, with microseconds after the
            request was sent.
        cut: who broke it off, if anybody did.
        at: when the request came, in seconds since 1970.
        source: where it was read from, for messages: a file and a number, or the proxy.
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

    @property
    def body(self) -> bytes:
        """The body in one piece, still compressed if it was."""
        return b"".join(piece.data for piece in self.chunks)

    @property
    def path(self) -> str:
        """The path of the URL."""
        return urlsplit(self.url).path

    @property
    def host(self) -> str:
        """The host of the URL, without its port."""
        return urlsplit(self.url).hostname or ""

    def header(self, name: str) -> str:
        """A header of the answer, by its name in lower case; "" where there is none."""
        return next((value for key, value in self.headers if key == name), "")

    def plain(self) -> Captured:
        """The same with its chunks decompressed; each holds what had become known by then.

        Raises:
            WireError: a compression that is not known, or data that are not so compressed.
        """
        encoding = self.header("content-encoding").strip().lower()
        if encoding in ("", "identity"):
            return self
        headers = tuple(pair for pair in self.headers if pair[0] != "content-encoding")
        chunks = decompressed(self.chunks, encoding, self.source)
        return replace(self, headers=headers, chunks=chunks)
