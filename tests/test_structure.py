"""The rules of the tree: no circles, no crowded folders, one name for one thing, telling names."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mockllm.wire.protocols import PROTOCOLS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mockllm"

MOST_MODULES = 20
"""Of a folder: its file list is a table of contents."""

SHARED_CLASS_NAMES = {"Usage"}
"""Names of classes that stand in the package with two meanings. `Usage`: what a client reports, in
the public `mockllm.checking`, and what an API says in an event."""

UNTELLING = {
    "about", "again", "ahead", "attached", "beside", "common", "helpers", "kept", "kept_cases",
    "kinds", "left", "left_out", "manager", "misc", "over_all", "requested", "taken", "utils",
}  # fmt: skip
"""Names of files that do not say what is in them."""


def _modules() -> dict[str, Path]:
    """The modules of the package by their dotted names; a package has that of its folder."""
    modules = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        modules[".".join(parts).removesuffix(".__init__")] = path
    del modules["mockllm"]  # the public names; Python imports it before any module
    return modules


def _imports(name: str, path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules that a module imports, wherever the import stands."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{path} has a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                imported.add(inner if inner in modules else node.module)
    return (imported & modules.keys()) - {name}


def _circles(graph: dict[str, set[str]]) -> Iterator[set[str]]:
    """The groups of modules in which each reaches each other (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(name: str) -> Iterator[set[str]]:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in graph[name]:
            if other not in order:
                yield from visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            group = set(stack[stack.index(name) :])
            del stack[stack.index(name) :]
            if len(group) > 1:
                yield group

    for name in graph:
        if name not in order:
            yield from visit(name)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not by imports in functions either, and not for type checkers."""
    modules = _modules()
    graph = {name: _imports(name, path, modules) for name, path in modules.items()}
    assert not [sorted(group) for group in _circles(graph)]


def test_folders_have_few_modules() -> None:
    """A folder that grows is divided."""
    counts = Counter(
        str(path.parent.relative_to(ROOT))
        for path in PACKAGE.rglob("*.py")
        if path.name != "__init__.py"
    )
    assert not {name: count for name, count in counts.items() if count > MOST_MODULES}


def test_a_class_name_stands_once() -> None:
    """In two packages of protocols it may have the same meaning; elsewhere it has one place."""
    places: dict[str, set[str]] = defaultdict(set)
    for name, path in _modules().items():
        protocol = path.parent.parent.name == "protocols" or name == "mockllm.wire.protocols.base"
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add("a protocol" if protocol else name)
    shared = {name for name, where in places.items() if len(where) > 1}
    assert shared == SHARED_CLASS_NAMES


def test_files_have_telling_names() -> None:
    """`utils` and its like say nothing, and a list of them would never end."""
    assert not [path for path in PACKAGE.rglob("*.py") if path.stem in UNTELLING]


def test_a_name_is_imported_from_where_it_stands() -> None:
    """Only packages that show names of their modules have an `__all__`."""
    inner = [path for path in PACKAGE.rglob("*.py") if path.stem != "__init__"]
    assert not [path for path in inner if "\n__all__" in path.read_text()]


# The wings

WINGS = ("core", "scenario", "wire", "play", "record", "checking", "serve", "conformance", "cli")
"""In the order of docs/architecture.md."""

MIRRORED = ("wire/protocols", "play/quirks", "record/importers")
"""Rooms whose packages have the same modules each, or modules named by what they read."""


def _contract(name: str) -> dict[str, Any]:
    """A contract of import-linter."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = (
        one for one in settings["tool"]["importlinter"]["contracts"] if one["name"] == name
    )
    return dict(contract)


def test_each_folder_of_the_package_is_a_wing() -> None:
    """Contract and architecture page have the same ones, and each says what may live in it."""
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(WINGS)
    layers = " ".join(_contract("Wings import downwards only")["layers"])
    assert set(re.findall(r"mockllm\.(\w+)", layers)) == set(WINGS)
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page.partition("## The wings")[2].partition("## The rooms")[0]
    assert tuple(re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE)) == WINGS
    for wing in WINGS:
        text = (PACKAGE / wing / "__init__.py").read_text()
        assert "Here live" in text, wing


def test_the_contract_names_every_protocol() -> None:
    """import-linter refuses an import between packages of protocols: those of the table."""
    packages = [address.package for address in PROTOCOLS.addresses.values()]
    ours = sorted(name for name in packages if name.startswith("mockllm."))
    assert _contract("A protocol knows no sibling")["modules"] == ours


def test_a_file_name_stands_once_in_a_wing() -> None:
    """A second one says whose it is."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        where = path.relative_to(PACKAGE)
        mirrored = any(where.is_relative_to(room) and len(where.parts) > 3 for room in MIRRORED)
        if where.name != "__init__.py" and not mirrored:
            places[where.parts[0], where.name].append(str(where))
    assert not [paths for paths in places.values() if len(paths) > 1]


def test_docstrings_begin_with_their_subject() -> None:
    """Not with What, How or That, which name no subject; some sentences need one."""
    begun = [
        f"{path.relative_to(ROOT)}: {text.splitlines()[0]}"
        for top in ("mockllm", "pytest_plugin")
        for path in sorted((ROOT / top).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module)
        and (text := ast.get_docstring(node) or "").startswith(("What ", "How ", "That "))
    ]
    assert len(begun) <= 60, "\n".join(begun)
