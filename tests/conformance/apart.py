"""Clients whose dependencies do not agree with the others': each in an environment of its own.

`make .venv-NAME/.installed` makes the environment from `NAME_env/requirements.txt`; there,
`NAME_env/run.py` runs for as long as it is asked.
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
from tests.conformance.asking import schemas
from tests.conformance.client import NotInstalledError

__all__ = ["Environment"]

_ROOT = Path(__file__).parents[2]
_PATIENCE = 180.0
"""Seconds for one answer; the clients' own timeouts are much shorter."""

_KINDS = {kind.__name__: kind for kind in (*CRASHES, Exception)}


class Environment:
    """A Python of its own, started when it is first asked.

    Args:
        name: of its folders, `.venv-NAME` and `tests/conformance/NAME_env`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None
        self._lock = threading.Lock()

    def version(self) -> str:
        """Of the package that the environment is for."""
        told: str = self._told({"ask": "version"})
        return told

    def run(self, name: str) -> Run:
        """The client of that name in the environment."""
        return partial(self._run, name)

    def _run(self, name: str, base_url: str, case: Case) -> Outcome:
        question = {
            "ask": name,
            "base_url": base_url,
            "prompt": case.prompt,
            "tools": schemas(case),
        }
        return Outcome.of(**self._told(question))

    def _told(self, question: dict[str, Any]) -> Any:
        with self._lock:
            answer = self._asked(json.dumps(question))
        if "raised" in answer:
            raise _raised(**answer["raised"])
        return answer["said"]

    def _asked(self, line: str) -> dict[str, Any]:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(_PATIENCE, process.kill)
        watchdog.start()
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            told = process.stdout.readline()
        finally:
            watchdog.cancel()
        if not told:
            raise RuntimeError(f"{self.name} did not answer: {self._last_words()}")
        answer: dict[str, Any] = json.loads(told)
        return answer

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is not None:
            self._stop(self._process)  # it died over an earlier question; this one is another
            self._process = None
        if self._process is None:
            python = _ROOT / f".venv-{self.name}" / "bin" / "python"
            if not python.exists():
                raise NotInstalledError(
                    f"{self.name} has an environment of its own, which is not here: "
                    f"`make .venv-{self.name}/.installed` makes it"
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

    def _last_words(self) -> str:
        assert self._errors is not None
        self._errors.seek(0)
        return self._errors.read()[-2000:]

    def _stop(self, process: subprocess.Popen[str]) -> None:
        with process:
            process.kill()
        if self._errors is not None:
            self._errors.close()


def _environment() -> dict[str, str]:
    """That of this process without proxies: only loopback is spoken to."""
    return {name: value for name, value in os.environ.items() if not _is_foreign(name.lower())}


def _is_foreign(name: str) -> bool:
    return name.endswith("_proxy") or name.startswith(("langsmith_", "langchain_", "litellm_"))


def _raised(kinds: list[str], message: str) -> Exception:
    """An exception that is called, reads, and counts as the one that was raised there."""
    kind = next(_KINDS[name] for name in kinds if name in _KINDS)
    told: Callable[[Exception], str] = lambda error: message  # noqa: E731 - a method of a class
    error: Exception = type(kinds[0], (kind,), {"__str__": told})(message)
    return error
