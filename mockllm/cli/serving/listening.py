"""A server that runs until a signal: shared by `mockllm serve` and `mockllm record`.

With `--reload` it serves the files as they are now; broken files leave the last good ones served.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from mockllm.cli.options.config import file_key
from mockllm.cli.options.parameters import (
    collect,
    number,
    path_options,
    server_options,
    size,
    together,
)
from mockllm.cli.serving.cassettes import ScenarioSources
from mockllm.cli.serving.server_log import LogOptions, ServerLog
from mockllm.cli.serving.start_errors import not_started
from mockllm.cli.serving.stop_signals import StopSignals
from mockllm.core.errors import Problem, ScenarioError, UsageError
from mockllm.serve.ui import live_page

if TYPE_CHECKING:
    from mockllm.serve.server.app import MockServer


_PERIOD = 0.5
"""Seconds between two looks."""

_State = dict[str, tuple[int, int, int]]


async def poll(
    folders: Iterable[Path], stop: asyncio.Event, *, deep: bool, period: float = _PERIOD
) -> AsyncIterator[None]:
    """Yields after each change of the files in some folders, until `stop` is set.

    A change is another time, size or inode of a file, a new file, or one that is gone.

    Args:
        period: in seconds.
    """
    folders = tuple(folders)
    before = _state(folders, deep)  # before anything else runs: no change is missed
    while not stop.is_set():
        try:
            await asyncio.wait_for(stop.wait(), period)
        except TimeoutError:
            now = await asyncio.to_thread(_state, folders, deep)
            if now != before:
                before = now
                yield


def _state(folders: Iterable[Path], deep: bool) -> _State:
    """Time of change, size and inode of each file, by its path."""
    state: _State = {}
    for folder in folders:
        for name, below, files in os.walk(folder):
            if not deep:
                below.clear()
            for file in files:
                path = os.path.join(name, file)  # noqa: PTH118 - a `Path` takes ten times as long
                try:
                    status = os.stat(path)  # noqa: PTH116 - as above
                except OSError:  # it went away in between
                    continue
                state[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return state


async def follow(
    sources: ScenarioSources, server: MockServer, report: ServerLog, stop: asyncio.Event
) -> None:
    """Loads the files anew after each change, until `stop` is set.

    A change that leaves the scenarios as they are is passed over; one that breaks them is
    reported, and the last good version stays.
    """
    served = server.player.served.scenarios
    problems: Sequence[Problem] = ()
    # The folder is watched, not the file: editors replace a file by a new one.
    folders = {path if path.is_dir() else path.parent for path in sources.watched}
    deep = any(path.is_dir() for path in sources.watched)
    async for _ in poll(folders, stop, deep=deep):
        try:
            scenarios = await asyncio.to_thread(sources.load)
        except ScenarioError as error:
            if error.problems != problems:
                problems = error.problems
                report.broken(problems)
                server.note_problems(problems)
            continue
        if problems or scenarios != served:
            server.reload(scenarios)
            report.write_reload(scenarios)
        served, problems = scenarios, ()


_TURN = 0.0002  # seconds for which a thread may keep the others waiting
_SLACK = 0.25  # seconds for what is left to do after the grace
_CANCEL_PERIOD = 0.05  # seconds after which a task that goes on is cancelled again
_EXHAUSTED = 10.0  # seconds between two lines about too many connections
_COLLECT = (10_000, 10, 2)
"""How many new objects the garbage collector waits for. Thousands of open streams are no garbage;
with Python's own numbers, looking at them again and again takes a seventh of the start of each."""

Loop = Literal["auto", "asyncio", "uvloop"]
Started = Callable[[Callable[[], None]], None]


listening_options = together(
    server_options(
        lambda ui, **fields: fields | {"page": live_page if ui else None},
        click.option("--host", default="127.0.0.1", help="The address to listen on."),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=8080,
            help="0 picks a free one.",
        ),
        click.option(
            "--grace",
            type=number,
            default=5.0,
            metavar="SECONDS",
            help="How long open streams may go on after SIGINT or SIGTERM.",
        ),
        click.option(
            "--max-body",
            type=size,
            default="16MB",
            metavar="SIZE",
            help="The largest request body that is read.",
        ),
        click.option(
            "--allow-host",
            "allowed_hosts",
            multiple=True,
            metavar="NAME",
            help="A further host name under which the control routes answer.",
        ),
        click.option(
            "--allow-origin",
            "allowed_origins",
            multiple=True,
            metavar="ORIGIN",
            help="The origin of pages that may use the control routes, such as "
            "http://localhost:3000; may be repeated.",
        ),
        click.option(
            "--ui/--no-ui",
            "ui",
            default=True,
            help="Show a live page at /_mockllm/ui, or not.",
        ),
    ),
    path_options,
    collect(
        "log",
        lambda _, log_format, quiet, log_quotes: LogOptions(log_format, quiet, log_quotes),
        click.option("--log-format", type=click.Choice(["text", "json"]), default="text"),
        click.option("--quiet", is_flag=True, help="Print the addresses, and what goes wrong."),
        file_key(
            "--log-quotes",
            is_flag=True,
            default=True,
            help="Write what is wrong with a request, which quotes up to 80 characters of a text "
            "in it, or leave that out.",
        ),
    ),
    file_key(
        "--loop",
        type=click.Choice(["auto", "asyncio", "uvloop"]),
        default="auto",
        help="The event loop; auto takes asyncio where answers have pauses, and otherwise "
        "uvloop, if it is installed.",
    ),
)
"""Adds the options for where a server listens, and for its log."""


