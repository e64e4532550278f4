"""docs/cuts.md works as written: its files are written, its commands run in their order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mockllm.checking.cuts.prefixes import PLACES
from mockllm.checking.rules import CUT_RULES
from tests.apis import OVER_HTTP
from tests.inner_pytest import ADDOPTS
from tests.timeouts import GIVE_UP

PAGE = (Path(__file__).parents[3] / "docs" / "cuts.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_each_rule_place_and_api_has_its_row():
    """The tables of the page are complete."""
    rows = set(re.findall(r"^\| `([\w-]+)` \|", PAGE, re.MULTILINE))
    assert rows == {*CUT_RULES, *PLACES, *OVER_HTTP}


@pytest.mark.slow
def test_the_page_works(tmp_path):
    """Each command prints the lines of the page, in their order."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTEST_ADDOPTS": ADDOPTS,
        "COLUMNS": "200",
    }

    def run(command):
        return subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=GIVE_UP,
            check=False,
        ).stdout

    for language, text in BLOCKS:
        if language == "python":
            name, rest = text.removeprefix("# ").split("\n", 1)
            (tmp_path / name).write_text(rest)
            continue
        output = ""
        for line in text.splitlines():
            if line.startswith("$ "):
                output = run(line.removeprefix("$ "))
                continue
            assert line in output, f"{line!r} is not in the rest of the output: {output}"
            output = output.split(line, 1)[1]
    assert run("python check_it.py").endswith("lines have mistakes\n")
