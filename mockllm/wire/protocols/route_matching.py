"""Matching of paths with the routes of protocols, and detection of the API of a recorded exchange:
by its path, or else by its body.

Compatible services put prefixes before the paths of an API (`/api/v1/chat/completions`,
`/openai/deployments/NAME/chat/completions`, `/projects/...`), so only the ends of paths are
compared. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from urllib.parse import parse_qsl, unquote, urlsplit

from mockllm.core.errors import StreamFormatError
from mockllm.core.http import NO_TARGET, Target
from mockllm.core.record import record
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.framing.eventstream import EVENTSTREAM
from mockllm.wire.framing.json_array import JSON_ARRAY
from mockllm.wire.framing.ndjson import NDJSON
from mockllm.wire.framing.sse import SSE
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Address, Operation, WireProtocol
from mockllm.wire.protocols.records import Fields, Json, identity
from mockllm.wire.protocols.values import json_object

CARRIERS: tuple[Carrier, ...] = (SSE, JSON_ARRAY, NDJSON, EVENTSTREAM)
"""All forms in which frames travel."""

_MOST_VALUES = 16
"""How many events of a stream are searched."""


@record
class Detected:
    """The API of an exchange that generates an answer, or the reason why there is none.

    Args:
        protocol: None if there is none; then `reason` explains it.
        target: the path and the query, for `WireProtocol.parse`.
    """

    protocol: WireProtocol | None
    target: Target = NO_TARGET
    reason: str = ""


_OTHER_VENDOR = (
    "InvokeModel of Amazon Bedrock is played for models of Anthropic, and else as it was recorded; "
    "Converse is played for all models"
)
_NOT_PLAYED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/(?:batchE|e)mbed[A-Za-z]*$|:(?:batchE|e)mbed\w+$"), "it makes embeddings"),
    (re.compile(r"(?::countTokens|/count[_-]tokens|/input_tokens)$"), "it counts tokens"),
    (re.compile(r"/images/|/audio/|/videos?(?:/|$)|:predict"), "it generates no text"),
    (re.compile(r"/v1/chat$"), "Cohere's first chat API is played only as it was recorded"),
    (
        re.compile(r"/(?:files|batches|uploads|vector_stores|moderations|rerank)(?:/|$)"),
        "it calls no model",
    ),
)


_BESIDE = re.compile(
    r"/(?:fine_tuning|evals|assistants|threads|chatkit|containers|organizations?|agents|sessions"
    r"|environments|deployments|vaults|memory_stores|decisions|tunedModels|fileSearchStores"
    r"|datasets|connectors|embed-jobs|finetuning)(?:/|$)"
)
"""Paths of services that vendors of models have beside them."""

_INVOKED = re.compile(r"/model/(?P<model>.+)/(?:invoke|invoke-with-response-stream)$")
"""InvokeModel of Amazon Bedrock, whose bodies are those of the vendor of the model."""


def _of_other_vendor(path: str, body: bytes) -> bool:
    """Whether a model of another vendor than Anthropic is called; an ARN may not name it."""
    invoked = _INVOKED.search(path)
    named = invoked is not None and "anthropic" in invoked["model"]
    return invoked is not None and not named and b"anthropic_version" not in body


def detect(method: str, url: str, body: bytes) -> Detected:
    """The API of an exchange; never fails.

    Args:
        url: absolute, with the query.
        body: of the request.
    """
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    if method != "POST":
        return Detected(None, reason=_beside(path) or f"a {method} request calls no model")
    if _of_other_vendor(path, body):
        return Detected(None, reason=_OTHER_VENDOR)
    query = dict(parse_qsl(parts.query))
    for name, address in PROTOCOLS.addresses.items():
        target = detected_target(address, path, query) if address.method == method else None
        if target is not None:
            return Detected(PROTOCOLS[name], target)
    for pattern, reason in _NOT_PLAYED:
        if pattern.search(path):
            return Detected(None, reason=reason)
    value = json_object(body)
    for name, address in PROTOCOLS.addresses.items():
        if address.any_path and value is not None and PROTOCOLS[name].detect.request(value):
            return Detected(PROTOCOLS[name])
    if beside := _beside(path):
        return Detected(None, reason=beside)
    host = parts.hostname or "it"
    return Detected(None, reason=f"{host} has no known API at {parts.path or '/'}")


def _beside(path: str) -> str:
    """Why mockllm does not play a path of a service beside the models; "" for another path."""
    why = "it is of a service beside the models, which mockllm leaves to routes of scenarios"
    return why if _BESIDE.search(path) else ""


def detect_by_body(request: Fields | None, body: bytes) -> WireProtocol | None:
    """The API of a request and its answer, by their fields; None where neither decides.

    Args:
        request: the body of the request, if it is known.
        body: of the answer, streamed or not.
    """
    sent = request or {}
    for protocol in PROTOCOLS.values():
        if protocol.detect.request(sent):
            return protocol
    for value in answer_values(body):
        for protocol in PROTOCOLS.values():
            if protocol.detect.answer(value):
                return protocol
    likely = (protocol for protocol in PROTOCOLS.values() if protocol.detect.likely_request(sent))
    return next(likely, None)


def answer_values(body: bytes) -> Iterator[Json]:
    """The objects in a body, or in the first frames of a stream, however they travel."""
    whole = json_object(body)
    if whole is not None:
        yield whole
        return
    for carrier in CARRIERS:
        with suppress(StreamFormatError):
            frames = islice(carrier.decoder().decode(body), _MOST_VALUES)
            yield from filter(None, [json_object(frame.data) for frame in frames])


def model_of(request: Fields | None, body: bytes) -> str:
    """The model in a request or in its answer; "" where neither has one."""
    protocol = detect_by_body(request, body)
    identify = identity if protocol is None else protocol.detect.identity
    named = (identify(value).model for value in (request or {}, *answer_values(body)))
    return next(filter(None, named), "")


@lru_cache(maxsize=1024)
def route_pattern(path: str) -> re.Pattern[str]:
    """The pattern of a route's path, with a group for each named segment."""
    return re.compile(_SEGMENT.sub(_group, re.escape(path)))