def run_server(
    server: MockServer,
    report: ServerLog,
    loop: Loop,
    watched: ScenarioSources | None = None,
    *,
    started: Started = lambda _: None,
) -> None:
    """Serves until a signal; a second one cuts what is still open. At the end it says what was
    recorded.

    Args:
        started: called when the server listens, with a function that stops it.

    Raises:
        Exit: with 1, if something is not recorded or not found again.
    """
    record, missing = server.options.record, 0
    if record is not None:
        # Scenarios are worked out beside streams that pass: those must not wait for their turn.
        sys.setswitchinterval(_TURN)
    _raise_open_files()
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECT)
    try:
        with asyncio.Runner(loop_factory=_loop_factory(loop, server)) as runner:
            runner.run(_serve(server, report, watched, started))
    finally:
        gc.set_threshold(*before)
        if record is not None and record.mode != "none":
            missing = report.summary()
    if missing:
        raise click.exceptions.Exit(missing)


@contextmanager
def pause_collection() -> Iterator[None]:
    """Nothing that the start makes is garbage: looking for it would take a tenth of the time,
    and would be looked for again and again while serving."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _loop_factory(loop: Loop, server: MockServer) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The factory of the event loop; None: asyncio's.

    uvloop answers more requests a second. But it accepts one connection in each of its rounds, and
    writes what is due in between: a thousand streams at once begin three times as late.
    """
    if loop == "asyncio" or (loop == "auto" and server.has_pauses):
        return None
    try:
        import uvloop
    except ImportError:
        if loop == "auto":
            return None
        raise UsageError(
            "loop = \"uvloop\" needs uvloop: pip install 'mockllm-harness[speed]'"
        ) from None
    return uvloop.new_event_loop


def _raise_open_files() -> None:
    """Lets the process have as many open files as the system allows: a connection is one."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS says that there is no limit, and has one
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class _LoopErrors:
    """Errors of the event loop: too many connections make a line of the log now and then, as the
    loop says it thousands of times; all else is as usual."""

    def __init__(self, report: ServerLog) -> None:
        self._report = report
        self._next = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if self._next and str(error) == "Invalid file descriptor: -1":
            # Where it could not accept, the loop tries again a second later, also when the server
            # has closed its socket meanwhile.
            return
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif loop.time() >= self._next:
            self._next = loop.time() + _EXHAUSTED
            self._report.notice(
                f"no connection can be accepted: {error.strerror}; those that are open go on, and "
                "others wait. Raise the limit (ulimit -n) if the clients need so many."
            )


async def _serve(
    server: MockServer, report: ServerLog, watched: ScenarioSources | None, started: Started
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_LoopErrors(report))
    signals = StopSignals(loop)
    stop, cut = signals.stop, signals.cut
    try:
        await server.start()
    except OSError as error:
        await server.stop()  # it may listen, and its proxy not
        raise not_started(error, server) from None
    following = asyncio.create_task(follow(watched, server, report, stop)) if watched else None
    with _leading(server) as variables:
        await asyncio.sleep(0)  # now it watches: what changes after the first line is not missed
        report.listening(server.url)
        started(stop.set)
        # What only requests need is imported now, while the first client finds its way here.
        with pause_collection():
            report.serving(server, variables)
            if server.options.record is not None:
                report.recording(server.options.record)
        await stop.wait()
    report.stopping(server.options.grace)
    stopping = asyncio.create_task(server.stop())
    waiting = asyncio.create_task(cut.wait())
    # What was recorded is written to the end; what only waits for clients is not.
    limit = server.options.grace + _SLACK if server.options.record is None else None
    await asyncio.wait(
        (stopping, waiting),
        timeout=limit,
        return_when=asyncio.FIRST_COMPLETED,
    )
    for task in (stopping, waiting, following):
        if task is not None:
            await cancel_until_done(task)
    if cut.is_set():
        raise click.Abort
    if server.lost:
        raise click.exceptions.Exit(1)


def _leading(server: MockServer) -> AbstractContextManager[dict[str, str]]:
    """The variables that lead programs here which know no base URL; none without certificates."""
    if server.authority is None:
        return nullcontext({})
    from mockllm.cli.serving.child import leading  # most servers listen sooner without it

    return leading(server, os.environ, keeps_keys=True)


async def cancel_until_done(task: asyncio.Task[Any]) -> None:
    """Cancels a task until it has ended: aiohttp's shutdown goes on after one `CancelledError`."""
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=_CANCEL_PERIOD)
    if not task.cancelled():
        task.result()
