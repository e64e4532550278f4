"""A runner that never answers is given up, and what was counted until then is said."""

from __future__ import annotations

import sys

import pytest

from mockllm.conformance.clients.messages import question
from mockllm.conformance.clients.process import Program, RunnerProcesses
from mockllm.core.errors import ProbeError

HELLO = '{"mockllm": 1, "client": {"name": "x", "version": "1"}}'
START = f"import sys; sys.stdin.readline(); print({HELLO!r}, flush=True); "


@pytest.mark.parametrize(
    ("then", "limit", "starts", "reason"),
    [
        ("sys.stdin.read()", 0.01, 7, "no answer within 0.01 s"),
        ("sys.exit(3)", 60.0, 20, "the runner ended with exit code 3"),
    ],
)
def test_a_runner_that_answers_no_case(then: str, limit: float, starts: int, reason: str) -> None:
    """One that hangs is started less often than one that ends at once: each takes its time."""
    program = Program(command=[sys.executable, "-c", START + then], limit=limit)
    processes = RunnerProcesses(program, question("chat", "bytes"))
    try:
        error = next(filter(None, iter(lambda: processes.submit({"case": "x"}).exception(), 0)))
    finally:
        processes.close()
    assert isinstance(error, ProbeError)
    assert f"was started {starts} times and has answered no case ({reason})" in str(error)
