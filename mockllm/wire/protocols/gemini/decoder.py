"""Reads streams of Gemini, from Google's services and from proxies in front of them.

https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse

No field of a chunk is required, as in the API's own types. Which texts and thoughts are one part
is the matter of `runs`; a call may be complete in one chunk, or come in fragments (Vertex AI).
Fields that say something of the answer are native parts at its end (`native`). Other fields without
a neutral form are kept as `Raw`: the whole chunk if it has no others, else a chunk with only those
fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Media, Opaque, Part, ServerTool, Text, Turn
from mockllm.wire.protocols.base import no_body
from mockllm.wire.protocols.gemini import API, fields
from mockllm.wire.protocols.gemini.errors import error_of
from mockllm.wire.protocols.gemini.grounding import cites_of, merge_cites
from mockllm.wire.protocols.gemini.logprobs import has_logprobs
from mockllm.wire.protocols.gemini.native import NATIVE, merge_fields, native_part, read_fields
from mockllm.wire.protocols.gemini.partial import ArgumentsWriter
from mockllm.wire.protocols.gemini.runs import Kind, Runs
from mockllm.wire.protocols.gemini.server_tools import CALLS, RESULTS, read_call, read_result
from mockllm.wire.protocols.gemini_common import compact, json_value, read_media, read_usage, wire
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, mapping, string

# The fields about the answer that the encoder writes into every chunk.
_METADATA = {"candidates", "createTime", "modelVersion", "responseId", "usageMetadata"}
_READ = {"avgLogprobs", "content", "finishReason", "index", "safetyRatings", *NATIVE}
_PART = {"functionCall", "text", "thought", "thoughtSignature", *CALLS, *RESULTS}


@dataclass(slots=True)
class _Call:
    part: int
    writer: ArgumentsWriter = field(default_factory=ArgumentsWriter)


class Decoder:
    """Turns the frames of one Gemini stream into events. `complete` is true once a chunk has a
    finish reason or an error. Older services sent `finishReason` in every chunk, so chunks after it
    are read, too."""

    def __init__(self) -> None:
        self.complete = False
        self._started = False
        self._runs = Runs()
        self._server: tuple[str, int] | None = None
        self._cites: list[ev.Cite] = []
        self._native: dict[str, Json] = {}
        self._told: dict[str, Json] = {}
        self._call: _Call | None = None
        self._calls = False
        self._usage: ev.Usage | None = None

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a frame; none for `[DONE]`, which proxies add."""
        if frame.data is not None and frame.data.strip() in ("", "[DONE]"):
            return []
        value = _without_array(json_value(frame.data or ""))
        events: list[ev.Event] | None = None
        if isinstance(value, dict):
            # JSON that could be parsed may still be nested too deeply to be encoded again.
            with suppress(RecursionError):
                events = self._chunk(value)
        if events is None:
            events = [self._raw(frame)]
        events = _with_whole_frame(events, frame)
        if events and not self._started:
            self._started = True
            chunk = mapping(value)
            start = ev.Start(string(chunk.get("responseId")), string(chunk.get("modelVersion")))
            events.insert(0, start)
        return events

    def close(self) -> list[ev.Event]:
        """The ends of parts that are still open when the stream ends."""
        call = [] if self._call is None else [ev.PartEnd(self._call.part)]
        self._call = None
        return [*self._runs.end(), *self._end_server(), *call, *self._tell()]

    def _raw(self, frame: Frame) -> ev.Raw:
        return ev.Raw(self._runs.key(), API, frame)

    def _rest(self, value: Fields) -> ev.Raw:
        return self._raw(Frame(wire(value)))

    # Chunks

    def _chunk(self, chunk: Fields) -> list[ev.Event]:
        if chunk.get("error"):
            self.complete = True
            return [error_of(chunk["error"])]
        usage = read_usage(chunk.get("usageMetadata"), "candidatesTokenCount")
        self._usage = usage or self._usage
        ended = self.complete
        events, reason = self._candidates(chunk.get("candidates"))
        rest = {name: value for name, value in chunk.items() if name not in _METADATA and value}
        feedback = dict(mapping(rest.pop("promptFeedback", None)))
        blocked = string(feedback.pop("blockReason", None))
        if feedback:
            rest["promptFeedback"] = feedback
        if rest:
            events.append(self._rest(rest))
        finish = fields.read_finish(
            fields.BLOCKED + blocked if blocked else reason, calls=self._calls
        )
        if finish is not None:
            events += self._finish(finish)
        elif ended and usage is not None:
            events.append(usage)
        return events

    def _candidates(self, value: object) -> tuple[list[ev.Event], str]:
        """The events of the first candidate, and its finish reason. Other candidates are ignored if
        they are equal to the first, and kept if not."""
        events: list[ev.Event] = []
        reason = ""
        first: object = None
        for candidate in array(value):
            own = _without_index(candidate)
            if not isinstance(candidate, Mapping) or candidate.get("index"):
                if own != first:
                    events.append(self._rest({"candidates": [candidate]}))
                continue
            first = own
            events += self._candidate(candidate)
            reason = string(candidate.get("finishReason")) or reason
        return events, reason

    def _candidate(self, candidate: Fields) -> Iterable[ev.Event]:
        logprobs, known = has_logprobs(candidate), False
        for part in array(mapping(candidate.get("content")).get("parts")):
            for event in self._part(mapping(part), logprobs=logprobs):
                known = known or (isinstance(event, ev.TextDelta) and event.logprobs)
                yield event
        rest = {name: value for name, value in candidate.items() if name not in _READ and value}
        if known:
            del rest["logprobsResult"]
        self._cites = merge_cites(self._cites, cites_of(candidate.get("groundingMetadata")))
        native, unknown = read_fields(candidate)
        self._native = merge_fields(self._native, native)
        rest |= unknown
        if rest.get("finishMessage") == fields.CALLS_MESSAGE:
            del rest["finishMessage"]
        if not _trivial(candidate.get("safetyRatings")):
            rest["safetyRatings"] = candidate["safetyRatings"]
        if rest:
            yield self._rest({"candidates": [{**rest, "index": 0}]})

    def _finish(self, finish: ev.Finish) -> Iterable[ev.Event]:
        self.complete = True
        yield from self._end_call(cut=finish.reason == "length")
        text, cites = self._runs.text, self._cites
        if text is not None:
            self._cites = []
            yield from (replace(cite, part=text) for cite in cites)
        yield from self._tell()
        if self._usage is not None:
            yield self._usage
        yield finish

    def _tell(self) -> Iterable[ev.Event]:
        """The native parts that are new since the last time."""
        for name, value in self._native.items():
            if self._told.get(name) != value:
                yield native_part(self._runs.key(), name, value)
        self._told = self._native

    # Parts

    def _part(self, part: Fields, *, logprobs: bool) -> Iterable[ev.Event]:
        signature = string(part.get("thoughtSignature"))
        text = part.get("text")
        rest = {name: value for name, value in part.items() if name not in _PART and value}
        call, result, media = read_call(part), read_result(part), read_media(part)
        if result is None:
            yield from self._end_server()
        if isinstance(part.get("functionCall"), Mapping):
            yield from self._function_call(part["functionCall"], signature)
        elif call is not None:
            yield from self._server_call(call)
        elif result is not None:
            yield from self._server_result(result)
        elif media is not None:
            del rest["inlineData"]
            yield from self._runs.media(*media, signature)
        elif isinstance(text, str) or not rest:
            if text:
                kind: Kind = "thought" if part.get("thought") else "text"
                yield from self._runs.delta(kind, str(text), signature, logprobs=logprobs)
            elif signature:
                yield from self._runs.empty(signature)
        else:
            yield from self._runs.end()
            rest = dict(part)
        if rest:
            yield self._rest({"candidates": [{"content": {"parts": [rest], "role": "model"}}]})

    # Tools of the service

    def _server_call(self, call: ServerTool) -> Iterable[ev.Event]:
        yield from self._runs.end()
        key = self._runs.key()
        self._server = call.id, key
        yield ev.ServerToolStart(key, call.id, call.kind, call.name)
        if call.input:
            yield ev.ToolArgs(key, call.input)

    def _server_result(self, result: ServerTool) -> Iterable[ev.Event]:
        if self._server == (result.id, self._runs.last):
            key = self._runs.last
        else:
            yield from self._end_server()
            yield from self._runs.end()
            key = self._runs.key()
            yield ev.ServerToolStart(key, result.id, result.kind, result.name)
        self._server = None
        yield ev.ServerToolResult(key, result.output or "")
        yield ev.PartEnd(key)

    def _end_server(self) -> list[ev.Event]:
        called, self._server = self._server, None
        return [] if called is None else [ev.PartEnd(called[1])]

    # Calls

    def _function_call(self, call: Fields, signature: str) -> Iterable[ev.Event]:
        partial_args, arguments = call.get("partialArgs"), call.get("args")
        name = string(call.get("name"))
        if name or (self._call is None and (arguments or partial_args)):
            yield from self._end_call()
            yield from self._runs.end()
            self._call, self._calls = _Call(self._runs.key()), True
            yield ev.ToolStart(self._call.part, string(call.get("id")), name)
        if self._call is None:
            return
        if signature:
            yield ev.Signature(self._call.part, signature)
        yield from self._partial_args(self._call, partial_args)
        # Converters send the arguments of another API as a string (`gem-args-string`).
        text = arguments if isinstance(arguments, str) else compact(arguments) if arguments else ""
        if text.strip():
            yield ev.ToolArgs(self._call.part, text)
        if call.get("willContinue") is not True:
            yield from self._end_call()

    def _partial_args(self, call: _Call, partial_args: object) -> Iterable[ev.Event]:
        """A fragment of the arguments; elements that cannot come next are kept as `Raw`."""
        text = ""
        lost = []
        for partial_arg in array(partial_args):
            more = call.writer.add(mapping(partial_arg))
            if more is None:
                lost.append(partial_arg)
            else:
                text += more
        if text:
            yield ev.ToolArgs(call.part, text)
        if lost:
            part = {"functionCall": {"partialArgs": lost}}
            yield self._rest({"candidates": [{"content": {"parts": [part], "role": "model"}}]})

    def _end_call(self, *, cut: bool = False) -> Iterable[ev.Event]:
        """Ends the open call. If the token limit cut it, its arguments stay incomplete: completed,
        they would be other arguments than the model meant."""
        call, self._call = self._call, None
        if call is None:
            return
        text = call.writer.brace_if_empty() if cut else call.writer.end()
        if text:
            yield ev.ToolArgs(call.part, text)
        yield ev.PartEnd(call.part)


