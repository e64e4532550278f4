"""The package for JavaScript: what it does, what is in it, and its types."""

from __future__ import annotations

import json
import re

import pytest

import mockllm
from mockllm.wire.protocols import PROTOCOLS
from tests.js.node import MODULES, PACKAGE, ROOT, link_modules, run, succeed, with_node, with_npm

HERE = MODULES.parent
FILES = sorted(file.name for file in HERE.glob("*.test.mjs"))
MANIFEST = json.loads((PACKAGE / "package.json").read_text())
SCHEMA = ROOT / "mockllm" / "scenario" / "schema.json"
TYPES = (PACKAGE / "src" / "index.d.ts").read_text()


@pytest.mark.slow
@with_node
@pytest.mark.parametrize("file", FILES)
def test_the_tests_in_javascript_pass(file):
    """The tests that are written for Node's own runner pass."""
    output = succeed("node", "--test", file, cwd=HERE)
    assert "\n# fail 0" in output
    assert "\n# pass 0" not in output


def test_the_versions_agree():
    """The packages for Python and for JavaScript have one version, and no dependency."""
    assert MANIFEST["version"] == mockllm.__version__
    assert MANIFEST["name"] == mockllm.__distribution__
    assert "dependencies" not in MANIFEST
    assert (PACKAGE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_every_api_has_a_base_url_in_the_types():
    """The types name the base URL of each API."""
    named = re.search(r"interface BaseUrls \{(.*?)\}", TYPES, re.DOTALL)
    assert named is not None
    assert set(re.findall(r"readonly (\w+):", named[1])) == set(PROTOCOLS)


def test_a_turn_has_every_key_of_the_schema():
    """`turn` takes the keys of a turn of a scenario file: no more, no less."""
    declared = re.search(r"interface Turn \{(.*?)^\}", TYPES, re.DOTALL | re.MULTILINE)
    assert declared is not None
    turn = json.loads(SCHEMA.read_text())["$defs"]["turn"]
    assert set(re.findall(r"^  (\w+)\?:", declared[1], re.MULTILINE)) == set(turn["properties"])


@with_node
@pytest.mark.slow
def test_the_types_describe_what_there_is():
    """`index.d.ts` declares the values that `index.js` exports, and no others."""
    code = "import('./src/index.js').then((all) => console.log(JSON.stringify(Object.keys(all))))"
    exported = set(json.loads(succeed("node", "-e", code, cwd=PACKAGE)))
    declared = set(re.findall(r"^export (?:function|class|const) (\w+)", TYPES, re.MULTILINE))
    assert declared == exported


def test_every_type_has_a_name_that_is_exported():
    """A user can import the type of every option and result: none is written inside of another."""
    assert (
        re.findall(r"^(?:declare )?(?:interface|type|class|function) .*", TYPES, re.MULTILINE) == []
    )
    assert re.findall(r".*[:<&|(,] *\{.*", TYPES) == []
    for entry in MANIFEST["exports"].values():
        for file in entry.values() if isinstance(entry, dict) else [entry]:
            assert (PACKAGE / file).is_file()


@with_npm
@pytest.mark.slow
def test_the_types_are_right(tmp_path):
    """The compiler accepts right uses of every function, and refuses wrong ones."""
    link_modules(tmp_path)
    (tmp_path / "types.ts").write_text((HERE / "types.ts").read_text())
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext"]
    done = run("node_modules/.bin/tsc", *options, "--types", "node", "types.ts", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


@with_npm
@pytest.mark.slow
def test_the_package_holds_code_types_licence_and_readme():
    """`npm pack` would publish these files, and no example or test."""
    packed = json.loads(succeed("npm", "pack", "--dry-run", "--json", cwd=PACKAGE))
    names = {file["path"] for file in packed[0]["files"]}
    source = {f"src/{file.name}" for file in (PACKAGE / "src").iterdir()}
    assert names == {"package.json", "README.md", "LICENSE", *source}
    assert {"src/index.js", "src/index.d.ts"} <= source
