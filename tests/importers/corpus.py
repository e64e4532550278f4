"""Where recorded traffic is, on machines that have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mockllm.importers.file_formats import files

CORPUS = Path(__file__).parents[2] / ".." / "shared" / "corpus"

needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="no corpus of recorded traffic beside this checkout"
)


def recorded_files() -> list[Path]:
    """All cassettes and dumps of the corpus; none where it is not there.

    The corpus also holds the whole cassettes of a test suite; many of their exchanges are of
    APIs that are not played.
    """
    return list(files([CORPUS / "cassettes", CORPUS / "streams"])) if CORPUS.is_dir() else []


def dumps() -> list[Path]:
    """The dumps alone."""
    return [path for path in recorded_files() if path.suffix == ".sse"]


def title(path: Path) -> str:
    """What a file of the corpus is called on a page: its place below the corpus."""
    place = path.relative_to(CORPUS)
    return str(place.parent if path.suffix == ".sse" else place)
