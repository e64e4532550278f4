"""A request as it came, before it is known who answers it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache

from aiohttp import web

from mockllm.core.http import Target
from mockllm.core.text import readable_header
from mockllm.errors import RequestError
from mockllm.redaction.credentials import masked_headers, masked_url
from mockllm.replay.sessions.exchange import Received
from mockllm.server.http.request_reading import (
    arrived,
    origin_form,
    read_body,
    session_of,
    split_target,
)


@lru_cache(maxsize=256)
def _read_headers(
    raw: tuple[tuple[bytes, bytes], ...],
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The headers of a request, their names in lower case, and the same with secrets masked.

    Clients repeat their headers. Both results are shared: nothing may change them.
    """
    headers = {name.decode("latin-1").lower(): readable_header(value) for name, value in raw}
    return headers, masked_headers(headers)


class Arrival:
    """A request as it came. Nothing changes it but `read`, which reads its body.

    Args:
        request: as aiohttp has it.

    Attributes:
        target: path and query, without origin and without the prefix of a session.
        headers: names in lower case.
        session: the name that prefix or header have; it may be none that a session can have.
        at: when it came, in seconds since 1970; `clock`: in seconds of `time.perf_counter`.
        body: b"" until it is read.
    """

    __slots__ = (
        "_masked",
        "at",
        "body",
        "clock",
        "headers",
        "method",
        "path",
        "query",
        "request",
        "session",
        "target",
    )

    def __init__(self, request: web.BaseRequest) -> None:
        self.clock, self.at = time.perf_counter(), time.time()
        self.request = request
        self.method = request.method
        target, (headers, masked) = request.raw_path, _read_headers(request.raw_headers)
        if not target.startswith("/"):
            target, headers = origin_form(target, headers)
            masked = masked_headers(headers)
        self.headers, self._masked = headers, masked
        self.session, self.target = session_of(target, headers)
        self.path, self.query = split_target(self.target)
        self.body = b""

    def whole(self, most: int) -> bytes:
        """Its whole body where that came with the head, as most do; else b"". Waits for nothing."""
        self.body = self.body or arrived(self.request, most) or b""
        return self.body

    async def read(self, most: int, patience: float) -> bytes:
        """Its whole body.

        Raises:
            RequestError: it is larger, nothing arrived for too long, or it cannot be decoded.
        """
        self.body = self.whole(most) or await self._rest(most, patience)
        return self.body

    async def _rest(self, most: int, patience: float) -> bytes:
        error = RequestError(
            f"The request body is larger than {most} bytes. Send less, or serve with a larger "
            "--max-body.",
            status=413,
            code="request_too_large",
        )
        request, headers = self.request, self.headers
        if int(headers.get("content-length", "0")) > most:
            raise error
        if headers.get("expect", "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            body = await read_body(request, most, patience)
        except web.HTTPRequestEntityTooLarge:
            raise error from None
        if len(body) > most:
            raise error
        return body

    def received(self, target: Target | None = None) -> Received:
        """The request as a journal shows it."""
        transport = self.request.transport
        peer = None if transport is None else transport.get_extra_info("peername")
        return Received(
            self.method,
            masked_url(self.target),
            self._masked,
            self.body,
            self.at,
            self.clock,
            0 if peer is None else int(peer[1]),
            target,
        )
