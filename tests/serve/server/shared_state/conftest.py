"""The stores in which servers share their state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.server.shared_state.replicas import redis_server


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The name of a store."""
    if request.param == "sqlite":
        yield f"sqlite:{tmp_path / 'state.db'}"
    else:
        with redis_server(tmp_path) as server:
            yield server.url
