"""The records of a protocol's package beside its encoder and decoder. Only data may live here.

`Client` says how its clients write requests, `Detection` how recorded exchanges are recognised,
`StreamEvents` and `Normalisation` what is special in its events, `StoredAnswers` how its service
keeps answers, `Environment` which variables its SDKs read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from mockllm.core.errors import RequestError
from mockllm.core.events import Frame, Start, StreamError
from mockllm.core.http import Target
from mockllm.core.record import record
from mockllm.core.request import CallEcho, Message, Parameters, Request
from mockllm.core.turn import ToolCall, Turn

Json = dict[str, Any]
"""A JSON object."""

Fields = Mapping[str, Any]
"""A JSON object that is only read."""


@record
class Feature:
    """Something that requests may say beside their neutral form.

    Args:
        put: the body with it, from a body without.
        find: what a body says of it; None where it says nothing. What `put` wrote, it finds.
        origin: who has to understand the value, where it means nothing to others; "": everyone.
    """

    put: Callable[[Json, Any], Json]
    find: Callable[[Fields], Any]
    origin: str = ""


@record
class ClientRequests:
    """The requests of one API's clients, and where they are sent.

    Most APIs are stateless: a continuation has the whole history. Responses names the earlier
    answer by its id.

    Args:
        write: the body of a request from its neutral form, the inverse of `parse`; `body`, `system`
            (which repeats the system messages), `traits` and what only paths say are not read. What
            the API has no field for is left out.
        parameters: the parameters in a body, as `write` takes them. Values of another kind than the
            API's count as absent.
        next_body: the body of the next request, from the previous body, the id of its answer, the
            messages since (the answer, then results or a text of the user), and the answer's calls.
        path: the path and query of a request for a streamed answer; `{model}` is replaced.
        service: the base URL of the service that defines the API.
        group: APIs with the same group share a service and the option for its URL.
        body_path: the path of a request for an answer that is not streamed, if it is not `path`.
        headers: the headers that the service requires, besides the content type.
        stream_field: the field of a body that is `true` for a streamed answer; "" if the path
            determines it, or if every answer is streamed.
        usage: the fields that request usage, if the service does not send it by default.
        tool_fields: the fields of a body that determine which tools may be called.
        arguments_are_values: whether the history has arguments as JSON values, so that malformed
            ones cannot be sent back.
        may_lack_call_ids: whether a request may have calls and results without ids.
        may_leave_calls: whether a conversation may end with calls that have no result yet.
        needs_results: whether a client that sends a request must have sent the results of all calls
            in its history; a session goes on without those that come later.
        hosted_results: the ids of the results in a body that belong to tools hosted by the
            service; their calls are not in the neutral history.
        opaque_mistake: why the service refuses the signatures and encrypted values in the latest
            turn of a history, as it was streamed; None if it does not, or if that is not certain.
            The turn calls tools, and their results follow.
        image_mistake: the same of the images that the model made in that turn, whatever follows.
        features: what requests may say besides, by names that APIs with the same have in common.
        further_headers: headers that a client may send besides, and that change the answer.
        marked_parts: the prompt in a body, of which clients mark what is to be cached; None: the
            service caches by itself.
    """

    write: Callable[[Request, Parameters], Json]
    parameters: Callable[[Fields], Parameters]
    next_body: Callable[[Json, str, Sequence[Message], Sequence[ToolCall]], Json]
    path: str
    service: str
    group: str
    body_path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream_field: str = ""
    usage: Fields = field(default_factory=dict)
    tool_fields: tuple[str, ...] = ("tools",)
    arguments_are_values: bool = False
    may_lack_call_ids: Callable[[Fields], bool] = lambda _: False
    may_leave_calls: bool = False
    needs_results: Callable[[Request], bool] = lambda _: True
    hosted_results: Callable[[Fields], frozenset[str]] = lambda _: frozenset()
    opaque_mistake: Callable[[Request, Turn], str | None] = lambda _request, _turn: None
    image_mistake: Callable[[Request, Turn], str | None] = lambda _request, _turn: None
    features: Mapping[str, Feature] = field(default_factory=dict)
    further_headers: Mapping[str, str] = field(default_factory=dict)
    marked_parts: Callable[[Fields], list[PromptPart]] | None = None

    def path_of(self, model: str, *, stream: bool = True) -> str:
        """The path and query of a request for an answer of a model."""
        path = self.path if stream or not self.body_path else self.body_path
        return path.format(model=model)

    def continuation(
        self, body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
    ) -> Json:
        """The body with the results of tool calls, from the previous body, the id of its answer,
        the calls of that answer, and the result of each call."""
        echoes = tuple(CallEcho(call.id, call.name, call.arguments) for call in calls)
        pairs = zip(echoes, results, strict=True)
        given = [Message("tool", text, call_id=call.id, name=call.name) for call, text in pairs]
        return self.next_body(body, answer, [Message("assistant", calls=echoes), *given], calls)

    def next_message(self, body: Json, answer: str, text: str, user: str) -> Json:
        """The body with the next user text after an answer without calls, from the previous body,
        the id of its answer, the text of that answer, and the user text."""
        messages = [Message("assistant", text), Message("user", user)]
        return self.next_body(body, answer, messages, ())


def with_messages(body: Fields, *messages: Json) -> Json:
    """The body of a request with more messages."""
    return {**body, "messages": [*body["messages"], *messages]}


def identity(value: Fields) -> Start:
    """The `id` and the `model` of a JSON object; "" for one that it does not have."""
    id, model = value.get("id"), value.get("model")
    return Start(id if isinstance(id, str) else "", model if isinstance(model, str) else "")


def identity_in(field: str) -> Callable[[Fields], Start]:
    """A function for `Detection.identity`, where a field of some events holds the whole answer, as
    a body has it."""

    def identify(value: Fields) -> Start:
        answer = value.get(field)
        return identity(answer if isinstance(answer, dict) else value)

    return identify


@record
class Detection:
    """The marks by which the bodies of a recorded exchange are recognised as some of this API.

    Args:
        request: whether a body has the fields of this API's requests and of no other API's.
        answer: whether a JSON value is an answer, or an event, of this API and of no other.
        likely_request: whether a body has fields that several APIs share, and this API is the
            most likely of them.
        identity: the id and the model in a request, an answer or an event; "" for one that it
            does not have.
        created: the fields of an answer or an event that may have the time of the answer, their
            keys joined by dots: seconds since 1970, or text.
    """

    request: Callable[[Fields], bool] = lambda _: False
    answer: Callable[[Fields], bool] = lambda _: False
    likely_request: Callable[[Fields], bool] = lambda _: False
    identity: Callable[[Fields], Start] = identity
    created: tuple[str, ...] = ()


@record
class SdkTypes:
    """The types of answers in the SDK of the service, which are pydantic models, as `module:name`.

    Args:
        package: the name of its distribution.
        stream: of an event of a stream.
        body: of an answer that is not streamed.
    """

    package: str
    stream: str
    body: str


@record
class ServiceError:
    """An error of a service that has nothing to do with the request.

    Args:
        status: of an HTTP answer with it.
        error: as a stream has it.
    """

    status: int
    error: StreamError


def service_errors(
    overloaded: StreamError, rate_limit: StreamError, server_error: StreamError, busy: int = 503
) -> Mapping[str, ServiceError]:
    """A table for `WireProtocol.service_errors`; `busy` is the status of an overloaded service."""
    return {
        "overloaded": ServiceError(busy, overloaded),
        "rate_limit": ServiceError(429, rate_limit),
        "server_error": ServiceError(500, server_error),
    }


FormMistake = tuple[str, bool]
"""What of a stream is against the form of its API, and whether clients lose content by it."""


WayPart = Literal[
    "text",
    "refusal",
    "reasoning",
    "signatures",
    "calls",
    "ids",
    "citations",
    "finish",
    "usage",
    "total tokens",
    "role",
    "answer id",
]
"""The part of an answer that clients read in several ways."""


@record
class Way:
    """One way in which documented clients read a part of a whole answer.

    Args:
        name: of the way, such as `the deltas`.
        value: what is read: a text; of calls the name and the arguments of each; of ids,
            signatures and citations one text each; of usage counts.
        of: what of the part, such as one block; only ways of the same agree.
    """

    part: WayPart
    name: str
    value: Any
    of: str = ""


NamedEvent = tuple[str, Fields]
"""The name of an event in its frame, "" for none, and its object."""


@record
class StreamEvents:
    """The parts that can be read from one event of one API, and changed in it, without the events
    before.

    Args:
        is_end: whether an event begins the end of an answer: it has the finish reason or an error.
            All content of the answer comes before it.
        map_text: applies a function to every string of an event that is text, reasoning or refusal
            of the model. The event is any JSON value, or a string that is not JSON.
        type_path: the field with the name of an event, where events have names.
        id_path, model_path: the fields with the id and the model of the answer, their keys joined
            by dots; "" if no event has them.
        finish_path: in the same form, the field of the last event that says how the answer ended,
            where the neutral finish does not follow from it.
        plan_path: in the same form, the text that a client may take for the model's thoughts about
            its calls, or for a part of its text.
        has_finals: whether an event may repeat a whole text that came in fragments before.
        mistakes: what of a whole stream is against the form that the API documents: how parts open
            and close, and which event belongs to which.
        ways: every way in which documented clients read a whole answer: all that have one part
            agree. A body is one event, in the envelope of its API.
    """

    is_end: Callable[[Fields], bool]
    map_text: Callable[[Any, Callable[[str], str]], Any]
    type_path: str = "type"
    id_path: str = ""
    model_path: str = ""
    finish_path: str = ""
    plan_path: str = ""
    has_finals: bool = False
    mistakes: Callable[[Sequence[Fields]], Iterable[FormMistake]] = lambda _: ()
    ways: Callable[[Sequence[NamedEvent]], Iterable[Way]] = lambda _: ()


@record
class FieldNames:
    """The meaning of the fields of one API, by their names, wherever in requests, events and bodies
    they stand. A name in none of them may hold anything.

    Args:
        fragments: pieces of text that a client joins over the events of a stream, and that mean
            nothing alone: text, reasoning, refusals, arguments of calls.
        arguments: those of a call, as JSON or as pieces of its text.
        labels: strings that no client joins and that mean nothing to a person: ids, types, names
            of models and tools, states.
        opaque: strings that only the service understands: signatures, encrypted reasoning, padding.
        item_ids: which part, item or message of an answer an event belongs to; strings or numbers.
    """

    fragments: frozenset[str] = frozenset()
    arguments: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    opaque: frozenset[str] = frozenset()
    item_ids: frozenset[str] = frozenset()


@record
class PromptPart:
    """A part of a prompt, in the order in which services cache it.

    Args:
        text: must be the same in a later request for the part to be found again.
        tokens: how many it counts as.
        marked: whether the client asks that the prompt up to here is cached.
    """

    text: str
    tokens: int
    marked: bool = False


@record
class ObjectPlace:
    """Where the objects of one kind are in the answers of an API.

    Paths are written with dots, which lead into an object or into each item of a list; "" is the
    whole event.

    Args:
        events: the paths in an event of a stream.
        body: the paths in a body, in the envelope of the API.
        is_call: whether only objects with the name of a call count.
        types: the values of `type` that an object must have one of, None for an object without
            `type`; (): any.
    """

    events: tuple[str, ...]
    body: tuple[str, ...]
    is_call: bool = False
    types: tuple[str | None, ...] = ()


@record
class ReasoningFields:
    """The fields of a message in which one service or another sends its reasoning.

    Args:
        find: the only such field of a message or delta; "" if there is none, or several.
        move: puts the reasoning of an encoded message or delta into another field.
    """

    find: Callable[[Fields], str]
    move: Callable[[Json, str], None]


@record
class Normalisation:
    """The differences to ignore when two streams of one API are compared.

    Paths are written with dots, which lead into an object or into each item of a list.

    Args:
        made_up: the fields that the service generates anew: ids, times, padding.
        answer_fields: by the path of an object, its fields that belong to the answer; the others
            repeat the configuration, and services add such fields often.
        keepalive: the `type` of events that depend on the time only.
        envelope: the field of an event that holds the object which a body is; "" if events and
            bodies have the same fields.
        usage: the name of the objects that count tokens; a zero in them equals an absent count.
        places: where services add fields of their own (`mockllm.wire.protocols.extra`).
        reasoning: where services send the reasoning; None: all of them where the encoder does.
    """

    made_up: frozenset[str] = frozenset()
    answer_fields: Mapping[str, frozenset[str]] = field(default_factory=dict)
    keepalive: frozenset[str] = frozenset()
    envelope: str = ""
    usage: str = "usage"
    places: Mapping[str, ObjectPlace] = field(default_factory=dict)
    reasoning: ReasoningFields | None = None


NumberedFrame = tuple[int, int, Frame]
"""When a frame is due, the number of its choice, and the frame."""


@record
class Choices:
    """The way in which an answer has several choices. Each is encoded as if it were the only one,
    and then joined to the others.

    Args:
        count: how many an answer has, by the `options` of its request.
        single: the options of an answer whose only choice is one of them, by its number.
        join_frames: one stream of the frames of all choices, in the order in which they are sent.
            The turn is that of the first choice, with the usage of all of them.
        join_bodies: one body of the bodies of all choices.
    """

    count: Callable[[Any], int]
    single: Callable[[Any, int], Any]
    join_frames: Callable[[Sequence[NumberedFrame], Turn, Any], list[tuple[int, Frame]]]
    join_bodies: Callable[[Sequence[Json]], Json]


JobState = Literal["created", "pending", "done", "cancelled"]
"""How far the work is that a request began."""


@record
class Background:
    """The way in which a service makes answers in the background, while the client polls.

    Args:
        is_asked: whether the request with this body asks for it.
        until_done: the answer in a state other than `done`, from the answer when it is done.
        events_before: how many events of the stream a client has that asks for the others, from
            the target of its look-up; None where it asks for no stream.
        not_cancelled: the error for an answer that is not made in the background.
    """

    is_asked: Callable[[Fields], bool]
    until_done: Callable[[Fields, JobState], Json]
    events_before: Callable[[Target], int | None]
    not_cancelled: Callable[[str], RequestError]


@record
class StoredAnswers:
    """The way in which a service keeps answers, so that later requests can name them by their ids.

    Args:
        prefix: the beginning of such an id; the rest is the token of the answer.
        segment: the named segment of a path that has such an id.
        field: the field of a request that names the answer it continues.
        is_stored: whether the answer to a request with this body is kept.
        not_found: the error for an id in a path that names no answer.
        previous_not_found: the error for an id in `field` that names no answer.
        missing_result: the error for a call, by its id, that a continuation brings no result for.
        unknown_result: the error for a result whose id belongs to no call of the answer.
        background: how it makes answers in the background; None if it does not.
    """

    prefix: str
    segment: str
    field: str
    is_stored: Callable[[Fields], bool]
    not_found: Callable[[str], RequestError]
    previous_not_found: Callable[[str], RequestError]
    missing_result: Callable[[str], RequestError]
    unknown_result: Callable[[str], RequestError]
    background: Background | None = None


@record
class FallbackBody:
    """A body that is no JSON: a file, a text, or a stream.

    Args:
        parts: of a stream, an event each; none is empty.
    """

    content_type: str
    parts: tuple[bytes, ...]
    streamed: bool = False
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


@record
class FallbackRoute:
    """A route besides those for answers of a model, whose answer follows from the request:
    embeddings, moderations, images, speech. `--fallback auto` answers it.

    Args:
        path: the end of the path; named groups are segments.
        answer: the body of the answer, from the body of the request and its target. It raises
            `RequestError` for a body that the service refuses.
        takes_form: whether the body may be a form; a file in it is a mapping with `filename`,
            `content_type`, `size` and `sha256`, any other field is text.
        text_field: the field that a body becomes which is neither a form nor JSON, by its content
            type; "": it has to be JSON.
    """

    path: re.Pattern[str]
    answer: Callable[[Fields, Target], Json | FallbackBody]
    takes_form: bool = False
    text_field: str = ""
    method: str = "POST"


@record
class Environment:
    """The environment variables that the SDKs of one API read.

    Args:
        base_urls: the variables of the base URL, each with the suffix of the API's base URL that
            its SDK appends itself.
        keys: the variables of the API key.
        other_keys: the variables of other credentials; an SDK would send a key besides them.
        fixed: variables without which an SDK does not start, with values that will do.
        other_base_urls: variables in which other libraries look for a base URL.
        on_request: the variables of another service of this API, by its name. They are not set
            beside the others, since an SDK that finds both cannot choose.
    """

    base_urls: tuple[tuple[str, str], ...] = ()
    keys: tuple[str, ...] = ()
    other_keys: tuple[str, ...] = ()
    fixed: tuple[tuple[str, str], ...] = ()
    other_base_urls: tuple[str, ...] = ()
    on_request: Mapping[str, Environment] = field(default_factory=dict)
