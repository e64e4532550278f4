"""Cases with faults for Python clients: settings, one client object for several requests, and what
its user saw. Standard library only.

An adapter calls `job.using(make)` for its client, `job.watched(stream, text, cancel)` around the
stream that it reads, `job.entered(stream)` in place of `with` the stream, and `job.wait(coroutine)`
where it is asynchronous.

A user cancels in one of three ways, the same for all clients. `leave`: the loop is left, and the
`with` around it, and the stream is kept. `call`: what the client has to cancel is called, and the
loop not left. `drop`: nothing refers to the stream any more, and no `with` was left. Nothing else
is closed before `HOLD` seconds are over: that would close the connection, too.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import replace
from typing import Any

__all__ = ["CancelledByUser", "FaultRun", "kind_of", "outcomes_with_faults"]


HOLD = 6.0
"""Seconds for which nothing else is done after a cancellation; a connection has 5 to be closed."""


_COLLECTING = threading.Lock()


def _collect() -> None:
    """Frees what nothing refers to; while one thread does, `gc.collect` of another does nothing."""
    with _COLLECTING:
        gc.collect()


class CancelledByUser(Exception):  # noqa: N818 - no error, and no client may handle it as one
    """The user wants no more of the stream."""


class FaultCase:
    """What all requests of a case share: the client, its event loop and its sockets."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: Callable[[], Any] | None = None
        self.sockets: weakref.WeakSet[Any] = weakref.WeakSet()
        self.kept: list[Any] = []

    def client(self, make: Callable[[], Any]) -> Any:
        """The client; it is made once."""
        with self._lock:
            if self._client is None:
                self._client = make()
            return self._client

    def wait(self, work: Any) -> Any:
        """The result of a coroutine, in the one event loop of the case."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
            loop = self._loop
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def close(self) -> dict[str, int] | None:
        """Closes the client as its users do, and counts what is open then; None where it has no
        way to be closed."""
        client, self._client = self._client, None
        self.kept.clear()
        close = getattr(client, "close", None)
        if close is not None and self._loop is None:
            close()
        elif close is not None:
            self.wait(_closed(close))
        can_close = close is not None
        del client, close
        _collect()
        left = {"connections": sum(socket.fileno() >= 0 for socket in self.sockets)}
        if self._loop is not None:
            left["tasks"] = self.wait(_tasks())
            self._loop.call_soon_threadsafe(self._loop.stop)
        return left if can_close else None


async def _closed(close: Callable[[], Any]) -> None:
    await close()
    # A transport closes its socket in the next turn of the loop.
    for _ in range(3):
        await asyncio.sleep(0)


async def _tasks() -> int:
    return len(asyncio.all_tasks()) - 1


class FaultRun:
    """One request of a case with a fault.

    Args:
        way: how the user cancels; "" for not at all.
    """

    cancelled = CancelledByUser

    def __init__(self, case: FaultCase, way: str) -> None:
        self.case, self.way = case, way
        self.held = False
        self.shown = ""
        self.watches = False

    def cancels(self, stream: Any, text: Any) -> bool:
        """The user gets a piece of the stream, and may want no more."""
        self.shown += text or ""
        if not self.way or not text:
            return False
        if self.way == "leave":
            self.case.kept.append(stream)
        return True

    def hold(self) -> None:
        """Waits, once, until the connection should have been closed."""
        if self.held:
            return
        self.held = True
        for _ in range(2):
            if self.way == "drop":
                _collect()
            time.sleep(HOLD / 2)


_CASE: ContextVar[FaultCase | None] = ContextVar("_CASE", default=None)


def _connected(event: str, arguments: tuple[Any, ...]) -> None:
    """Remembers the sockets that a case connects."""
    if event == "socket.connect":
        case = _CASE.get()
        if case is not None:
            case.sockets.add(arguments[0])


def outcomes_with_faults(
    ask: Callable[[Any], dict[str, Any]],
    raised: Callable[[Exception], dict[str, Any]],
    job: Any,
) -> dict[str, Any]:
    """The answer to a case: the outcome of its last request, those before in `earlier`."""
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_connected)
    case = FaultCase()
    _CASE.set(case)
    number = job.requests

    def one(_: int) -> dict[str, Any]:
        way = (job.cancel or {}).get("by", "")
        return _outcome(ask, raised, replace(job, run=FaultRun(case, way)))

    if job.together:
        with ThreadPoolExecutor(number) as pool:
            futures = [pool.submit(copy_context().run, one, n) for n in range(number)]
            found = [future.result() for future in futures]
    else:
        found = [one(n) for n in range(number)]
    answer = {**found[-1], "earlier": found[:-1]}
    left = case.close()
    return answer if left is None else {**answer, "left": left}


_hooked: list[bool] = []


def _outcome(
    ask: Callable[[Any], dict[str, Any]], raised: Callable[[Exception], dict[str, Any]], job: Any
) -> dict[str, Any]:
    try:
        answer = ask(job)
    except ImportError:
        raise
    except CancelledByUser:
        answer = {"text": job.run.shown}
    except Exception as error:  # noqa: BLE001 - any exception of a client is its outcome
        answer = raised(error)
        for report in (*answer.get("errors", ()), answer.get("crash")):
            if report:
                first = _first(error)
                report |= {"type": type(first).__name__, "kind": kind_of(first)}
    if job.run.way:
        job.run.hold()
    return {**answer, "handed_on": job.run.shown} if job.run.watches else answer


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


_FOREIGN = (
    "httpx",
    "httpx2",
    "httpcore",
    "httpcore2",
    "aiohttp",
    "requests",
    "urllib3",
    "builtins",
    "json",
    "anyio",
)
"""Exceptions of these packages are not the client's own; they say nothing to its users."""

_WORDS = {
    "timeout": "timeout",
    "ratelimit": "rate_limit",
    "rate_limit": "rate_limit",
    "resource_exhausted": "rate_limit",
    "throttling": "rate_limit",
    "overloaded": "overloaded",
    "unavailable": "overloaded",
    "connection": "network",
    "badrequest": "request",
    "authentication": "request",
    "permissiondenied": "request",
    "notfound": "request",
    "unprocessable": "request",
    "invalid_request": "request",
    "invalidrequest": "request",
    "internalserver": "server",
    "servererror": "server",
    "server_error": "server",
    "api_error": "server",
    "responsevalidation": "protocol",
    "protocol": "protocol",
    "incomplete": "protocol",
    "unknownapiresponse": "protocol",
}

_STATUSES = {408: "timeout", 429: "rate_limit", 503: "overloaded", 529: "overloaded"}


def kind_of(error: BaseException) -> str | None:
    """The cause that an exception names: by its class, its status, its code or its type."""
    if type(error).__module__.partition(".")[0] in _FOREIGN:
        return None
    named = _kind_of_text(type(error).__name__)
    if named is not None:
        return named
    values = [getattr(error, name, None) for name in ("status_code", "code", "type", "status")]
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # that of botocore's errors
        values.append(response.get("Error", {}).get("Code"))
        values.append(response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
    found = [_kind_of_value(one) for one in values]
    return next((one for one in found if one is not None), None)


def _kind_of_value(value: Any) -> str | None:
    if isinstance(value, int):
        default = "request" if 400 <= value < 500 else "server" if value >= 500 else None
        return _STATUSES.get(value, default)
    return _kind_of_text(value) if isinstance(value, str) else None


def _kind_of_text(text: str) -> str | None:
    low = text.lower()
    return next((kind for word, kind in _WORDS.items() if word in low), None)
