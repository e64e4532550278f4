"""Servers of other projects, one process of each for the session, and a recorder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import program
from tests.upstreams import gguf
from tests.upstreams.process import ROOT, Service
from tests.upstreams.recording import Runs

__all__ = ["program"]

AIMOCK = Path(__file__).parent / "aimock"


@pytest.fixture(scope="session")
def aimock() -> Iterator[Service]:
    """aimock with the answers of `aimock/fixtures.json`."""
    with Service(aimock_command()) as service:
        yield service


def aimock_command() -> list[str | Path]:
    """The command that starts aimock; skips the test if it is not installed."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    if not (AIMOCK / "node_modules" / "@copilotkit" / "aimock").is_dir():
        pytest.skip(
            "aimock is missing: `make tests/upstreams/aimock/node_modules/.installed` installs it"
        )
    return [node, AIMOCK / "run.mjs"]


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """llama.cpp's own server with a generated model."""
    yield from _served("llama", "make .venv-llama/.installed", tmp_path_factory)


@pytest.fixture(scope="session")
def llama_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The server of llama-cpp-python with the same model."""
    yield from _served("llama_python", "make upstreams", tmp_path_factory)


def _served(
    name: str, installer: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    python = ROOT / f".venv-{name}" / "bin" / "python"
    if not (python.parents[1] / ".installed").exists():
        pytest.skip(f"{name} has its own environment, which is missing: `{installer}`")
    model = tmp_path_factory.mktemp(name) / "nonsense.gguf"
    gguf.write(model)
    with Service([python, "-m", f"tests.upstreams.{name}_env.run", model]) as service:
        yield service


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """A folder to record to, and to replay from."""
    return Runs(tmp_path / "recorded")
