"""`WireProtocol`, the description of one API: pure functions, a few small records, two classes.

Each protocol is a package in this folder, with the same modules: `request`, `encoder`, `decoder`,
`client`, and a `protocol` that ends in `PROTOCOL = WireProtocol(...)`. Its `__init__` has the
`Address`, which is all that a server needs before the first request. All knowledge of an API is in
its package. A package imports nothing from its siblings, from scenarios or from the server. It
reads no clock and no randomness: every generated value is derived from `Reply.seed`.

The functions at the end are what services have in common around their answers.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mockllm.core.errors import RequestError, WireError
from mockllm.core.events import Event, Frame, LineEnd, RefusalDelta, StreamError, TextDelta, Token
from mockllm.core.http import NO_TARGET, Target
from mockllm.core.record import record
from mockllm.core.request import Message, Request
from mockllm.core.seeded import derive_int
from mockllm.core.tokens_and_fragments import tokens
from mockllm.core.turn import TokenUsage, Turn
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.framing.sse import SSE
from mockllm.wire.protocols.records import (
    Background,
    Choices,
    ClientRequests,
    Detection,
    Environment,
    FallbackRoute,
    FieldNames,
    Fields,
    Json,
    Normalisation,
    PromptPart,
    SdkTypes,
    ServiceError,
    StoredAnswers,
    StreamEvents,
    service_errors,
)

if TYPE_CHECKING:
    from mockllm.core.quotas import Excess, Level
    from mockllm.wire.protocols.jobs import JobCall, JobReply, ObjectKind
    from mockllm.wire.protocols.native import Shape
    from mockllm.wire.protocols.sockets import SocketConversation, SocketExchange

EPOCH = 1767225600
"""2026-01-01T00:00:00Z. Every answer is "created" within a week after it: a clock would give the
same request other bytes on another day, and the week makes the times of answers differ."""

dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""A value as compact JSON text, with fields in their order and no needless escapes."""


def created_at(seed: str) -> int:
    """When something was "created", in seconds since 1970; derived from a seed, such as its id."""
    return EPOCH + derive_int(seed, "created", below=7 * 86400)


