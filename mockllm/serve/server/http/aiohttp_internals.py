"""All that mockllm uses of aiohttp and that aiohttp does not document, private names among it.

Each function says what it is for and why the documented interface does not do. Nothing else in
mockllm touches such names. `tests/serve/server/test_aiohttp_internals.py` lists them and holds each
function against the installed aiohttp; the bounds of the dependency in `pyproject.toml` are the
oldest and the newest minor release for which those tests pass.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

from aiohttp import ClientError, ClientPayloadError, ClientResponse, StreamReader, TCPConnector, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawRequestMessage

from mockllm.core.record import record
from mockllm.serve.interception.pipes import Watch, hand_over, join, until_lost
from mockllm.serve.server.http.connection_faults import Admission, reset

UNREADABLE = (web.RequestPayloadError, HttpProcessingError)
"""What reading a body raises whose framing or coding is wrong; the second is not documented."""

_TAIL = 16 * 1024
_LONGEST = 64 * 1024
"""The longest line of a head, in bytes; by default aiohttp takes 8,190, less than some cookies."""

_AGENT = re.compile(rb"\r\nuser-agent:[ \t]*([^\r\n]*)", re.IGNORECASE)

_CONNECT = re.compile(rb"CONNECT (\S+) HTTP/1\.1\r\n")

_QUOTED = 512
"""So much of what arrived last is kept, to find out which path a malformed request was for."""


# Serving


def low_level_server(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    *,
    limit: int | None = None,
    waits: bool = False,
    patience: float,
    gave_up: Callable[[], None] = lambda: None,
    malformed: Callable[[bytes, BaseException], web.Response] | None = None,
) -> web.Server:
    """A server without an application.

    `web.Server` is documented, but not how its connections learn which body belongs to the request
    that they answer: `request_factory` gets both. A handler whose client leaves is cancelled; where
    the client only ends its side, `leaves_at_end` decides.

    Args:
        limit: how many connections are served at the same time; None: any number.
        waits: whether further connections wait until another one ends; otherwise they are reset.
        patience: for how long nothing may arrive of a first request, or of a head that is not
            whole, in seconds.
        gave_up: called when a connection was closed with a part of a head.
        malformed: makes the answer to bytes that are no HTTP request, from what arrived last and
            what is wrong with it; None: aiohttp's own, in plain text, with a traceback in the log.
    """
    loop = asyncio.get_running_loop()

    def make_request(
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        cast("_Connection", protocol).answered = payload
        return web.BaseRequest(message, payload, protocol, writer, task, loop)

    admission = None if limit is None else Admission(limit, waits)
    return _Server(
        _Rules(admission, patience, gave_up, malformed),
        handler,
        request_factory=make_request,
        handler_cancellation=True,
        access_log=None,
        logger=_logger,
        max_line_size=_LONGEST,
        max_field_size=_LONGEST,
    )


@record
class _Rules:
    """Which connections are served, and what becomes of heads that do not arrive whole: see
    `low_level_server`."""

    admission: Admission | None
    patience: float
    gave_up: Callable[[], None]
    malformed: Callable[[bytes, BaseException], web.Response] | None = None


def _awaits_request(connection: web.RequestHandler) -> bool:
    """Whether no request is being answered, and none has arrived whole."""
    waiter = connection._waiter  # noqa: SLF001 - nothing else shows it
    return waiter is not None and not waiter.done()


def _with_one_agent(data: bytes) -> bytes:
    """The head with one `User-Agent` for several: google-genai sends two, services take them,
    and aiohttp refuses the request. A list is written with commas (RFC 9110, section 5.2)."""
    end = data.find(b"\r\n\r\n")
    agents = _AGENT.findall(data, 0, end)
    if len(agents) < 2:
        return data
    head = _AGENT.sub(b"", data[:end])
    return head + b"\r\nuser-agent: " + b", ".join(map(bytes.strip, agents)) + data[end:]


def _with_host(data: bytes) -> bytes:
    """The head with a `Host` where a CONNECT has none: its target says the same, and clients
    leave it out, but aiohttp refuses the request (RFC 9112, section 3.2)."""
    found = _CONNECT.match(data)
    if found is None or b"\r\nhost:" in data.lower():
        return data
    return found[0] + b"host: " + found[1] + b"\r\n" + data[found.end() :]


class _Connection(web.RequestHandler):
    """A connection that is served once it is admitted, and closed where nothing arrives, or a part
    of a head and then nothing more.

    aiohttp limits how long a connection may be idle, not how long a head may take. What of a head
    has arrived is known to its parser only; `_waiter` shows that no whole one has.
    """

    __slots__ = (
        "_admitted",
        "_arrived",
        "_give_up_at_end",
        "_has_begun",
        "_last",
        "_rules",
        "answered",
        "half_closed",
        "is_to_proxy",
        "leaves_at_end",
        "lost",
        "origin",
        "session",
    )

    def __init__(self, rules: _Rules, manager: web.Server, **options: Any) -> None:
        super().__init__(manager, **options)
        self._rules = rules
        self._arrived: asyncio.Transport | None = None
        self._admitted = False
        self._give_up_at_end: asyncio.TimerHandle | None = None
        self._has_begun = False
        self._last = b""
        self.answered: StreamReader | None = None
        """The body of the request that is being answered; None where none is."""
        self.half_closed = False
        """Whether the client has ended its side, and awaits answers."""
        self.leaves_at_end = False
        """Whether it leaves if it ends its side now: while an answer takes its time."""
        self.origin = ""
        """Of the service that the client believes to speak to; "" for none."""
        self.session = ""
        """That the client named to the proxy on the way; "" for none."""
        self.is_to_proxy = False
        """Whether its requests are to a forward proxy, and each names its own host."""
        self.lost: Callable[[], None] | None = None
        """Called when it is over."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Serves the connection, or lets it wait, or refuses it. To aiohttp it is open only when it
        is served."""
        self._arrived = cast("asyncio.Transport", transport)  # of uvloop it is none, but alike
        admission = self._rules.admission
        if admission is None or admission.admit(self._begin):
            self._begin()
        elif admission.waits:
            self._arrived.pause_reading()
        else:
            reset(self._arrived)

    def _begin(self) -> None:
        assert self._arrived is not None
        self._admitted = True
        super().connection_made(self._arrived)
        self._arrived.resume_reading()
        self._wait_for_head()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to bytes that are no HTTP request, and to an error that no handler caught.
        That aiohttp calls this method is not documented; it answers in plain text, and logs the
        traceback."""
        malformed = self._rules.malformed
        if malformed is None or exc is None:
            return super().handle_error(request, status, exc, message)
        # after a head that was read, what arrived last may be a part of the body
        unread = isinstance(exc, UNREADABLE)
        head = self._last if unread else f"{request.method} {request.raw_path}".encode()
        response = malformed(head, exc)
        response.force_close()
        return response

    def data_received(self, data: bytes) -> None:
        if not data:  # aiohttp reads on after a pause
            super().data_received(data)
            return
        self._last = data[:_QUOTED]
        if _awaits_request(self):
            data = _with_one_agent(_with_host(data) if self.is_to_proxy else data)
        super().data_received(data)
        self._end_unreadable_body()
        if self._give_up_at_end is not None or _awaits_request(self):
            self._expect_rest(data)

    def _end_unreadable_body(self) -> None:
        """Ends a body whose framing or coding is wrong in what arrived after its head. Otherwise
        whoever reads it waits on: aiohttp queues the error as a further request, and its reader
        does not look for one after it was woken by the end of a chunk without data; so the error is
        set when it waits again."""
        queued = list(self._messages)
        error = getattr(queued[-1][0], "exc", None) if queued else None
        if error is not None:
            queued.pop()
        body = queued[-1][1] if queued else self.answered
        if body is None or body.is_eof():
            return
        if error is None:
            error = body.exception()
        if error is not None:
            self._loop.call_soon(body.set_exception, error)

    def _expect_rest(self, data: bytes) -> None:
        """Closes the connection after a time in which nothing more arrives of a head that began;
        forgets that where all of it is there."""
        timer, self._give_up_at_end = self._give_up_at_end, None
        if timer is not None:
            timer.cancel()
        # Empty lines before a request are none (RFC 9112, section 2.2).
        self._has_begun = _awaits_request(self) and (self._has_begun or bool(data.strip(b"\r\n")))
        if self._has_begun:
            self._wait_for_head()

    def _wait_for_head(self) -> None:
        loop = asyncio.get_running_loop()
        self._give_up_at_end = loop.call_later(self._rules.patience, self._give_up)

    def eof_received(self) -> bool:  # type: ignore[override]  # as `asyncio.Protocol` has it
        """Leaves the server's side open for answers to requests that have arrived whole: a client
        may end its own side after them (RFC 9293, section 3.6). aiohttp closes the connection."""
        bodies = [body for _, body in self._messages]
        if self.answered is not None:
            bodies.append(self.answered)
        awaits_answers = bool(bodies) and all(body.is_eof() for body in bodies)
        self.half_closed = awaits_answers and not self.leaves_at_end
        return self.half_closed

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._give_up_at_end is not None:
            self._give_up_at_end.cancel()
        admission = self._rules.admission
        if self._admitted:
            if admission is not None:
                admission.leave()
            super().connection_lost(exc)
        elif admission is not None:
            admission.forget(self._begin)
        if self.lost is not None:
            self.lost()

    def _give_up(self) -> None:
        self._give_up_at_end = None
        if _awaits_request(self):
            if self._has_begun:
                self._rules.gave_up()
            self.force_close()


