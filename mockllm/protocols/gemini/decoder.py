"""Reads streams of Gemini, from Google's services and from proxies in front of them.

https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse

No field of a chunk is required, as in the API's own types. Consecutive texts are one part, and so
are consecutive thoughts; a call may be complete in one chunk, or come in fragments (Vertex AI).
Fields without a neutral form are kept as `Raw`: the whole chunk if it has no others, else a chunk
with only those fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from mockllm.core import events as ev
from mockllm.core.frame import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.errors import WireError
from mockllm.protocols.gemini.errors import error_of
from mockllm.protocols.gemini.fields import (
    API,
    BLOCKED,
    SAFETY_RATINGS,
    compact,
    json_value,
    read_finish,
    wire,
)
from mockllm.protocols.gemini.grounding import cites_of
from mockllm.protocols.gemini.partial import Writer
from mockllm.protocols.values import mapping, string

__all__ = ["Decoder", "decode_body"]

_Value = Mapping[str, Any]

# The fields about the answer that the encoder writes into every chunk.
_METADATA = {"candidates", "createTime", "modelVersion", "responseId", "usageMetadata"}
_READ = {"content", "finishReason", "groundingMetadata", "index", "safetyRatings"}
_PART = {"functionCall", "text", "thought", "thoughtSignature"}


@dataclass(slots=True)
class _Call:
    """The call whose arguments are not complete yet."""

    part: int
    writer: Writer = field(default_factory=Writer)


class Decoder:
    """Turns the frames of one Gemini stream into events.

    `complete` is true once a chunk has a finish reason or an error. Older services sent
    `finishReason` in every chunk, so chunks after it are read, too.
    """

    def __init__(self) -> None:
        self.complete = False
        self._started = False
        self._next = 0
        self._run: tuple[str, int] | None = None
        self._text: int | None = None
        self._thought: int | None = None
        self._signed_thoughts: set[int] = set()
        self._call: _Call | None = None
        self._calls = False
        self._usage: ev.Usage | None = None

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a frame; none for `[DONE]`, which proxies add."""
        if frame.data is not None and frame.data.strip() in ("", "[DONE]"):
            return []
        value = _without_array(json_value(frame.data or ""))
        events: list[ev.Event] = [self._raw(frame)]
        if isinstance(value, dict):
            # JSON that could be parsed may still be nested too deeply to be encoded again.
            with suppress(RecursionError):
                events = self._chunk(value)
        if events and all(isinstance(event, ev.Raw) for event in events):
            events = [ev.Raw(_part_of(events[0]), API, frame)]
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
        return [*self._end_run(), *call]

    def _key(self) -> int:
        self._next += 1
        return self._next - 1

    def _raw(self, frame: Frame) -> ev.Raw:
        return ev.Raw(self._key(), API, frame)

    def _rest(self, value: _Value) -> ev.Raw:
        """The event that keeps the fields of a chunk without a neutral form."""
        return self._raw(Frame(wire(value)))

    # Chunks

    def _chunk(self, chunk: _Value) -> list[ev.Event]:
        if chunk.get("error"):
            self.complete = True
            return [error_of(chunk["error"])]
        usage = _usage(chunk.get("usageMetadata"))
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
        finish = read_finish(BLOCKED + blocked if blocked else reason, calls=self._calls)
        if finish is not None:
            events += self._finish(finish)
        elif ended and usage is not None:
            events.append(usage)
        return events

    def _candidates(self, value: object) -> tuple[list[ev.Event], str]:
        """The events of the first candidate, and its finish reason.

        Other candidates are ignored if they are equal to the first, and kept if not.
        """
        events: list[ev.Event] = []
        reason = ""
        first: object = None
        for candidate in value if isinstance(value, list) else ():
            own = _without_index(candidate)
            if not isinstance(candidate, Mapping) or candidate.get("index"):
                if own != first:
                    events.append(self._rest({"candidates": [candidate]}))
                continue
            first = own
            events += self._candidate(candidate)
            reason = string(candidate.get("finishReason")) or reason
        return events, reason

    def _candidate(self, candidate: _Value) -> Iterable[ev.Event]:
        parts = mapping(candidate.get("content")).get("parts")
        for part in parts if isinstance(parts, list) else ():
            yield from self._part(mapping(part))
        rest = {name: value for name, value in candidate.items() if name not in _READ and value}
        metadata = candidate.get("groundingMetadata")
        cites = None if self._text is None else cites_of(metadata, self._text)
        yield from cites or ()
        if metadata and cites is None:
            rest["groundingMetadata"] = metadata
        if not _trivial(candidate.get("safetyRatings")):
            rest["safetyRatings"] = candidate["safetyRatings"]
        if rest:
            yield self._rest({"candidates": [{**rest, "index": 0}]})

    def _finish(self, finish: ev.Finish) -> Iterable[ev.Event]:
        self.complete = True
        yield from self._end_call(cut=finish.reason == "length")
        if self._usage is not None:
            yield self._usage
        yield finish

    # Parts

    def _part(self, part: _Value) -> Iterable[ev.Event]:
        signature = string(part.get("thoughtSignature"))
        text = part.get("text")
        rest = {name: value for name, value in part.items() if name not in _PART and value}
        if isinstance(part.get("functionCall"), Mapping):
            yield from self._function_call(part["functionCall"], signature)
        elif isinstance(text, str) or not rest:
            if text:
                yield from self._delta("thought" if part.get("thought") else "text", str(text))
            if signature:
                yield from self._signed(signature)
        else:
            rest = dict(part)
        if rest:
            yield self._rest({"candidates": [{"content": {"parts": [rest], "role": "model"}}]})

    def _delta(self, kind: str, text: str) -> Iterable[ev.Event]:
        if self._run is None or self._run[0] != kind:
            yield from self._end_run()
            self._run = kind, self._key()
        key = self._run[1]
        if kind == "thought":
            self._thought = key
            yield ev.ReasoningDelta(key, text)
        else:
            self._text = key
            yield ev.TextDelta(key, text)

    def _end_run(self) -> list[ev.Event]:
        ended, self._run = self._run, None
        return [] if ended is None else [ev.PartEnd(ended[1])]

    def _signed(self, signature: str) -> Iterable[ev.Event]:
        """The signature of the last thoughts. Hidden thoughts are created for it if there are
        none, or if those have one: Gemini signs texts, too, empty ones among them."""
        if self._thought is None or self._thought in self._signed_thoughts:
            yield from self._end_run()
            self._thought = self._key()
        self._signed_thoughts.add(self._thought)
        yield ev.Signature(self._thought, signature)

    # Calls

    def _function_call(self, call: _Value, signature: str) -> Iterable[ev.Event]:
        partial_args, arguments = call.get("partialArgs"), call.get("args")
        name = string(call.get("name"))
        if name or (self._call is None and (arguments or partial_args)):
            yield from self._end_call()
            yield from self._end_run()
            self._call, self._calls = _Call(self._key()), True
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
        for partial_arg in partial_args if isinstance(partial_args, list) else ():
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
        text = call.writer.unfinished() if cut else call.writer.end()
        if text:
            yield ev.ToolArgs(call.part, text)
        yield ev.PartEnd(call.part)


