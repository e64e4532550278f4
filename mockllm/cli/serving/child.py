"""A command of the user beside a server: what leads it there, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING

from mockllm.cli.serving.start_errors import not_started
from mockllm.cli.terminal.output import echo
from mockllm.core.errors import NotStartedError

if TYPE_CHECKING:
    from mockllm.serve.server.app import MockServer
    from mockllm.serve.server.thread import ServerThread


@dataclass(frozen=True, slots=True)
class LedCommand:
    """A command of the user.

    Args:
        words: of the command; of an agent its arguments.
        agent: its name in `agents.yaml`; "" for any other command.
        limit: the seconds after which an agent is ended.
    """

    words: tuple[str, ...]
    agent: str = ""
    limit: float = 0.0


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


def run_beside(thread: ServerThread, program: LedCommand, *, keeps_keys: bool = False) -> int:
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
        return run_led(program, led, keeps_keys=keeps_keys)


def run_led(program: LedCommand, led: Mapping[str, str], *, keeps_keys: bool = False) -> int:
    """Runs a command with the variables that lead it to a server; its exit code."""
    if not program.agent:
        return wait_for(
            lambda: subprocess.Popen(program.words, env={**os.environ, **led}),  # noqa: S603
            program.words[0],
        )
    from mockllm.conformance.agents import launch
    from mockllm.wire.protocols.environment import credentials_in

    def end(process: subprocess.Popen[bytes]) -> int:
        code = launch.wait(process, program.limit)
        if code is not None:
            return code
        echo(launch.describe_end(command, program.limit), err=True, nl=False)
        return launch.TIMED_OUT

    kept = credentials_in(os.environ) if keeps_keys else {}
    with TemporaryDirectory(prefix="mockllm-agent-", ignore_cleanup_errors=True) as home:
        own = {**kept, **led}
        command = launch.prepare(program.agent, program.words, Path(home), own, os.environ)
        return wait_for(lambda: launch.start(command), command.words[0], end=end, send=launch.send)


def wait_for(
    begin: Callable[[], subprocess.Popen[bytes]],
    name: str,
    *,
    end: Callable[[subprocess.Popen[bytes]], int] = subprocess.Popen.wait,
    send: Callable[[subprocess.Popen[bytes], int], None] | None = None,
) -> int:
    """Runs a command to its end and passes signals on; its exit code, as a shell gives it.

    Args:
        begin: starts it.
        name: of its program.
        end: waits for its end.
        send: sends a signal to a command that has left the terminal's group; None: it is in it.
    """
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []
    pass_to = send or subprocess.Popen.send_signal

    def pass_on(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and send is None and _in_foreground():
            return  # the terminal has sent it to the command too
        if process is None:
            early.append(number)
        else:
            pass_to(process, number)

    # The handlers stand before the command starts: a signal in between would end only mockllm.
    before = {number: signal.signal(number, pass_on) for number in _SIGNALS}
    try:
        sys.stdout.flush()  # the command writes to the same file; what is ours comes first
        process = begin()
        for number in early:
            pass_to(process, number)
        code = end(process)
    except OSError as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        raise NotStartedError(f"cannot run {name!r}: {error.strerror}", code) from None
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
