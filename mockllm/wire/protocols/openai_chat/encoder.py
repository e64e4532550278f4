"""The stream of an answer: the events of a turn to chunks, as OpenAI sends them.

https://platform.openai.com/docs/api-reference/chat-streaming

Key order, explicit nulls and the contents of the first chunk follow recorded streams of the
service, because clients were written against those.
"""

from __future__ import annotations

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.seeded import derive
from mockllm.core.timeline import expand
from mockllm.core.turn import Media, Part, Reasoning, Refusal, Text, ToolCall, Turn
from mockllm.wire.protocols.base import Reply, dumps, tokens_in
from mockllm.wire.protocols.openai_chat import fields
from mockllm.wire.protocols.openai_chat.request import Options
from mockllm.wire.protocols.openai_common import write_error
from mockllm.wire.protocols.records import Json

# openai-python stops reading here, so nothing may follow.
_DONE = Frame("[DONE]")  # the last message of a stream, by the reference of `stream`


class Encoder:
    """Encodes the events of a turn as the chunks of its stream. The first chunk has the role and,
    as OpenAI sends it, an empty `content` for a text, nothing more for several calls, or the start
    of a single call. Every choice has the same content."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        self._turn = turn
        self._seed = reply.seed
        self._reply = reply
        self._options: Options = reply.options or Options()
        self._envelope = {
            "id": fields.answer_id(reply),
            "object": "chat.completion.chunk",
            "created": reply.created,
            "model": reply.model,
            "service_tier": reply.service_tier or self._options.service_tier,
            "system_fingerprint": fields.fingerprint(reply),
        }
        calls = [i for i, part in enumerate(turn.parts) if isinstance(part, ToolCall)]
        self._index = {part: index for index, part in enumerate(calls)}
        self._opening, self._merged = _opening(turn)
        self._logprobs = any(isinstance(part, Text) and part.logprobs for part in turn.parts)
        self._usage: ev.Usage | None = None
        self._argued: set[int] = set()
        self._texts = {i for i, part in enumerate(turn.parts) if isinstance(part, Text)}
        self._sounds = {i for i, part in enumerate(turn.parts) if _is_sound(part)}
        self._sounding = False
        self._cites: list[ev.Cite] = []
        self._length = 0
        self._count = 0

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event of `expand(turn)`; none for an event that Chat cannot express."""
        match event:
            case ev.Start():
                if self._merged:
                    return []
                padding = fields.write_logprobs(()) if self._logprobs else None
                return self._delta(self._opening, padding)
            case ev.TextDelta():
                return self._text(event)
            case ev.ReasoningDelta(text=text):
                return self._delta({"content": None, "reasoning_content": text})
            case ev.RefusalDelta(text=text):
                return self._delta({"refusal": text})
            case ev.MediaDelta() if event.part in self._sounds:
                return self._sound(event)
            case ev.ToolStart():
                return self._tool(event)
            case ev.ToolArgs(part=part, text=text) if part in self._index:
                return self._arguments(part, text)
            case ev.PartEnd(part=part):
                return self._end(part)
            case ev.Cite() if event.has_address:
                self._cites.append(event)
            case ev.Usage():
                return self._hold_usage(event)
            case ev.Finish():
                return self._finish(event)
            case ev.StreamError():
                return [Frame(dumps(write_error(event)))]
            case ev.Raw(api="chat", frame=frame):
                return [frame]
        return []

    def _text(self, event: ev.TextDelta) -> list[Frame]:
        self._length += len(event.text)
        logprobs = fields.write_logprobs(tokens_in(event)) if event.logprobs else None
        return self._delta({"content": event.text}, logprobs)

    def _sound(self, event: ev.MediaDelta) -> list[Frame]:
        first = {} if self._sounding else fields.sound_begin(self._reply)
        self._sounding = True
        return self._delta({"audio": {**first, **fields.sound_piece(event)}})

    def _tool(self, event: ev.ToolStart) -> list[Frame]:
        call = {
            "index": self._index[event.part],
            **fields.write_call(event.id, event.name, event.custom),
        }
        # Id, type and name come once: SDKs join the strings of all fragments of a call.
        if self._merged:
            return self._delta({**self._opening, "tool_calls": [call], "refusal": None})
        return self._delta({"tool_calls": [call]})

    def _arguments(self, part: int, text: str) -> list[Frame]:
        self._argued.add(part)
        fragment = {"custom": {"input": text}} if self._custom(part) else None
        call = {"index": self._index[part], **(fragment or {"function": {"arguments": text}})}
        return self._delta({"tool_calls": [call]})

    def _custom(self, part: int) -> bool:
        call = self._turn.parts[part]
        return isinstance(call, ToolCall) and call.custom

    def _end(self, part: int) -> list[Frame]:
        if part in self._index and part not in self._argued and not self._custom(part):
            # OpenAI sends a zero-argument call as "" in its start, then one fragment "{}".
            return self._arguments(part, "{}")
        if part in self._sounds:
            self._sounds.discard(part)
            return [] if self._sounds else self._delta({"audio": fields.sound_end(self._reply)})
        self._texts.discard(part)
        if self._texts or not self._cites:
            return []
        # One chunk for all citations, after the text: openai-python's accumulator fails on a
        # second one. Their spans cover the whole text, because Chat has a single text.
        cites, self._cites = self._cites, []
        return self._delta({"annotations": [fields.write_cite(c, 0, self._length) for c in cites]})

    def _hold_usage(self, usage: ev.Usage) -> list[Frame]:
        self._usage = usage
        # The usage chunk follows the finish chunk; a stream that was cut has no finish chunk.
        cut = self._turn.finish is None and self._turn.error is None
        return self._usage_chunk() if cut else []

    def _finish(self, event: ev.Finish) -> list[Frame]:
        reason = fields.write_finish(event.reason, event.raw, forced=self._options.forced)
        return [*self._delta({}, finish=reason), *self._usage_chunk(), _DONE]

    def _usage_chunk(self) -> list[Frame]:
        if self._usage is None or not self._options.stream_usage:
            return []
        return [self._chunk([], fields.write_usage(self._usage))]

    def _delta(
        self,
        delta: Json,
        logprobs: Json | None = None,
        finish: str | None = None,
    ) -> list[Frame]:
        # openai-node needs the key `finish_reason` in each choice, also where it is null.
        return [
            self._chunk(
                [{"index": i, "delta": delta, "logprobs": logprobs, "finish_reason": finish}]
            )
            for i in range(self._options.n)
        ]

    def _chunk(self, choices: list[Json], usage: Json | None = None) -> Frame:
        chunk: Json = {**self._envelope, "choices": choices}
        if self._options.stream_usage:
            # With `include_usage` every chunk but the usage chunk has an explicit null.
            chunk["usage"] = usage
        text = dumps(chunk)
        if self._options.obfuscation:
            # Padding hides how long the fragments are: it fills each chunk up to a multiple of 16.
            padding = derive(self._seed, "obfuscation", self._count, length=-len(text) % 16)
            text = f'{text[:-1]},"obfuscation":"{padding}"}}'
        self._count += 1
        return Frame(text)


