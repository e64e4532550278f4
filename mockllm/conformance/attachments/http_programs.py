"""The programs of whole clients: started once, or for each case."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mockllm.checking.outcome import Outcome
from mockllm.conformance.attachments.child import end_process, spawn
from mockllm.conformance.attachments.messages import Answer, Hello, parse, read_answer
from mockllm.conformance.attachments.outcome_json import InvalidMessageError
from mockllm.conformance.attachments.process import Program, Served, no_answer
from mockllm.conformance.results import Client
from mockllm.protocols.environment import client_environment, unproxied

_OF_FAULTS = ("tries", "idle_timeout", "requests", "together", "cancel")
"""What only the messages of cases with faults have, as JSON in the environment."""


class ProgramPerCase:
    """A program that is started for each case."""

    remarks: Sequence[str] = ()

    def __init__(self, program: Program) -> None:
        self._program = program
        self._env = dict(os.environ if program.env is None else program.env)
        self._pool = ThreadPoolExecutor(program.jobs, thread_name_prefix="mockllm-client")
        name = Path(program.command[0]).name
        self.hello = Hello(Client(name, adapter=" ".join(program.command)))
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def submit(self, message: Mapping[str, Any], served: Served) -> Future[Answer]:
        return self._pool.submit(self._run, message, served.urls)

    def _run(self, message: Mapping[str, Any], urls: Mapping[str, str]) -> Answer:
        own = {f"MOCKLLM_{name.upper()}": message[name] for name in ("case", "model", "prompt")}
        own |= {"MOCKLLM_BASE_URL": message["base_url"], "MOCKLLM_API": message["api"]}
        own |= {"MOCKLLM_TOOLS": json.dumps(message["tools"])}
        given = {name: message[name] for name in _OF_FAULTS if message.get(name) is not None}
        own |= {f"MOCKLLM_{name.upper()}": json.dumps(value) for name, value in given.items()}
        env = {**self._env, **unproxied(self._env), **client_environment(urls), **own}
        try:
            process = spawn(self._program.command, reads=False, cwd=self._program.cwd, env=env)
        except OSError as error:
            raise self._program.not_started(error) from None
        with process:  # closes its output
            self._running.add(process)
            if self._closed:
                end_process(process, at_once=True)
            try:
                output = process.communicate(timeout=self._program.limit)[0]
            except subprocess.TimeoutExpired:
                end_process(process, at_once=True)
                return no_answer(f"no answer within {self._program.limit:g} s")
            finally:
                self._running.discard(process)
        lines = output.strip().splitlines()
        if not lines:
            return no_answer(
                f"the program ended with exit code {process.returncode} and no outcome"
            )
        return _read(lines[-1], process.returncode)

    def close(self) -> None:
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in tuple(self._running):
            end_process(process, at_once=True)
        self._pool.shutdown()


def _read(line: bytes, status: int) -> Answer:
    """The outcome that a program printed."""
    try:
        return read_answer(parse(line))
    except InvalidMessageError as error:
        if status:
            return no_answer(f"the program ended with exit code {status} and no outcome")
        reason = f"the last line of the program is no outcome: {error}"
        return Answer(Outcome.of(errors=[reason]), invalid=reason)
