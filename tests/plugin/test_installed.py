"""The installed plugin beside others: its imports, and names that must not collide."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.inner_pytest import ADDOPTS
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


def test_the_plugin_imports_no_heavy_module():
    """The plugin module itself imports neither aiohttp, yaml, asyncio nor jsonschema."""
    code = (
        "import pytest, sys; before = set(sys.modules); import mockllm_pytest.plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    new = set(done.stdout.split())
    assert {name for name in new if name.startswith("mockllm")} == {
        "mockllm_pytest",
        "mockllm_pytest.options",
        "mockllm_pytest.printing",
        "mockllm_pytest.plugin",
    }
    assert not new & {"aiohttp", "yaml", "asyncio", "jsonschema"}


def test_a_plain_test_imports_no_server(project):
    """Collecting and running a plain test imports neither the server nor its libraries."""
    project.makepyfile(
        """
        import sys

        def test_it():
            heavy = ("aiohttp", "yaml", "mockllm.scenario", "mockllm.checking")
            heavy += ("mockllm.serve.server",)
            assert not [name for name in heavy if name in sys.modules]
        """
    )
    arguments = ("-p", "no:hypothesispytest", "-p", "no:asyncio", "-p", "no:recording")
    result = project.runpytest_subprocess(*arguments, "-p", "no:anyio", "-p", "no:pytest_httpx")
    result.assert_outcomes(passed=1)


def test_the_markers_are_documented(project):
    """`pytest --markers` and `--help` list the markers and options."""
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


def assert_no_collision(found: dict, *others: str) -> None:
    """No two plugins share an option, ini key, marker or fixture of ours, and all are loaded."""
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
    """No name of the plugin is one of pytest-recording, pytest-httpx or pytest-asyncio."""
    assert_no_collision(names_with(sys.executable, project), "recording", "pytest_httpx", "asyncio")


@pytest.mark.slow
@pytest.mark.skipif(not COLLISIONS.exists(), reason="`make test` makes .venv-collisions")
def test_no_name_collides_with_those_of_other_mocks(project):
    """aimock-pytest and pytest-mockllm, with similar names, work in the same environment."""
    found = names_with(str(COLLISIONS), project)
    assert_no_collision(found, "aimock", "mockllm", "recording", "pytest_httpx")
    project.makepyfile(
        test_it="""
        from client import reply_to

        def test_ours(mockllm_session):
            mockllm_session.reply("Hi")
            assert reply_to("Hello") == "Hi"

        def test_theirs(mock_openai):
            assert mock_openai is not None
        """
    )
    done = subprocess.run(
        [str(COLLISIONS), "-m", "pytest", "-q"], cwd=project.path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_wheel_registers_the_plugin(project, tmp_path_factory):
    """The built wheel registers the plugin by its entry point, outside the checkout."""
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
        from client import reply_to

        @pytest.mark.mockllm("tick-tock", unplayed=True)
        def test_it():
            assert reply_to("play the clock")
            for module in (mockllm, mockllm_pytest):
                assert module.__file__.startswith({str(site)!r})
        """
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=project.path,
        env={**os.environ, "PYTHONPATH": str(site), "PYTEST_ADDOPTS": ADDOPTS},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
