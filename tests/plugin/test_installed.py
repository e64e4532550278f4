"""Installed beside others: what the plugin costs, and whose names it takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.plugin.conftest import INI

ROOT = Path(__file__).parents[2]
COLLISIONS = ROOT / ".venv-collisions" / "bin" / "python"

NAMES = """
    import json
    import sys

    import pytest

    def names(config):
        plugins = {}
        parser = config._parser
        for name, plugin in config.pluginmanager.list_name_plugin():
            if plugin is not None:
                plugins[name] = sorted(
                    key for key, value in vars(plugin).items()
                    if type(value).__name__ == "FixtureFunctionDefinition"
                ) if hasattr(plugin, "__dict__") else []
        groups = [parser._anonymous, *parser._groups]
        return {
            "plugins": plugins,
            "options": [name for group in groups for option in group.options
                        for name in option.names()],
            "inis": list(parser._inidict),
            "markers": [line.partition(":")[0].partition("(")[0].strip()
                        for line in config.getini("markers")],
        }

    def test_it(pytestconfig):
        print("NAMES", json.dumps(names(pytestconfig)))
"""


def test_the_plugin_imports_nothing_that_costs():
    """A run in which nothing asks for the server imports neither aiohttp nor yaml."""
    code = (
        "import pytest, sys; before = set(sys.modules); import mockllm_pytest.plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    new = set(done.stdout.split())
    assert {name for name in new if name.startswith("mockllm")} == {
        "mockllm_pytest",
        "mockllm_pytest.options",
        "mockllm_pytest.plugin",
    }
    assert not new & {"aiohttp", "yaml", "asyncio", "jsonschema"}


def test_a_run_that_uses_nothing_imports_nothing(project):
    """Neither collecting nor running a plain test loads anything of mockllm."""
    project.makepyfile(
        """
        import sys

        def test_it():
            heavy = ("aiohttp", "yaml", "mockllm.scenario", "mockllm.checking", "mockllm.server")
            assert not [name for name in heavy if name in sys.modules]
        """
    )
    arguments = ("-p", "no:hypothesispytest", "-p", "no:asyncio", "-p", "no:recording")
    result = project.runpytest_subprocess(*arguments, "-p", "no:anyio", "-p", "no:pytest_httpx")
    result.assert_outcomes(passed=1)


def test_the_markers_are_documented(project):
    """`pytest --markers` and `--help` explain what there is."""
    result = project.runpytest_inprocess("--markers")
    marks = ("", "_cases", "_recorded")
    result.stdout.fnmatch_lines([f"@pytest.mark.mockllm{name}(*" for name in marks])
    result = project.runpytest_inprocess("--help")
    result.stdout.fnmatch_lines(
        [
            "mockllm: a mock server for LLM streams:",
            "*--mockllm-upstream=*",
            "*--mockllm-record=MODE*",
            "*mockllm_speed*",
        ]
    )


def names_with(python: str, project, environment=None) -> dict:
    project.makepyfile(test_it=NAMES)
    project.makeini(INI.replace("-p no:langsmith_plugin -p no:randomly", "-s"))
    done = subprocess.run(
        [python, "-m", "pytest", "-q"],
        cwd=project.path,
        env={**os.environ, "PYTEST_ADDOPTS": "", **(environment or {})},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "NAMES" in line]
    return json.loads(line.partition("NAMES ")[2])


def all_apart(found: dict, *others: str) -> None:
    """Nobody has a name that somebody else has, and all were there."""
    assert {"mockllm_harness", *others} <= set(found["plugins"])
    for kind in ("options", "inis", "markers"):
        given = found[kind]
        assert sorted(set(given)) == sorted(given), kind
    own = set(found["plugins"]["mockllm_harness"])
    assert {"mockllm_server", "mockllm_session", "mockllm_case"} <= own
    for name, fixtures in found["plugins"].items():
        if name != "mockllm_harness":
            assert not own & set(fixtures), name


@pytest.mark.slow
def test_no_name_collides_with_those_of_other_plugins(project):
    """pytest-recording, pytest-httpx and pytest-asyncio keep all their names beside ours."""
    all_apart(names_with(sys.executable, project), "recording", "pytest_httpx", "asyncio")


@pytest.mark.slow
@pytest.mark.skipif(not COLLISIONS.exists(), reason="`make test` makes .venv-collisions")
def test_no_name_collides_with_those_of_other_mocks(project):
    """aimock-pytest and pytest-mockllm, whose names are like ours, load and work beside us."""
    found = names_with(str(COLLISIONS), project)
    all_apart(found, "aimock", "mockllm", "recording", "pytest_httpx")
    project.makepyfile(
        test_it="""
        from client import say

        def test_ours(mockllm_session):
            mockllm_session.reply("Hi")
            assert say("Hello") == "Hi"

        def test_theirs(mock_openai):
            assert mock_openai is not None
        """
    )
    done = subprocess.run(
        [str(COLLISIONS), "-m", "pytest", "-q"], cwd=project.path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_wheel_brings_the_plugin(project, tmp_path_factory):
    """Away from the checkout, the entry point of the built wheel is enough."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q",
         "-w", folder, ROOT],
        check=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    project.makepyfile(
        test_it=f"""
        import mockllm
        import mockllm_pytest
        import pytest
        from client import say

        @pytest.mark.mockllm("tick-tock", unplayed=True)
        def test_it():
            assert say("Hello")
            for module in (mockllm, mockllm_pytest):
                assert module.__file__.startswith({str(site)!r})
        """
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=project.path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
