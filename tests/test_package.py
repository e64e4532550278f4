"""The wheel has every file that users need, and works away from the checkout."""

from __future__ import annotations

import json
import os
import re
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
    pages = {path.name for path in (ROOT / "mockllm" / "serve" / "ui" / "site").iterdir()}
    assert {f"mockllm/serve/ui/site/{name}" for name in pages} <= names
    generated = {path.name for path in (ROOT / "docs" / "maintainers").glob("*.md")}
    docs = {f"mockllm/pages/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    found = {name for name in names if name.startswith("mockllm/pages/")}
    assert docs <= found
    assert not any(Path(name).name in generated for name in found)
    assert not any(
        name.startswith(("tests/", "measurements/", "tools/", "docs/")) for name in names
    )
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


def test_the_pages_are_printed_from_the_wheel(installed):
    """`mockllm docs` lists the pages and prints one, away from the checkout."""
    listed = installed("docs")
    assert listed.returncode == 0, listed.stderr
    assert "The scenario language" in listed.stdout
    page = installed("docs", "scenarios")
    assert page.stdout == (ROOT / "docs" / "scenarios.md").read_text() + "\n"


def test_no_link_of_the_index_page_leads_nowhere(wheel):
    """The README of the wheel has absolute links only, and names `mockllm docs` for the pages."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("METADATA"))
        text = archive.read(name).decode()
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert [target for target in targets if not target.startswith("https://")] == []
    assert "mockllm docs" in text


def test_one_setting_gives_the_package_its_addresses():
    """With addresses, links of the README lead to the site and the source, and so do `urls`."""
    sys.path.insert(0, str(ROOT))
    from hatch_build import readme_for_index, urls

    site, source = "https://docs.example", "https://code.example/x"
    text = "[a](docs/cli.md#mockllm-run) ![b](docs/images/x.png) [c](CHANGELOG.md) [d](https://e/f)"
    assert readme_for_index(text, site, source) == (
        "[a](https://docs.example/cli/#mockllm-run) "
        "![b](https://code.example/x/raw/main/docs/images/x.png) "
        "[c](https://code.example/x/blob/main/CHANGELOG.md) [d](https://e/f)"
    )
    assert set(urls(site, source)) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert urls("", "") == {}
