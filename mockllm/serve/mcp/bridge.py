"""The stdio bridge: an MCP server as a program, for agents that start their servers.

It passes lines on to a server of mockllm over HTTP, and its answers back. Each message has a
thread, as agents make calls side by side. Where a recorder runs, a real program may answer in place
of the server, which gets each request with its answer.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock, Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mockllm.core.errors import UsageError
from mockllm.core.text import quantity
from mockllm.play.mcp.rpc import (
    ANSWER,
    CHANGED,
    INTERNAL_ERROR,
    META,
    METHOD_HEADER,
    NAME_HEADER,
    RECORDED,
    STDIO_HEADER,
    VERSION_HEADER,
    RpcProblem,
    error_of,
    mapping,
)

_PATIENCE = 600
"""Seconds that an answer may take."""

_TO_CONNECT = 5

_NOISE = "starting up, this line is no JSON\n"


class _Asked(NamedTuple):
    """A request for a program that waits for its answer.

    Args:
        at: when it was sent, in seconds since 1970.
        before: what the program said meanwhile that answers nothing.
    """

    request: dict[str, Any]
    at: float
    before: list[dict[str, Any]]


def _note(message: dict[str, Any], waiting: Sequence[_Asked]) -> bool:
    """Notes what a program says at the request that it concerns, else at the newest; whether there
    is one."""
    token = mapping(message.get("params")).get("progressToken")
    for one in reversed(waiting):
        meta = mapping(mapping(one.request.get("params")).get("_meta"))
        if token is None or meta.get("progressToken") == token:
            one.before.append(message)
            return True
    return False


class Bridge:
    """Passes the messages of one agent on.

    Args:
        url: of the MCP server.
        write: writes bytes to the agent.
        report: tells people why a message has no answer.
    """

    def __init__(
        self, url: str, write: Callable[[bytes], None], report: Callable[[str], None]
    ) -> None:
        self._to_agent, self._report = write, report
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise UsageError(f"--url needs a URL such as http://127.0.0.1:8080, got {url!r}")
        self._host, self._port, self._path = parts.hostname, parts.port or 80, parts.path
        self._lock = Lock()

    def check(self) -> None:
        """Checks that something listens.

        Raises:
            OSError: nothing does.
        """
        socket.create_connection((self._host, self._port), _TO_CONNECT).close()

    def run(self, lines: Iterable[bytes]) -> None:
        """Passes lines on until there are no more, and then waits for the last answers."""
        threads: list[Thread] = []
        for line in lines:
            if line.strip():
                thread = Thread(target=self._pass, args=(line.strip(),), daemon=True)
                thread.start()
                threads = [thread, *(one for one in threads if one.is_alive())]
        end = time.monotonic() + _TO_CONNECT
        for thread in threads:
            thread.join(max(0, end - time.monotonic()))

    def _pass(self, line: bytes) -> None:
        id = _id_of(_parse(line))
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_PATIENCE)
        try:
            connection.request("POST", self._path, line, _headers(line))
            response = connection.getresponse()
            told = response.getheader(STDIO_HEADER)
            if told == "exit":
                os._exit(1)
            if told == "noise":
                self._write(_NOISE)
            for message in _messages(response, id):
                self._write(message + "\n")
        except (OSError, http.client.HTTPException) as error:
            self._report(f"mockllm mcp: no answer: {error!r}")
            if id is not None:  # an agent would wait for its timeout
                self._write(_error(id, f"no answer: {error!r}") + "\n")
        finally:
            connection.close()

    def record(self, command: Sequence[str], lines: Iterable[bytes]) -> int:
        """Passes lines on to a program and its lines back, and hands each request with its answer
        to a recorder, before the agent has the answer.

        Returns:
            the exit code of the program.

        Raises:
            UsageError: no recorder takes them.
            OSError: the program cannot be started.
        """
        if self._hand_over("GET", b"") != RECORDED:
            name = self._path.rpartition("/")[2]
            raise UsageError(
                f"nobody records the MCP server {name!r} at {self._host}:{self._port}: start "
                f"'mockllm record -o DIR --upstream mcp:{name}=stdio', or leave the command off to "
                "have the server played"
            )
        found = shutil.which(command[0]) or command[0]
        with (
            subprocess.Popen(  # noqa: S603 - the command of the user
                [found, *command[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            ) as program
        ):
            signal.signal(signal.SIGTERM, lambda *_: program.terminate())
            asked: dict[str, _Asked] = {}
            aside = 0
            Thread(target=self._ask, args=(program, lines, asked), daemon=True).start()
            assert program.stdout is not None
            for line in program.stdout:
                message = _parse(line)
                if "method" in message:  # a request of the program has an id of its own
                    is_noted = _note(message, list(asked.values()))
                    aside += not is_noted and message["method"] != CHANGED
                elif (answered := asked.pop(repr(message.get("id")), None)) is not None:
                    self._report_exchange(answered, message)
                self._to_agent(line)
        for one in list(asked.values()):
            self._report_exchange(one, None)
        if aside:
            said = f"{quantity(aside, 'message')} of the program"
            self._report(f"mockllm mcp: not recorded, since no request waited: {said}")
        return program.returncode

    def _ask(
        self, program: subprocess.Popen[bytes], lines: Iterable[bytes], asked: dict[str, _Asked]
    ) -> None:
        """Passes lines on to a program, and notes which requests wait for an answer."""
        assert program.stdin is not None
        try:
            for line in lines:
                message = _parse(line)
                if "id" in message and "method" in message:
                    asked[repr(message["id"])] = _Asked(message, time.time(), [])
                program.stdin.write(line)
                program.stdin.flush()
                if message.get("method") == "notifications/cancelled":
                    id = mapping(message.get("params")).get("requestId")
                    given_up = asked.pop(repr(id), None)
                    if given_up is not None:
                        self._report_exchange(given_up, None)
            program.stdin.close()
        except (OSError, ValueError):  # the program has ended
            pass

    def _report_exchange(self, asked: _Asked, answer: dict[str, Any] | None) -> None:
        """Hands an exchange over; None: there was no answer, which the journal alone has."""
        request, at, before = asked
        if answer is not None:
            after = round((time.time() - at) * 1_000_000)
            passed = {"answer": answer, "before": before, "at": at, "after": max(after, 0)}
            request = request | {ANSWER: passed}
        try:
            why = "it has no answer, or the recorder refuses it"
            if self._hand_over("POST", json.dumps(request).encode()) == RECORDED:
                return
        except (OSError, http.client.HTTPException) as error:
            why = repr(error)
        self._report(f"mockllm mcp: a {request['method']} is not recorded: {why}")

    def _hand_over(self, method: str, body: bytes) -> str | None:
        """Sends something for the recorder; what its answer says to the bridge."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TO_CONNECT)
        try:
            connection.request(method, self._path, body, _headers(body) | {STDIO_HEADER: RECORDED})
            response = connection.getresponse()
            response.read()
            return response.getheader(STDIO_HEADER)
        finally:
            connection.close()

    def _write(self, text: str) -> None:
        with self._lock:
            self._to_agent(text.encode())


