"""docs/frameworks.md is true: every block runs with its framework."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import text_of
from tests.docs.running import write
from tests.timeouts import GIVE_UP

ROOT = Path(__file__).parents[2]
NODE_MODULES = ROOT / "measurements" / "clients" / "node_modules"
HERE = Path(sys.executable)
FRAMEWORKS = ROOT / ".venv-frameworks" / "bin" / "python"
CREWAI = ROOT / ".venv-crewai" / "bin" / "python"

TESTS = {
    "test_openai_agents": (HERE, "agents"),
    "test_pydantic_ai": (HERE, "pydantic_ai"),
    "test_langgraph": (HERE, "langgraph"),
    "test_llama_index": (FRAMEWORKS, "llama_index"),
    "test_google_adk": (FRAMEWORKS, "google/adk"),
    "test_strands": (FRAMEWORKS, "strands"),
    "test_crewai": (CREWAI, "crewai"),
}
"""Test file of the page to the interpreter that has its framework, and the framework's package."""

HOSTS = """
import socket

looked_up, getaddrinfo = set(), socket.getaddrinfo


def look_up(host, *rest, **more):
    looked_up.add(str(host))
    return getaddrinfo(host, *rest, **more)


socket.getaddrinfo = look_up


def pytest_sessionfinish(session):
    others = looked_up - {"127.0.0.1", "localhost", "::1", "None"}
    if others:
        print("hosts that were looked up:", *sorted(others))
        session.exitstatus = 3
"""
"""A plugin that fails the run of a page's test where something asks another host."""

pytestmark = pytest.mark.slow


def test_every_block_is_run(tmp_path: Path) -> None:
    """The page and this test name the same files."""
    write(tmp_path, text_of("frameworks"))
    files = {file.stem for file in tmp_path.iterdir()} - {"conftest"}
    assert files == {*TESTS, "weather.test"}


@pytest.mark.parametrize("name", TESTS)
def test_a_framework_works_as_the_page_says(tmp_path: Path, name: str) -> None:
    """The tests of a framework pass, with nothing but the page's conftest.py beside them, and ask
    no other host."""
    python, package = TESTS[name]
    packages = python.parents[1].glob(f"lib/python3*/site-packages/{package}")
    if not any(packages):
        pytest.skip(f"{package} is not here: `make conformance-ready` installs it")
    write(tmp_path, text_of("frameworks"))
    (tmp_path / "hosts.py").write_text(HOSTS)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'pytest_plugin'}:{tmp_path}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    plugins = (
        "-p",
        "hosts",
        "-p",
        "mockllm_pytest.plugin",
        "-p",
        "pytest_asyncio.plugin",
        "-p",
        "no:cacheprovider",
    )
    _succeed([python, "-m", "pytest", "-q", *plugins, f"{name}.py"], tmp_path, environment)


def test_the_vercel_ai_sdk_works_as_the_page_says(tmp_path: Path) -> None:
    """The test of the AI SDK passes."""
    node = shutil.which("node")
    if node is None or not (NODE_MODULES / "ai").is_dir():
        pytest.skip("ai is not here: `make ready` installs it, if npm is")
    write(tmp_path, text_of("frameworks"))
    modules = tmp_path / "node_modules"
    modules.mkdir()
    for module in [*NODE_MODULES.iterdir(), ROOT / "packages" / "js"]:
        name = "mockllm-harness" if module.name == "js" else module.name
        (modules / name).symlink_to(module, target_is_directory=True)
    path = f"{HERE.parent}:{os.environ['PATH']}"
    _succeed([node, "--test", "weather.test.mjs"], tmp_path, {**os.environ, "PATH": path})


def _succeed(command: list[str | Path], folder: Path, environment: dict[str, str]) -> None:
    run = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=5 * GIVE_UP,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