def _without_array(value: Any) -> Any:
    """The error in an array of one error; other values are unchanged. The service sends errors of
    streams in an array, and `APIError` of google-genai reads both forms (maximhq/bifrost#5188)."""
    if isinstance(value, list) and len(value) == 1 and mapping(value[0]).get("error"):
        return value[0]
    return value


def decode_body(body: Fields) -> Turn:
    """The turn of an answer, or of an error body; raises `WireError` if it is neither."""
    if not body.keys() & {"promptFeedback", "error", *_METADATA}:
        raise no_body("a Gemini body", "`candidates`, `promptFeedback` or `error`", body)
    decoder = Decoder()
    events = [*decoder.decode(Frame(wire(body))), *decoder.close()]
    turn = fold(ev.Timed(0, event) for event in events)
    return replace(turn, parts=tuple(map(_whole, turn.parts)), order=(), gaps=())


def _whole(part: Part) -> Part:
    """The part in one fragment; a signature at the end of a text stays on an empty one."""
    if isinstance(part, Opaque | Media):
        return part
    ends = isinstance(part, Text) and part.signature is not None and len(part.fragments) > 1
    last = ("",) if ends and not part.fragments[-1] else ()
    return replace(part, fragments=("".join(part.fragments), *last))


def _with_whole_frame(events: list[ev.Event], frame: Frame) -> list[ev.Event]:
    """The events of a frame; if nothing in it is neutral, with the frame as it is."""
    ends: list[ev.Event] = [event for event in events if isinstance(event, ev.PartEnd)]
    raws = [event for event in events if isinstance(event, ev.Raw) and not event.native]
    if not raws or len(ends) + len(raws) < len(events):
        return events
    return [*ends, ev.Raw(raws[0].part, API, frame)]


def _without_index(candidate: object) -> object:
    if not isinstance(candidate, Mapping):
        return candidate
    return {name: value for name, value in candidate.items() if name != "index"}


def _trivial(ratings: object) -> bool:
    """Whether safety ratings add nothing to the finish: negligible ones, or those of `SAFETY`."""
    if not ratings or ratings == fields.SAFETY_RATINGS:
        return True
    return isinstance(ratings, list) and all(
        mapping(rating).get("probability") == "NEGLIGIBLE"
        and mapping(rating).keys() <= {"category", "probability"}
        for rating in ratings
    )
