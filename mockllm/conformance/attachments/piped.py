"""`Piped`: a runner as an accumulator of the checking kit, for suites and tests in Python."""

from __future__ import annotations

import weakref
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Tool
from mockllm.conformance.attachments.messages import question, tools_json
from mockllm.conformance.attachments.process import Job, Program, RunnerProcess
from mockllm.conformance.attachments.runner import LIMIT, Level
from mockllm.errors import ProbeError
from mockllm.scenario.model import ToolSpec


class Piped:
    """Makes probes of a runner program: `AccumulatorSuite` and `check` take it as a factory.

    The program is started at the first stream, and ends with `close`, or when this object is
    collected. The stream is sent as a whole at its end, so that no state in the middle of it is
    judged. What the client has no place for is ignored by the policy that judges:
    `Policy(ignore=piped.unsupported)`.
    """

    def __init__(
        self,
        command: Sequence[str],
        api: str,
        level: Level = "bytes",
        *,
        limit: float = LIMIT,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.level: Level = level
        self._program = Program(command=command, limit=limit, cwd=cwd, env=env)
        self._question = question(api, level)
        self._process: RunnerProcess | None = None
        self._end: weakref.finalize[Any, Any] | None = None

    @property
    def process(self) -> RunnerProcess:
        """The running program."""
        if self._process is None:
            self._process = RunnerProcess(self._program, self._question)
            self._end = weakref.finalize(self, self._process.close)
        return self._process

    @property
    def unsupported(self) -> frozenset[str]:
        """The fields of an outcome that the client has no place for."""
        return self.process.hello.unsupported

    def __call__(self) -> _PipedProbe:
        """A new probe."""
        return _PipedProbe(self)

    def close(self) -> None:
        """Ends the program; a later probe starts it again."""
        if self._end is not None:
            self._end()
        self._process = self._end = None


class _PipedProbe:
    """Collects what it is fed, and sends it at the end of the stream."""

    def __init__(self, piped: Piped) -> None:
        self._piped = piped
        self._tools: list[dict[str, Any]] = []
        self._feed: list[Any] = []

    def offer(self, tools: tuple[Tool, ...]) -> None:
        specs = (ToolSpec(str(tool), tool.description, tool.parameters) for tool in tools)
        self._tools = tools_json(tuple(specs))

    def feed(self, data: Any, event: str | None = None) -> None:
        """Keeps what is played, for the runner."""
        level = "bytes" if isinstance(data, bytes) else "payloads"
        if level != self._piped.level:
            raise ProbeError(
                f"the runner gets {self._piped.level}, and the kit plays {level}: give both the "
                f'same level, as in level = "{self._piped.level}" of a suite'
            )
        if isinstance(data, bytes):
            self._feed.append(b64encode(data).decode("ascii"))
        else:
            self._feed.append([event, data])

    def outcome(self) -> Outcome:
        job = Job({"case": "", "tools": self._tools, "feed": self._feed})
        self._piped.process.submit(job)
        answer = job.done.result()
        if answer.invalid:
            raise ProbeError(f"the answer of the runner is not valid: {answer.invalid}")
        return answer.outcome
