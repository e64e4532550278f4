"""A command of the user beside a server: what leads it there, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING

from mockllm.cli.serving.start_errors import not_started
from mockllm.core.errors import NotStartedError

if TYPE_CHECKING:
    from mockllm.serve.server.app import MockServer
    from mockllm.serve.server.thread import ServerThread

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@contextmanager
def leading(
    server: MockServer, environment: Mapping[str, str], *, keeps_keys: bool = False
) -> Iterator[dict[str, str]]:
    """The variables that lead a program to a server: base URLs and keys, or, where the server
    intercepts, a proxy. With an authority the certificates to trust, too, which lie in a folder
    until the end; of a server that speaks TLS alone these are all.

    Args:
        environment: that the program would have otherwise.
        keeps_keys: whether its credentials stay, because a service behind the server needs them.
    """
    from mockllm.wire.protocols.environment import client_environment, client_keys, proxy_exemptions

    own = environment if keeps_keys else {}
    found = {"MOCKLLM_URL": server.url}
    intercept = server.options.intercept
    urls = {**client_environment(server.base_urls, own), **found, **proxy_exemptions(environment)}
    if server.authority is None:
        yield urls
        return
    from mockllm.serve.interception.child import (
        child_environment,
        trusting,
        trusting_sockets,
        with_session,
        write_trust,
    )

    with TemporaryDirectory(prefix="mockllm-") as name:
        folder = Path(name)
        write_trust(server.authority, folder, environment)
        if server.options.tls and intercept is None:
            yield {**found, **trusting(folder)}
            return
        if intercept is None:
            yield {**urls, **trusting_sockets(folder)}
            return
        proxy_url = with_session(server.proxy_url, "", intercept.password)
        led = child_environment(proxy_url, folder, intercept.hosts, environment)
        yield {**client_keys(server.base_urls, own), **found, **led}


def run_beside(thread: ServerThread, command: tuple[str, ...], *, keeps_keys: bool = False) -> int:
    """Runs a command while a server runs, led there; its exit code, as a shell gives it.

    Args:
        thread: of the server; it is not running yet.
        keeps_keys: as for `leading`.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(thread)
        except OSError as error:
            raise not_started(error, thread.server) from None
        thread.wait(thread.server.take_tls)
        led = stack.enter_context(leading(thread.server, os.environ, keeps_keys=keeps_keys))
        return wait_for(command, {**os.environ, **led})


def wait_for(command: tuple[str, ...], environment: Mapping[str, str]) -> int:
    """Runs a command to its end and passes signals on; its exit code, as a shell gives it."""
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and _in_foreground():
            return  # the terminal has sent it to the command too
        if process is None:
            early.append(number)
        else:
            process.send_signal(number)

    # The handlers stand before the command starts: a signal in between would end only mockllm.
    before = {number: signal.signal(number, pass_on) for number in _SIGNALS}
    try:
        sys.stdout.flush()  # the command writes to the same file; what is ours comes first
        process = subprocess.Popen(command, env=environment)  # noqa: S603 - what the user asks for
        for number in early:
            process.send_signal(number)
        code = process.wait()
    except OSError as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        raise NotStartedError(f"cannot run {command[0]!r}: {error.strerror}", code) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code  # as shells report a command that a signal ended


def _in_foreground() -> bool:
    """Whether we and the command are what a terminal sends its interrupts to."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