def _connection(request: web.BaseRequest) -> _Connection:
    """The connection that a request came on: those of `low_level_server` are all of our class."""
    return cast("_Connection", request.protocol)


def leaves_at_end(request: web.BaseRequest, leaves: bool) -> None:
    """Says whether the client of a request leaves if it ends its side of the connection now.

    A client that gives up a stream cannot be told from one that has only sent all it had to send.
    """
    _connection(request).leaves_at_end = leaves


def close_after_last(request: web.BaseRequest) -> None:
    """Closes the connection of a request that was answered, where its client has ended its side and
    waits for no further answer. `RequestHandler.close` does so after what is being sent."""
    connection = _connection(request)
    connection.answered = None
    if connection.half_closed and not awaits_more(request):
        connection.close()


def awaits_more(request: web.BaseRequest) -> bool:
    """Whether another request has arrived on the connection, and waits for this one's answer."""
    return bool(request.protocol._messages)  # noqa: SLF001 - nothing else shows it


def bytes_behind(request: web.BaseRequest) -> bytes:
    """The bytes behind the head of a request that ends HTTP on its connection: CONNECT, or one
    that opens a WebSocket. aiohttp keeps it in `_message_tail`, for its own readers of frames."""
    return request.protocol._message_tail  # noqa: SLF001 - see above


