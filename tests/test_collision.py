"""PyPI's `mockllm` is another project with our import name; an environment with both is
detected."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parents[1]
REPAIR = "pip uninstall -y mockllm mockllm-harness && pip install mockllm-harness"
OTHER_INIT = '"""\nMock LLM Server\n"""\n\n__version__ = "0.0.7"\n'
OTHER_MAIN = "import uvicorn\n\nuvicorn.run('mockllm.serve.server:app')\n"
VERSION = "import sys; from mockllm.cli import main; sys.argv = ['mockllm', '--version']; main()"


class Site:
    """A folder as pip fills it: this package, and what it needs to start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "mockllm"
        self.package.mkdir(parents=True)
        for path in (ROOT / "mockllm").iterdir():
            if path.is_dir():
                (self.package / path.name).symlink_to(path)
            else:
                (self.package / path.name).write_bytes(path.read_bytes())
        (folder / "click").symlink_to(Path(click.__file__).parent)

    def distribution(self, name: str, version: str, files: tuple[str, ...]) -> None:
        """Writes the metadata that pip writes, and the missing files."""
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))

    def add_other(self) -> None:
        """Installs the other project before ours: its other files stay."""
        (self.package / "server.py").write_text("app = None\n")
        self.distribution(
            "mockllm", "0.0.8", ("mockllm/__init__.py", "mockllm/__main__.py", "mockllm/server.py")
        )

    def overwrite(self) -> None:
        """Installs the other project after ours."""
        self.add_other()
        (self.package / "__init__.py").write_text(OTHER_INIT)
        (self.package / "__main__.py").write_text(OTHER_MAIN)

    def remove_shared(self) -> None:
        """Removes the files that both projects have, as uninstalling the other one does."""
        (self.package / "__init__.py").unlink()
        (self.package / "__main__.py").unlink()

    def run(self, *arguments: str, path: tuple[Path, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Runs Python with this folder and `path`, and with no other installed package."""
        folders = map(str, (self.folder, *path))
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(folders),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        environment.pop("PYTHONWARNINGS", None)
        return subprocess.run(
            [sys.executable, "-S", *arguments],
            cwd=self.folder.parent,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def site(tmp_path):
    """This project alone."""
    return Site(tmp_path / "site")


def test_alone_there_is_no_warning(site):
    """Without the other project nothing warns; names that only begin the same do not count."""
    site.distribution("mockllm-harness", "0.1.0", ("mockllm/__init__.py", "mockllm/cli/demo.py"))
    site.distribution("mockllm-plugin", "1.0", ())
    (site.folder / "mockllm-main").mkdir()
    assert site.run("-W", "error", "-c", "import mockllm").returncode == 0
    done = site.run("-W", "error", "-m", "mockllm", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("mockllm, version ")


def test_the_check_imports_nothing(site):
    """Without the other project, the import costs one listing of one folder."""
    script = (
        "import mockllm, sys\n"
        "print([name for name in sys.modules if name.startswith(('mockllm.', 'importlib.meta'))])"
    )
    assert site.run("-c", script).stdout == "[]\n"


def test_the_import_warns(site):
    """The warning has the line of the import, and names the project and the remedy."""
    site.add_other()
    (site.folder.parent / "script.py").write_text(
        "\nimport mockllm\nprint(mockllm.ScenarioError)\n"
    )
    done = site.run("script.py")
    assert done.returncode == 0
    assert "ScenarioError" in done.stdout
    assert done.stderr.count("CollisionWarning") == 1
    assert "script.py:2: CollisionWarning: the distribution 'mockllm' 0.0.8 is" in done.stderr
    assert REPAIR in done.stderr


def test_the_warning_has_a_category(site):
    """It is a UserWarning that a filter can name."""
    site.add_other()
    script = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as caught: import mockllm\n"
        "(one,) = caught\n"
        "assert one.category is mockllm.CollisionWarning\n"
        "assert issubclass(one.category, UserWarning)\n"
    )
    assert site.run("-c", script).stderr == ""


def test_version_reports_the_other_project(site):
    """`--version` prints the version, then the other's name and version; the exit code is 1."""
    site.add_other()
    done = site.run("-W", "ignore", "-m", "mockllm", "--version")
    assert done.returncode == 1
    assert done.stdout.startswith("mockllm, version ")
    first, last = done.stderr.splitlines()
    assert first.startswith("mockllm: the distribution 'mockllm' 0.0.8 is installed beside")
    assert last == f"mockllm: to repair it: {REPAIR}"


def test_version_looks_at_every_folder(site, tmp_path):
    """The other project is reported wherever Python finds it."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "mockllm-0.0.1.dist-info").mkdir(parents=True)
    (elsewhere / "mockllm-0.0.1.dist-info/METADATA").write_text("Name: mockllm\nVersion: 0.0.1\n")
    done = site.run("-m", "mockllm", "--version", path=(elsewhere,))
    assert done.returncode == 1
    assert "'mockllm' 0.0.1 is installed beside" in done.stderr


def test_overwritten_files(site):
    """Our command line runs with the other's `__init__.py`, and reports it."""
    site.distribution("mockllm-harness", "7.8.9", ("mockllm/__init__.py",))
    site.overwrite()
    done = site.run("-c", VERSION)
    assert done.returncode == 1
    assert done.stdout == "mockllm, version 7.8.9\n"
    assert "<string>:1: CollisionWarning: the distribution 'mockllm' 0.0.8" in done.stderr
    lines = done.stderr.splitlines()
    changed = "overwritten by another project: mockllm/__init__.py, mockllm/__main__.py"
    assert f"mockllm: {changed}" in lines
    assert lines[-1] == f"mockllm: to repair it: {REPAIR}"


def test_removed_files(site):
    """Files that the other's uninstallation removed are listed."""
    site.remove_shared()
    done = site.run("-c", VERSION)
    assert done.returncode == 1
    assert done.stdout == "mockllm, version unknown\n"
    assert "<string>:1: CollisionWarning: missing: mockllm/__init__.py" in done.stderr
    assert "mockllm: missing: mockllm/__init__.py, mockllm/__main__.py" in done.stderr.splitlines()


def test_missing_files_are_listed(site):
    """The record of the installation is compared with the disk, without compiled files."""
    gone = tuple(f"mockllm/gone/{name}.py" for name in "abcdefg")
    passed = ("mockllm/__pycache__/__init__.cpython-399.pyc", "../../bin/mockllm")
    site.distribution("mockllm-harness", "0.1.0", (*gone, *passed, "mockllm/__init__.py"))
    done = site.run("-m", "mockllm", "--version")
    assert done.returncode == 1
    first, _ = done.stderr.splitlines()
    assert first == f"mockllm: missing: {', '.join(gone[:5])} and 2 more"


@pytest.mark.parametrize("damage", ["overwrite", "remove_shared"])
def test_pytest_reports_a_damaged_package(site, damage):
    """pytest reports that `import mockllm` is not ours, even where nothing else of ours runs."""
    getattr(site, damage)()
    (site.folder.parent / "test_one.py").write_text("def test_one():\n    pass\n")
    done = site.run(
        "-m", "pytest", "-p", "mockllm_pytest.plugin", "-p", "no:cacheprovider", "test_one.py",
        path=(ROOT / "pytest_plugin", Path(pytest.__file__).parents[1]),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "`import mockllm` does not find mockllm-harness but" in done.stdout
    assert REPAIR in done.stdout.replace("\n", " ")
