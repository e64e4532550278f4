"""Coding agents in a test: started with a HOME of their own, and led to the session of the test."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from mockllm_pytest.callers import at_caller

if TYPE_CHECKING:
    from mockllm.play.replay.sessions.exchange import Exchange


@dataclass(frozen=True)
class AgentRun:
    """A run of a coding agent that is over."""

    output: str
    """Its standard output."""
    errors: str
    """Its standard error."""
    exit_code: int
    """As a shell gives it; 124 where it took too long. Gemini CLI ends with 0 on most failures."""
    journal: tuple[Exchange, ...] = field(repr=False)
    """The requests that came to the session while it ran, as in `mockllm_session.journal`."""


class MockAgent:
    """A coding agent that is led to the session of a test. It has a HOME and settings of its own
    until the test ends, so a later run can go on with its conversation."""

    def __init__(
        self,
        name: str,
        led: Mapping[str, str],
        exchanges: Callable[[], tuple[Exchange, ...]],
    ) -> None:
        self._name = name
        self._led = led
        self._exchanges = exchanges
        self._home = TemporaryDirectory(prefix="mockllm-agent-", ignore_cleanup_errors=True)

    @at_caller
    def run(
        self,
        *words: str,
        cwd: str | os.PathLike[str],
        timeout: float = 120.0,
        env: Mapping[str, str] | None = None,
    ) -> AgentRun:
        """Runs the agent to its end. It asks for no permission, and reads no standard input. In a
        coroutine: `await asyncio.to_thread(agent.run, "write hello.txt", cwd=tmp_path)`.

        Args:
            words: the prompt, and options of the agent's own before or after it.
            cwd: the folder in which it works: it runs there what the scenario says.
            timeout: the seconds after which it is ended, with all that it has started.
            env: further variables.

        Raises:
            NotStartedError: it is not installed; the message says what installs it.
        """
        from mockllm.conformance.agents.launch import prepare, run_agent

        before = len(self._exchanges())
        variables = {**os.environ, **(env or {})}
        command = prepare(self._name, words, Path(self._home.name), self._led, variables)
        ended = run_agent(command, Path(cwd), timeout)
        journal = self._exchanges()[before:]
        return AgentRun(ended.output, ended.errors, ended.exit_code, journal)

    def close(self) -> None:
        """Removes its HOME."""
        self._home.cleanup()
