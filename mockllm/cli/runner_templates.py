"""Finds and copies the runners that come with mockllm: programs in which a client is judged."""

from __future__ import annotations

import re
from pathlib import Path

from mockllm.errors import MockLLMError, UsageError

LANGUAGES = ("c", "go", "java", "javascript", "python", "rust", "typescript")
"""The languages that there are runners in; each has a folder."""


def runners_folder() -> Path:
    """The folder of the runners: in the installed package, or in a checkout."""
    package = Path(__file__).parent.parent
    for folder in (package / "conformance" / "runners", package.parent / "examples" / "runners"):
        if folder.is_dir():
            return folder
    raise MockLLMError(
        f"the runners are not at {package / 'conformance' / 'runners'}; reinstall mockllm-harness"
    )


def copy_runner(language: str, target: Path) -> list[Path]:
    """Copies the runner of a language; returns the new files.

    Raises:
        UsageError: a file is there already; then nothing is written.
    """
    source = runners_folder() / language
    files = [
        path.relative_to(source) for path in sorted(source.rglob("*")) if _belongs(path, source)
    ]
    present = [target / path for path in files if (target / path).exists()]
    if present:
        raise UsageError(f"{present[0]} is there already and stays as it is; name another folder")
    for path in files:
        new = target / path
        new.parent.mkdir(parents=True, exist_ok=True)
        with new.open("xb") as file:
            file.write((source / path).read_bytes())
    return [target / path for path in files]


_LEFT_OUT = frozenset({"__pycache__", "node_modules", "target", "dist", "classes"})
"""What building leaves in a checkout."""


def _belongs(file: Path, source: Path) -> bool:
    return file.is_file() and not _LEFT_OUT.intersection(file.relative_to(source).parts)


def steps(language: str) -> list[str]:
    """The command lines that build a runner, if it is built, and check it: the block of its
    README."""
    text = (runners_folder() / language / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()
