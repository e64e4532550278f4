"""The types of each official SDK for the events of its streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from tools.coverage.tree import Tree


@dataclass(frozen=True, slots=True)
class SdkTypes:
    """Where the types of an API come from.

    Args:
        package: the distribution.
        name: of the type of one event.
    """

    package: str
    name: str
    load: Callable[[], Any]

    @property
    def source(self) -> str:
        """The type with the version of the package."""
        return f"`{self.name}` of {self.package} {version(self.package)}"


# Each SDK takes about half a second to import.
def _chat() -> Any:
    from openai.types.chat import ChatCompletionChunk

    return ChatCompletionChunk


def _responses() -> Any:
    from openai.types.responses import ResponseStreamEvent

    return ResponseStreamEvent


def _anthropic() -> Any:
    from anthropic.types import RawMessageStreamEvent

    return RawMessageStreamEvent


def _gemini() -> Any:
    from google.genai.types import GenerateContentResponse

    return GenerateContentResponse


def _agui() -> Any:
    from ag_ui.core import Event

    return Event


SDKS: dict[str, SdkTypes] = {
    "chat": SdkTypes("openai", "openai.types.chat.ChatCompletionChunk", _chat),
    "responses": SdkTypes("openai", "openai.types.responses.ResponseStreamEvent", _responses),
    "anthropic": SdkTypes("anthropic", "anthropic.types.RawMessageStreamEvent", _anthropic),
    "gemini": SdkTypes("google-genai", "google.genai.types.GenerateContentResponse", _gemini),
    "agui": SdkTypes("ag-ui-protocol", "ag_ui.core.Event", _agui),
}
"""By the name of the API."""


@cache
def tree(api: str) -> Tree:
    """The items of an API."""
    return Tree(SDKS[api].load())