def take_over(request: web.BaseRequest) -> tuple[asyncio.Transport, bytes]:
    """The connection of a request that ends HTTP on it, which aiohttp no longer serves, and the
    bytes behind the head.

    Raises:
        ConnectionResetError: the client is gone already.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client closed the connection")
    server = cast("asyncio.Protocol", transport.get_protocol())
    # It learns of the end when the handler is over, which it would cancel.
    request.task.add_done_callback(lambda _: server.connection_lost(None))
    early, request.protocol._message_tail = bytes_behind(request), b""  # noqa: SLF001 - see above
    return transport, early


async def pass_through(
    request: web.BaseRequest,
    response: ClientResponse,
    watches: tuple[Watch | None, Watch | None] = (None, None),
) -> None:
    """Passes bytes between the client of a request and the service that answered it with 101, until
    both connections are over.

    aiohttp's WebSockets would read the frames and write others. What arrived behind the head of the
    answer is in `_tail`, where its own reader of frames looks for it.

    Args:
        watches: of what the client sends, and the service.

    Raises:
        ConnectionResetError: the client is gone already.
    """
    service = connection_of(response)
    assert service is not None
    near, sent = take_over(request)
    answered, far = service._tail, service.transport  # noqa: SLF001 - see above
    if far is None:  # the service has ended it at once
        near.write(answered)
        near.close()
        if watches[1] is not None:
            watches[1](answered, "")
            watches[1](b"", "eof")
        return
    pipes = join(near, far, watches)
    hand_over(near, pipes[0], sent)
    hand_over(far, pipes[1], answered)
    try:
        await until_lost(*pipes)
    finally:
        service.connection_lost(None)


class _Server(web.Server):
    """A server whose connections are of our class. `web.Server` is documented as a factory of
    protocols for `loop.create_server`; which class it makes is not."""

    def __init__(self, rules: _Rules, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._rules = rules

    def __call__(self, *, is_admitted: bool = False) -> Any:
        rules = self._rules
        if is_admitted:
            rules = replace(rules, admission=None)
        return _Connection(rules, self, loop=self._loop, **self._kwargs)


def proxy_connections(server: web.Server) -> Callable[[], asyncio.Protocol]:
    """Makes what serves a connection to a forward proxy, for `loop.create_server`."""

    def connect() -> asyncio.Protocol:
        connection = cast("_Connection", server())
        connection.is_to_proxy = True
        return connection

    return connect


def is_to_proxy(request: web.BaseRequest) -> bool:
    """Whether a request came on a connection to a forward proxy."""
    return _connection(request).is_to_proxy


def intercepted_connection(
    server: web.Server, origin: str, session: str, lost: Callable[[], None]
) -> asyncio.Protocol:
    """The protocol that serves a connection which a client believes to lead to an origin's service.

    Args:
        lost: called when it is over.
    """
    # In a tunnel; the connection to the proxy, which it goes through, is admitted already.
    connection: _Connection = cast("_Server", server)(is_admitted=True)
    connection.origin, connection.session, connection.lost = origin, session, lost
    return connection


def lead(request: web.BaseRequest, origin: str, session: str) -> None:
    """Notes which service the client of a proxy believes to ask with this request."""
    connection = _connection(request)
    connection.origin, connection.session = origin, session


def interception_of(request: web.BaseRequest) -> tuple[str, str]:
    """The origin and the session that the proxy on the way noted for a request; "" for none."""
    connection = _connection(request)
    return connection.origin, connection.session


class _WithoutRequest(logging.Filter):
    """Shortens the report about a request that is not HTTP: aiohttp quotes the line with its
    credentials. The exception that says so is not documented."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, web.RequestPayloadError):
            return False  # the request was refused, and is in the log, when its body was read
        if isinstance(error, HttpProcessingError):
            record.msg = f"{record.getMessage()}: it is not HTTP ({type(error).__name__})"
            record.args = record.exc_info = record.exc_text = None
        return True


