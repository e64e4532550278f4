"""pytest fixtures for code that talks to LLMs: a mock server, strict about what it is asked.

pytest loads `mockllm_pytest.plugin` by itself. What tests import is here; nothing of it is
loaded before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockllm_pytest.cases import MockCase
    from mockllm_pytest.parts import (
        auto,
        error,
        frame,
        interleaved,
        parallel,
        pause,
        reasoning,
        refusal,
        text,
        tool,
    )
    from mockllm_pytest.serving import MockService
    from mockllm_pytest.sessions import MockSession
    from mockllm_pytest.suites import AccumulatorSuite, ClientSuite

__all__ = [
    "AccumulatorSuite",
    "ClientSuite",
    "MockCase",
    "MockService",
    "MockSession",
    "auto",
    "error",
    "frame",
    "interleaved",
    "parallel",
    "pause",
    "reasoning",
    "refusal",
    "text",
    "tool",
]

_HOMES = {
    "AccumulatorSuite": "suites",
    "ClientSuite": "suites",
    "MockCase": "cases",
    "MockService": "serving",
    "MockSession": "sessions",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that what is unused costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'mockllm_pytest' has no attribute {name!r}")
    return getattr(import_module(f"mockllm_pytest.{_HOMES.get(name, 'parts')}"), name)
