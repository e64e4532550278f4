"""The tracked files: no links, and nothing that no rule, tool or manifest names."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatch

import pytest

from tests.tracked_files import ROOT, tracked_modes

ROOT_FILES = {
    ".ci": "what continuous integration runs",
    ".github": "GitHub",
    ".gitignore": "git",
    ".pre-commit-config.yaml": "pre-commit, in this repository",
    "constraints.txt": "the Makefile",
    "pyproject.toml": "pip and all tools for Python",
    "zensical.toml": "the builder of the site of docs/",
}
"""Entries of the root that no sdist has (`include` in pyproject.toml), and who reads them."""

FAMILIES = {
    ".github/ISSUE_TEMPLATE/*.yml": "GitHub",
    ".github/workflows/*.yml": "GitHub",
    "*/.npmrc": "npm",
    "*/Cargo.toml": "cargo",
    "*/go.mod": "go",
    "*/tsconfig.json": "tsc",
    "packages/js/examples/*.[jt]s": "tests/js/test_examples.py",
    "measurements/results/*.json": "measurements/page.py",
    "packages/helm/templates/*": "helm",
    "docs/findings/*.hex": "the program of the same name beside it",
    "docs/findings/*.sse": "the program of the same name beside it",
    "docs/images/*-dark.png": "tools/ui_pictures.py",
    "docs/images/*-light.png": "tools/ui_pictures.py",
    "mockllm/checking/material/*.yaml": "mockllm/checking/material/__init__.py",
    "mockllm/serve/server/state/lua/*.lua": "mockllm/serve/server/state/redis_store.py",
    "scenarios/*.yaml": "mockllm/play/replay/loading.py",
    "tests/checking/mutants/*.yaml": "tests/checking/mutants/__init__.py",
    "tests/checking/resilience_mutants/*.toml": "tests/checking/resilience_mutants/declared.py",
    "tests/golden/texts/*.txt": "tests/golden/record.py",
    "tests/js/*.test.mjs": "tests/js/test_package.py",
    "tools/coverage/reasons/*.yaml": "tools/coverage/reasons.py",
    "tools/unions/probes/*.yaml": "tools/unions/sent.py",
    "tools/unions/reasons/*.yaml": "tools/unions/comparison.py",
}
"""Files that are found by a pattern, so that no text has their names, and who reads them."""

_WORD = re.compile(r"[\w*-]+(?:\.[\w*-]+)*")


def links(modes: dict[str, str]) -> list[str]:
    """Symbolic links and submodules: what they lead to is not in the repository."""
    return sorted(path for path, mode in modes.items() if mode not in ("100644", "100755"))


def unnamed_entries(paths: Iterable[str]) -> list[str]:
    """Entries of the root that neither an sdist includes nor `ROOT_FILES` explains."""
    manifest = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = manifest["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    entries = {path.partition("/")[0] for path in paths}
    return sorted(
        entry
        for entry in entries - ROOT_FILES.keys()
        if not any(fnmatch(entry, pattern) for pattern in included)
    )


def unnamed_files(texts: dict[str, str]) -> list[str]:
    """Files in folders, but Python's, whose names stand in no other file and in no family."""
    places: dict[str, set[str]] = defaultdict(set)
    silent = {"tests/test_tracked.py"}  # its samples name files that must not be
    silent |= {path for path in texts if path.startswith("tests/golden/texts/")}  # outputs
    for path in texts.keys() - silent:
        for word in _WORD.findall(texts[path]):
            places[word].add(path)
    return sorted(
        path
        for path in texts
        if "/" in path and not path.endswith(".py")
        if not any(fnmatch(path, pattern) for pattern in FAMILIES)
        if not places[path.rpartition("/")[2].lstrip(".")] - {path}
    )


@pytest.fixture(scope="module")
def modes() -> dict[str, str]:
    return tracked_modes()


@pytest.fixture(scope="module")
def texts(modes: dict[str, str]) -> dict[str, str]:
    """The tracked files as text; bytes that are no text name nothing."""
    files = ((path, ROOT / path) for path in modes)
    return {path: file.read_text(errors="replace") for path, file in files if file.is_file()}


def test_no_links_are_tracked(modes: dict[str, str]) -> None:
    """A link works on the machine where it was made."""
    assert links(modes) == []


def test_each_entry_of_the_root_is_named(modes: dict[str, str]) -> None:
    """A clone has nothing that was left there by accident."""
    assert unnamed_entries(modes) == []


def test_each_file_is_named(texts: dict[str, str]) -> None:
    """By another file, or by a family whose reader finds it."""
    assert unnamed_files(texts) == []


def test_the_tables_have_no_row_too_many(modes: dict[str, str]) -> None:
    """Each row has files, and a reader that is a file is there."""
    assert not ROOT_FILES.keys() - {path.partition("/")[0] for path in modes}
    assert not [pattern for pattern in FAMILIES if not any(fnmatch(m, pattern) for m in modes)]
    assert not [one for one in FAMILIES.values() if one.endswith(".py") and one not in modes]


@pytest.mark.parametrize("mode", ["120000", "160000"])
def test_a_link_is_refused(mode: str) -> None:
    """Wherever it stands, and to whatever it leads."""
    assert links({"README.md": "100644", "tests/data": mode}) == ["tests/data"]


@pytest.mark.parametrize("path", ["shared", "log/server.log", "scratch.py", "out.txt", "tmp/a.md"])
def test_an_entry_of_the_root_that_nothing_names_is_refused(path: str) -> None:
    """Files and folders alike, and Python's too."""
    assert unnamed_entries(["README.md", path]) == [path.partition("/")[0]]


@pytest.mark.parametrize(
    "path", ["docs/build.log", "tests/core/old.json", "mockllm/a.orig", ".ci/b"]
)
def test_a_file_that_nothing_names_is_refused(path: str, texts: dict[str, str]) -> None:
    """Its own text does not count."""
    name = path.rpartition("/")[2]
    assert unnamed_files({"a.py": "", path: name}) == [path]
    assert unnamed_files({"a.py": f"open('{name}')", path: name}) == []
