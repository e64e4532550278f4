"""A captured answer to a turn of a scenario: the neutral reply, and the tape beside it; and turns
put together to scenarios, in a form that can be loaded. Pure.

The reply is what the decoder understood; people read and edit it, and other protocols play it. The
tape has the exact bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mockllm.core.errors import MockLLMError, Problem, RequestError, ScenarioError, WireError
from mockllm.core.events import Cite, Token
from mockllm.core.jsontext import is_object
from mockllm.core.request import Request
from mockllm.core.timeline import expand
from mockllm.core.tokens_and_fragments import tokens
from mockllm.core.turn import (
    Media,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    TokenUsage,
    ToolCall,
    Turn,
    usual_finish,
)
from mockllm.play.matching.conversation import ModelTurn
from mockllm.play.replay.loading import loads
from mockllm.play.tapes.captured import Captured, Tape
from mockllm.play.tapes.recorded_turn import RecordedTurn, recorded_error, recorded_turn
from mockllm.record.recording.drafting.draft import DraftedTurn
from mockllm.scenario import model as m
from mockllm.scenario.dump import dump, readable
from mockllm.scenario.part_model import (
    AnyPart,
    AudioPart,
    Citation,
    ErrorPart,
    ErrorSpec,
    FramePart,
    ImagePart,
    MediaSource,
    Member,
    NativePart,
    PausePart,
    ReasoningPart,
    RefusalPart,
    ServerToolPart,
    TextPart,
    TokenSpec,
    ToolPart,
    kind_of,
    tool_parts,
)
from mockllm.scenario.reading.tables import is_tool_name
from mockllm.wire.protocols.base import Reply, WireProtocol
from mockllm.wire.protocols.extra import added_fields, added_to_error, in_envelope
from mockllm.wire.protocols.route_matching import Detected
from mockllm.wire.protocols.values import json_object

Json = dict[str, Any]


def draft_turn(exchange: Captured, detected: Detected, request: Request) -> DraftedTurn:
    """The turn and the tape of an answer.

    Raises:
        WireError: it is no answer (a redirection), or is compressed in an unknown way.
    """
    protocol = detected.protocol
    assert protocol is not None
    if not (200 <= exchange.status < 300 or 400 <= exchange.status < 600):
        raise WireError(f"HTTP {exchange.status} is no answer of a model")
    plain = exchange.plain()
    tape = Tape(protocol.name, request.stream, plain)
    if plain.status >= 400:
        return DraftedTurn(_error(plain, protocol), tape)
    answer = recorded_turn(plain, protocol, streamed=request.stream)
    extra = _extra(answer, protocol, request)
    spec = replace(unresolve(answer.turn), extra=((protocol.name, extra),) if extra else ())
    return DraftedTurn(spec, tape, answer)


def _error(plain: Captured, protocol: WireProtocol) -> m.TurnSpec:
    http = recorded_error(plain, protocol)
    assert http.error is not None
    own = http.error
    error = RequestError(own.message or "", status=plain.status, type=own.type, code=own.code)
    value = json_object(plain.body)
    extra = {}
    if value is not None:
        extra = added_to_error(protocol, protocol.error_body(error), value, error.message)
    return m.TurnSpec(http=http, extra=((protocol.name, extra),) if extra else ())


def _extra(answer: RecordedTurn, protocol: WireProtocol, request: Request) -> dict[str, Json]:
    """The fields that the service adds to its API, which its encoder does not write; {} where the
    turn cannot be encoded again."""
    if not answer.events:
        return {}
    usage = answer.turn.usage or TokenUsage(0, 0)
    model, options = answer.model or request.model, protocol.options(request)
    reply = Reply("recorded", "0" * 40, model, options, usage)  # ids are none of these fields
    try:
        encoded = _encode_events(answer, protocol, reply, streamed=request.stream)
    except (MockLLMError, ValueError):
        return {}  # what cannot be encoded, such as a call without a name, is only on the tape
    return added_fields(protocol, answer.turn, encoded, answer.events, streamed=request.stream)


def _encode_events(
    answer: RecordedTurn, protocol: WireProtocol, reply: Reply, *, streamed: bool
) -> list[Json]:
    """The events of a turn, with one for each part; a body is one, in its envelope."""
    turn = answer.turn.whole()
    if not streamed:
        return [in_envelope(protocol, protocol.encode_body(turn, reply))]
    encoder = protocol.encoder(turn, reply)
    frames = [frame for timed in expand(turn) for frame in encoder.encode(timed.event)]
    data = (frame.data for frame in frames if frame.data is not None and frame.data[:1] == "{")
    return [json.loads(text) for text in data]


_MAX_SPLIT = 1_000_000


def unresolve(turn: Turn) -> m.TurnSpec:
    """The turn as the scenario language writes it; it can be dumped and loaded.

    A call is marked `malformed` where its arguments are no JSON object, where no service would
    accept its name, or where another call has its id. A call without an id gets a derived one.
    """
    used: set[str] = set()
    reply: list[AnyPart] = [_member(part, used) for part in turn.parts]
    if turn.error is not None:
        error = turn.error
        reply.append(ErrorPart(ErrorSpec(error.message, error.type, error.code)))
    return m.TurnSpec(
        reply=tuple(reply) or (PausePart(0),),
        finish=_finish(turn),
        finish_raw=turn.finish_raw,
        stop_sequence=turn.stop_sequence,
        usage=_usage(turn),
    )


def _member(part: Part, used: set[str]) -> Member:
    match part:
        case Text():
            cites = tuple(map(_citation, part.citations))
            return TextPart(
                part.text,
                _split(part.fragments),
                citations=cites,
                logprobs=tuple(map(_token, part.tokens)) or part.logprobs,
                signature=part.signature,
            )
        case Reasoning():
            split = _split(part.fragments)
            return ReasoningPart(part.text, split, signature=part.signature, summary=part.summary)
        case Refusal():
            return RefusalPart(part.text, _split(part.fragments))
        case ToolCall():
            call = _call(part, repeated=part.id in used)
            used.add(part.id)
            return call
        case ServerTool():
            return _server_tool(part)
        case Media():
            return _media(part)
        case Opaque():
            return _opaque(part)


def _token(token: Token) -> TokenSpec:
    return TokenSpec(token.text, token.logprob, tuple(map(_token, token.top)))


def _citation(cite: Cite) -> Citation:
    citation = Citation(cite.url, cite.title, cite.cited_text)
    passage = cite.passage
    if passage is None:
        return citation
    source = "search_result" if passage.of_search else "document"
    place: Json = {source: passage.source, passage.unit: (passage.start, passage.end)}
    return replace(citation, **place)


def _split(fragments: tuple[str, ...]) -> int | None:
    """The characters of a fragment, so that there are about as many; people edit no lists."""
    size = sum(map(len, fragments))
    return min(-(-size // len(fragments)), _MAX_SPLIT) if len(fragments) > 1 and size else None


def _call(call: ToolCall, *, repeated: bool) -> ToolPart:
    arguments = "".join(call.fragments)
    return ToolPart(
        call.name,
        _id(call.id),
        arguments or None,
        malformed=repeated
        or not is_tool_name(call.name)
        or not (call.custom or is_object(arguments or "{}")),
        split=_split(call.fragments),
        signature=call.signature,
        custom=call.custom,
    )


def _server_tool(call: ServerTool) -> ServerToolPart:
    return ServerToolPart(
        call.kind,
        _id(call.id),
        call.name or None,
        call.input or None,
        call.output,
        _split(call.fragments),
    )


def _media(media: Media) -> ImagePart | AudioPart:
    data = b"".join(media.data)
    source = MediaSource(data, media.media_type)
    if media.media_type.startswith("image/"):
        return ImagePart(source, signature=media.signature)
    size = -(-len(data) // len(media.data)) if len(media.data) > 1 else None
    split = _split(media.fragments) if media.fragments else None
    return AudioPart(source, media.transcript, size, split, signature=media.signature)


def _id(id: str) -> str | None:
    return id if id and len(id.splitlines()) == 1 else None


def _opaque(part: Opaque) -> FramePart | NativePart:
    api, frame = part.api, part.frame
    data: object = frame.data
    if frame.data is not None and frame.data[:1] in ("{", "["):
        data = readable(frame.data)
    if part.native and isinstance(data, dict):
        return NativePart(api, data)
    return FramePart(api, data, frame.event, frame.id, frame.retry, frame.comment, frame.raw)


def _finish(turn: Turn) -> m.Ending | None:
    if turn.error is not None:
        return None
    if turn.finish is None:
        return "none"
    return None if turn.finish == usual_finish(turn.parts) else turn.finish


def _usage(turn: Turn) -> m.UsageSpec | None:
    """The tokens, without those that the fixed rule gives anyway."""
    usage = turn.usage
    if usage is None:
        return m.UsageSpec(sent=False)
    counted = sum(tokens(part.text) for part in turn.parts if isinstance(part, Reasoning))
    reasoning = None if usage.reasoning == counted else usage.reasoning
    caches = usage.cached or None, usage.cache_written or None
    return m.UsageSpec(usage.input, usage.output, reasoning, *caches)


# Turns in scenarios

_MOST_WHOLE = 8 * 1024 * 1024
_MOST_PART = 4 * 1024 * 1024
"""The longest turn, and the longest part of one, that is written, in characters, roughly."""

_MOST_PLAIN = 64 * 1024
"""Turns up to this size, in characters, are not tried."""

_MOST_SHORTENED = 64 * 1024
"""How much is kept of a text that cannot be written, in characters."""

_UNWRITTEN = ErrorPart(ErrorSpec("The neutral form of this answer cannot be written."))


def answering(spec: m.TurnSpec, user: m.TextCondition | None) -> m.TurnSpec:
    """A turn that only answers a text of the user; any request where that is None."""
    return spec if user is None else replace(spec, request=m.Expect(user=user))


def tried_before(failed: m.TurnSpec, spec: m.TurnSpec) -> m.TurnSpec:
    """A turn after another try of it, which ended in an HTTP error or was broken off."""
    recorded = failed.recorded
    if recorded is not None:
        recorded = m.Recorded(recorded.file, recorded.path, partial=recorded.partial)
    extra = failed.extra if failed.http is not None else ()
    tried = m.TurnSpec(http=failed.http, recorded=recorded, extra=extra)
    if failed.http is None and recorded is None:
        return replace(spec, attempts=failed.attempts, request=failed.request)
    return replace(spec, attempts=(*failed.attempts, tried), request=failed.request)


def turn_from_history(turn: ModelTurn) -> m.TurnSpec:
    """A turn that was not recorded, as the client sends it back; it can be loaded."""
    reply: list[AnyPart] = [TextPart(turn.text)] if turn.text else []
    for call in turn.calls:
        arguments = call.arguments or None
        malformed = not is_tool_name(call.name) or not is_object(call.arguments or "{}")
        reply.append(ToolPart(call.name, call.id or None, arguments, malformed))
    return _loadable(m.TurnSpec(reply=tuple(reply) or (PausePart(0),)))[0]


def with_turn(
    scenario: m.Scenario, spec: m.TurnSpec, file: str = ""
) -> tuple[m.Scenario, tuple[str, ...]]:
    """A scenario with a turn more, in a form that can be loaded and read, and what is left out of
    the turn for that.

    Raises:
        ScenarioError: it cannot be loaded whatever the turn says.
    """
    if file:
        spec = replace(spec, recorded=replace(spec.recorded or m.Recorded(file), file=file))
    used = {call.id for turn in scenario.turns for call in tool_parts(turn.reply)} - {None}
    spec = replace(spec, reply=_without_ids(spec.reply, used))
    written, left_out = (spec, ()) if _is_plain(spec) else _loadable(spec)
    return replace(scenario, turns=(*scenario.turns, written)), left_out


def _loadable(spec: m.TurnSpec) -> tuple[m.TurnSpec, tuple[str, ...]]:
    """The turn as it is loaded again, and what is left out of it where it could not be loaded
    whole: first the fields of its service, then parts."""
    whole = _load_turn(spec)
    if isinstance(whole, m.TurnSpec):
        return whole, ()
    notes = [f"the fields of its service ({whole})"] if spec.extra else []
    plain = replace(spec, extra=())
    loaded = _load_turn(plain) if spec.extra else whole
    if isinstance(loaded, m.TurnSpec):
        return loaded, tuple(notes)
    if spec.recorded is not None:
        plain = replace(plain, recorded=replace(spec.recorded, partial=True))
    parts: list[AnyPart] = []
    for number, part in enumerate(plain.reply, 1):
        alone = _load_turn(m.TurnSpec(reply=(part,), finish=_any_finish(part)), _MOST_PART)
        if isinstance(alone, m.TurnSpec):
            parts.append(part)
        else:
            parts += _in_place_of(part)
            notes.append(f"part {number}, {kind_of(part)} ({alone})")
    loaded = _load_turn(replace(plain, reply=tuple(parts) or (_UNWRITTEN,)))
    if isinstance(loaded, m.TurnSpec):
        return loaded, tuple(notes)
    bare = m.TurnSpec(
        reply=(_UNWRITTEN,),
        request=plain.request,
        attempts=plain.attempts,
        recorded=plain.recorded,
    )
    last = _load_turn(bare)
    if isinstance(last, m.TurnSpec):
        return last, (*notes, f"the whole reply ({loaded})")
    raise ScenarioError([Problem("", 1, 1, "", last)])


def _is_plain(spec: m.TurnSpec) -> bool:
    """Whether a turn needs no try: what `unresolve` gives can be loaded and is the same then, but
    for sizes and half characters, which are in conditions and fields of services too. (A property
    of all turns; tests/record/recording/drafting.)"""
    if spec.http is not None or spec.attempts:
        return False
    user = spec.request.user if spec.request is not None else None
    if user is not None and (user.op != "equals" or not user.value):
        return False
    text = repr(spec)
    return len(text) <= _MOST_PLAIN and "\\ud" not in text


def _any_finish(part: AnyPart) -> m.Ending | None:
    return None if isinstance(part, ErrorPart) else "stop"


def _in_place_of(part: AnyPart) -> list[AnyPart]:
    match part:
        case TextPart() | ReasoningPart() | RefusalPart():
            return [replace(part, text=part.text[:_MOST_SHORTENED])]
        case ToolPart():
            return [replace(part, arguments=None, signature=None, malformed=True)]
    return []


def _load_turn(spec: m.TurnSpec, most: int = _MOST_WHOLE) -> m.TurnSpec | str:
    size = len(repr(spec))
    if size > most:
        return f"it takes {size:,} characters, and {most:,} are written"
    try:
        return loads(dump(m.Scenario("turn", (spec,))))[0].turns[0]
    except ScenarioError as error:
        return error.problems[0].message
    except ValueError as error:
        return str(error)


def _without_ids(reply: Sequence[AnyPart], used: set[str | None]) -> tuple[AnyPart, ...]:
    """The parts without the call ids that another call of the conversation has: some services
    count their calls anew in each answer."""
    parts: list[AnyPart] = []
    for part in reply:
        if isinstance(part, ToolPart):
            parts.append(replace(part, id=None) if part.id in used else part)
            used.add(part.id)
        else:
            parts.append(part)
    return tuple(parts)
