"""Compiled cases, kept on the disk between runs, so that a second run starts at once.

They are pickles in the user's own cache folder. The key of a file covers everything that its cases
depend on: this version and its source, and the arguments.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import Level, cases
from mockllm.scenario.model import Api, Scenario

__all__ = ["VARIABLE", "cache_folder", "kept_cases"]

VARIABLE = "MOCKLLM_CACHE"
"""The environment variable with another folder for the cache; empty: keep nothing."""

_MOST_BYTES = 128 << 20
"""Of all files together."""

_DAMAGED = (
    pickle.UnpicklingError,
    EOFError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
)
"""What reading a pickle raises that is cut, or was written by other code."""


def kept_cases(
    api: Api,
    scenarios: Iterable[Scenario] = (),
    *,
    variations: int = 0,
    quirks: bool = True,
    seed: str = "0",
    level: Level = "bytes",
    report: Callable[[str], None] = lambda _: None,
) -> list[Case]:
    """The cases that `checking.cases` gives for the same arguments.

    Args:
        report: called with a line where kept cases are damaged, or cannot be kept.

    Raises:
        UsageError: there is no such API.
    """
    found = list(scenarios)
    folder = cache_folder()
    arguments = (api, list(map(repr, found)), variations, quirks, seed, level)
    path = None if folder is None else folder / f"{_key(arguments)}.cases"
    if path is not None:
        kept = _read(path, report)
        if kept is not None:
            return kept
    compiled = list(cases(api, found, variations=variations, quirks=quirks, seed=seed, level=level))
    if path is not None:
        _write(path, compiled, report)
    return compiled


def cache_folder() -> Path | None:
    """The folder of kept cases; None where nothing is to be kept."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return Path(chosen) / "cases" if chosen else None
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "mockllm" / "cases" if base else None


def _key(arguments: object) -> str:
    text = repr((sys.version, _source(), arguments))
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def _source() -> list[tuple[str, int, int]]:
    """Path, size and time of change of every source file: cases change with the code."""
    root = Path(__file__).resolve().parents[1]
    found = []
    for path in root.rglob("*.py"):
        status = path.stat()
        found.append((path.relative_to(root).as_posix(), status.st_size, status.st_mtime_ns))
    return sorted(found)


def _read(path: Path, report: Callable[[str], None]) -> list[Case] | None:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        report(f"kept cases cannot be read: {path}: {error.strerror or error}")
        return None
    try:
        kept = pickle.loads(data)  # noqa: S301  of the user's own cache, written below
    except _DAMAGED as error:
        report(f"kept cases are damaged and are compiled again: {path}: {error}")
        return None
    if not isinstance(kept, list):
        report(f"kept cases are damaged and are compiled again: {path}")
        return None
    return kept


def _write(path: Path, compiled: list[Case], report: Callable[[str], None]) -> None:
    """Writes whole files only; the oldest ones make room."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as draft:
            pickle.dump(compiled, draft, pickle.HIGHEST_PROTOCOL)
        Path(draft.name).replace(path)
        _make_room(path)
    except OSError as error:
        report(f"compiled cases cannot be kept: {path}: {error.strerror or error}")


def _make_room(newest: Path) -> None:
    """Removes the oldest files while all together are too large."""
    files = [(one.stat(), one) for one in newest.parent.glob("*.cases") if one != newest]
    total = newest.stat().st_size + sum(status.st_size for status, _ in files)
    for status, one in sorted(files, key=lambda item: item[0].st_mtime_ns):
        if total <= _MOST_BYTES:
            return
        one.unlink(missing_ok=True)
        total -= status.st_size
