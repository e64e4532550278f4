"""The action for GitHub: its structure, and its steps as the runner executes them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import urllib.request
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.ci.action import ACTION, ROOT, STEPS, Job
from tests.conformance.drift.service import exchange, record
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_NAME = "^[a-z][a-z-]*$"


def _object(required: str, /, **properties: Any) -> dict[str, Any]:
    """A schema of an object without other properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def _named(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "patternProperties": {_NAME: schema}, "additionalProperties": False}


_INPUT = _object("description", description=_TEXT, required={"type": "boolean"},
                 default={"type": "string"})  # fmt: skip
_ENV = {"type": "object", "additionalProperties": {"type": "string"}}
_COMMON = {"name": _TEXT, "id": {"type": "string", "pattern": _NAME}, "if": _TEXT, "env": _ENV}
_STEP = {
    "oneOf": [
        _object("run shell", run=_TEXT, shell={"const": "bash"}, **_COMMON),
        _object(
            "uses",
            uses={"type": "string", "pattern": r"^[\w-]+/[\w-]+@[0-9a-f]{40}$"},
            **{"with": _ENV},
            **_COMMON,
        ),
    ]
}
SCHEMA = _object(
    "name description runs",
    name=_TEXT,
    description=_TEXT,
    inputs=_named(_INPUT),
    outputs=_named(_object("description value", description=_TEXT, value=_TEXT)),
    runs=_object("using steps", using={"const": "composite"},
                 steps={"type": "array", "items": _STEP, "minItems": 1}),
)  # fmt: skip
"""What GitHub documents of a composite action ("Metadata syntax for GitHub Actions")."""


def test_the_structure():
    """The file has the form that GitHub documents for composite actions."""
    jsonschema.validate(ACTION, SCHEMA)


def test_every_expression_names_something():
    """Inputs, steps and their outputs that expressions name are there."""
    written = "\n".join("".join(step.get("run", "")) for step in STEPS)
    contexts = {f"inputs.{name}" for name in ACTION["inputs"]} | {"github.action_path"}
    contexts |= {
        f"steps.{step['id']}.outputs.{name}"
        for step in STEPS
        for name in re.findall(r"\b(url|pid|exit-code)=", step.get("run", ""))
    }
    rest = [{k: v for k, v in step.items() if k != "run"} for step in STEPS]
    text = json.dumps([ACTION["outputs"], rest])
    used = set(re.findall(r"\b(?:inputs|steps|github)\.[\w.-]+", text))
    assert used <= contexts
    assert {f"inputs.{name}" for name in ACTION["inputs"]} <= used
    assert written


@pytest.mark.parametrize("step", [one for one in STEPS if "run" in one], ids=lambda one: one["id"])
def test_no_input_gets_into_a_script(step):
    """Scripts read variables only, so that no input is executed, and stop at the first error."""
    assert "${{" not in step["run"]
    assert step["run"].startswith("set -eu\n")
    assert "eval" not in step["run"]


def test_the_report_is_uploaded_after_a_failure():
    """The last step runs whatever the check found."""
    assert STEPS[-1]["uses"].startswith("actions/upload-artifact@")
    assert STEPS[-1]["if"].startswith("always() && ")


@pytest.fixture
def job(tmp_path):
    """A job in an empty folder that finds the `mockllm` of this checkout."""
    folder, temp = tmp_path / "a checkout", tmp_path / "temp"
    folder.mkdir()
    temp.mkdir()
    return Job(folder, temp, [str(Path(sys.executable).parent)])


@pytest.mark.parametrize(
    ("inputs", "installed"),
    [
        ({"version": "1.2.3"}, "mockllm-harness[report]==1.2.3"),
        ({}, f"{ROOT}[report]"),
    ],
)
def test_install(job, inputs, installed):
    """A version comes from PyPI, and otherwise the files of the action are installed, into an
    environment of which only `mockllm` gets on PATH. (Nothing is downloaded here: the Python is
    a script that notes its arguments.)"""
    python = job.temp / "python"
    mockllm = Path(sys.executable).with_name("mockllm")
    python.write_text(
        f'#!/bin/sh\necho "$@" >> "{job.temp}/log"\n'
        'if [ "$2" = venv ]; then\n  mkdir -p "$3/bin"\n'
        f'  cp "$0" "$3/bin/python"\n  ln -s "{mockllm}" "$3/bin/mockllm"\nfi\n'
    )
    python.chmod(0o755)
    done = job.run("install", {"python": str(python), **inputs})
    assert done.returncode == 0, done.stderr
    assert "mockllm" in done.stdout
    assert (job.temp / "log").read_text().splitlines()[-1].endswith(f" {installed}")
    assert [file.name for file in Path(job.path[0]).iterdir()] == ["mockllm"]


