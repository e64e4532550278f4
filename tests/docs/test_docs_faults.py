"""The commands of docs/faults.md work as written."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mockllm.scenario
from mockllm.play.replay.loading import load
from mockllm.scenario.reading.faults import FAULTS, parse_faults
from mockllm.scenario.reading.tables import TABLES
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.cases import for_all
from tests.docs.pages import text_of
from tests.inner_pytest import ADDOPTS
from tests.timeouts import GIVE_UP

PAGE = text_of("faults", "fault-kinds")
SERVED = "http://127.0.0.1:8080"


def blocks(language: str) -> list[str]:
    """The blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a block, and the lines that the page shows below each."""
    found = (one.splitlines() for one in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:])
    return [(line, shown) for line, *shown in found]


def write(folder: Path) -> None:
    """Writes the files of the page."""
    for language in ("yaml", "python"):
        for text in blocks(language):
            first, rest = text.split("\n", 1)
            (folder / first.removeprefix("# ")).write_text(rest, encoding="utf-8")
    named = r"`(\w+\.(?:json|curl))`[^`]*(?:`-K`:)?\n\n```\w+\n(.*?)^```"
    for name, text in re.findall(named, PAGE, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page."""
    folder = tmp_path_factory.mktemp("faults")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """A server of `tour.yaml`, which the options of curl name."""
    options = folder / "greet.curl"
    with ServerThread(load([folder / "tour.yaml"]), ServerOptions()) as thread:
        options.write_text(options.read_text().replace(SERVED, thread.url))
        yield thread.url


def check(folder: Path, line: str, shown: list[str]) -> None:
    """Runs a command, and finds the lines of the page in its output, in their order."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        line,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONUTF8": "1", "PYTEST_ADDOPTS": ADDOPTS},
        capture_output=True,
        text=True,
        timeout=GIVE_UP,
        check=False,
    )
    output = done.stdout + done.stderr
    for wanted in shown:
        if number := re.match(r"curl: \(\d+\)", wanted):  # its words differ between versions
            assert number[0] in done.stderr, f"{wanted!r} is not in {done.stderr!r} of {line!r}"
            continue
        assert wanted in output, f"{wanted!r} is not in the output of {line!r}:\n{output}"
        output = output.split(wanted, 1)[1]
    assert '"content"' not in output, f"{line!r} prints more than the page shows:\n{output}"


@pytest.mark.slow
@for_all("block", [pytest.param(one, id=one[:60]) for one in blocks("console")])
def test_a_block(folder: Path, url: str, block: str) -> None:
    """The commands of a block have the output that the page shows."""
    if "curl" in block and shutil.which("curl") is None:
        pytest.skip("this needs curl")
    if "retry.py" in block:
        pytest.importorskip("openai")
    if "test_agent.py" in block:
        pytest.importorskip("httpx")
    for line, shown in commands(block):
        check(folder, line.replace(SERVED, url), shown)


def test_every_fault_is_on_the_page() -> None:
    """Each fault has a line in a table, with all of its parameters but places."""
    rows = dict(re.findall(r"^\| `([\w-]+)` \| .* \|(.*)\|$", PAGE, re.MULTILINE))
    for name, table in FAULTS.items():
        assert name in rows, name
        for key in table.readers.keys() - {"after", "inside", "before"}:
            assert f"`{key}" in rows[name], f"{name} does not name {key}"


def test_every_value_is_on_the_page() -> None:
    """Each value that a parameter may have is on the page, as the JSON Schema lists them."""
    schema = json.loads((Path(mockllm.scenario.__file__).parent / "schema.json").read_text())
    for name in [name for name in TABLES if name.startswith("fault_")]:
        for key, value in schema["$defs"][name]["properties"].items():
            for one in value.get("enum", ()):
                assert re.search(rf"`(?:\w+=)?{one}`", PAGE), f"{name}: {one!r} of {key}"


@for_all("text", re.findall(r"(?:x-mockllm-fault: |--fault ')([^'`]+)['`]", PAGE))
def test_the_faults_of_the_page_can_be_read(text: str) -> None:
    """Each fault in a command of the page is one."""
    assert parse_faults(text)
