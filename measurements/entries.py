"""The clients of the published table, as `measurements/clients/*/client.toml` lists them."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import metadata
from pathlib import Path
from typing import Any

from mockllm.core.errors import UsageError

__all__ = [
    "CLIENTS",
    "FAULT_RESULTS",
    "NODE",
    "READY",
    "RESULTS",
    "ROOT",
    "Entry",
    "chosen",
    "entries",
]

ROOT = Path(__file__).parents[1]
CLIENTS = ROOT / "measurements" / "clients"
RESULTS = ROOT / "measurements" / "results"
FAULT_RESULTS = RESULTS / "faults"
NODE = "measurements/clients/node_modules/node/bin/node"
"""Node in the version of `package.json`: several clients demand one that a machine may not have."""

READY = "make conformance-ready"
"""Installs all that the clients need."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One way of using a client library.

    Args:
        name: unique; the library and the function, as users call them.
        package: its distribution; `with` are those that it is used with.
        command: of its runner, from the root of the repository; `{python}` is the interpreter of
            the environment.
        environment: the virtual environment `.venv-NAME`; "" for `.venv`.
        unsupported: the fields of an outcome that it has no place for.
        left_out: the cases that say nothing about the client, as patterns of quirks or of names of
            cases, each with the reason.
        by_adapter: what the adapter does and the client does not, by patterns of cases: said where
            such a case is right.
        resilience: what its runner declares about retries and timeouts, where the client cannot
            have the settings that a case with a fault wants, and its ways to cancel.
        faults: whether its adapter takes cases with faults.
    """

    name: str
    package: str
    language: str
    api: str
    entry_point: str
    command: tuple[str, ...]
    environment: str = ""
    unsupported: tuple[str, ...] = ()
    notes: str = ""
    used_with: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    by_adapter: Mapping[str, str] = field(default_factory=dict)
    resilience: Mapping[str, Any] = field(default_factory=dict)
    faults: bool = False

    @property
    def slug(self) -> str:
        """The name in file names; `openai-agents` and `@openai/agents` are two clients."""
        name = self.name if self.language == "python" else f"{self.name} {self.language}"
        return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")

    @property
    def results(self) -> Path:
        """The file with what was measured."""
        return RESULTS / f"{self.slug}.json"

    @property
    def fault_results(self) -> Path:
        """The file with what was measured with faults."""
        return FAULT_RESULTS / f"{self.slug}.json"

    @property
    def python(self) -> str:
        """The interpreter, from the root of the repository."""
        return f".venv{'-' if self.environment else ''}{self.environment}/bin/python"

    @property
    def argv(self) -> list[str]:
        """The command with its interpreter, from the root of the repository."""
        programs = {"{python}": self.python, "node": NODE}
        return [programs.get(word, word) for word in self.command]

    @property
    def missing(self) -> str:
        """What is not installed, with the command that installs it; "" if the client can run."""
        if self.language == "python" and not self.environment:
            return (
                "" if _is_installed(self.package) else f"{self.package} is not here: `make ready`"
            )
        program = self.argv[0]
        found = os.access(ROOT / program, os.X_OK) if "/" in program else shutil.which(program)
        if not found:
            return f"{program}, which runs {self.name}, is not here: `{READY}`"
        module = CLIENTS / "node_modules" / self.package
        if self.language in ("javascript", "typescript") and not module.is_dir():
            return f"{self.package} is not in {CLIENTS.name}/node_modules: `{READY}`"
        return ""


def entries() -> list[Entry]:
    """All clients, by API and name.

    Raises:
        UsageError: a file is not as it has to be.
    """
    found = [entry for path in sorted(CLIENTS.glob("*/client.toml")) for entry in _read(path)]
    slugs = [entry.slug for entry in found]
    twice = {slug for slug in slugs if slugs.count(slug) > 1}
    if twice:
        raise UsageError(f"several clients would have the same file: {', '.join(sorted(twice))}")
    return sorted(found, key=lambda entry: (entry.api, entry.language, entry.name.lower()))


def chosen(names: list[str]) -> list[Entry]:
    """The clients whose name, package or slug is given; all, if none is.

    Raises:
        UsageError: there is no such client.
    """
    known = entries()
    found = {entry.name: entry for entry in known} if not names else {}
    for name in names:
        own = [one for one in known if name in (one.name, one.package, one.slug)]
        if not own:
            raise UsageError(
                f"there is no client {name!r} in {CLIENTS.relative_to(ROOT)}; there are: "
                + ", ".join(sorted({one.package for one in known}))
            )
        found |= {one.name: one for one in own}
    return list(found.values())


_FIELDS = {one.name for one in fields(Entry)}


def _read(path: Path) -> list[Entry]:
    where = path.relative_to(ROOT)
    try:
        tables = tomllib.loads(path.read_text("utf-8"))["client"]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise UsageError(f"{where} has no [[client]] that can be read: {error}") from None
    found = []
    for table in tables:
        values = {"used_with" if key == "with" else key: value for key, value in table.items()}
        if unknown := set(values) - _FIELDS:
            raise UsageError(f"{where}: unknown key {', '.join(sorted(unknown))}")
        values = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        try:
            found.append(Entry(**values))
        except TypeError as error:
            raise UsageError(f"{where}: {error}") from None
    return found


def _is_installed(package: str) -> bool:
    """Whether a distribution is installed; not by import, which takes seconds."""
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