def test_another_command_is_refused(job):
    """A misspelt command fails before anything is installed."""
    done = job.run("install", {"command": "serv", "python": "/nowhere"})
    assert done.returncode == 2
    assert "::error::mockllm: command must be check or serve, got 'serv'" in done.stdout


@pytest.mark.slow
def test_recordings_that_are_too_old(job):
    """A warning of the job; with `:error` the step fails and starts no server."""
    request = {"model": "m", "messages": [{"role": "user", "content": "old"}]}
    answer = (200, "application/json", '{"choices": []}')
    record(
        job.folder / "recorded", exchange("https://h/v1/chat/completions", request, answer, at=9e8)
    )
    done = job.run("serve", {"scenarios": "recorded", "max-age": "30d:error"})
    assert done.returncode == 1
    assert "old.1.jsonl:1:1: was recorded on 1998-07-09, " in done.stdout
    done = job.run("serve", {"scenarios": "recorded", "max-age": "30d"})
    os.kill(int(job.outputs["pid"]), signal.SIGTERM)
    assert done.returncode == 0
    assert "::warning::recorded/old.1.jsonl: was recorded on 1998-07-09, " in done.stdout


@pytest.mark.slow
def test_serve(job):
    """The server listens when the step ends, and the steps that follow have its variables."""
    (job.folder / "my scenarios").mkdir()
    source = "scenario: one\nturns:\n  - reply: {text: a}\n"
    (job.folder / "my scenarios" / "one.yaml").write_text(source)
    done = job.run("serve", {"scenarios": "my scenarios\n", "args": "--speed\n0\n"})
    assert done.returncode == 0, done.stdout + done.stderr
    try:
        url = job.outputs["url"]
        assert job.variables["MOCKLLM_URL"] == url
        assert job.variables["OPENAI_BASE_URL"] == f"{url}/v1"
        with urllib.request.urlopen(f"{url}/_mockllm/health", timeout=GIVE_UP) as answer:
            assert json.load(answer)["scenarios"] == 1
    finally:
        os.kill(int(job.outputs["pid"]), signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenarios", "message"),
    [("", "serve needs scenarios"), ("nothing.yaml", "'nothing.yaml' does not exist")],
)
def test_a_server_that_does_not_start(job, scenarios, message):
    """The step fails, and shows why."""
    done = job.run("serve", {"scenarios": scenarios})
    assert done.returncode in (1, 2)
    assert "::error::mockllm: " in done.stdout
    assert message in done.stdout
    assert job.variables == {}


RIGHT = f"{sys.executable} {ROOT / 'examples' / 'runners' / 'python' / 'runner.py'}"
SOME = "--only\nsse-bom\n"


@pytest.mark.slow
def test_check(job):
    """The report is written, the page of the job has the summary, and the exit code is 0."""
    done = job.run("check", {"api": "chat", "runner": f"{RIGHT}\n", "args": SOME})
    assert done.returncode == 0, done.stdout + done.stderr
    assert job.outputs == {"exit-code": "0"}
    folder = job.folder / ACTION["inputs"]["results"]["default"]
    written = {file.name for file in folder.iterdir()}
    assert written == {"results.json", "junit.xml", "badge.svg", "report", "output.txt"}
    assert json.loads((folder / "results.json").read_text())["api"] == "chat"
    assert job.summary.startswith("### mockllm check, chat\n```text\n")
    assert "framing" in job.summary


@pytest.mark.slow
def test_check_of_a_wrong_client(job):
    """The step fails with the exit code of the command, and the report is written all the same.
    The words of the runner may have blanks if each has a line."""
    (job.folder / "known.txt").write_text("")
    runner = job.folder / "wrong runner.py"
    runner.write_text(
        "import json, sys\n"
        "print(json.dumps({'mockllm': 1, 'client': {'name': '$(touch x)'}}), flush=True)\n"
        "next(sys.stdin)\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps({'id': json.loads(line)['id'], 'text': '`touch x`'}), flush=True)\n"
    )
    inputs = {
        "api": "chat",
        "runner": f"{sys.executable}\n{runner.name}\n",
        "args": f"{SOME}--no-shrink\n",
        "known-failing": "known.txt",
        "results": "my results",
    }
    done = job.run("check", inputs)
    assert done.returncode == 1, done.stdout + done.stderr
    assert job.outputs == {"exit-code": "1"}
    assert (job.folder / "my results" / "report" / "index.html").exists()
    assert not (job.folder / "x").exists()


def test_check_needs_a_runner(job):
    """A missing input is named."""
    done = job.run("check", {"api": "chat"})
    assert done.returncode == 2
    assert "check needs an api and a runner" in done.stdout
