"""One cluster for all tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment.balancer.cluster import Cluster

SERVED = """
scenario: plain
match: {user: plain}
turns: [{reply: {text: Nothing is counted here.}}]
---
scenario: busy
match: {user: busy}
turns:
  - attempts: [{http: 429, retry_after: 1ms}, {http: 503, retry_after: 1ms}]
    reply: {text: Made it.}
"""


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three replicas behind nginx, with Redis; the same for all tests, which use sessions of their
    own and start again what they kill."""
    for program, package in (("nginx", "nginx"), ("redis-server", "redis-server")):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not here; it is in the package {package} of Debian")
    pytest.importorskip("redis", reason="the extra `redis` is not installed")
    folder = tmp_path_factory.mktemp("cluster")
    scenarios: Path = folder / "scenarios.yaml"
    scenarios.write_text(SERVED)
    running = Cluster(folder, scenarios)
    yield running
    running.close()
