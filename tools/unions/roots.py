"""The types of each SDK that mockllm's encoders are compared with."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any, Literal

from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape
from botocore.session import get_session
from pydantic import BaseModel, Field, create_model

from mockllm.core.record import record
from tools.coverage.tree import Tree


@record
class SdkUnion:
    """The types of an API's answers, as `module:name`; for botocore as `service:operation`.

    Args:
        package: the distribution.
        stream: of an event.
        body: of an answer that is not streamed; "": as `stream`, or there is none.
    """

    package: str
    stream: str
    body: str = ""

    @property
    def source(self) -> str:
        """The package and its version."""
        return f"{self.package} {version(self.package)}"


_RESPONSES, _CHAT, _BETA = "openai.types.responses", "openai.types.chat", "anthropic.types.beta"
UNIONS: dict[str, SdkUnion] = {
    "chat": SdkUnion("openai", f"{_CHAT}:ChatCompletionChunk", f"{_CHAT}:ChatCompletion"),
    "responses": SdkUnion("openai", f"{_RESPONSES}:ResponseStreamEvent", f"{_RESPONSES}:Response"),
    "completions": SdkUnion("openai", "openai.types:Completion"),
    # The types of the beta have all that the others have.
    "anthropic": SdkUnion(
        "anthropic", f"{_BETA}:BetaRawMessageStreamEvent", f"{_BETA}:BetaMessage"
    ),
    "gemini": SdkUnion("google-genai", "google.genai.types:GenerateContentResponse"),
    "cohere": SdkUnion(
        "cohere", "cohere.v2.types:V2ChatStreamResponse", "cohere.v2.types:V2ChatResponse"
    ),
    "ollama": SdkUnion("ollama", "ollama:ChatResponse"),
    "agui": SdkUnion("ag-ui-protocol", "ag_ui.core:Event"),
    "bedrock": SdkUnion("botocore", "bedrock-runtime:ConverseStream", "bedrock-runtime:Converse"),
}
"""By the name of the API."""


@cache
def items(api: str) -> tuple[str, ...]:
    """The items of an API's answers: of its events, then those that only bodies have."""
    union = UNIONS[api]
    listed = [
        _named(api, name, item) for name in _names(union) for item in _tree(api, name).items()
    ]
    return tuple(dict.fromkeys(listed))


def items_of(api: str, value: Any, *, streamed: bool) -> set[str]:
    """The items in an event or in a body; a `+` is before those that the SDK does not know."""
    name = _names(UNIONS[api])[0 if streamed else -1]
    return {_named(api, name, item) for item in _tree(api, name).played(value)}


def _names(union: SdkUnion) -> tuple[str, ...]:
    return (union.stream, union.body) if union.body else (union.stream,)


def _named(api: str, name: str, item: str) -> str:
    """An item with the name of its type in front, as `Tree` lists the items of shared types."""
    root = _root(api, name)
    bare = item.removeprefix("+")
    if not isinstance(root, type) or "/" in bare:
        return item
    return f"{item[: -len(bare)]}{root.__name__}/{bare}"


@cache
def _tree(api: str, name: str) -> Tree:
    return Tree(_root(api, name))


@cache
def _root(api: str, name: str) -> Any:
    first, _, second = name.partition(":")
    if UNIONS[api].package == "botocore":
        return _botocore_type(first, second)
    return getattr(import_module(first), second)


# The service's model of botocore, as pydantic types


def _botocore_type(service: str, operation: str) -> Any:
    answer = get_session().get_service_model(service).operation_model(operation).output_shape
    stream = answer.members.get("stream")
    return _model(answer if stream is None else stream, ())


def _model(shape: StructureShape, outer: Iterable[str]) -> type[BaseModel]:
    within = (*outer, shape.name)
    fields = {
        f"{name}_": (_type(member, within) | None, Field(None, alias=name))
        for name, member in shape.members.items()
        if member.name not in within
    }
    return _created(shape.name, tuple(fields.items()))


@cache
def _created(name: str, fields: tuple[tuple[str, Any], ...]) -> type[BaseModel]:
    """One model of each name, so that a type which occurs in several places is listed once."""
    return create_model(name, **dict(fields))


def _type(shape: Shape, outer: tuple[str, ...]) -> Any:
    match shape:
        case StructureShape():
            return _model(shape, outer)
        case ListShape():
            return list[_type(shape.member, outer)]  # type: ignore[misc]
        case MapShape():
            return dict
        case StringShape(enum=values) if values:
            return Literal[tuple(values)]
    return str
