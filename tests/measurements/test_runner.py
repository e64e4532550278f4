"""`measurements/clients/runner.py`, with adapters that fail in every way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from measurements.entries import CLIENTS

_ADAPTER = """
import json
import subprocess as client
print("this is no answer")

def echo(job):
    print("nor is this")
    return {"text": f"{job.base_url} {job.prompt}", "tools": [one["name"] for one in job.functions]}

def crash(job):
    return {"text": {}["missing"]}

def fail(job):
    client.run(["false"], check=True)

def parse(job):
    return json.loads("{")

def attribute(job):
    class Lazy:
        def __getattr__(self, name):
            raise AttributeError(name)
    return {"text": Lazy().missing}

def several(job):
    raise ExceptionGroup("several", [ValueError("the only one")])

def lacks(job):
    import not_there_at_all
"""

_CLIENT = """
[[client]]
name = "the client {0}"
package = "pytest"
with = ["hypothesis"]
language = "python"
api = "chat"
entry_point = "{0}()"
command = ["{{python}}", "runner.py", "thing_adapter.py", "{0}"]
unsupported = ["refusal"]
notes = "A note."
"""

FUNCTIONS = ("echo", "crash", "fail", "parse", "attribute", "several", "lacks")


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    file = tmp_path / "thing_adapter.py"
    file.write_text(_ADAPTER, "utf-8")
    entries = "".join(_CLIENT.format(name) for name in FUNCTIONS)
    (tmp_path / "client.toml").write_text(entries, "utf-8")
    return file


def run(adapter: Path, function: str, *lines: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CLIENTS / "runner.py", adapter, function],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
    )


def test_arguments_that_are_serialized_anew() -> None:
    """A client's own JSON text is compared by its value; what is no JSON stays text."""
    code = (
        "from job import parsed; print([parsed(x) for x in ('{\"a\": 1}', '{\"a', '', {'b': 2})])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CLIENTS, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[{'a': 1}, '{\"a', '', {'b': 2}]\n"


HELLO = {"mockllm": 1, "api": "chat", "level": "http"}
JOB = {
    "id": 7,
    "case": "chat/sample-text",
    "api": "chat",
    "base_url": "http://x/v1",
    "model": "m",
    "prompt": "Hello",
    "tools": [{"name": "get_weather"}],
    "deadline": 5.0,
}


def answers(adapter: Path, function: str, *lines: object) -> list[dict[str, Any]]:
    done = run(adapter, function, HELLO, *lines)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_hello_and_answers(adapter: Path) -> None:
    """The first answer says what the client is; whatever a client prints goes to standard error."""
    hello, answer = answers(adapter, "echo", JOB)
    assert hello["client"]["name"] == "the client echo"
    assert hello["client"]["version"].startswith(f"{pytest.__version__} with hypothesis ")
    assert hello["client"]["adapter"] == adapter.as_posix()
    assert hello["unsupported"] == ["refusal"]
    assert answer == {"id": 7, "text": "http://x/v1 Hello", "tools": ["get_weather"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "key", "message", "raised"),
    [
        ("crash", "crash", "KeyError: 'missing'", "thing_adapter.py:11 in crash"),
        ("attribute", "crash", "AttributeError: missing", "thing_adapter.py:23 in attribute"),
        ("fail", "errors", "CalledProcessError: Command", "thing_adapter.py:14 in fail"),
        ("parse", "errors", "JSONDecodeError: Expecting", "thing_adapter.py:17 in parse"),
        ("several", "errors", "ValueError: the only one", ""),
    ],
)
def test_what_a_client_raises(adapter, function, key, message, raised) -> None:
    """An exception is a crash or an error, with the innermost place that is neither in Python's
    own library nor an access to an attribute: what an adapter does wrong is seen as its own."""
    _, answer = answers(adapter, function, JOB)
    (report,) = [answer["crash"]] if key == "crash" else answer["errors"]
    assert report["message"].startswith(message)
    assert report["raised"] == raised


@pytest.mark.slow
def test_a_client_that_cannot_run(adapter: Path) -> None:
    """A missing package ends the runner: no case may be judged."""
    done = run(adapter, "lacks", HELLO, JOB)
    assert done.returncode != 0
    assert "not_there_at_all" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "lines", "problem"),
    [
        ("nothing", [HELLO], "has no client 'nothing'"),
        ("echo", [{**HELLO, "api": "gemini"}], "speaks the API chat, not gemini"),
        ("echo", [{**HELLO, "level": "bytes"}], "run it with --http"),
        ("echo", [JOB], "the first line has to be that of mockllm"),
    ],
)
def test_wrong_use(adapter: Path, function: str, lines: list[object], problem: str) -> None:
    """A runner that is started wrongly says what is wrong."""
    done = run(adapter, function, *lines)
    assert done.returncode == 1
    assert problem in done.stderr