def _headers(line: bytes) -> dict[str, str]:
    """The headers that a client of HTTP would send with a message."""
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        STDIO_HEADER: "1",
    }
    message = _parse(line)
    params = mapping(message.get("params"))
    version = mapping(params.get("_meta")).get(f"{META}protocolVersion")
    if isinstance(version, str):
        headers |= {VERSION_HEADER: version, METHOD_HEADER: str(message.get("method"))}
        name = params.get("name")
        if isinstance(name, str):
            headers[NAME_HEADER] = name
    return {name: text for name, text in headers.items() if text.isascii() and text.isprintable()}


def _parse(text: bytes | str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _id_of(message: dict[str, Any]) -> str | int | None:
    """The id of a request; None where the message is none."""
    id = message.get("id") if "method" in message else None
    return id if isinstance(id, str | int) else None


def _error(id: str | int | None, text: str) -> str:
    return json.dumps(error_of(id, RpcProblem(INTERNAL_ERROR, text)))


def _messages(response: http.client.HTTPResponse, id: str | int | None) -> Iterator[str]:
    """The messages of an answer, a line each; an HTTP error is one of the protocol, which has the
    id of the request, as clients wait on where it has another one."""
    kind = response.getheader("content-type") or ""
    if kind.startswith("text/event-stream"):
        for line in response:
            text = line.decode().rstrip("\r\n")
            if text.startswith("data: ") and text != "data: ":
                yield text.removeprefix("data: ")
        return
    body = response.read()
    if not body:
        return
    message = _parse(body)
    if response.status >= 400 and "jsonrpc" not in message:
        yield _error(id, f"HTTP {response.status}")
    elif response.status >= 400 and id is not None:
        yield json.dumps(message | {"id": id})
    else:
        yield body.decode(errors="replace").replace("\r", " ").replace("\n", " ")
