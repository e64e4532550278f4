"""What services have in common around their answers: headers, names of
models, counts of tokens, bodies that are none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.core.request import Request
from mockllm.core.seeded import tokens
from mockllm.errors import WireError
from mockllm.protocols.base import Lookup, dumps


def no_body(title: str, needs: str, body: Mapping[str, Any]) -> WireError:
    """The error for a value that is no body of an API, and what such a body has."""
    return WireError(
        f"{title} needs {needs}, this one has {', '.join(map(repr, body)) or 'no fields'}; is it a "
        "body of this API?"
    )


def content_headers(stream: bool) -> dict[str, str]:
    """The headers about the content of an answer, streamed as events or not."""
    if not stream:
        return {"content-type": "application/json"}
    return {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


def retry_headers(seconds: float | None) -> dict[str, str]:
    """When to try again: `retry-after` in whole seconds, rounded up, and `retry-after-ms` exactly,
    which SDKs prefer."""
    if seconds is None:
        return {}
    milliseconds = round(seconds * 1000)
    whole = -(-milliseconds // 1000)
    return {"retry-after": str(whole), "retry-after-ms": str(milliseconds)}


def looked_up_model(lookup: Lookup) -> tuple[str, bool]:
    """The model in a path, with its owner where the path has one, and whether it is served."""
    segments = lookup.target.segments
    owner = segments.get("owner")
    name = segments["model"] if owner is None else f"{owner}/{segments['model']}"
    return name, lookup.any_model or name in lookup.models


def counted_tokens(request: Request) -> int:
    """The tokens of a request: of its messages, calls, results and tools."""
    texts = [message.text for message in request.messages]
    for message in request.messages:
        texts += [text for call in message.calls for text in (call.name, call.arguments)]
    for tool in request.tools:
        texts += [tool.name, tool.description, dumps(tool.parameters)]
    return sum(map(tokens, texts))
