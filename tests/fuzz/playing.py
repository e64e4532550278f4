"""Sends hostile requests to a server in this process, and judges its answers, its log and its
journal.
"""

from __future__ import annotations

import http.client
import json
import logging
import select
import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from random import Random
from typing import Any
from urllib.parse import urlsplit

from mockllm import ServerOptions, ServerThread, loads
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.wire.framing.eventstream import begins_stream
from mockllm.wire.protocols import PROTOCOLS
from tests.fuzz.hostile import Hostile, hostile_requests
from tests.fuzz.valid import SCENARIOS, Valid, control_routes, requests
from tests.timeouts import GIVE_UP

_BATCH = 400
"""So many requests at most share a session; then everything is read that can be read of it."""

_SESSION = "fuzz-session"
"""Stands for the session of a batch in requests."""

_PAUSE = 0.05
"""For how long an answer is waited for to what may be no whole request, in seconds."""

_OPTIONS: tuple[Mapping[str, Any], ...] = (
    {"strict": True, "fallback": True},
    {"strict": False, "fallback": True},
    {"strict": True, "fallback": False},
)


@dataclass(slots=True)
class Figures:
    """What came of some requests.

    Args:
        problems: by kind, what was seen: each request with what was wrong.
        statuses: how many answers had each status.
    """

    requests: int = 0
    problems: dict[str, list[str]] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)

    def add(self, kind: str, what: str) -> None:
        self.problems.setdefault(kind, []).append(what)

    def count(self, kind: str) -> int:
        return len(self.problems.get(kind, ()))


class _Log(logging.Handler):
    """Counts what is logged: tracebacks, and lines that are warnings or worse."""

    def __init__(self, figures: Figures, current: Callable[[], str]) -> None:
        super().__init__(logging.WARNING)
        self._figures = figures
        self._current = current

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        what = f"{record.getMessage():.200} {error!r:.200} after {self._current()}"
        self._figures.add("traceback" if error is not None else "logged", what)