def _is_sound(part: Part) -> bool:
    """Whether a part is a sound, with anything in it: the API can express no other media."""
    if not isinstance(part, Media) or not part.media_type.startswith("audio/"):
        return False
    return any(part.data) or bool(part.fragments)


def _opening(turn: Turn) -> tuple[Json, bool]:
    kinds = {type(part) for part in turn.parts}
    opening: Json = {"role": "assistant", "content": None}
    if Reasoning in kinds:
        return {**opening, "reasoning_content": ""}, False
    if Text in kinds:
        return {"role": "assistant", "content": "", "refusal": None}, False
    if Refusal in kinds:
        return {**opening, "refusal": ""}, False
    if any(map(_is_sound, turn.parts)):
        return {**opening, "refusal": None}, False
    if ToolCall in kinds:
        return opening, len(turn.tool_calls) == 1
    return {"role": "assistant", "content": "", "refusal": None}, False


# The body


def encode_body(turn: Turn, reply: Reply) -> Json:
    """The body of an answer that is not streamed, equal to what its stream adds up to. The body of
    a turn with an error is the error only."""
    if turn.error is not None:
        return write_error(turn.error)
    options: Options = reply.options or Options()
    events = [timed.event for timed in expand(turn)]
    texts = [event for event in events if isinstance(event, ev.TextDelta)]
    fragments = [event.text for event in texts]
    tokens = [token for event in texts for token in tokens_in(event)]
    logprobs = fields.write_logprobs(tokens) if texts and texts[0].logprobs else None
    usual: ev.FinishReason = "tool_calls" if turn.tool_calls else "stop"
    reason = fields.write_finish(turn.finish or usual, turn.finish_raw, forced=options.forced)
    message = _write_message(turn, events, fragments, reply)
    body: Json = {
        "id": fields.answer_id(reply),
        "object": "chat.completion",
        "created": reply.created,
        "model": reply.model,
        "choices": [
            {"index": i, "message": message, "logprobs": logprobs, "finish_reason": reason}
            for i in range(options.n)
        ],
    }
    if turn.usage is not None:
        body["usage"] = fields.write_usage(turn.usage)
    body["service_tier"] = reply.service_tier or options.service_tier
    body["system_fingerprint"] = fields.fingerprint(reply)
    return body


def _write_message(turn: Turn, events: list[ev.Event], texts: list[str], reply: Reply) -> Json:
    text = "".join(texts)
    thoughts = [event.text for event in events if isinstance(event, ev.ReasoningDelta)]
    refusals = [event.text for event in events if isinstance(event, ev.RefusalDelta)]
    message: Json = {"role": "assistant", "content": text if texts else None}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    message["refusal"] = "".join(refusals) if refusals else None
    message["annotations"] = [
        fields.write_cite(event, 0, len(text))
        for event in events
        if isinstance(event, ev.Cite) and event.has_address
    ]
    pieces = [
        event
        for event in events
        if isinstance(event, ev.MediaDelta) and _is_sound(turn.parts[event.part])
    ]
    if pieces:
        message["audio"] = fields.write_sound(pieces, reply)
    if turn.tool_calls:
        message["tool_calls"] = [
            fields.write_call(call.id, call.name, call.custom, call.arguments)
            for call in turn.tool_calls
        ]
    return message
