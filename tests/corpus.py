"""The recorded traffic beside the checkout: the one place where tests find it.

Where it is absent, lists of its files are empty, and tests that read it skip (`needs_corpus`).
`pytest -m corpus` runs the modules that import this one, also by way of others.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mockllm.record.importers.file_formats import READERS, detect, files
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.importers.reading import Entry
from tools.corpus import Recording
from tools.corpus import recordings as read_recordings

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"

needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="no corpus of recorded traffic beside this checkout"
)


def read(path: Path) -> list[Entry]:
    """The entries of a file with exchanges, of any kind."""
    file = ForeignFile(path)
    kind = detect(file)
    assert kind is not None
    return READERS[kind](file)


def recorded_streams(api: str) -> list[Path]:
    """The streams of an API, each `NAME/response.sse`; none where the corpus is missing."""
    return sorted((CORPUS / "streams" / api).glob("*/response.sse"))


def corpus_recordings() -> list[Recording]:
    """The streams of all APIs with their requests; none where the corpus is missing."""
    return read_recordings(CORPUS / "streams") if CORPUS.is_dir() else []


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
