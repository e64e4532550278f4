"""The built site, served on the loopback, in a browser."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from filelock import FileLock

from tests.timeouts import GIVE_UP
from tools.browser import Browser, missing, started

ROOT = Path(__file__).parents[2]


class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder, without a log."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The site as `make docs` builds it, once for all workers of a run."""
    if not (ROOT / ".venv-site/bin/zensical").exists():
        pytest.skip("Zensical is not here; `make ready` installs it into .venv-site")
    folder = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        folder = folder.parent
    built = folder / "site"
    with FileLock(folder / "site.lock"):
        if not built.is_dir():
            done = subprocess.run(
                [sys.executable, "-m", "tools.docs_site", "-o", built], cwd=ROOT,
                capture_output=True, text=True, timeout=GIVE_UP, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            assert "No issues found" in done.stdout + done.stderr
    return built


@pytest.fixture(scope="session")
def url(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if missing():
        pytest.skip(missing())
    with started() as browser:
        yield browser
