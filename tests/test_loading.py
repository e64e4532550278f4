"""`mockllm.load` accepts one path or several, and reads nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mockllm import ScenarioError, load

# An audit hook sees each folder that is listed, and refuses the root of the disk.
GUARDED = """
import sys
from mockllm import load

def refuse(event, arguments):
    if event in ("os.scandir", "os.listdir") and arguments[0] in ("/", "."):
        raise RuntimeError(f"lists {arguments[0]!r}")

sys.addaudithook(refuse)
print(*[scenario.name for scenario in load(sys.argv[1])])
"""


def scenario(name: str) -> str:
    return f"{{scenario: {name}, match: {{user: {name}}}, turns: [{{reply: {{text: {name}}}}}]}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.yaml").write_text(scenario(name))
    return tmp_path


def names(paths) -> list[str]:
    return [scenario.name for scenario in load(paths)]


def test_one_string(folder, monkeypatch):
    """A string is one path, not one path for each of its characters ("." among them)."""
    monkeypatch.chdir(folder)
    assert names("one.yaml") == ["one"]
    assert names(str(folder / "two.yaml")) == ["two"]


def test_one_path_object(folder):
    """A path object is one path, of a file or of a folder."""
    assert names(folder / "one.yaml") == ["one"]
    assert names(folder) == ["one", "three", "two"]


@pytest.mark.parametrize("several", [list, tuple, iter])
def test_several(folder, several):
    """Strings and path objects may be mixed; the scenarios come in their order."""
    paths = [str(folder / "two.yaml"), folder / "one.yaml"]
    assert names(several(paths)) == ["two", "one"]


def test_no_path_is_no_scenario():
    """An empty list is not the current folder."""
    assert load([]) == ()


@pytest.mark.parametrize("wrap", [str, Path, lambda path: [path]])
def test_a_missing_path(tmp_path, wrap):
    """A missing path is one problem, which names it."""
    missing = tmp_path / "missing.yaml"
    with pytest.raises(ScenarioError) as caught:
        load(wrap(missing))
    (problem,) = caught.value.problems
    assert problem.file == str(missing)


def test_no_other_folder_is_listed(folder):
    """A string with a slash does not lead to the root of the disk."""
    done = subprocess.run(
        [sys.executable, "-c", GUARDED, folder / "one.yaml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("one\n", 0), done.stderr
