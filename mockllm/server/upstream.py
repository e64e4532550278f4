"""The real services behind a recording server: one request to one of them, its answer as it
arrives.

Nothing is decided for the client here: no redirect is followed, nothing is decompressed, no
header is added, and what breaks off breaks off. aiohttp's own reader hides two things that have
to be passed on, trailers and how a connection was lost; `_Watched` sees those.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Literal, Self

import aiohttp
from aiohttp.client_proto import ResponseHandler
from multidict import CIMultiDict
from yarl import URL

from mockllm.errors import UpstreamError

__all__ = ["Upstream", "Upstreams", "end_to_end"]

RawHeaders = tuple[tuple[bytes, bytes], ...]

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"}
    | {"te", "transfer-encoding", "upgrade"}
)
_AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_TAIL = 16 * 1024
_TRAILERS = re.compile(
    rb"(?:^|\n)0+[ \t]*(?:;[^\n]*)?\r?\n((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\n]*\n)+)\r?\n\Z"
)
_CONNECTING = 30.0


def end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """The headers that are not of one connection only."""
    pairs = tuple(headers)
    named = {
        name.strip().lower()
        for key, value in pairs
        if key.lower() == b"connection"
        for name in value.decode("latin-1").split(",")
    }
    dropped = _HOP_BY_HOP | named
    return tuple(pair for pair in pairs if pair[0].decode("latin-1").lower() not in dropped)


class _Watched(ResponseHandler):
    """Remembers the end of what came, and how the connection was lost."""

    tail = b""
    lost: BaseException | None = None

    def data_received(self, data: bytes) -> None:
        self.tail = data[-_TAIL:] if len(data) >= _TAIL else (self.tail + data)[-_TAIL:]
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.lost = exc
        super().connection_lost(exc)


@dataclass(slots=True)
class Upstream:
    """An answer that is on its way.

    Args:
        sent: when the request had been sent, by the loop's clock, in seconds.
    """

    response: aiohttp.ClientResponse
    sent: float
    trailers: RawHeaders = field(default=())

    @property
    def headers(self) -> RawHeaders:
        """The headers that are passed on, as they were spelt."""
        return end_to_end(self.response.raw_headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives: never more than one HTTP chunk at a time.

        Raises:
            UpstreamError: it is not whole; everything that had arrived was given before.
        """
        content = self.response.content
        lost = False
        while True:
            try:
                data, ended = await content.readchunk()
            except aiohttp.ClientError:
                if lost:
                    break
                # What had arrived before the end came is still in the reader.
                lost = True
                content._exception = None  # noqa: SLF001 - it has no public way to
                content._eof = True  # noqa: SLF001 - give what it has
                continue
            if data:
                yield data
            elif not ended:
                break
        if lost:
            raise UpstreamError("the service broke its answer off", self._how())
        self.trailers = self._trailers()

    def _watched(self) -> _Watched | None:
        protocol = self.response._protocol  # noqa: SLF001 - known from the first byte on
        return protocol if isinstance(protocol, _Watched) else None

    def _how(self) -> Literal["closed", "reset"]:
        watched = self._watched()
        reset = watched is not None and isinstance(watched.lost, ConnectionResetError)
        return "reset" if reset else "closed"

    def _trailers(self) -> RawHeaders:
        watched = self._watched()
        coding = self.response.headers.get("Transfer-Encoding", "")
        if watched is None or "chunked" not in coding.lower():
            return ()
        found = _TRAILERS.search(watched.tail)
        lines = found[1].splitlines() if found is not None else ()
        pairs = (line.partition(b":") for line in lines)
        return tuple((name, value.strip()) for name, _, value in pairs)

    def close(self) -> None:
        """Ends the connection, wherever the answer is."""
        self.response.close()


class Upstreams:
    """The connections to the services.

    Args:
        trust_env: use the proxies that the environment names.
    """

    def __init__(self, *, trust_env: bool = False) -> None:
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_note_sent)
        tracing.on_request_chunk_sent.append(_note_sent)
        connector = aiohttp.TCPConnector(limit=0)
        connector._factory = partial(  # type: ignore[assignment]  # noqa: SLF001 - no public way
            _Watched, loop=asyncio.get_running_loop()
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_AUTOMATIC,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECTING),
            trace_configs=[tracing],
            trust_env=trust_env,
        )

    async def ask(
        self,
        method: str,
        url: str,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes | AsyncIterable[bytes] | None,
    ) -> Upstream:
        """Sends a request; gives the answer when its head is there.

        Raises:
            UpstreamError: with the reason.
        """
        given = CIMultiDict[str]()
        for name, value in headers:
            given.add(name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))
        loop = asyncio.get_running_loop()
        context = SimpleNamespace(sent=loop.time())
        try:
            response = await self._session.request(
                method,
                URL(url, encoded=True),
                headers=given,
                data=body,
                allow_redirects=False,
                trace_request_ctx=context,
            )
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise UpstreamError(str(error) or type(error).__name__) from error
        return Upstream(response, context.sent)

    async def close(self) -> None:
        """Ends all connections."""
        await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _note_sent(session: aiohttp.ClientSession, context: SimpleNamespace, _: object) -> None:
    context.trace_request_ctx.sent = asyncio.get_running_loop().time()
