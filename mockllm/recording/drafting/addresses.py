"""Which API an exchange speaks: its path says so, its host and its body where paths are odd.

Services that speak another's API put its paths behind prefixes of their own
(`/api/v1/chat/completions`, `/openai/deployments/NAME/chat/completions`, `/projects/...`), so
paths are judged by how they end. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol
from mockllm.tapes.captured import Captured

__all__ = ["Address", "addressed", "body_object"]


@dataclass(frozen=True, slots=True)
class Address:
    """What an exchange was sent to: a protocol's `generate`, or a reason why it is none.

    Args:
        protocol: None where `words` say why.
        params: the named segments of the path, and the query, as `WireProtocol.parse` takes them.
    """

    protocol: WireProtocol | None
    params: Mapping[str, str] = field(default_factory=dict)
    words: str = ""


_GEMINI = re.compile(
    r"/(?:publishers/(?P<publisher>[^/]+)/models|models(?:/(?P<owner>[^/:]+))?)"
    r"/(?P<model>[^/:]+):(?:streamGenerateContent|generateContent)$"
)
_ENDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("chat", re.compile(r"(?:/deployments/(?P<deployment>[^/]+))?/chat/completions$")),
    ("responses", re.compile(r"/responses$")),
    ("anthropic", re.compile(r"^(?!.*/threads/).*/messages$")),
    ("anthropic", re.compile(r"/publishers/anthropic/models/[^/]+:(?:streamR|r)awPredict$")),
    ("gemini", _GEMINI),
    ("agui", re.compile(r"/agui(?:/(?P<scenario>[^/]+))?$")),
)
_OTHER: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"/model/[^/]+/(?:converse|converse-stream|invoke|invoke-with-response-stream)$"
        ),
        "Amazon Bedrock's own API, with its binary event stream, is not played",
    ),
    (re.compile(r"/(?:batchE|e)mbed[A-Za-z]*$|:(?:batchE|e)mbed\w+$"), "embeddings are no stream"),
    (re.compile(r"(?::countTokens|/count_tokens|/input_tokens)$"), "it counts tokens"),
    (re.compile(r"/(?:v1|openai)/completions$"), "the old completions API is not played"),
    (re.compile(r"/images/|/audio/|/videos?(?:/|$)|:predict"), "it makes no text"),
    (re.compile(r"/api/(?:chat|generate)$"), "Ollama's own API is not played; its /v1 is"),
    (re.compile(r"/v2/chat$"), "Cohere's own API is not played"),
    (
        re.compile(r"/(?:files|batches|uploads|vector_stores|moderations|rerank)(?:/|$)"),
        "it asks no model",
    ),
)


def addressed(exchange: Captured) -> Address:
    """The API that an exchange speaks; never fails."""
    url = urlsplit(exchange.url)
    path = url.path.rstrip("/")
    if exchange.method != "POST":
        return Address(None, words=f"a {exchange.method} asks no model")
    for api, pattern in _ENDS:
        found = pattern.search(path)
        if found is not None:
            return Address(PROTOCOLS[api], _params(found, path, url.query))
    for pattern, words in _OTHER:
        if pattern.search(path):
            return Address(None, words=words)
    if _runs_an_agent(exchange):
        return Address(PROTOCOLS["agui"], {})
    return Address(
        None, words=f"{exchange.host or 'it'} has no API at {url.path or '/'} that is known"
    )


def _params(found: re.Match[str], path: str, query: str) -> dict[str, str]:
    params = {name: unquote(value) for name, value in found.groupdict().items() if value}
    if found.re is _GEMINI:
        params[":"] = path.rpartition(":")[2]
    return {**params, **{f"?{name}": value for name, value in parse_qsl(query)}}


def _runs_an_agent(exchange: Captured) -> bool:
    """AG-UI leaves the path to everybody, but not the names of what is sent."""
    body = body_object(exchange)
    return body is not None and {"threadId", "runId", "messages"} <= body.keys()


def body_object(exchange: Captured) -> dict[str, Any] | None:
    """The JSON object that was sent; None where it was none."""
    try:
        value = json.loads(exchange.request_body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
