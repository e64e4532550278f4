"""The stream and the body of an answer, as Google sends them.

https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent

Every chunk is a complete response object with the new parts. A call is sent in one chunk when its
arguments are complete; with `streamFunctionCallArguments` it is sent in fragments. The JSON has
Google's formatting (`wire`), and lines end in CRLF (`PROTOCOL.line_end`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.seeded import derive
from mockllm.core.timeline import expand
from mockllm.core.turn import Reasoning, Refusal, ServerTool, Text, ToolCall, Turn, beats
from mockllm.wire.protocols.base import Reply, logprob, tokens_in
from mockllm.wire.protocols.custom_calls import with_functions
from mockllm.wire.protocols.gemini import fields
from mockllm.wire.protocols.gemini.errors import NO_MESSAGE, status_of
from mockllm.wire.protocols.gemini.grounding import grounding
from mockllm.wire.protocols.gemini.logprobs import joined_logprobs, summed_up, write_logprobs
from mockllm.wire.protocols.gemini.media import with_whole_sounds
from mockllm.wire.protocols.gemini.native import write_field
from mockllm.wire.protocols.gemini.partial import cut
from mockllm.wire.protocols.gemini.runs import Kind, Signatures
from mockllm.wire.protocols.gemini.server_tools import call_part, result_part
from mockllm.wire.protocols.gemini_common import (
    NO_JSON,
    arguments_of,
    json_value,
    wire,
    write_media,
)
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, mapping


def response_id(reply: Reply) -> str:
    """The `responseId` of an answer."""
    return derive(reply.seed, "response", length=22)


class Encoder:
    """Turns the events of one turn into the chunks of a Gemini stream."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        turn = self._turn = with_functions(turn)
        self._reply = reply
        self._options: fields.Options = reply.options
        self._id = response_id(reply)
        self._arguments = {
            index: arguments_of(part)
            for index, part in enumerate(turn.parts)
            if isinstance(part, ToolCall)
        }
        self._partial: dict[int, Iterator[list[Json]]] = {}
        for part in _alone(turn) if self._options.partial else ():
            if groups := cut(self._arguments[part] or {}, beats(turn.parts[part]) - 1):
                self._partial[part] = iter(groups)
        self._sent = 0
        self._size = sum(map(self._weight, range(len(turn.parts))))
        self._cites: list[ev.Cite] = []
        self._native: Json = {}
        texts = [part for part in turn.parts if isinstance(part, Text)]
        self._with_top = any(token.top for text in texts for token in text.tokens)
        self._signatures = Signatures()
        self._begun = False
        self._ended = False

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event, in order."""
        match event:
            case ev.TextDelta():
                return self._text(event)
            case ev.RefusalDelta(text=text) if text:
                return self._delta("text", text)
            case ev.ReasoningDelta(text=text) if text:
                return self._delta("thought", text)
            case ev.MediaDelta() if event.data:
                return self._media(event)
            case ev.ToolStart(part=part) if part in self._partial:
                return [*self._late(), self._call(part, {"willContinue": True})]
            case ev.ToolArgs(part=part) if part in self._partial:
                partial_args = next(self._partial[part], None)  # fewer groups than fragments
                fragment = {"functionCall": {"partialArgs": partial_args, "willContinue": True}}
                return [*self._late(), self._part(fragment)] if partial_args else []
            case ev.PartEnd(part=part):
                return self._end_part(part)
            case ev.Signature(part=part, value=value):
                if isinstance(self._turn.parts[part], Reasoning):
                    self._signatures.of_reasoning(value)
            case ev.Cite():
                self._cites.append(event)
            case ev.Raw(api="gemini", frame=frame, native=True):
                self._native |= write_field(frame)
            case ev.Raw(api="gemini", frame=frame):
                if not fields.has_part(frame):
                    # The decoder may drop such a frame, so nothing may depend on its time.
                    return self._raw(frame)
                late = self._late()
                self._signatures.note(None)
                return [*late, *self._raw(frame)]
            case ev.Finish() if self._ended:
                return [Frame(raw=fields.ARRAY_END)] if self._options.array else []
            case ev.Finish():
                return self._finish(event)
            case ev.StreamError():
                code, status = status_of(event)
                message = event.message or NO_MESSAGE
                error = {"code": code, "message": message, "status": status}
                return [self._frame({"error": error}, last=True)]
        return []

    # Texts

    def _text(self, event: ev.TextDelta) -> list[Frame]:
        part = self._turn.parts[event.part]
        signature = self._signatures.of_fragment(event.part, part, event.text)
        if not event.text:
            return []
        tokens = tokens_in(event) if event.logprobs else ()
        logprobs = write_logprobs(tokens, with_top=self._with_top)
        return self._delta("text", event.text, signature, logprobs)

    def _delta(
        self, kind: Kind, text: str, signature: str = "", more: Json | None = None
    ) -> list[Frame]:
        late = self._late()
        self._signatures.note(kind, signature)
        thought = {"thought": True} if kind == "thought" else {}
        weight = len(text) if kind == "text" else 0
        part = {"text": text, **thought, **_signature_field(signature)}
        return [*late, self._part(part, weight, more)]

    def _late(self) -> list[Frame]:
        signature = self._signatures.flush()
        return [self._part({"text": "", **_signature_field(signature)})] if signature else []

    # Images and sounds

    def _media(self, event: ev.MediaDelta) -> list[Frame]:
        late = self._late()
        signature = self._signatures.of_media(event.part, self._turn.parts[event.part])
        self._signatures.note(None)
        part = write_media(event.media_type, event.data)
        return [*late, self._part({**part, **_signature_field(signature)})]

    # Frames

    def _frame(self, value: Json, *, last: bool = False) -> Frame:
        return self._chunk_frame(wire(value), last=last)

    def _chunk_frame(self, text: str, *, last: bool = False) -> Frame:
        """One chunk: an event, or an element of the JSON array with its separator. Without
        `alt=sse` the service sends one array."""
        if not self._options.array:
            return Frame(text)
        before = fields.ARRAY_SEPARATOR if self._begun else "["
        self._begun = True
        return Frame(raw=before + text + fields.ARRAY_END * last)

    def _chunk(self, candidate: Json, more: Json | None = None, *, last: bool = False) -> Frame:
        candidates = [
            {**candidate, **self._index(index), **(more or {})}
            for index in range(self._options.candidates)
        ]
        return self._frame({"candidates": candidates, **self._tail(last)}, last=last)

    def _index(self, index: int) -> Json:
        # Protocol buffers omit zeros; only the Gemini API writes this one.
        return {"index": index} if index or not self._options.vertex else {}

    def _tail(self, last: bool) -> Json:
        usage = self._usage(last)
        return {
            **({"usageMetadata": usage} if usage else {}),
            "modelVersion": self._reply.model,
            **({"createTime": _time(self._reply.created)} if self._options.vertex else {}),
            "responseId": self._id,
        }

    def _usage(self, last: bool) -> Json:
        usage = self._turn.usage
        if usage is None:
            return {}
        visible = max(0, usage.output - usage.reasoning)
        if not last:  # every chunk has the usage so far
            visible = visible * self._sent // max(1, self._size)
        return fields.write_usage(usage, visible, self._reply)

    def _weight(self, part: int) -> int:
        """The share of a part in the visible output, in characters; thoughts have none."""
        match self._turn.parts[part]:
            case Text() | Refusal() as visible:
                return len(visible.text)
            case ToolCall() as call if self._arguments[part] is not None:
                return len(call.name) + len(call.arguments)
        return 0

    def _part(self, part: Json, weight: int = 0, more: Json | None = None) -> Frame:
        self._sent += weight
        return self._chunk({"content": {"parts": [part], "role": "model"}}, more)

    # Calls

    def _call(self, part: int, given: Json) -> Frame:
        """The part that opens a call; the first one after reasoning has its signature, as Gemini
        sends `thoughtSignature` on the first call of a step."""
        call = self._turn.parts[part]
        assert isinstance(call, ToolCall)
        signature = self._signatures.of_call(call)
        self._signatures.note(None)
        value = {"functionCall": {"name": call.name, **given}}
        if self._options.ids and call.id:
            value["functionCall"]["id"] = call.id
        return self._part({**value, **_signature_field(signature)}, self._weight(part))

    def _end_part(self, part: int) -> list[Frame]:
        match self._turn.parts[part]:
            case ToolCall():
                return self._end_call(part)
            case ServerTool() as tool:
                parts = [sent for sent in (call_part(tool), result_part(tool)) if sent is not None]
                late = self._late() if parts else []
                if parts:
                    self._signatures.note(None)
                return [*late, *map(self._part, parts)]
        return []

    def _end_call(self, part: int) -> list[Frame]:
        if part in self._partial:
            return [*self._late(), self._part({"functionCall": {}})]
        arguments = self._arguments[part]
        if arguments is None:
            return []  # the service sends no call that its parser rejects
        return [*self._late(), self._call(part, {"args": arguments})]

    # The rest

    def _raw(self, frame: Frame) -> list[Frame]:
        self._ended = self._ended or fields.ends(frame)
        if not self._options.array:
            return [frame]
        if frame.data is None or json_value(frame.data) is NO_JSON:
            return []
        return [self._chunk_frame(frame.data)]

    def _finish(self, event: ev.Finish) -> list[Frame]:
        malformed = any(arguments is None for arguments in self._arguments.values())
        reason = fields.write_finish(event.reason, event.raw, malformed=malformed)
        blocked = fields.blocked_reason(reason)
        if blocked is not None:
            feedback = {"promptFeedback": {"blockReason": blocked}, **self._tail(True)}
            return [self._frame(feedback, last=True)]
        *before, signature = ["", *self._signatures.last()]
        frames = [
            self._part({"text": "", **_signature_field(earlier)}) for earlier in before if earlier
        ]
        candidate = {**self._last_content(reason, signature), "finishReason": reason}
        more: Json = {"safetyRatings": fields.SAFETY_RATINGS} if reason == "SAFETY" else {}
        text = "".join(p.text for p in self._turn.parts if isinstance(p, (Text, Refusal)))
        more |= self._native
        if self._cites and text:
            said = more.get("groundingMetadata", {})
            more["groundingMetadata"] = {**grounding(self._cites, text), **said}
        return [*frames, self._chunk(candidate, more, last=True)]

    def _last_content(self, reason: str, signature: str) -> Json:
        """The content of the last chunk: usually an empty text. The service sends none for a
        blocked answer, and no parts if the limit was reached while thinking."""
        if signature:
            part = {"text": "", **_signature_field(signature)}
            return {"content": {"parts": [part], "role": "model"}}
        finish = fields.read_finish(reason, calls=False)
        if finish is not None and finish.reason == "content_filter":
            return {}
        if reason == "MAX_TOKENS" and not self._sent:
            return {"content": {"role": "model"}}
        return {"content": {"parts": [{"text": ""}], "role": "model"}}


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _signature_field(signature: str) -> Json:
    return {"thoughtSignature": signature} if signature else {}


def _alone(turn: Turn) -> set[int]:
    remaining = {i: beats(p) for i, p in enumerate(turn.parts) if isinstance(p, ToolCall)}
    alone, running = set(remaining), set[int]()
    for index in turn.order:
        if index not in remaining:
            continue
        running.add(index)
        if len(running) > 1:
            alone -= running
        remaining[index] -= 1
        if not remaining[index]:
            running.discard(index)
    return alone


# The body


def encode_body(turn: Turn, reply: Reply) -> Json:
    """The body of an answer that is not streamed: all chunks of the stream joined. The body of a
    turn with an error is the error."""
    options = replace(reply.options, array=False, partial=False)
    encoder = Encoder(turn, replace(reply, options=options))
    values = [
        json_value(frame.data or "")
        for item in expand(turn)
        for frame in encoder.encode(item.event)
    ]
    body = _merge_chunks([value for value in values if isinstance(value, dict)])
    if "candidates" in body:
        first = body["candidates"][0]
        first |= _only_in_bodies(first, turn, options)
        more = [{**first, "index": index} for index in range(1, options.candidates)]
        body["candidates"] = [first, *more]
    return body


def _only_in_bodies(candidate: Fields, turn: Turn, options: fields.Options) -> Json:
    sums = summed_up(candidate, vertex=options.vertex)
    if options.vertex:
        return sums or {"avgLogprobs": logprob(turn.text + "".join(map(str, turn.tool_calls)))}
    calls = any(arguments_of(call) is not None for call in with_functions(turn).tool_calls)
    if calls and turn.finish == "tool_calls":
        return {"finishMessage": fields.CALLS_MESSAGE, **sums}
    return sums


def _merge_chunks(chunks: Iterable[Json]) -> Json:
    candidate: Json = {}
    parts: list[Json] = []
    joined: list[Json] = []
    body: Json = {}
    for chunk in chunks:
        if "error" in chunk:
            return {"error": chunk["error"]}
        candidates = chunk.pop("candidates", None)
        if isinstance(candidates, list) and candidates:
            first = dict(mapping(candidates[0]))
            content = mapping(first.pop("content", None))
            _append(parts, content.get("parts"))
            candidate |= {"content": {"parts": parts, "role": "model"}} if content else {}
            candidate |= first
            joined.append(first)
        body |= chunk
    if not candidate:
        return body
    candidate |= joined_logprobs(joined)
    parts = with_whole_sounds(parts)
    filled = [part for part in parts if part != {"text": ""}]
    if "content" in candidate:
        # An empty answer has one empty text, unless the limit ended it.
        keep_empty = parts and candidate.get("finishReason") != "MAX_TOKENS"
        own = {"parts": filled or parts} if filled or keep_empty else {}
        candidate["content"] = {**own, "role": "model"}
    return {"candidates": [candidate], **body}


def _append(parts: list[Json], more: object) -> None:
    for part in array(more):
        last = parts[-1] if parts else {}
        if _plain(part) and _plain(last) and part.get("thought") == last.get("thought"):
            parts[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            parts.append(part)


def _plain(part: object) -> bool:
    value = mapping(part)
    return isinstance(value.get("text"), str) and value.keys() <= {"text", "thought"}