def _without_array(value: Any) -> Any:
    """The error in an array of one error; other values are unchanged.

    The service sends errors of streams in an array, and `APIError` of google-genai reads both
    forms (maximhq/bifrost#5188).
    """
    if isinstance(value, list) and len(value) == 1 and mapping(value[0]).get("error"):
        return value[0]
    return value


def decode_body(body: Mapping[str, Any]) -> Turn:
    """The turn of an answer, or of an error body.

    Raises:
        WireError: it is neither.
    """
    if not body.keys() & {"promptFeedback", "error", *_METADATA}:
        raise WireError(
            "a Gemini body needs `candidates`, `promptFeedback` or `error`, this one has "
            f"{', '.join(map(repr, body)) or 'no fields'}; is it a body of this API?"
        )
    decoder = Decoder()
    events = [*decoder.decode(Frame(wire(body))), *decoder.close()]
    return fold(ev.Timed(0, event) for event in events).whole()


# JSON values of any kind


def _part_of(event: ev.Event) -> int:
    assert isinstance(event, ev.Raw)
    return event.part


def _without_index(candidate: object) -> object:
    if not isinstance(candidate, Mapping):
        return candidate
    return {name: value for name, value in candidate.items() if name != "index"}


def _trivial(ratings: object) -> bool:
    """Whether safety ratings add nothing to the finish: negligible ones, or those of `SAFETY`."""
    if not ratings or ratings == SAFETY_RATINGS:
        return True
    return isinstance(ratings, list) and all(
        mapping(rating).get("probability") == "NEGLIGIBLE"
        and mapping(rating).keys() <= {"category", "probability"}
        for rating in ratings
    )


def _usage(value: object) -> ev.Usage | None:
    """The tokens in `usageMetadata`. Tool use counts as input, thoughts as output: Gemini counts
    them beside `promptTokenCount` and `candidatesTokenCount`."""
    if not isinstance(value, Mapping) or not value:
        return None
    prompt, tool_use, visible, thoughts, cached = (
        count if type(count := value.get(name)) is int else 0
        for name in (
            "promptTokenCount",
            "toolUsePromptTokenCount",
            "candidatesTokenCount",
            "thoughtsTokenCount",
            "cachedContentTokenCount",
        )
    )
    return ev.Usage(prompt + tool_use, visible + thoughts, thoughts, cached)
