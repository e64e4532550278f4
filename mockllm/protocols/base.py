"""What a wire protocol is: a table of pure functions, a few small records, and two classes.

One protocol is one package in this folder, with the same modules in each: `request`, `encoder`,
`decoder`, `losses`, `client`, `detect`, `normalize`, `env`, and an `__init__` that ends in
`PROTOCOL = WireProtocol(...)`. A package holds all that is known of its API. It imports nothing
of its siblings, of scenarios or of the server, and knows no clock and no randomness: everything
made up comes from `Reply.seed`.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from mockllm.core.events import Event
from mockllm.core.frame import Frame, LineEnd
from mockllm.core.request import OfferedTool, Request
from mockllm.core.seeded import derive, derive_int
from mockllm.core.target import NO_TARGET, Target
from mockllm.core.turn import TokenUsage, ToolCall, Turn
from mockllm.errors import RequestError

__all__ = [
    "EPOCH",
    "Client",
    "Decoder",
    "Detection",
    "Encoder",
    "Environment",
    "Json",
    "Lookup",
    "Normalisation",
    "Operation",
    "Reply",
    "Route",
    "WireProtocol",
    "derive",
    "derive_int",
    "dumps",
    "logprob",
]

Json = dict[str, Any]
"""A JSON object."""

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
        target: what the path and the query say.
        models: the names of the models that are served.
        any_model: whether other names are answered for too.
        request: the body of the request that the looked-up answer was given to; of the request
            itself where nothing is looked up (`count_tokens`).
        answer: the looked-up answer, as it is when not streamed.
    """

    target: Target = NO_TARGET
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
class Client:
    """How a client of one API writes its requests, and where it sends them.

    Most APIs are stateless: a continuation carries the whole history. Responses points at the
    earlier answer by its id.

    Args:
        first_request: the body of a request for a streamed answer: from a model and what the
            user says.
        tools: the fields of a body that offer tools.
        continuation: the body that carries the results of tool calls: from the body before, the
            id of the answer to it, the calls of that answer, and the result of each.
        next_message: the body in which the user goes on after an answer without calls: from the
            body before, the id of the answer, the text of the answer, and the user's text.
        path: what a streamed answer is requested from, with the query; `{model}` stands in it.
        service: the base URL of the service that defines the API.
        group: the APIs with this name share a service and the option that names its URL.
        body_path: what an answer that is not streamed is requested from, where that is not `path`.
        headers: that the service demands, besides the content type.
        usage: the fields that ask for usage, where it is not sent unasked.
        tool_fields: the fields of a body that say which tools may be called.
        arguments_are_values: whether the history holds arguments as JSON values, so that
            malformed ones cannot be sent back.
        may_lack_call_ids: whether a request may send calls and results without ids.
        may_leave_calls: whether a conversation may end with calls that have no result yet.
        hosted_results: the ids of the results in a body that belong to tools which the service
            runs itself, and whose calls are no part of the neutral history.
    """

    first_request: Callable[[str, str], Json]
    tools: Callable[[Sequence[OfferedTool]], Json]
    continuation: Callable[[Json, str, Sequence[ToolCall], Sequence[str]], Json]
    next_message: Callable[[Json, str, str, str], Json]
    path: str
    service: str
    group: str
    body_path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    tool_fields: tuple[str, ...] = ("tools",)
    arguments_are_values: bool = False
    may_lack_call_ids: Callable[[Mapping[str, Any]], bool] = lambda _: False
    may_leave_calls: bool = False
    hosted_results: Callable[[Mapping[str, Any]], frozenset[str]] = lambda _: frozenset()

    def path_of(self, model: str, *, stream: bool = True) -> str:
        """The path, with the query, that an answer of a model is requested from."""
        path = self.path if stream or not self.body_path else self.body_path
        return path.format(model=model)


