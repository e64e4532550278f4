"""The plan of a run of `mockllm check`: the same for each source of cases."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Self

import mockllm
from mockllm.cli.check.options import CheckOptions
from mockllm.cli.terminal.output import echo
from mockllm.conformance.clients.client_results import json_value
from mockllm.conformance.clients.http_clients import HTTP_LIMIT, http_runner
from mockllm.conformance.clients.messages import Hello
from mockllm.conformance.clients.runner import LIMIT, Runner, pipe_runner
from mockllm.conformance.driver import Driver
from mockllm.conformance.results import Client, Results


class Interruptible:
    """While it is entered, the first Ctrl-C ends the list of cases, and the second the program.

    Before the first case there is no result to keep, and the first Ctrl-C ends the program: the
    client may hang at its start.
    """

    def __init__(self) -> None:
        self.happened = self._has_cases = False

    def goes_on(self) -> bool:
        """Whether the next case is tried."""
        self._has_cases = True
        return not self.happened

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.happened or not self._has_cases:
            raise KeyboardInterrupt
        self.happened = True
        echo("mockllm: stopping; again to stop at once", err=True)

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)


@dataclass(frozen=True, slots=True)
class Plan:
    """A run before its client is attached.

    Args:
        names: of all lines that the results may have, whether they are chosen or not.
        attach: starts the client.
    """

    names: tuple[str, ...]
    attach: Callable[[], Runner]
    judge: Callable[[Runner, Driver], Results]


def attach_client(options: CheckOptions) -> Runner:
    """The client behind the command of the options."""
    settings: dict[str, Any] = {"jobs": options.jobs, "window": options.window}
    if options.http:
        limit, per_case = options.limit or HTTP_LIMIT, options.per_case
        return http_runner(options.command, options.api, per_case=per_case, limit=limit, **settings)
    level, limit = options.level, options.limit or LIMIT
    return pipe_runner(options.command, options.api, level, limit=limit, **settings)


def empty_results(options: CheckOptions, hello: Hello, stopped: str = "") -> Results:
    """The results of a run but for its cases."""
    level, arguments = options.measured_level, json_value(options.arguments)
    results = results_of_today(hello.client, options.api, level, arguments, hello.unsupported)
    return replace(results, stopped=stopped)


def results_of_today(
    client: Client,
    api: str,
    level: str,
    arguments: Mapping[str, Any],
    unsupported: Iterable[str] = (),
) -> Results:
    """Results without a case, with the version, the commit and the day of the run."""
    return Results(
        client,
        api,
        level,
        mockllm.__version__,
        date=datetime.now(UTC).date().isoformat(),
        commit=source_commit(),
        arguments=arguments,
        unsupported=tuple(sorted(unsupported)),
    )


_LIMIT = 10.0


def source_commit(root: Path | None = None) -> str:
    """The commit, with `-dirty` where files differ from it; "" without git or a checkout."""
    root = Path(__file__).resolve().parents[3] if root is None else root
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(  # noqa: S603 - the words above alone
            [*command, "--exclude=*"], capture_output=True, text=True, timeout=_LIMIT, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
