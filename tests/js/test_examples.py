"""The examples of the package, and the page about it, work as they stand."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from mockllm.play.replay.loading import loads_sent
from tests.js.node import PACKAGE, ROOT, link_modules, run, succeed, with_node, with_npm

EXAMPLES = PACKAGE / "examples"
PAGE = (ROOT / "docs" / "javascript.md").read_text()
README = (PACKAGE / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.slow


@with_node
@with_npm
@pytest.mark.parametrize(
    ("example", "command"),
    [("node-test", ["node", "--test"]), ("vitest", ["node_modules/.bin/vitest", "run"])],
)
def test_an_example_passes(tmp_path, example, command):
    """The tests of an example pass, with the packages that its package.json names."""
    folder = tmp_path / example
    shutil.copytree(EXAMPLES / example, folder, ignore=shutil.ignore_patterns("node_modules"))
    link_modules(folder)
    manifest = json.loads((folder / "package.json").read_text())
    assert manifest["scripts"]["test"] in (" ".join(command), f"vitest {command[-1]}")
    for name in {**manifest.get("dependencies", {}), **manifest["devDependencies"]}:
        assert (folder / "node_modules" / name).exists()
    succeed(*command, cwd=folder)


@with_node
@with_npm
def test_the_types_of_the_vitest_example(tmp_path):
    """The compiler accepts the example."""
    folder = tmp_path / "vitest"
    shutil.copytree(EXAMPLES / "vitest", folder, ignore=shutil.ignore_patterns("node_modules"))
    link_modules(folder)
    succeed("node_modules/.bin/tsc", "--project", ".", cwd=folder)


@with_node
@with_npm
def test_the_page(tmp_path: Path):
    """The files of the page are written, its commands run, and their output has its lines."""
    link_modules(tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for language, text in BLOCKS:
        first, rest = text.split("\n", 1)
        if language == "js" and first.startswith("// "):
            (tmp_path / first.removeprefix("// ")).write_text(rest)
        if language == "console":
            done = run(*first.removeprefix("$ ").split(), cwd=tmp_path)
            output = done.stdout + done.stderr
            for line in rest.splitlines():
                assert line in output, output
                output = output.split(line, 1)[1]


@with_node
def test_the_scenarios_of_the_page_load(tmp_path):
    """The server accepts the values of the page."""
    (source,) = (text for _, text in BLOCKS if text.startswith("// replies.js"))
    index = (PACKAGE / "src" / "index.js").as_uri()
    (tmp_path / "replies.mjs").write_text(source.replace('"mockllm-harness"', f'"{index}"'))
    code = 'import("./replies.mjs").then((all) => console.log(JSON.stringify(all.scenarios)))'
    values = json.loads(succeed("node", "-e", code, cwd=tmp_path))
    for value in values:
        (loaded,) = loads_sent([("page", json.dumps(value, indent=2))])
        assert loaded.name == value["scenario"]


def test_the_page_names_every_option():
    """The options of `start`, `session`, `verify` and `check` are on the page."""
    for file in ("start.js", "session.js", "check.js"):
        source = (PACKAGE / "src" / file).read_text()
        lists = re.findall(r"(?:OPTIONS|CHOOSING|JUDGING) = \[(.*?)\];", source)
        names = {name for found in lists for name in re.findall(r'"(\w+)"', found)}
        assert names
        assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_the_example_of_the_readme():
    """The README of the package has the first test of the page, which is executed above."""
    (example,) = re.findall(r"^```js\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    first = next(text for language, text in BLOCKS if language == "js")
    assert example == first
