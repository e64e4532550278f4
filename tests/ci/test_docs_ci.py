"""docs/ci.md: its YAML is valid, its commands run, and the hooks do what the page promises."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from mockllm.cli import main
from tests.ci.action import ACTION, ROOT
from tests.timeouts import GIVE_UP

PAGE = (ROOT / "docs" / "ci.md").read_text()
BLOCKS = {
    text.split("\n", 1)[0].removeprefix("# "): yaml.safe_load(text)
    for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
}
"""The YAML of the page by the name of its file."""

HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
BIN = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
RUNNER = ROOT / "examples" / "runners" / "python" / "runner.py"
AGENT = (
    "import os, urllib.request as web\n"
    'body = b\'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}\'\n'
    "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
    "headers = {'authorization': 'Bearer x', 'content-type': 'application/json'}\n"
    "web.urlopen(web.Request(url, body, headers)).read()\n"
)


def _run(*command: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**ENVIRONMENT, **more},
        capture_output=True,
        text=True,
        timeout=5 * GIVE_UP,
    )


@pytest.fixture
def project(tmp_path):
    """A repository with a scenario, an agent, and the runner of the examples."""
    (tmp_path / "scenarios").mkdir()
    scenario = "scenario: one\nmatch: any\nturns:\n  - reply: {text: a}\n"
    (tmp_path / "scenarios" / "one.yaml").write_text(scenario)
    (tmp_path / "agent.py").write_text(AGENT)
    for file in RUNNER.parent.glob("*.py"):
        (tmp_path / file.name).write_text(file.read_text())
    return tmp_path


def _commands(line: str) -> list[str]:
    """The words of `mockllm` in a line of a shell, as click gets them."""
    words = shlex.split(line)
    return words[words.index("mockllm") + 1 :]


def test_the_lines_without_installing_parse():
    """Each line names the package, and a command of mockllm with options that exist."""
    (block,) = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(block.splitlines()) == 3
    for line in block.splitlines():
        assert re.match(r"(uvx --from|pipx run --spec) '?mockllm-harness", line)
        name, *arguments = _commands(line)
        command = main.get_command(click.Context(main), name)
        assert command is not None
        command.make_context(name, arguments).close()


@pytest.mark.parametrize("name", [name for name in BLOCKS if "workflows" in name])
def test_the_workflows_use_inputs_of_the_action(name):
    """Each step with the action has inputs that there are."""
    (job,) = BLOCKS[name]["jobs"].values()
    (used,) = (step for step in job["steps"] if step.get("uses") == "./.github/actions/mockllm")
    assert set(used["with"]) <= set(ACTION["inputs"])


def test_the_page_names_every_input_and_output():
    """The tables have all inputs and outputs of the action."""
    names = [*ACTION["inputs"], *ACTION["outputs"]]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


@pytest.mark.slow
def test_the_jobs_of_gitlab(project):
    """The scripts succeed, and the artifacts that the jobs name are there."""
    jobs = BLOCKS[".gitlab-ci.yml"]
    for job in jobs.values():
        assert set(job) <= {"image", "before_script", "script", "artifacts"}
        assert all(line.startswith("pip install ") for line in job["before_script"])
        for line in job["script"]:
            # Some cases are enough here.
            line = line.replace(" -- python runner.py", " --only sse-bom -- python runner.py")
            done = _run("bash", "-c", line, cwd=project)
            assert done.returncode == 0, done.stdout + done.stderr
    artifacts = jobs["conformance"]["artifacts"]
    assert (project / artifacts["reports"]["junit"]).read_text().startswith("<?xml")
    assert (project / artifacts["paths"][0] / "report" / "index.html").exists()


def test_the_hooks_are_on_the_page():
    """The page configures each hook, and no other."""
    (repository,) = BLOCKS[".pre-commit-config.yaml"]["repos"]
    assert {hook["id"] for hook in repository["hooks"]} == {hook["id"] for hook in HOOKS}


@pytest.mark.slow
def test_the_manifest_of_hooks_is_valid():
    """pre-commit accepts the file."""
    done = _run("pre-commit", "validate-manifest", ".pre-commit-hooks.yaml", cwd=ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_hooks_run(project, tmp_path_factory):
    """The configuration of the page passes for a right project; a broken scenario fails it. (The
    hooks run with the `mockllm` of this checkout, so that nothing is installed.)"""
    (repository,) = BLOCKS[".pre-commit-config.yaml"]["repos"]
    hooks = [{**hook, "language": "system"} for hook in repository["hooks"]]
    for hook in hooks:
        assert hook.pop("additional_dependencies") == ["mockllm-harness"]
    config = {"repos": [{"repo": "local", "hooks": hooks}]}
    (project / ".pre-commit-config.yaml").write_text(json.dumps(config))
    home = str(tmp_path_factory.mktemp("home"))
    _run("git", "init", "--quiet", cwd=project)
    _run("git", "add", ".", cwd=project)

    def pre_commit(*arguments: str) -> subprocess.CompletedProcess[str]:
        return _run("pre-commit", "run", "--all-files", *arguments, cwd=project, HOME=home,
                    PRE_COMMIT_HOME=home)  # fmt: skip

    assert not pre_commit().returncode
    pushed = pre_commit("--hook-stage", "pre-push", "mockllm-check")
    assert pushed.returncode == 0, pushed.stdout
    (project / "scenarios" / "one.yaml").write_text("scenario: one\nturns: 5\n")
    broken = pre_commit("mockllm-validate")
    assert broken.returncode == 1
    assert "one.yaml:2:8: turns: must be a" in broken.stdout
