"""The corpus of recorded traffic, where it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mockllm.importers.file_formats import READERS, detect, files
from mockllm.importers.reading import Entry

CORPUS = Path(__file__).parents[2] / ".." / "shared" / "corpus"

needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="no corpus of recorded traffic beside this checkout"
)


def read(path: Path) -> list[Entry]:
    """The entries of a file with exchanges, of any kind."""
    kind = detect(path)
    assert kind is not None
    return READERS[kind](path)


def recorded_files() -> list[Path]:
    """All cassettes and dumps of the corpus; none where it is missing. The corpus also has
    cassettes of whole test suites; many of their exchanges are of APIs that mockllm does not play.
    """
    return list(files([CORPUS / "cassettes", CORPUS / "streams"])) if CORPUS.is_dir() else []


def suite_files() -> list[Path]:
    """All cassettes of whole test suites; none where the corpus is missing."""
    return list(files([CORPUS / "suite"])) if CORPUS.is_dir() else []


def dumps() -> list[Path]:
    """The dumps alone."""
    return [path for path in recorded_files() if path.suffix == ".sse"]


def title(path: Path) -> str:
    """The name of a corpus file on a page: its path below the corpus."""
    relative = path.relative_to(CORPUS)
    return str(relative.parent if path.suffix == ".sse" else relative)
