"""The rules of the tree: no circles, no crowded folders, telling names, a ceiling of its size."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Facts:
    """What the tests below ask of a module; a tree takes a hundred times the memory.

    Args:
        imports: wherever they stand; `from a import b` is `a.b`, `a`: which one is the module?
        classes: at the top of the module.
        functions: names by line, without properties and fixtures.
        docstrings: the first line of each.
        code: how many lines are not blank, not a comment and not in a docstring.
    """

    imports: list[tuple[str, str]]
    classes: list[str]
    functions: list[tuple[int, str]]
    docstrings: list[str]
    code: int


def _facts(text: str) -> Facts:
    tree = ast.parse(text)
    facts = Facts([], [], [], [], _code_lines(text, tree))
    facts.classes.extend(node.name for node in tree.body if isinstance(node, ast.ClassDef))
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                facts.imports.extend((alias.name, alias.name) for alias in node.names)
            case ast.ImportFrom():
                assert node.module is not None, f"a relative import in line {node.lineno}"
                facts.imports.extend(
                    (f"{node.module}.{alias.name}", node.module) for alias in node.names
                )
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                decorators = " ".join(map(ast.unparse, node.decorator_list))
                if not re.search("property|fixture", decorators):
                    facts.functions.append((node.lineno, node.name))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            facts.docstrings.append((ast.get_docstring(node) or "").partition("\n")[0])
    return facts


def _code_lines(text: str, tree: ast.Module) -> int:
    """Lines that are not blank, not a comment and not in a docstring, also of an attribute."""
    explained = {
        number
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for number in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    lines = (
        line.strip() for number, line in enumerate(text.split("\n"), 1) if number not in explained
    )
    return sum(not line.startswith("#") for line in lines if line)


@functools.cache
def _files() -> dict[Path, Facts]:
    """The files of the package and the plugin, below the root."""
    return {
        path.relative_to(ROOT): _facts(path.read_text(encoding="utf-8"))
        for top in ("mockllm", "pytest_plugin")
        for path in sorted((ROOT / top).rglob("*.py"))
    }


def _modules() -> dict[str, Facts]:
    """The modules of the package by their dotted names; a package has that of its folder."""
    modules = {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"): facts
        for path, facts in _files().items()
        if path.parts[0] == "mockllm"
    }
    del modules["mockllm"]  # the public names; Python imports it before any module
    return modules


def _imports(name: str, modules: dict[str, Facts]) -> set[str]:
    """The modules that a module imports, wherever the import stands."""
    pairs = modules[name].imports
    imported = {inner if inner in modules else outer for inner, outer in pairs}
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
    graph = {name: _imports(name, modules) for name in modules}
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
    for path, facts in _files().items():
        protocol = re.match(r"mockllm/wire/protocols/(\w+/|base.py$)", path.as_posix())
        for title in facts.classes:
            if not title.startswith("_"):
                places[title].add("a protocol" if protocol else str(path))
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
    """And says what may live in it."""
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(WINGS)
    for wing in WINGS:
        text = (PACKAGE / wing / "__init__.py").read_text()
        assert "Here live" in text, wing


def _layers(name: str, prefix: str) -> list[list[str]]:
    """The folders below a package in a contract, the lowest layer first."""
    layers = [re.findall(rf"{prefix}(\w+)(?: |$)", text) for text in _contract(name)["layers"]]
    folder = ROOT.joinpath(*prefix.split("."))
    folders = [[inner for inner in layer if (folder / inner).is_dir()] for layer in layers]
    return [sorted(layer) for layer in folders[::-1] if layer]


def test_the_page_says_which_imports_the_contracts_allow() -> None:
    """The order of its wings and of their rooms, and which of them do not know each other."""
    page = " ".join((ROOT / "docs" / "architecture.md").read_text().split())
    table = re.findall(r"\| `(\w+)/` \|[^|]*\|([^|]*)\| [\d,]+ \|", page)
    assert tuple(wing for wing, _ in table) == WINGS
    layers = _layers("Wings import downwards only", "mockllm.")
    assert [wing for layer in layers for wing in sorted(layer, key=WINGS.index)] == list(WINGS)
    pairs = [sorted(layer, key=WINGS.index) for layer in layers if len(layer) > 1]
    said = ", ".join(f"`{one}` and `{other}`" for one, other in pairs)
    assert f"two pairs that do not know each other: {said}." in page
    for wing, rooms in table:
        stated = [
            sorted(re.findall(r"`(\w+)`", layer)) for layer in rooms.split(",") if layer.strip()
        ]
        contract = _layers("Rooms of a wing import downwards only", f"mockllm.{wing}.")
        assert stated == contract, wing


def test_the_contract_names_every_protocol() -> None:
    """import-linter refuses an import between packages of protocols: those of the table."""
    packages = [address.package for address in PROTOCOLS.addresses.values()]
    ours = sorted(name for name in packages if name.startswith("mockllm."))
    assert _contract("A protocol knows no sibling")["modules"] == ours


GENERAL = {"report.py", "routes.py", "run.py"}
"""Names of files that would stand in every wing: one file has each, another says whose it is."""


def test_a_file_name_stands_once_in_a_wing() -> None:
    """A second one says whose it is."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in _files():
        where = path.relative_to(path.parts[0])
        mirrored = any(where.is_relative_to(room) and len(where.parts) > 3 for room in MIRRORED)
        if where.name != "__init__.py" and not mirrored:
            wing = "any wing" if where.name in GENERAL else where.parts[0]
            places[wing, where.name].append(str(where))
    assert not [paths for paths in places.values() if len(paths) > 1]


