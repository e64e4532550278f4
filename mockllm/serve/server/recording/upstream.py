"""The real services behind a recording server: one request to one of them, its answer as it
arrives.

Nothing is decided for the client here: no redirect is followed, nothing is decompressed, no
header is added, and what breaks off breaks off. aiohttp's own reader hides two things that have
to be passed on, trailers and how a connection was lost; `ServiceConnection` sees those.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from mockllm.core.errors import UpstreamError
from mockllm.serve.server.http.aiohttp_internals import (
    BodyError,
    connection_of,
    give_what_arrived,
    has_arrived,
    observe_connections,
)

RawHeaders = tuple[tuple[bytes, bytes], ...]

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"}
    | {"te", "transfer-encoding", "upgrade"}
)
"""Fields of one connection (RFC 9110, sections 7.6.1, 11.7.1 and 11.7.2)."""
_AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
# The last chunk and the trailers behind it (RFC 9112, sections 7.1 and 7.1.2).
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


@dataclass(slots=True)
class Upstream:
    """An answer that is on its way.

    Args:
        sent: when the request had been sent, by the loop's clock, in seconds.
        headers: that are passed on, in their original case.
    """

    response: aiohttp.ClientResponse
    sent: float
    trailers: RawHeaders = ()
    headers: RawHeaders = field(init=False)
    _in_chunk: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.headers = end_to_end(self.response.raw_headers)

    @property
    def has_more(self) -> bool:
        """Whether a further chunk has arrived already."""
        return has_arrived(self.response.content)

    @property
    def reason(self) -> str:
        """The reason phrase, a character for each byte."""
        reason = self.response.reason or ""  # aiohttp decodes it so
        return reason.encode("utf-8", "surrogateescape").decode("latin-1")

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
            except BodyError:
                if lost:
                    break
                # What had arrived before the end came is still in the reader.
                lost = True
                give_what_arrived(content)
                continue
            if data or ended:
                self._in_chunk = not ended
            if data:
                yield data
            elif not ended or content.at_eof():
                break  # the reader of an empty body ends chunk after chunk, for ever
        if lost or self._ended_by_reset():
            raise self._fault()
        self.trailers = self._trailers()

    def _fault(self) -> UpstreamError:
        """Why the body is not whole, without bytes of it, which may hold credentials."""
        connection = connection_of(self.response)
        if connection is not None and connection.malformed is not None:
            kind = type(connection.malformed.__cause__ or connection.malformed).__name__
            message = f"The service's answer is malformed: its body cannot be read ({kind})."
            return UpstreamError(message, "closed")
        if connection is not None and isinstance(connection.lost, ConnectionResetError):
            message = "The service reset the connection before the end of its answer."
            return UpstreamError(message, "reset")
        message = "The service closed the connection before the end of its answer."
        coding = self.response.headers.get("Transfer-Encoding", "").lower()
        in_chunk = "chunked" in coding and self._in_chunk
        return UpstreamError(message, "chunk" if in_chunk else "closed")

    def _ended_by_reset(self) -> bool:
        """Whether a body that only the end of the connection ends was ended by a reset; aiohttp
        takes any end for its end."""
        connection = connection_of(self.response)
        headers = self.response.headers
        return (
            connection is not None
            and isinstance(connection.lost, ConnectionResetError)
            and "Content-Length" not in headers
            and "Transfer-Encoding" not in headers
        )

    def _trailers(self) -> RawHeaders:
        connection = connection_of(self.response)
        coding = self.response.headers.get("Transfer-Encoding", "")
        if connection is None or "chunked" not in coding.lower():
            return ()
        if connection.tail.endswith(b"\n0\r\n\r\n"):  # as nearly all; the search takes 0.15 ms
            return ()
        found = _TRAILERS.search(connection.tail)
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
        observe_connections(connector)
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_AUTOMATIC,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECTING),
            trace_configs=[tracing],
            trust_env=trust_env,
        )

    async def send(
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
            raise UpstreamError(_reason(error)) from error
        return Upstream(response, context.sent)

    async def aclose(self) -> None:
        """Ends all connections."""
        await self._session.close()


def _reason(error: Exception) -> str:
    """Why no answer came, without the URL and the broken line, which may hold credentials."""
    match error:
        case aiohttp.ClientResponseError():
            return f"its answer is not HTTP ({type(error.__cause__ or error).__name__})"
        case aiohttp.InvalidURL():
            return error.description or type(error).__name__
    return str(error) or type(error).__name__


async def _note_sent(session: aiohttp.ClientSession, context: SimpleNamespace, _: object) -> None:
    context.trace_request_ctx.sent = asyncio.get_running_loop().time()
