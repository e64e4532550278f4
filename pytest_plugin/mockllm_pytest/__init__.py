"""pytest fixtures for code that talks to LLMs: a mock server that checks the requests it gets.

pytest loads `mockllm_pytest.plugin` by itself. Tests may import from here:

- the parts of a reply, for `MockSession.reply`: `text`, `reasoning`, `refusal`, `tool`, `shell`,
  `write`, `read`, `edit`, `server_tool`, `image`, `audio`, `parallel`, `interleaved`, `pause`,
  `gate`, `frame`, `native`, `error`, `auto`
- the base classes of test suites: `AccumulatorSuite`, `ClientSuite`, `CutSuite`,
  `ResilienceSuite`
- the types of fixtures, for annotations: `MockService` (`mockllm_server`), `MockSession`
  (`mockllm_session`), `MockCase` (`mockllm_case`); and of `mockllm_session.agent`: `MockAgent`,
  `AgentRun`

Each name is imported when it is first used, so that the plugin does not slow down other tests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockllm_pytest.agents import AgentRun, MockAgent
    from mockllm_pytest.cases import MockCase
    from mockllm_pytest.parts import (
        audio,
        auto,
        edit,
        error,
        frame,
        gate,
        image,
        interleaved,
        native,
        parallel,
        pause,
        read,
        reasoning,
        refusal,
        server_tool,
        shell,
        text,
        tool,
        write,
    )
    from mockllm_pytest.resilience_suites import CutSuite, ResilienceSuite
    from mockllm_pytest.serving import MockService
    from mockllm_pytest.sessions import MockSession
    from mockllm_pytest.suites import AccumulatorSuite, ClientSuite

__all__ = [
    "AccumulatorSuite",
    "AgentRun",
    "ClientSuite",
    "CutSuite",
    "MockAgent",
    "MockCase",
    "MockService",
    "MockSession",
    "ResilienceSuite",
    "audio",
    "auto",
    "edit",
    "error",
    "frame",
    "gate",
    "image",
    "interleaved",
    "native",
    "parallel",
    "pause",
    "read",
    "reasoning",
    "refusal",
    "server_tool",
    "shell",
    "text",
    "tool",
    "write",
]

_MODULES = {
    "AccumulatorSuite": "suites",
    "AgentRun": "agents",
    "ClientSuite": "suites",
    "CutSuite": "resilience_suites",
    "MockAgent": "agents",
    "MockCase": "cases",
    "MockService": "serving",
    "MockSession": "sessions",
    "ResilienceSuite": "resilience_suites",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'mockllm_pytest' has no attribute {name!r}")
    return getattr(import_module(f"mockllm_pytest.{_MODULES.get(name, 'parts')}"), name)
