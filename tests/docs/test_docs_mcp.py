"""docs/mcp.md: its examples load, and its tables have every key."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mockllm.play.replay.loading import loads
from mockllm.scenario.mcp_model import MCP_FAULTS
from mockllm.scenario.reading.definitions import PROPERTIES
from tests.docs.pages import text_of
from tests.docs.running import run, write
from tests.timeouts import GIVE_UP

TEXT = text_of("mcp")


def test_the_examples_load_together():
    """A reader can paste them into one folder."""
    sources = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(loads("---\n".join(sources))) == 4


@pytest.mark.parametrize(
    ("title", "definition"),
    [
        ("key of `mcp: NAME`", "mcp_server"),
        ("key", "mcp_entry"),
        ("key of an answer", "mcp_answer"),
    ],
)
def test_a_table_has_every_key(title, definition):
    """No more and no less than the schema."""
    table = re.search(rf"^\| {title} \|.*\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    first = [row.split("|")[1] for row in table[1].splitlines()[1:]]
    assert {key for cell in first for key in re.findall(r"`(\w+)`", cell)} == {
        *PROPERTIES[definition]
    }


def test_the_faults_of_mcp_are_listed():
    """The page has those that other answers do not have."""
    for name in MCP_FAULTS:
        assert f"| `{name}` |" in TEXT


def examples(folder):
    """Writes the files of the page; returns its commands."""
    (skill,) = re.findall(
        r"^```markdown\n<!-- (\S+) -->\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL
    )
    (folder / skill[0]).write_text(skill[1])
    return write(folder, re.sub(r"^```yaml\n.*?^```", "", TEXT, flags=re.MULTILINE | re.DOTALL))


def lines_of_test(folder, name):
    """The lines of a test that are no blank lines and no imports."""
    lines = (folder / name).read_text().splitlines()
    return [line for line in lines if line.strip() and not re.match("import|from", line)]


def test_an_agent_with_a_skill_a_server_and_a_model_is_tested(tmp_path):
    """The Python example passes, and has at most 15 lines."""
    (console,) = examples(tmp_path)
    run(tmp_path, console)
    assert len(lines_of_test(tmp_path, "test_agent.py")) <= 15


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not here")
def test_the_same_in_javascript(tmp_path):
    """The JavaScript example passes, and has at most 15 lines."""
    examples(tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").mkdir()
    package = Path(__file__).parents[2] / "packages" / "js"
    (tmp_path / "node_modules" / "mockllm-harness").symlink_to(package)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["node", "--test", "agent.test.js"],
        cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True,
        timeout=GIVE_UP, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert len(lines_of_test(tmp_path, "agent.test.js")) <= 15