def play(count: int, seed: int, *, apis: Collection[str] = (), **more: Any) -> Figures:
    """Sends so many hostile requests. The same seed sends the same ones.

    Args:
        apis: the names of some; none for all.
        more: options of all servers.
    """
    random = Random(seed)
    batch = min(_BATCH, -(-count // len(_OPTIONS)))
    return _play(islice(hostile_requests(random, _valid(random, apis)), count), batch, more)


def send(requests: Iterable[Hostile], **more: Any) -> Figures:
    """Sends requests to one server that has these options."""
    return _play(iter(requests), _BATCH, more, _OPTIONS[:1])


def _play(
    hostile_ones: Iterator[Hostile],
    batch: int,
    more: Mapping[str, Any],
    options: Sequence[Mapping[str, Any]] = _OPTIONS,
) -> Figures:
    figures = Figures()
    current = [""]
    log = _Log(figures, lambda: current[0])
    root = logging.getLogger()
    root.addHandler(log)
    try:
        with ExitStack() as stack:
            servers = cycle(
                [stack.enter_context(_server({**own, **more}, figures)) for own in options]
            )
            while hostiles := list(islice(hostile_ones, batch)):
                server, session = next(servers), f"fuzz-{figures.requests}"
                port, proxy = _port(server), server.server.proxy_url
                for hostile in hostiles:
                    current[0] = hostile.what
                    figures.requests += 1
                    data = hostile.data.replace(_SESSION.encode(), session.encode())
                    _judge(hostile, _exchange(port, data, hostile.whole, proxy), figures)
                current[0] = f"the {len(hostiles)} requests of {session}"
                _read_all(port, session, figures, current[0])
    finally:
        root.removeHandler(log)
    return figures


def _server(options: dict[str, Any], figures: Figures) -> ServerThread:
    def log(exchange: Exchange) -> None:
        if exchange.outcome in ("failed", "crashed"):
            figures.add("failed", "; ".join(exchange.problems))

    return ServerThread(loads(SCENARIOS), ServerOptions(log=log, grace=0, speed=0, **options))


def _port(server: ServerThread) -> int:
    port = urlsplit(server.url).port
    assert port is not None
    return port


def _valid(random: Random, apis: Collection[str]) -> list[Valid]:
    """The valid requests; some of those for control routes are there several times, and some of the
    others name the session in a header."""
    found = requests(apis) + control_routes(_SESSION) * 2
    for one in found:
        if not one.target.startswith("/_mockllm") and random.random() < 0.5:
            one.headers["x-mockllm-session"] = _SESSION
    return found


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    type: str
    body: bytes


def _exchange(port: int, data: bytes, whole: bool = True, proxy: str = "") -> _Answer | str:
    """The answer to a request; why there is none.

    Args:
        proxy: the URL of the forward proxy that leads to the port.
        whole: whether an answer comes without anything further. Otherwise the client closes its
            side where nothing comes; the server then drops what is not a whole request.
    """
    reached = urlsplit(proxy).port or port
    with socket.create_connection(("127.0.0.1", reached), timeout=GIVE_UP) as connection:
        if proxy:
            connection.sendall(b"CONNECT 127.0.0.1:80 HTTP/1.1\r\n\r\n")
            assert connection.recv(65536).endswith(b"\r\n\r\n")
        with suppress(ConnectionError):  # it may have been refused before all was sent
            connection.sendall(data)
            if not whole and not select.select([connection], [], [], _PAUSE)[0]:
                connection.shutdown(socket.SHUT_WR)
        method = data.partition(b" ")[0].decode("latin-1")
        answer = http.client.HTTPResponse(connection, method=method)
        try:
            answer.begin()
            return _Answer(answer.status, answer.getheader("content-type", ""), answer.read())
        except TimeoutError:
            return f"no answer for {GIVE_UP:g} s"
        except (http.client.HTTPException, OSError) as error:
            return f"no whole answer: {error!r}"
        finally:
            answer.close()


def _judge(hostile: Hostile, answer: _Answer | str, figures: Figures) -> None:
    """Holds an answer to the rules: no 5xx, errors in the form of an API, whole answers."""
    if isinstance(answer, str):
        if hostile.whole or "no answer for" in answer:
            figures.add("no answer", f"{hostile.what}: {answer}")
        return
    figures.statuses[answer.status] += 1
    what = f"{answer.status} {answer.body[:200]!r} for {hostile.what}"
    if answer.status >= 500:
        figures.add("5xx", what)
    if answer.type.startswith("text/plain") and not _is_text(hostile.data):
        figures.add("plain text", what)
    try:
        text = answer.body.decode()
    except UnicodeDecodeError:
        if not begins_stream(answer.body) and not answer.type.startswith("audio/"):
            figures.add("not UTF-8", what)
        return
    if answer.type.startswith("application/json") and hostile.data[:4] != b"HEAD":
        try:
            json.loads(text, parse_constant=_no_constant)
        except ValueError as error:
            figures.add("not JSON", f"{error} in {what}")
    if answer.status >= 400 and hostile.data[:4] != b"HEAD" and not _is_error(text):
        figures.add("not in the form of an API", what)


def _is_text(data: bytes) -> bool:
    """Whether a request is for something that is plain text."""
    return data.startswith((b"GET / ", b"HEAD / ")) or b"/metrics" in data[:200]


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _is_error(text: str) -> bool:
    """Whether a text is an error of an API, or of a control route."""
    try:
        value = json.loads(text)
    except ValueError:
        return False
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if not isinstance(value, dict):
        return False
    own = value.get("error")
    if isinstance(own, dict) and isinstance(own.get("message"), str):
        return True
    return any(protocol.decode_error(value) is not None for protocol in PROTOCOLS.values())


def _read_all(port: int, session: str, figures: Figures, what: str) -> None:
    """Reads everything that shows what was received."""
    paths = [f"{route.target}" for route in control_routes(session) if route.method == "GET"]
    for path in (*paths, f"/_mockllm/verify?session={session}"):
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        answer = _exchange(port, request.encode("ascii"))
        if isinstance(answer, str) or answer.status not in (200, 404, 501):
            figures.add("not readable", f"{path} after {what}: {str(answer)[:300]}")
            continue
        if "metrics" not in path:
            try:
                json.loads(answer.body)
            except ValueError as error:
                figures.add("not readable", f"{path} after {what}: {error}")