_logger = logging.getLogger("aiohttp.server.mockllm")
_logger.addFilter(_WithoutRequest())


async def take_no_more_requests(server: web.Server) -> None:
    """Ends the connections: idle ones at once, the others after the requests that are answered.

    `Server.shutdown` is documented and does this, too, but cuts answers that take longer than
    its timeout; mockllm waits for those itself, as long as its user wants, and calls that then.
    `pre_shutdown` alone leaves idle connections open, and makes them ignore what comes: until the
    last stream is over, their clients would wait in vain.
    """
    # One that was just accepted takes three passes of the loop until it is seen to wait for its
    # requests: for `connection_made`, for its task, and for the `_waiter` that this makes.
    for _ in range(3):
        await asyncio.sleep(0)
    for connection in server.connections:
        if _awaits_request(connection) and connection.transport is not None:
            connection.transport.close()
    server.pre_shutdown()


class WrittenResponse(web.StreamResponse):
    """The response of a handler that has written its whole answer to `request.transport`: it does
    nothing when aiohttp begins or ends it.

    The documented way is a `StreamResponse` that is prepared and written to; it makes a new head
    for each answer and costs as much as all the rest of a request. A handler has to return a
    response all the same; that `prepare` and `write_eof` may do nothing is not documented. The
    response has no state, so that one does for all requests.
    """

    def __init__(self, *, keep_alive: bool) -> None:
        super().__init__()
        self._stays = keep_alive

    @property
    def keep_alive(self) -> bool:
        return self._stays

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        return None


