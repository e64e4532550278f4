"""One package knows one API: the steps in CONTRIBUTING are all that a new one takes."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import mockllm.scenario
from mockllm.play.replay.client_requests import first_body
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "mockllm" / "wire" / "protocols"
ECHO = Path(__file__).parent / "echo"
FOLDERS = [*sorted(path.parent for path in PACKAGES.glob("*/__init__.py")), ECHO]
BUILT_IN = tuple(name for name in PROTOCOLS if name != "echo")

MODULES = ("request", "encoder", "decoder", "client", "protocol")


def section(title: str) -> str:
    """One section of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_package_has_the_same_modules(folder):
    """Who knows one package finds the way in the others."""
    assert {f"{name}.py" for name in MODULES} <= {path.name for path in folder.glob("*.py")}
    for module, ending in (
        ("__init__", "ADDRESS = Address("),
        ("protocol", "PROTOCOL = WireProtocol("),
    ):
        last = ast.parse((folder / f"{module}.py").read_text()).body[-1]
        assert ast.unparse(last).startswith(ending)


def test_every_package_is_in_the_table():
    """There is a line in PROTOCOLS for each folder, and no protocol besides."""
    assert len(BUILT_IN) == len(FOLDERS) - 1
    for folder in FOLDERS[:-1]:
        package = import_module(f"mockllm.wire.protocols.{folder.name}")
        assert PROTOCOLS.addresses[package.ADDRESS.name] is package.ADDRESS
        assert PROTOCOLS[package.ADDRESS.name].address is package.ADDRESS


@pytest.mark.parametrize("name", [*BUILT_IN, "echo"])
def test_a_package_is_whole(name):
    """The records agree with each other: paths, look-ups, jobs and bodies."""
    protocol = PROTOCOLS[name]
    assert isinstance(protocol, WireProtocol)
    path = protocol.client.path_of("some-model").partition("?")[0]
    assert any(pattern.search(path) for pattern in protocol.address.paths)
    operations = {route.operation for route in protocol.address.routes}
    created = {"create"} if protocol.address.creates else set()
    assert (operations - {"generate"}) | created == protocol.lookups.keys() | protocol.jobs.keys()
    assert not protocol.lookups.keys() & protocol.jobs.keys()
    field = protocol.client.stream_field
    assert not field or first_body(protocol, "some-model", "Hello")[field] is True


def test_contributing_lists_the_modules():
    """CONTRIBUTING names the modules of a package in their order, and the fields of its record
    that no protocol can do without."""
    text = section("Adding a protocol")
    listed = re.findall(r"^- `(\w+)`", text, re.MULTILINE)
    assert tuple(listed) == MODULES
    assert "PROTOCOL = WireProtocol(...)" in text
    for path in re.findall(r"`((?:mockllm|tests|tools)/[\w/.]*)`", text):
        assert (ROOT / path).exists(), path


def test_the_schema_file_has_the_protocols_that_come_with_mockllm():
    """Editors read the file; `mockllm schema` puts in those that are registered."""
    file = Path(mockllm.scenario.__file__).with_name("schema.json")
    assert json.loads(file.read_text())["$defs"]["api"]["enum"] == list(BUILT_IN)


# Nothing else names an API

MAY_NAME = {
    "mockllm/wire/protocols": "the packages",
    "mockllm/play/quirks": "a quirk is one of one API, where it is not one of all",
    "mockllm/cli/mcp.py": "a coding agent has the name of an API",
    "mockllm/record/importers/aimock.py": "aimock's own format names services",
    "mockllm/record/importers/aimock_replies.py": "aimock's own format names services",
    "mockllm/record/importers/file_formats.py": "aimock's own format names services",
    "mockllm/scenario/reading/advice.py": "what people write in place of the name of an API",
    "mockllm/record/importers/export.py": "cassettes have lists of that name",
    "mockllm/record/importers/mcp.py": "cassettes have lists of that name",
    "mockllm/record/importers/vcr.py": "cassettes have lists of that name",
    "pytest_plugin/mockllm_pytest/vcr_watch.py": "vcrpy's serialisers take a list of that name",
    "pytest_plugin/mockllm_pytest/sessions.py": "`openai_url` and its like are conveniences",
}


def sources() -> Iterator[Path]:
    for room in ("mockllm", "pytest_plugin"):
        yield from sorted((ROOT / room).rglob("*.py"))


def test_no_other_module_names_an_api():
    """Outside of their packages and quirks, APIs are known by PROTOCOLS only."""
    naming = set()
    for path in sources():
        where = path.relative_to(ROOT).as_posix()
        if any(where.startswith(allowed) for allowed in MAY_NAME):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value in BUILT_IN:
                naming.add(f"{where}:{node.lineno}: {node.value!r}")
    assert naming == set()


def test_exceptions_are_needed():
    """A module that names no API any more is none of the exceptions."""
    for allowed in MAY_NAME:
        path = ROOT / allowed
        files = [path] if path.is_file() else path.rglob("*.py")
        texts = "".join(path.read_text() for path in files)
        assert any(f'"{name}"' in texts for name in BUILT_IN), allowed


def test_a_protocol_knows_no_other():
    """No package imports another one, nor what stands above the protocols."""
    below = (
        "mockllm.core",
        "mockllm.core.errors",
        "mockllm.wire.framing",
        "mockllm.wire.protocols",
    )
    for folder in FOLDERS[:-1]:
        others = [f"mockllm.wire.protocols.{each.name}" for each in FOLDERS if each != folder]
        for path in folder.glob("*.py"):
            for name in imported(path):
                assert not name.startswith("mockllm") or name.startswith(below), (path, name)
                assert not any(f"{name}.".startswith(f"{other}.") for other in others), (path, name)


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
