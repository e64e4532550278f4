"""mockllm: scenarios as the wire streams of LLM services, recorded, replayed and checked."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockllm.errors import MockLLMError, ScenarioError
    from mockllm.replay.loading import load, loads
    from mockllm.scenario.dump import dump
    from mockllm.scenario.model import Scenario
    from mockllm.server.app import MockServer
    from mockllm.server.options import ServerOptions
    from mockllm.server.thread import ServerThread

__version__ = "0.1.0"

__all__ = [
    "MockLLMError",
    "MockServer",
    "Scenario",
    "ScenarioError",
    "ServerOptions",
    "ServerThread",
    "dump",
    "load",
    "loads",
]

_HOMES = {
    "MockLLMError": "mockllm.errors",
    "MockServer": "mockllm.server.app",
    "Scenario": "mockllm.scenario.model",
    "ScenarioError": "mockllm.errors",
    "ServerOptions": "mockllm.server.options",
    "ServerThread": "mockllm.server.thread",
    "dump": "mockllm.scenario.dump",
    "load": "mockllm.replay.loading",
    "loads": "mockllm.replay.loading",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that what is unused costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mockllm' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
