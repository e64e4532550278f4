"""Whether this installation is whole.

The distribution `mockllm` on PyPI is another project than `mockllm-harness`, with the same import
name and the same command. pip lets both write `mockllm/__init__.py`, `mockllm/__main__.py` and the
command: the last one that is installed overwrites them, and the first one that is uninstalled
removes them. So nothing here relies on what `mockllm/__init__.py` holds.
"""

from __future__ import annotations

import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import mockllm
from mockllm.core.errors import CollisionWarning

DISTRIBUTION = "mockllm-harness"
"""The name of this project's distribution."""

REPAIR = f"pip uninstall -y mockllm {DISTRIBUTION} && pip install {DISTRIBUTION}"
"""The command that repairs every damage."""

_NAMESAKE = "mockllm"
_PACKAGES = ("mockllm", "mockllm_pytest")
_SHARED = ("__init__.py", "__main__.py")
_MARK = DISTRIBUTION.encode()
_MOST_NAMES = 5


def installed_version() -> str:
    """The version of this project, also where its `__init__.py` was overwritten or removed."""
    if vars(mockllm).get("__distribution__") == DISTRIBUTION:
        return mockllm.__version__
    return _version_of(DISTRIBUTION) or "unknown"


def findings() -> tuple[str, ...]:
    """Problems of this installation, and last the command that repairs it; empty where nothing
    is wrong."""
    folder = Path(__file__).parents[2]
    missing = sorted({*_missing_from(folder), *_missing_from_record()})
    checks = [
        _collision(),
        _names_line("overwritten by another project", _overwritten_in(folder)),
        _names_line("missing", missing),
    ]
    problems = [problem for problem in checks if problem is not None]
    return (*problems, f"to repair it: {REPAIR}") if problems else ()


def warn(stacklevel: int) -> None:
    """Issues a `CollisionWarning` with the findings.

    Args:
        stacklevel: as for `warnings.warn`; 1 is the line that calls this function.
    """
    if problems := findings():
        warnings.warn("; ".join(problems), CollisionWarning, stacklevel + 1)


def _collision() -> str | None:
    version = _version_of(_NAMESAKE)
    if version is None:
        return None
    return (
        f"the distribution {_NAMESAKE!r} {version} is installed beside {DISTRIBUTION!r}: another "
        "project with the same import name and the same command; the two overwrite each other"
    )


def _version_of(name: str) -> str | None:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None


def _overwritten_in(folder: Path) -> list[str]:
    """The files that both projects have and that do not name ours."""
    there = [path for path in map(folder.joinpath, _SHARED) if path.is_file()]
    return [f"mockllm/{path.name}" for path in there if _MARK not in path.read_bytes()]


def _missing_from(folder: Path) -> list[str]:
    return [f"mockllm/{name}" for name in _SHARED if not (folder / name).is_file()]


def _missing_from_record() -> list[str]:
    """The modules and data files that pip installed and that are no longer there.

    Compiled files come and go, and `pip install --target` moves the command without a change to
    RECORD, so both are passed over.
    """
    try:
        files = distribution(DISTRIBUTION).files or []
    except PackageNotFoundError:
        return []
    own = [file for file in files if file.parts[0] in _PACKAGES and file.suffix != ".pyc"]
    return [str(file) for file in own if not Path(str(file.locate())).exists()]


def _names_line(what: str, names: list[str]) -> str | None:
    if not names:
        return None
    more = len(names) - _MOST_NAMES
    return f"{what}: {', '.join(names[:_MOST_NAMES])}" + (f" and {more} more" if more > 0 else "")