# Words


MOST_PARTICIPLES = 10
"""Functions named by a participle alone: a few are the word of the field."""

IRREGULAR = {
    "begun", "bound", "built", "chosen", "done", "drawn", "driven", "fed", "found", "gone", "given",
    "heard", "held", "kept", "known", "led", "left", "lost", "made", "meant", "met", "paid", "said",
    "sent", "shown", "spent", "taken", "thought", "told", "written",
}  # fmt: skip
"""Participles that do not end in `ed`; `put` and its like are verbs as well."""

NO_PARTICIPLES = {
    "bed", "embed", "exceed", "feed", "indeed", "need", "proceed", "red", "seed", "shared", "shed",
    "speed", "succeed", "unused",
}  # fmt: skip
"""Words in `ed` that are none, or say what they are."""


def _is_participle(name: str) -> bool:
    return name in IRREGULAR or bool(re.fullmatch("[a-z]+ed", name) and name not in NO_PARTICIPLES)


def test_functions_are_named_by_a_verb_or_a_noun() -> None:
    """A participle alone says neither what is done nor what is returned. Properties and fixtures
    are read as adjectives."""
    bare = [
        f"{path}:{line}: {name}"
        for path, facts in _files().items()
        for line, name in facts.functions
        if _is_participle(name.strip("_"))
    ]
    assert len(bare) <= MOST_PARTICIPLES, "\n".join(bare)


def test_docstrings_begin_with_their_subject() -> None:
    """Not with What, How or That, which name no subject; some sentences need one."""
    begun = [
        f"{path}: {line}"
        for path, facts in _files().items()
        for line in facts.docstrings
        if line.startswith(("What ", "How ", "That "))
    ]
    assert len(begun) <= 60, "\n".join(begun)


# Size


def test_code_lines_are_counted_without_what_explains_them() -> None:
    """Blank lines, comments and docstrings, also those of attributes."""
    text = '"""Module."""\nA = 1  # why\n"""What A is\nfor."""\n\n# done\nB = """\n# text\n"""\n'
    assert _facts(text).code == 3


def test_wings_have_no_more_code_than_their_budgets() -> None:
    """docs/architecture.md has a budget for each wing: who adds to a full one says who needs it."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `(\w+)/` \|.*\| ([\d,]+) \|$", page, re.MULTILINE)
    budgets = {wing: int(budget.replace(",", "")) for wing, budget in rows}
    assert budgets.keys() == set(WINGS)
    assert f"{sum(budgets.values()):,} lines of code" in page
    sizes: Counter[str] = Counter()
    for path, facts in _files().items():
        sizes[path.parts[1]] += facts.code
    assert not {wing: sizes[wing] for wing in WINGS if sizes[wing] > budgets[wing]}


def test_messages_name_extras_that_the_distribution_has() -> None:
    """What a message or page says to install is ours: `mockllm` on PyPI is another project."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    texts = [
        *PACKAGE.rglob("*.py"),
        *(ROOT / "pytest_plugin").rglob("*.py"),
        *ROOT.glob("docs/*.md"),
    ]
    named = {
        found
        for path in texts
        for found in re.findall(r"(mockllm[\w-]*)\[([a-z,]+)\]['\"` ]", path.read_text())
    }
    assert {name for name, _ in named} == {"mockllm-harness"}
    assert {extra for _, several in named for extra in several.split(",")} <= extras.keys()
