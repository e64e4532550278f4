"""The processes and environments that clients run in, without any client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from mockllm.checking.outcome import Outcome
from tests.conformance.client import NotInstalledError, _alone
from tests.conformance.environment import Environment, exception_like

_ECHO = """
import sys, warnings
from tests.conformance.lines import serve

def echo(base_url, job):
    print("this is no answer")
    return {"text": f"{base_url} {job['prompt']}"}

def fail(base_url, job):
    raise KeyError(job["prompt"])

serve("pytest", {"echo": echo, "fail": fail})
"""


def test_missing_environment() -> None:
    """A missing environment is an error with the command that builds it."""
    with pytest.raises(NotInstalledError, match=r"make \.venv-nowhere/\.installed"):
        Environment("nowhere").version()


def test_jobs_as_json_lines() -> None:
    """Each job has one answer line, whatever a client prints; `version` is the package version."""
    fields = {"base_url": "http://x", "prompt": "Hello"}
    jobs = [{"client": "echo", **fields}, {"client": "fail", **fields}, {"client": "version"}]
    process = subprocess.run(
        [sys.executable, "-c", _ECHO],
        input="".join(json.dumps(job) + "\n" for job in jobs),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    result, raised, version = map(json.loads, process.stdout.splitlines())
    assert result == {"result": {"text": "http://x Hello"}}
    assert raised["raised"]["message"] == "'Hello'"
    assert raised["raised"]["kinds"][:3] == ["KeyError", "LookupError", "Exception"]
    assert version == {"result": pytest.__version__}


@pytest.mark.parametrize(
    ("kinds", "crash"),
    [
        (["KeyError", "LookupError", "Exception"], True),
        (["UnicodeDecodeError", "UnicodeError", "ValueError", "Exception"], True),
        (["APIError", "OpenAIError", "Exception"], False),
    ],
)
def test_exceptions_of_another_environment(kinds, crash) -> None:
    """An exception of another environment has its name and message, and the same `crash`."""
    (trouble,) = Outcome.of(errors=[exception_like(kinds, "it broke")]).errors
    assert trouble.message == f"{kinds[0]}: it broke"
    assert trouble.crash is crash


def test_clients_run_without_proxies_and_warnings(monkeypatch) -> None:
    """A client runs without proxies and warnings; then the environment is restored."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid")
    with _alone():
        warnings.warn("a warning", stacklevel=1)
        assert "HTTPS_PROXY" not in os.environ
    assert os.environ["HTTPS_PROXY"] == "http://proxy.invalid"
