"""Clients whose dependencies conflict with those of others, each in its own virtual environment.

`make .venv-NAME/.installed` builds the environment from `NAME_env/requirements.txt`. In it
`NAME_env/run.py` answers jobs until its input ends.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import CRASHES, Outcome
from mockllm.checking.probes import Run
from tests.conformance.client import NotInstalledError
from tests.conformance.request_body import schemas

__all__ = ["Environment"]

_ROOT = Path(__file__).parents[2]
_GIVE_UP = 180.0
"""Seconds for one job; the clients' own timeouts are much shorter."""

_KINDS = {kind.__name__: kind for kind in (*CRASHES, Exception)}


class Environment:
    """A Python process of another environment, started for the first job.

    Args:
        name: the name in its folders `.venv-NAME` and `tests/conformance/NAME_env`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None
        self._lock = threading.Lock()

    def version(self) -> str:
        """The version of the package that the environment is for."""
        version: str = self._result({"client": "version"})
        return version

    def run(self, name: str) -> Run:
        """The client of that name in the environment."""
        return partial(self._run, name)

    def _run(self, name: str, base_url: str, case: Case) -> Outcome:
        job = {
            "client": name,
            "base_url": base_url,
            "prompt": case.prompt,
            "tools": schemas(case),
        }
        return Outcome.of(**self._result(job))

    def _result(self, job: dict[str, Any]) -> Any:
        with self._lock:
            answer = self._answer(json.dumps(job))
        if "raised" in answer:
            raise exception_like(**answer["raised"])
        return answer["result"]

    def _answer(self, line: str) -> dict[str, Any]:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(_GIVE_UP, process.kill)
        watchdog.start()
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            written = process.stdout.readline()
        finally:
            watchdog.cancel()
        if not written:
            raise RuntimeError(f"{self.name} did not answer: {self._last_errors()}")
        answer: dict[str, Any] = json.loads(written)
        return answer

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is not None:
            self._stop(self._process)  # an earlier job ended it
            self._process = None
        if self._process is None:
            python = _ROOT / f".venv-{self.name}" / "bin" / "python"
            if not python.exists():
                raise NotInstalledError(
                    f"{self.name} has its own environment, which is missing: "
                    f"`make .venv-{self.name}/.installed` builds it"
                )
            self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `_stop`
            self._process = subprocess.Popen(
                [python, "-m", f"tests.conformance.{self.name}_env.run"],
                cwd=_ROOT,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
            )
            atexit.register(self._stop, self._process)
        return self._process

    def _last_errors(self) -> str:
        assert self._errors is not None
        self._errors.seek(0)
        return self._errors.read()[-2000:]

    def _stop(self, process: subprocess.Popen[str]) -> None:
        with process:
            process.kill()
        if self._errors is not None:
            self._errors.close()


def _environment() -> dict[str, str]:
    """The environment of this process without proxies, since all traffic is loopback."""
    return {name: value for name, value in os.environ.items() if not _is_foreign(name.lower())}


def _is_foreign(name: str) -> bool:
    return name.endswith("_proxy") or name.startswith(("langsmith_", "langchain_", "litellm_"))


def exception_like(kinds: list[str], message: str) -> Exception:
    """An exception with the name, message and base class of the one that was raised there."""
    kind = next(_KINDS[name] for name in kinds if name in _KINDS)
    text: Callable[[Exception], str] = lambda error: message  # noqa: E731 - a method of a class
    error: Exception = type(kinds[0], (kind,), {"__str__": text})(message)
    return error