async def drain(request: web.BaseRequest) -> None:
    """Waits until the client has read so much that `request.transport` takes more.

    `StreamResponse.write` waits after what was written through it, which the answers of mockllm
    are not (see `WrittenResponse`). `BaseRequest.writer` is not documented.
    """
    await request.writer.drain()


# Requests to services


class ServiceConnection(ResponseHandler):
    """A connection to a service that remembers its end.

    aiohttp drops the trailers of an answer, and reports a connection that was closed in the
    same way as one that was reset. When a body turns out to be malformed, it closes the connection,
    but with its parser in C no reader of the body ever hears of that. When head and malformed
    body arrive together, it drops the head.

    Args:
        tail: the last bytes that came, 16 KiB at most, as they were on the wire.
        lost: with what the connection was lost; None before, and where it was closed in order.
        malformed: why the parser could not read on; None where it could.
    """

    tail = b""
    lost: BaseException | None = None
    malformed: BaseException | None = None

    def data_received(self, data: bytes) -> None:
        self.tail = data[-_TAIL:] if len(data) >= _TAIL else (self.tail + data)[-_TAIL:]
        # The head goes to the parser by itself, so that it has been read when its body cannot be.
        while self._awaits_head() and (end := data.find(b"\r\n\r\n") + 4) > 3:
            self._parse(data[:end])
            data = data[end:]
            if not data:
                return
        self._parse(data)

    def _awaits_head(self) -> bool:
        body = _body_of(self)
        return self.malformed is None and (body is None or body.is_eof())

    def _parse(self, data: bytes) -> None:
        if self.malformed is not None:
            return
        super().data_received(data)
        error = self.exception()
        if not isinstance(error, HttpProcessingError):
            return
        self.malformed = error
        body = _body_of(self)
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(ClientPayloadError("the body is malformed"), error)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.lost = exc
        super().connection_lost(exc)


def _body_of(connection: ResponseHandler) -> StreamReader | None:
    """The body that a connection reads, or read last; None before the first one.

    `ClientResponse.content` is documented, but there is a response only after the head was read.
    """
    return connection._payload  # noqa: SLF001 - see above


def observe_connections(connector: TCPConnector) -> None:
    """Makes each connection that a connector opens from now on a `ServiceConnection`.

    `TraceConfig` reports the parts of a body after they are decoded, and no end of a connection;
    a connector has no documented way to choose the class of its connections.
    """
    connector._factory = partial(  # type: ignore[assignment]  # noqa: SLF001 - see above
        ServiceConnection, loop=asyncio.get_running_loop()
    )


def connection_of(response: ClientResponse) -> ServiceConnection | None:
    """The connection that a response came on; None where its connector was not observed.

    `ClientResponse.connection` is documented, and None as soon as the answer is complete, which
    is when its trailers are there.
    """
    protocol = response._protocol  # noqa: SLF001 - see above
    return protocol if isinstance(protocol, ServiceConnection) else None


BodyError = (ClientError, HttpProcessingError)
"""What reading the body of a response may raise. `ClientError` is what the reference lists, but the
parser in Python hands its own errors on."""


def give_what_arrived(content: StreamReader) -> None:
    """Lets the body of a response that was broken off be read up to where it broke.

    A reader whose connection was lost raises that at each read, also while there are bytes in it
    that arrived before. Afterwards it gives those, and then ends as a whole body does.
    """
    content._exception = None  # noqa: SLF001 - `set_exception` takes no None
    content._eof = True  # noqa: SLF001 - `feed_eof` resumes reading, too


def has_arrived(content: StreamReader) -> bool:
    """Whether the next read of a body gives bytes at once.

    `read_nowait` is documented, but takes them out, and without the ends of their HTTP chunks.
    """
    return bool(getattr(content, "_buffer", ()))  # the reader of an answer to HEAD has none
