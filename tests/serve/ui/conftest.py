"""Servers with a live page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mockllm.serve.ui import live_page


@pytest.fixture
def serve(serve: Callable[..., Any]) -> Callable[..., Any]:
    """As the fixture of all tests, with a live page."""
    return lambda text, **options: serve(text, **{"page": live_page, **options})
