"""`mockllm serve --workers N`: several processes on one port, started again when they end."""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mockllm.cli.options.parameters import served_scenarios
from mockllm.cli.serving.cassettes import ScenarioSources
from mockllm.cli.serving.listening import Loop, pause_collection, run_server
from mockllm.cli.serving.server_log import LineOutput, LogOptions, ServerLog
from mockllm.cli.serving.start_errors import cannot_listen
from mockllm.cli.serving.stop_signals import count_signals
from mockllm.cli.terminal.output import echo
from mockllm.core.errors import MockLLMError

if TYPE_CHECKING:
    from mockllm.serve.server.options import ServerOptions

_TURN = 0.2
"""Seconds after which a signal is noticed at the latest."""

_SLACK = 5.0
"""Seconds that workers have after the grace to write what they have."""

_FAILURES = 5
"""So many ends in a row, each within `_SHORT` seconds after a start, end the server."""

_SHORT = 2.0


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """The work of each worker.

    Args:
        options: of the server, without functions.
    """

    paths: tuple[Path, ...]
    options: ServerOptions
    loop: Loop
    log: LogOptions
    reload: bool


@dataclass(slots=True)
class _Worker:
    number: int
    process: SpawnProcess
    messages: Connection
    began: float
    ready: bool = False
    short_lives: int = 0


def serve_with_workers(plan: WorkerPlan, count: int) -> None:
    """Serves in processes of their own until a signal; a second one ends them at once.

    Raises:
        UsageError: the address cannot be listened on.
        Exit: a worker failed at its start, or again and again.
    """
    folder = Path(tempfile.mkdtemp(prefix="mockllm-"))
    try:
        with _bound_socket(plan.options) as bound:
            options = replace(plan.options, port=bound.getsockname()[1])
            if not options.state:
                options = replace(options, state=f"sqlite:{folder / 'state.db'}")
            shared = None if _balances() else bound
            _Supervisor(replace(plan, options=options), count, shared).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _balances() -> bool:
    """Whether the system spreads connections over several sockets of one port."""
    return sys.platform == "linux" and hasattr(socket, "SO_REUSEPORT")


def _bound_socket(options: ServerOptions) -> socket.socket:
    """A socket that keeps the port of the workers. They share it where the system does not spread
    connections over several."""
    # Without SO_REUSEPORT at first: another server on this port is an error.
    bound = _bind(options.host, options.port)
    if _balances():
        port = bound.getsockname()[1]
        bound.close()
        return _bind(options.host, port, socket.SO_REUSEPORT)
    bound.listen(1024)
    return bound


def _bind(host: str, port: int, *flags: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        for flag in (socket.SO_REUSEADDR, *flags):
            bound.setsockopt(socket.SOL_SOCKET, flag, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise cannot_listen(error, host, port) from None
    return bound


class _Supervisor:
    """Starts workers, waits for them, starts them again, ends them."""

    def __init__(self, plan: WorkerPlan, count: int, shared: socket.socket | None) -> None:
        self._plan, self._count, self._shared = plan, count, shared
        self._signals = 0
        self._spawn = multiprocessing.get_context("spawn")
        self._workers: dict[int, _Worker] = {}
        self._output = LineOutput()

    def _note_signal(self, count: int) -> None:
        self._signals = count

    def run(self) -> None:
        """Runs the workers until a signal. The others start when the first one listens."""
        count_signals(self._note_signal)
        try:
            self._start(1, first=True)
            while not self._workers[1].ready:  # what is wrong is said once
                self._look(starting=True)
                if self._signals:
                    return
            for number in range(2, self._count + 1):
                self._start(number)
            while not self._signals:
                self._look()
        finally:
            self._stop()

    def _start(self, number: int, *, first: bool = False, short_lives: int = 0) -> None:
        receiving, sending = self._spawn.Pipe(duplex=False)
        arguments = (self._plan, number, first, self._shared, sending)
        process = self._spawn.Process(
            target=run_worker, args=arguments, name=f"mockllm-worker-{number}"
        )
        process.start()
        sending.close()  # else the pipe stays open here, and the end of the worker is not seen
        began = time.monotonic()
        self._workers[number] = _Worker(number, process, receiving, began, short_lives=short_lives)

    def _look(self, *, starting: bool = False) -> None:
        waiting: list[Any] = [worker.process.sentinel for worker in self._workers.values()]
        waiting += [worker.messages for worker in self._workers.values() if not worker.ready]
        wait(waiting, timeout=_TURN)
        for worker in tuple(self._workers.values()):
            if not worker.ready and worker.messages.poll():
                try:
                    worker.messages.recv()
                    worker.ready = True
                except EOFError:
                    pass  # it ended
            if not worker.process.is_alive() and not self._signals:
                self._restart(worker, starting)

    def _restart(self, worker: _Worker, starting: bool) -> None:
        worker.process.join()
        code = worker.process.exitcode or 0
        # One that fails at its start would fail again: what is wrong has been printed by it.
        if starting or worker.short_lives >= _FAILURES:
            raise click.exceptions.Exit(code if code > 0 else 1)
        short = time.monotonic() - worker.began < _SHORT
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        self._output.line(
            f"worker {worker.number} (process {worker.process.pid}) ended with {how}; it is "
            "started again"
        )
        self._start(worker.number, short_lives=worker.short_lives + 1 if short else 0)

    def _stop(self) -> None:
        """Ends all workers; after a second signal, or when they take too long, at once."""
        processes = [
            worker.process for worker in self._workers.values() if worker.process.is_alive()
        ]
        for process in processes:
            process.terminate()
        limit = time.monotonic() + self._plan.options.grace + _SLACK
        while any(process.is_alive() for process in processes) and self._signals < 2:
            if time.monotonic() > limit:
                break
            wait([process.sentinel for process in processes if process.is_alive()], timeout=_TURN)
        killed = [process for process in processes if process.is_alive()]
        for process in killed:
            process.kill()
        for process in processes:
            process.join()
        if killed:
            raise click.Abort
        # One that had not begun to listen is ended by the signal itself: it has nothing to lose.
        if any(process.exitcode not in (0, -signal.SIGTERM) for process in processes):
            raise click.exceptions.Exit(1)


def run_worker(
    plan: WorkerPlan,
    number: int,
    first: bool,
    shared: socket.socket | None,
    messages: Connection,
) -> None:
    """Serves in a process of its own; it ends with the process that started it.

    Args:
        first: whether it prints the lines about the server.
        shared: the socket that the workers share; None: each makes its own.
        messages: gets True when the worker listens.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the supervisor gets it, too
    report = ServerLog(plan.log, first=first)
    with pause_collection():
        from mockllm.serve.server.app import MockServer

        options = replace(
            plan.options,
            log=report.requests,
            notice=report.notice,
            listener=shared,
            reuse_port=shared is None,
        )
        try:
            server = MockServer(served_scenarios(plan.paths), options)
            run_server(
                server,
                report,
                plan.loop,
                ScenarioSources(plan.paths) if plan.reload else None,
                started=_start_reporter(messages),
            )
        except MockLLMError as error:
            echo(f"mockllm: {error}", err=True)
            raise SystemExit(2) from None
        except (click.Abort, click.exceptions.Exit):
            raise SystemExit(1) from None


def _start_reporter(messages: Connection) -> Callable[[Callable[[], None]], None]:
    """A function for a server that listens: it reports that, and watches its first process."""

    def report_start(stop: Callable[[], None]) -> None:
        messages.send(True)
        messages.close()
        parent = multiprocessing.parent_process()
        if parent is not None:
            asyncio.get_running_loop().add_reader(parent.sentinel, stop)

    return report_start
