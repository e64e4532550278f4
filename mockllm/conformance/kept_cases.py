"""Compiled cases, kept on the disk between runs, so that a second run starts at once.

They are pickles in the user's own cache folder. The key of a file covers everything that its cases
depend on: the source of this version of mockllm, that of Python, and the arguments.
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

_DIGEST = 32
"""Bytes of the digest before the pickle: a changed byte would be a changed stream."""

_MOST_BYTES = 128 << 20
"""Of all files together."""


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


def _source() -> str:
    """A digest of mockllm's source, its version among it: cases change with the code."""
    root = Path(__file__).parents[1]
    found = sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(f"{path.relative_to(root).as_posix()}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def _read(path: Path, report: Callable[[str], None]) -> list[Case] | None:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        report(f"kept cases cannot be read: {path}: {error.strerror or error}")
        return None
    digest, pickled = data[:_DIGEST], data[_DIGEST:]
    if sha256(pickled).digest() != digest:
        report(f"kept cases are damaged and are compiled again: {path}")
        return None
    found: list[Case] = pickle.loads(pickled)  # noqa: S301  of the user's own cache, written below
    return found


def _write(path: Path, compiled: list[Case], report: Callable[[str], None]) -> None:
    """Writes whole files only; the oldest ones make room."""
    pickled = pickle.dumps(compiled, pickle.HIGHEST_PROTOCOL)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as draft:
            file = Path(draft, path.name)
            file.write_bytes(sha256(pickled).digest() + pickled)
            file.replace(path)
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
