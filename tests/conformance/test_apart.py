"""The circumstances in which clients are asked, without any of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from mockllm.checking.outcome import Outcome
from tests.conformance.apart import Environment, _raised
from tests.conformance.client import NotInstalledError, _alone

_ECHO = """
import sys, warnings
from tests.conformance.lines import serve

def echo(base_url, question):
    print("this is no answer")
    return {"text": f"{base_url} {question['prompt']}"}

def fail(base_url, question):
    raise KeyError(question["prompt"])

serve("pytest", {"echo": echo, "fail": fail})
"""


def test_missing_environment() -> None:
    """Who has not made an environment is told how to."""
    with pytest.raises(NotInstalledError, match=r"make \.venv-nowhere/\.installed"):
        Environment("nowhere").version()


def test_questions_as_lines() -> None:
    """Each question gets one answer, whatever a client prints; a version may be asked for."""
    asked = {"base_url": "http://x", "prompt": "Hello"}
    questions = [{"ask": "echo", **asked}, {"ask": "fail", **asked}, {"ask": "version"}]
    told = subprocess.run(
        [sys.executable, "-c", _ECHO],
        input="".join(json.dumps(question) + "\n" for question in questions),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    said, raised, version = map(json.loads, told.stdout.splitlines())
    assert said == {"said": {"text": "http://x Hello"}}
    assert raised["raised"]["message"] == "'Hello'"
    assert raised["raised"]["kinds"][:3] == ["KeyError", "LookupError", "Exception"]
    assert version == {"said": pytest.__version__}


@pytest.mark.parametrize(
    ("kinds", "crash"),
    [
        (["KeyError", "LookupError", "Exception"], True),
        (["UnicodeDecodeError", "UnicodeError", "ValueError", "Exception"], True),
        (["APIError", "OpenAIError", "Exception"], False),
    ],
)
def test_raised_elsewhere(kinds, crash) -> None:
    """An exception of another environment reads and counts as it would have done here."""
    (trouble,) = Outcome.of(errors=[_raised(kinds, "it broke")]).errors
    assert trouble.message == f"{kinds[0]}: it broke"
    assert trouble.crash is crash


def test_clients_are_alone(monkeypatch) -> None:
    """While a client is asked there are no proxies and no warnings; then all is as before."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid")
    with _alone():
        warnings.warn("nobody wants to know", stacklevel=1)
        assert "HTTPS_PROXY" not in os.environ
    assert os.environ["HTTPS_PROXY"] == "http://proxy.invalid"