@dataclass(frozen=True, slots=True)
class Detection:
    """How an exchange that somebody recorded is known as one of this API.

    Services that speak another's API put prefixes before its paths, so paths are known by their
    ends.

    Args:
        paths: how the path of a request for an answer ends; named groups are segments.
        request: whether a body has the fields of this API's requests and of no other's.
        answer: whether a JSON value is an answer, or an event of one, of this API and no other.
        likely_request: whether a body has fields that other APIs share, and this one is the
            likeliest of them.
        any_path: whether each server chooses its own path, so that the body decides.
    """

    paths: tuple[re.Pattern[str], ...]
    request: Callable[[Mapping[str, Any]], bool] = lambda _: False
    answer: Callable[[Mapping[str, Any]], bool] = lambda _: False
    likely_request: Callable[[Mapping[str, Any]], bool] = lambda _: False
    any_path: bool = False


@dataclass(frozen=True, slots=True)
class Normalisation:
    """What in an event the service makes up, so that two streams can be compared.

    Paths are written with dots, which lead into an object or each item of a list.

    Args:
        made_up: the fields that are left out: identifiers, times, padding.
        answer_fields: by the path of an object, those of its fields that are the answer; the
            others repeat the configuration, which services extend every few weeks.
        replaced: by the `type` of an event, the field of its `item` that a later event sends in
            its final form.
        keepalive: the `type` of events that come by the clock.
        envelope: the field in which an event holds what a body is by itself; "" where events
            and bodies have the same fields.
    """

    made_up: frozenset[str] = frozenset()
    answer_fields: Mapping[str, frozenset[str]] = field(default_factory=dict)
    replaced: Mapping[str, str] = field(default_factory=dict)
    keepalive: frozenset[str] = frozenset()
    envelope: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment variables that the SDKs of one API read.

    Args:
        base_urls: the variables of the base URL; with each, what it leaves out at the end of
            the API's base URL.
        keys: the variables of the API key.
        other_keys: the variables of credentials beside which a key would be sent, too.
    """

    base_urls: tuple[tuple[str, str], ...] = ()
    keys: tuple[str, ...] = ()
    other_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WireProtocol:
    """One protocol as the rest of mockllm sees it.

    Args:
        name: as scenarios write it in `apis`.
        title: as people call it.
        routes: the paths it answers; the first `generate` route is the usual one.
        base_path: what a client's base URL ends in (`/v1`).
        parse: a body and the target it was sent to, to the neutral request. With `strict` it
            refuses (`RequestError`) what the real service refuses.
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
            `fold(decode(encode(expand(turn))))` gives. `losses` describes it.
        client: how a client writes requests.
        detect: how a recorded exchange is known as one of this API.
        normalize: what the service makes up.
        env: the variables that lead its SDKs to a server.
        lookups: the operations besides `generate`.
        guard: refuses, by headers and query, a request without the credentials or versions
            that the service demands; only asked when requests are judged strictly.
        lists_errors: whether, for a target, the body of an error is a list with the error in it.
        call_prefix: what derived tool call ids begin with.
        line_end: how its service ends the lines of a stream.
        end_data: the data of the frame that ends a stream, where that is no JSON.
        finish_values: by the neutral finish reason the values that mean it on the wire, the
            usual one first.
        join: two frames that follow each other as one that says the same; None where the
            protocol has no such frame.
    """

    name: str
    title: str
    routes: tuple[Route, ...]
    base_path: str
    parse: Callable[[Mapping[str, Any], Target, bool], Request]
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
    client: Client
    detect: Detection
    normalize: Normalisation = Normalisation()
    env: Environment = Environment()
    losses: tuple[str, ...] = ()
    lookups: Mapping[Operation, Callable[[Lookup], dict[str, Any]]] = field(default_factory=dict)
    guard: Callable[[Mapping[str, str], Mapping[str, str]], None] | None = None
    lists_errors: Callable[[Target], bool] | None = None
    call_prefix: str = "call_"
    line_end: LineEnd = "lf"
    end_data: str | None = None
    finish_values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    join: Callable[[Frame, Frame], Frame | None] | None = None
