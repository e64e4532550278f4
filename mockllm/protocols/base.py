"""What a wire protocol is: a table of pure functions and two small classes.

One protocol is one module in this folder, always in the same order: request parsing, Encoder,
Decoder, body encode and decode, errors, and the final `PROTOCOL = WireProtocol(...)`. The
modules import nothing of each other, of scenarios or of the server, and know no clock and no
randomness: everything made up comes from `Reply.seed`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from mockllm.core.events import Event
from mockllm.core.frame import Frame, LineEnd
from mockllm.core.request import Request
from mockllm.core.seeded import derive, derive_int
from mockllm.core.turn import TokenUsage, Turn
from mockllm.errors import RequestError

__all__ = [
    "EPOCH",
    "Decoder",
    "Encoder",
    "Lookup",
    "Operation",
    "Reply",
    "Route",
    "WireProtocol",
    "derive",
    "derive_int",
    "dumps",
    "logprob",
]

EPOCH = 1767225600
"""2026-01-01T00:00:00Z: the day on which every answer was "created", give or take a few days."""

dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""A value as compact JSON text, in the order given, not escaped beyond need."""


def logprob(text: str) -> float:
    """A made-up log probability for a token, at most 0 and always the same for it."""
    return -(zlib.crc32(text.encode()) % 20_000) / 10_000


@dataclass(frozen=True, slots=True)
class Reply:
    """Everything besides the turn that an answer's bytes depend on.

    Args:
        seed: what identifiers, timestamps and made-up values are derived from.
        token: 40 hexadecimal digits that tell scenario and turn; protocols put it into the
            identifiers by which a client may later point at this answer.
        model: the name the answer gives to its model.
        options: what the protocol's own `options` took from the request.
        usage: the tokens of the answer, known from its start.
    """

    seed: str
    token: str
    model: str
    options: Any
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(0, 0))

    @property
    def created(self) -> int:
        """When the answer was "created", in seconds since 1970; derived from the seed."""
        return EPOCH + derive_int(self.seed, "created", below=7 * 86400)


class Encoder(Protocol):
    """Turns the events of one turn into frames, in one pass."""

    def encode(self, event: Event) -> list[Frame]: ...


class Decoder(Protocol):
    """Turns the frames of one stream into events, in one pass.

    `complete` says whether the end marker of the protocol has come. `close` gives the events
    that the end of the stream leaves.
    """

    @property
    def complete(self) -> bool: ...

    def decode(self, frame: Frame) -> list[Event]: ...

    def close(self) -> list[Event]: ...


Operation = Literal[
    "generate",
    "models",
    "model",
    "count_tokens",
    "response",
    "delete_response",
    "input_items",
]
"""What a route does: `generate` answers from a scenario, the others look things up."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """What an operation besides `generate` may need to answer.

    Args:
        params: the named segments of the path.
        query: the query of the URL, the last value of each name.
        models: the names of the models that are served.
        any_model: whether other names are answered for too.
        request: the body of the request that the looked-up answer was given to; of the request
            itself where nothing is looked up (`count_tokens`).
        answer: the looked-up answer, as it is when not streamed.
    """

    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    any_model: bool = True
    request: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """A path this protocol answers; `{name}` in it matches one segment.

    With `header`, only requests that have a header of that name are answered: several APIs
    share the path of their model list.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    operation: Operation
    header: str | None = None


@dataclass(frozen=True, slots=True)
class WireProtocol:
    """One protocol as the rest of mockllm sees it.

    Args:
        name: as scenarios write it in `apis`.
        title: as people call it.
        routes: the paths it answers; the first `generate` route is the usual one.
        base_path: what a client's base URL ends in (`/v1`).
        parse: a body, and the named segments of the path, to the neutral request; values of the
            query are there under names that begin with `?`. With `strict` it refuses
            (`RequestError`) what the real service refuses.
        options: what of the request the answer's bytes depend on, as a hashable value.
        encoder: the encoder for one turn.
        decoder: a new decoder.
        encode_body: the answer that is not streamed, as a JSON value.
        decode_body: its inverse, up to the cutting into fragments.
        answer_id: the id of an answer, by which a client may point at it later.
        error_body: an error as the service would send it, as a JSON value.
        error_headers: the headers with it; `retry_after` is in seconds.
        headers: of a successful answer; the argument says whether it is streamed.
        project: the turn with everything that this protocol cannot say removed: what
            `fold(decode(encode(expand(turn))))` gives. `losses` says it in words.
        lookups: the operations besides `generate`.
        guard: refuses, by headers and query, a request without the credentials or versions
            that the service demands; only asked when requests are judged strictly.
        lists_errors: whether, for the named segments of the path and the query, the body of an
            error is a list with the error in it.
        call_prefix: what derived tool call ids begin with.
        line_end: how its service ends the lines of a stream.
        join: two frames that follow each other as one that says the same; None where the
            protocol has no such frame.
    """

    name: str
    title: str
    routes: tuple[Route, ...]
    base_path: str
    parse: Callable[[Mapping[str, Any], Mapping[str, str], bool], Request]
    options: Callable[[Request], Hashable]
    encoder: Callable[[Turn, Reply], Encoder]
    decoder: Callable[[], Decoder]
    encode_body: Callable[[Turn, Reply], dict[str, Any]]
    decode_body: Callable[[Mapping[str, Any]], Turn]
    answer_id: Callable[[Reply], str]
    error_body: Callable[[RequestError], dict[str, Any]]
    error_headers: Callable[[str, RequestError, float | None], dict[str, str]]
    headers: Callable[[Reply, bool], dict[str, str]]
    project: Callable[[Turn], Turn]
    losses: tuple[str, ...] = ()
    lookups: Mapping[Operation, Callable[[Lookup], dict[str, Any]]] = field(default_factory=dict)
    guard: Callable[[Mapping[str, str], Mapping[str, str]], None] | None = None
    lists_errors: Callable[[Mapping[str, str]], bool] | None = None
    call_prefix: str = "call_"
    line_end: LineEnd = "lf"
    join: Callable[[Frame, Frame], Frame | None] | None = None
