"""Which modules of the tests import one, also by way of others."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parent


def modules_that_import(target: Path) -> set[Path]:
    """The files of the tests whose import of `tests.` leads to this file, wherever it stands."""
    importers: dict[Path, set[Path]] = defaultdict(set)
    for path in TESTS.rglob("*.py"):
        if "node_modules" not in path.parts:
            for module in _imported(path):
                importers[module].add(path)
    found: set[Path] = set()
    new = {target}
    while new:
        new = {path for module in new for path in importers[module]} - found
        found |= new
    return found


def _imported(path: Path) -> set[Path]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    ours = (name.split(".") for name in names if name.startswith("tests."))
    return {TESTS.parent.joinpath(*parts).with_suffix(".py") for parts in ours}