_SEGMENT = re.compile(r"\\{(\w+)(?::([^{}]+))?\\}")


def _group(segment: re.Match[str]) -> str:
    words = segment[2] or "[^/]+"
    return f"(?P<{segment[1]}>{words.replace(chr(92) + '|', '|')})"


def path_target(match: re.Match[str], query: Mapping[str, str] = NO_TARGET.query) -> Target:
    """The target of a path whose end a pattern matched, and of a query."""
    segments = {name: unquote(value) for name, value in match.groupdict().items() if value}
    _, colon, method = match[0].rpartition(":")
    return Target(segments, method if colon else "", query)


def detected_target(
    address: Address, path: str, query: Mapping[str, str] = NO_TARGET.query
) -> Target | None:
    """The target of a path by whose end requests of a protocol are recognised, and of a query; None
    where they are not."""
    for pattern in address.paths:
        match = pattern.search(path.rstrip("/"))
        if match is not None:
            target = path_target(match, query)
            return None if is_other_model(address, target) else target
    return None


def is_other_model(address: Address, target: Target) -> bool:
    """Whether a path of a protocol names a model whose requests are none of it."""
    pattern = address.other_models
    return pattern is not None and pattern.match(target.segments.get("model", "")) is not None


def parse_query(query: str) -> Mapping[str, str]:
    """The parameters of a query, the last value of each name."""
    return dict(parse_qsl(query, keep_blank_values=True))


def target_of(
    protocol: WireProtocol, path: str, query: str = "", operation: Operation = "generate"
) -> Target | None:
    """The target of a path and a query; None where no route of the protocol matches."""
    for route in protocol.address.routes:
        if route.operation == operation:
            match = route_pattern(route.path).fullmatch(path)
            if match is not None:
                return path_target(match, parse_query(query))
    return None
