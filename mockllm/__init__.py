"""mockllm: scenarios as the wire streams of LLM services, recorded, replayed and checked."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockllm.core.errors import CollisionWarning, MockLLMError, ScenarioError
    from mockllm.play.replay.loading import load, loads
    from mockllm.scenario.dump import dump
    from mockllm.scenario.model import Scenario
    from mockllm.serve.server.app import MockServer
    from mockllm.serve.server.options import ServerOptions
    from mockllm.serve.server.thread import ServerThread

__version__ = "0.1.0"
__distribution__ = "mockllm-harness"

__all__ = [
    "CollisionWarning",
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
    "CollisionWarning": "mockllm.core.errors",
    "MockLLMError": "mockllm.core.errors",
    "MockServer": "mockllm.serve.server.app",
    "Scenario": "mockllm.scenario.model",
    "ScenarioError": "mockllm.core.errors",
    "ServerOptions": "mockllm.serve.server.options",
    "ServerThread": "mockllm.serve.server.thread",
    "dump": "mockllm.scenario.dump",
    "load": "mockllm.play.replay.loading",
    "loads": "mockllm.play.replay.loading",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that what is unused costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mockllm' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def _other_project_is_installed() -> bool:
    """Whether the distribution `mockllm`, which is another project, is installed into the folder
    that holds this package.

    Listing one folder takes 0.2 ms; importing `importlib.metadata` alone takes 20.
    """
    try:
        folder = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - a Path takes its time
        names = os.listdir(folder)  # noqa: PTH208 - as above
    except OSError:  # imported from an archive, or from a folder that may not be listed
        return False
    return any(
        name.startswith("mockllm-") and name.endswith((".dist-info", ".egg-info")) for name in names
    )


if _other_project_is_installed():
    from mockllm.cli.terminal.installation import warn

    warn(stacklevel=2)