def rfc3339(seconds: int) -> str:
    """A time, from seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def logprob(text: str) -> float:
    """A derived log probability of a token, at most 0; equal tokens have equal ones."""
    return -(zlib.crc32(text.encode("utf-8", "surrogatepass")) % 20_000) / 10_000


def tokens_in(delta: TextDelta | RefusalDelta) -> tuple[Token, ...]:
    """The tokens of a fragment with their log probabilities: those of the scenario, else all of the
    fragment as one token, whose log probability is derived."""
    if isinstance(delta, TextDelta) and delta.tokens is not None:
        return delta.tokens
    return (Token(delta.text, logprob(delta.text)),) if delta.text else ()


@record
class Reply:
    """Everything besides the turn that an answer's bytes depend on.

    Args:
        seed: ids, timestamps and other generated values are derived from it.
        token: 40 hexadecimal digits that identify scenario and turn; protocols put it into the
            ids by which a client may later refer to this answer.
        model: the model name in the answer.
        options: the result of the protocol's `options` for the request.
        usage: the tokens of the answer.
        service_tier, fingerprint: what the scenario states; None: what the protocol derives.
        speech: how text sounds where an API answers in speech: `tone`, `silence` or `none`.
    """

    seed: str
    token: str
    model: str
    options: Any
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(0, 0))
    service_tier: str | None = None
    fingerprint: str | None = None
    speech: str = "tone"

    @property
    def created(self) -> int:
        """When the answer was "created", in seconds since 1970; derived from the seed."""
        return created_at(self.seed)


class Encoder(Protocol):
    """Turns the events of one turn into frames, in one pass."""

    def encode(self, event: Event) -> list[Frame]: ...


class Decoder(Protocol):
    """Turns the frames of one stream into events, in one pass. `complete` is whether the protocol's
    end marker has come. `close` returns the remaining events when the stream ends."""

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
    "cancel_response",
    "input_items",
    "create",
    "version",
    "create_file",
    "files",
    "file",
    "file_content",
    "delete_file",
    "create_batch",
    "batches",
    "batch",
    "cancel_batch",
    "delete_batch",
    "batch_results",
]
"""What a route does: `generate` answers from a scenario, `create` makes the ids of a path
(`WireProtocol.creates`), the others read data of the server. Those from `create_file` on make files
and batches and follow them (`WireProtocol.jobs`)."""


@record
class Lookup:
    """The input of an operation besides `generate`.

    Args:
        target: the path and the query of the request.
        models: the names of the models that are served.
        any_model: whether other models are answered, too, but for those that are `gone`, as a
            client deleted them.
        request: the body of the request that a stored answer belongs to; for `count_tokens` the
            body of the request itself.
        answer: the stored answer, as a body that is not streamed.
        number: how many requests the session had before; new ids are derived from it.
    """

    target: Target = NO_TARGET
    models: tuple[str, ...] = ()
    any_model: bool = True
    request: Fields = field(default_factory=dict)
    answer: Fields = field(default_factory=dict)
    number: int = 0
    gone: tuple[str, ...] = ()


Method = Literal["GET", "POST", "DELETE"]


@record
class Route:
    """A path of this protocol; `{name}` in it matches one segment, `{name:one|two}` one of these
    words. With `header`, the route matches
    only requests with a header of that name: OpenAI, Anthropic and Gemini share the path of their
    model lists."""

    method: Method
    path: str
    operation: Operation
    header: str | None = None


def routes_below(bases: Iterable[str], *routes: Route) -> Iterator[Route]:
    """Some routes below each of several paths."""
    return (replace(route, path=base + route.path) for base in bases for route in routes)


def model_routes(*bases: str, header: str | None = None) -> list[Route]:
    """The paths of the list of models and of single ones. A model `mock/<scenario>` is two segments
    of a path."""
    single = ("/models/{model}", "/models/{owner}/{model}")
    return [
        *routes_below(bases, Route("GET", "/models", "models", header)),
        *routes_below(bases, *(Route("GET", path, "model", header) for path in single)),
    ]


@record
class Address:
    """Where one API is served and found: what is known of it before its code is imported.

    The `generate` routes of most APIs take a POST. Those of an API that has only WebSockets take
    the GET that opens one.

    Args:
        name: its name in scenarios (`apis`).
        title: its name for people.
        package: the name of its package, whose module `protocol` has the `WireProtocol`.
        routes: its paths; the first `generate` route is the usual one.
        paths: the ends of the paths by which requests for an answer are recognised, because
            compatible services put prefixes before them; named groups are segments.
        base_path: the end of a client's base URL (`/v1`).
        env: the environment variables that its SDKs read.
        hosts: patterns of the hosts of its services, such as `*.openai.azure.com`.
        any_path: whether each server chooses its own path, so that the body decides.
        creates: the parameters at the end of a path (`--path`) whose values the service makes,
            without `_id`: a POST to the path before them answers with new ones (`create`).
        marks: the headers, in lower case, that only its clients send: a request with one is for no
            file and no job of another API.
        other_models: names of models at its paths whose requests are none of this API.
        provider, task: what OpenTelemetry has of the service (`gen_ai.provider.name`) and of an
            answer (`gen_ai.operation.name`); provider "": it has no name for it.
    """

    name: str
    title: str
    package: str
    routes: tuple[Route, ...]
    paths: tuple[re.Pattern[str], ...]
    base_path: str = ""
    env: Environment = field(default_factory=Environment)
    hosts: tuple[str, ...] = ()
    any_path: bool = False
    creates: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    other_models: re.Pattern[str] | None = None
    provider: str = ""
    task: str = "chat"

    @property
    def method(self) -> Method:
        """The method of requests for an answer."""
        return next(route.method for route in self.routes if route.operation == "generate")

    @property
    def is_socket(self) -> bool:
        """Whether the API has only WebSockets: no answer of it goes over HTTP."""
        return self.method == "GET"


SERVICE_ERRORS = service_errors(
    StreamError("The service is overloaded. Please try again later.", None, "overloaded"),
    StreamError("Rate limit reached. Please try again later.", None, "rate_limit"),
    StreamError("The server had an error.", None, "server_error"),
)
"""The errors of a service that documents none."""


@record
class WireProtocol:
    """Everything that the rest of mockllm knows of one protocol.

    Args:
        address: where it is served and found.
        parse: the neutral request, from a body and its target. With `strict` it raises
            `RequestError` for what the real service refuses.
        options: the parts of the request that the answer's bytes depend on, as a hashable value.
        encoder: the encoder for one turn.
        decoder: a new decoder.
        encode_body: the body of an answer that is not streamed, as a JSON value.
        decode_body: its inverse, except for the cutting into fragments.
        answer_id: the id by which a client may later refer to an answer.
        error_body: the body of an error in the service's form, as a JSON value.
        decode_error: its inverse: the error in a body; None for a body without an error in the
            form of this API. Error bodies of other forms are kept as they are.
        error_headers: the headers of an error answer, from the seed and the error.
        headers: the headers of a successful answer; the argument is whether it is streamed.
        reply_fields: those of `service_tier` and `fingerprint` in `Reply` that its answers have a
            field for.
        choices: how an answer has several choices; None: it has one, whatever a scenario says.
        project: the turn without everything that this protocol cannot express: the result of
            `fold(decode(encode(expand(turn))))`. docs/protocols.md describes the difference.
        client: the requests that clients send.
        detect: how a recorded exchange is recognised.
        events: what can be read from one event without the others.
        fields: what the fields of the API hold, by their names.
        normalize: what the service generates anew for each answer.
        stored: how its service keeps answers; None if it keeps none.
        whole_error: the error in place of the body of a turn; None for one that has a body.
        lookups: the operations besides `generate`.
        jobs: the operations that make jobs and follow them.
        fallback_routes: the routes that `--fallback auto` answers by itself.
        objects: the kinds of objects that clients make and change with `--fallback auto`.
        guard: raises `RequestError` for headers and a target without the credentials or versions
            that the service requires; used only if requests are validated strictly.
        error_at: the body and the headers of an error for a target, from its status, and from the
            body and the headers that it has elsewhere; None if that is the same everywhere.
        call_prefix: the prefix of derived tool call ids.
        zero_arguments: the joined fragments of the arguments of a call without any, as the service
            streams them; None if it streams arguments as JSON values and not as text.
        carriers: the forms in which its services send streams, the usual one first.
        carrier: the one of an answer, by the `options` of its request.
        line_end: the line end in the service's streams.
        end_data: the data of the frame that ends a stream, if they are not JSON (`[DONE]`).
        finish_values: by neutral finish reason, the values on the wire that mean it, the usual one
            first.
        role: the role of an answer on the wire.
        service_errors: the errors of the service that have nothing to do with the request, by
            `overloaded`, `rate_limit` and `server_error`.
        quota_headers: the headers of an answer that say what is left of some limits, no two of one
            resource. Those that `headers` has for the same limits have the same names.
        quota_error: the error for a request that exceeds a limit; None: that is the `rate_limit` of
            `service_errors`.
        socket: what a client says on one WebSocket; None: the API has none.
        exchanges: the requests and answers on a recorded connection, from its messages in their
            order, each with whether the client sent it, and the numbers of the messages that have
            no place in them; None: a connection is no sequence of requests.
        with_sequence_numbers: frames with the numbers that they have after so many others; None if
            the events of the API have no numbers.
        sdk: the types of answers in the SDK of the service; None if it has none.
        native: the parts that only this API has, by their `type`.
    """

    address: Address
    parse: Callable[[Fields, Target, bool], Request]
    options: Callable[[Request], Hashable]
    encoder: Callable[[Turn, Reply], Encoder]
    decoder: Callable[[], Decoder]
    encode_body: Callable[[Turn, Reply], Json]
    decode_body: Callable[[Fields], Turn]
    answer_id: Callable[[Reply], str]
    error_body: Callable[[RequestError], Json]
    error_headers: Callable[[str, RequestError], dict[str, str]]
    headers: Callable[[Reply, bool], dict[str, str]]
    project: Callable[[Turn], Turn]
    client: ClientRequests
    detect: Detection
    events: StreamEvents
    normalize: Normalisation
    reply_fields: tuple[str, ...] = ()
    choices: Choices | None = None
    fields: FieldNames = field(default_factory=FieldNames)
    stored: StoredAnswers | None = None
    decode_error: Callable[[Fields], StreamError | None] = lambda _: None
    whole_error: Callable[[Turn], RequestError | None] = lambda turn: turn_error(turn)
    lookups: Mapping[Operation, Callable[[Lookup], Json]] = field(default_factory=dict)
    jobs: Mapping[Operation, Callable[[JobCall], JobReply]] = field(default_factory=dict)
    fallback_routes: tuple[FallbackRoute, ...] = ()
    objects: tuple[ObjectKind, ...] = ()
    guard: Callable[[Mapping[str, str], Target], None] | None = None
    error_at: (
        Callable[[Target, int, Json, Mapping[str, str]], tuple[Any, Mapping[str, str]]] | None
    ) = None
    call_prefix: str = "call_"
    zero_arguments: str | None = None
    carriers: tuple[Carrier, ...] = (SSE,)
    carrier: Callable[[Any], Carrier] = lambda _: SSE
    line_end: LineEnd = "lf"
    end_data: str | None = None
    finish_values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    role: str = "assistant"
    service_errors: Mapping[str, ServiceError] = field(default_factory=lambda: SERVICE_ERRORS)
    quota_headers: Callable[[Target, Sequence[Level]], dict[str, str]] = lambda _target, _levels: {}
    quota_error: Callable[[Target, Excess], RequestError] | None = None
    with_sequence_numbers: Callable[[list[Frame], int], list[Frame]] | None = None
    sdk: SdkTypes | None = None
    native: Mapping[str, Shape] = field(default_factory=dict)
    socket: Callable[[], SocketConversation] | None = None
    exchanges: (
        Callable[[Sequence[tuple[bool, bytes]]], tuple[list[SocketExchange], list[int]]] | None
    ) = None

    def background(self, body: Fields) -> Background | None:
        """The way in which a request with this body is answered, where the client polls it; None
        for one that is answered at once."""
        background = None if self.stored is None else self.stored.background
        return background if background is not None and background.is_asked(body) else None

    @property
    def name(self) -> str:
        """Its name in scenarios."""
        return self.address.name

    @property
    def usual(self) -> Carrier:
        """The carrier of most of its streams."""
        return self.carriers[0]


def turn_error(turn: Turn) -> RequestError | None:
    """The error in place of the body of a turn that ends in one."""
    failed = turn.error
    if failed is None:
        return None
    return RequestError(failed.message, status=500, type=failed.type, code=failed.code)


def no_body(title: str, needs: str, body: Fields) -> WireError:
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


def retry_header(seconds: float | None) -> dict[str, str]:
    """When to try again: `retry-after` in whole seconds (RFC 9110, section 10.2.3), rounded up."""
    return {} if seconds is None else {"retry-after": str(-(-round(seconds * 1000) // 1000))}


def retry_headers(seconds: float | None) -> dict[str, str]:
    """`retry_header`, and `retry-after-ms` exactly, which SDKs prefer."""
    if seconds is None:
        return {}
    return {**retry_header(seconds), "retry-after-ms": str(round(seconds * 1000))}


def looked_up_model(lookup: Lookup) -> tuple[str, bool]:
    """The model in a path, with its owner where the path has one, and whether it is served."""
    segments = lookup.target.segments
    owner = segments.get("owner")
    name = segments["model"] if owner is None else f"{owner}/{segments['model']}"
    return name, lookup.any_model or name in lookup.models


def counted_tokens(request: Request) -> int:
    """The tokens of a request: of its messages, calls, results and tools."""
    texts = [_tool_texts(request), *map(_texts, request.messages)]
    return sum(map(tokens, chain.from_iterable(texts)))


def prompt_parts(request: Request) -> list[PromptPart]:
    """The prompt of a request: its tools, then each message."""
    tools = _tool_texts(request)
    parts = [PromptPart(repr(tools), sum(map(tokens, tools)))]
    parts += [
        PromptPart(repr(message), sum(map(tokens, _texts(message)))) for message in request.messages
    ]
    return parts


def block_part(role: str, block: Json) -> PromptPart:
    """A block of the prompt in the form of an API, counted by its text."""
    text = block.get("text")
    return PromptPart(dumps([role, block]), tokens(text if isinstance(text, str) else dumps(block)))


def _tool_texts(request: Request) -> list[str]:
    pairs = [(tool.name, tool.description, dumps(tool.parameters)) for tool in request.tools]
    return list(chain.from_iterable(pairs))


def _texts(message: Message) -> list[str]:
    calls = chain.from_iterable((call.name, call.arguments) for call in message.calls)
    return [message.text, *calls]


_KEYS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
_SIGNER = re.compile(r"Credential=([^/,\s]+)")


def api_key(headers: Mapping[str, str], target: Target) -> str:
    """The API key of a request, whichever way it is sent; of one that is signed (AWS) the id of the
    key; "" for none.

    Args:
        headers: with names in lower case.
    """
    given = next(filter(None, map(headers.get, _KEYS)), None) or target.query.get("key", "")
    signer = _SIGNER.search(given)
    return given.rpartition(" ")[2] if signer is None else signer[1]


def service_error(
    protocol: WireProtocol, kind: str, retry_after: float | None = None
) -> RequestError:
    """An error of a service, by its kind.

    Args:
        retry_after: in seconds.
    """
    failure = protocol.service_errors[kind]
    own = failure.error
    return RequestError(
        own.message,
        status=failure.status,
        type=own.type,
        code=own.code,
        retry_after=retry_after,
    )


def limit_error(protocol: WireProtocol, target: Target, excess: Excess) -> RequestError:
    """The error for a request that exceeds a limit, in the words of the service."""
    if protocol.quota_error is not None:
        return protocol.quota_error(target, excess)
    return service_error(protocol, "rate_limit", excess.wait)
