"""The wheel has every file that users need, and works away from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q",
         "-w", folder, ROOT],
        check=True,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Runs `python -m mockllm` with the files of the wheel only, in an empty folder."""
    target = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    elsewhere = tmp_path_factory.mktemp("elsewhere")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mockllm", *arguments],
            cwd=elsewhere,
            env={**os.environ, "PYTHONPATH": str(target)},
            capture_output=True,
            text=True,
        )

    run.folder = elsewhere
    run.site = target
    return run


def test_the_wheel_holds_code_schema_types_and_scenarios(wheel):
    """No file is missing, and no test is in it."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"mockllm/py.typed", "mockllm/scenario/schema.json"} <= names
    shipped = {name for name in names if name.startswith("mockllm/shipped/")}
    assert len(shipped) == len(list((ROOT / "scenarios").glob("*.yaml")))
    runners = {name for name in names if name.startswith("mockllm/conformance/runners/")}
    source = ROOT / "examples" / "runners"
    files = (path for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert {f"mockllm/conformance/runners/{file.relative_to(source)}" for file in files} == runners
    pages = {path.name for path in (ROOT / "mockllm" / "ui" / "site").iterdir()}
    assert {f"mockllm/ui/site/{name}" for name in pages} <= names
    assert not any(name.startswith(("tests/", "benchmarks/", "tools/", "docs/")) for name in names)
    metadata = next(name for name in names if name.endswith("entry_points.txt"))
    with zipfile.ZipFile(wheel) as archive:
        assert b"mockllm = mockllm.cli:main" in archive.read(metadata)


def test_the_demo_plays(installed):
    """The shipped scenarios are found away from the checkout."""
    done = installed("demo")
    assert done.returncode == 0, done.stderr
    assert "Alice's number is 42, Bob's is 7." in done.stdout


def test_a_runner_is_written(installed):
    """The runners are found away from the checkout."""
    done = installed("init", "--runner", "python", "runner")
    assert done.returncode == 0, done.stderr
    assert (installed.folder / "runner" / "client.py").is_file()


def test_the_wheel_is_what_runs(installed):
    """The other tests here do not import the checkout by mistake."""
    found = subprocess.run(
        [sys.executable, "-c", "import mockllm; print(mockllm.__file__)"],
        cwd=installed.folder,
        env={**os.environ, "PYTHONPATH": str(installed.site)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith(str(installed.site))


def test_the_first_commands_of_a_new_user(installed):
    """init, validate, list and show work."""
    assert installed("init", "first").returncode == 0
    checked = installed("validate", "first", "--json")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout) == []
    assert len(json.loads(installed("list", "--json").stdout)) >= 16
    stream = installed("show", "secret-numbers", "--api", "responses")
    assert stream.stdout.startswith("event: response.created\n")
