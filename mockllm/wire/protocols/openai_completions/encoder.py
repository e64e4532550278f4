"""The answers of Completions: the events of a turn to chunks, and a body.

https://platform.openai.com/docs/api-reference/completions/object

Streams have the same objects as bodies. Their keys have the order of recorded streams of the
service, which put the model last.
"""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import expand
from mockllm.core.turn import Refusal, Text, Turn
from mockllm.wire.protocols.base import Reply, dumps, tokens_in
from mockllm.wire.protocols.openai_common import write_error
from mockllm.wire.protocols.openai_completions import API, fields
from mockllm.wire.protocols.openai_completions.request import Options
from mockllm.wire.protocols.records import Json

# openai-python stops reading here, so nothing may follow.
_DONE = Frame("[DONE]")  # the last message of a stream, by the reference of `stream`


class Encoder:
    """Encodes the texts and refusals of a turn as the chunks of its stream. Every choice has the
    same text, after the prompt that the request wants echoed."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        self._turn = turn
        self._options: Options = reply.options or Options()
        self._id = fields.answer_id(reply)
        self._created, self._model = reply.created, reply.model
        self._fingerprint = fields.fingerprint(reply)
        self._usage: ev.Usage | None = None
        self._heads = _heads(turn, self._options)
        self._length = self._tokens_end = 0

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event of `expand(turn)`; none for an event that the API cannot
        express."""
        match event:
            case ev.Start():
                return self._start()
            case ev.TextDelta():
                return self._text(event, logprobs=event.logprobs)
            case ev.RefusalDelta():
                return self._text(event)
            case ev.Usage():
                self._usage = event
                # The usage chunk follows the finish chunk; a stream that was cut has none.
                cut = self._turn.finish is None and self._turn.error is None
                return self._usage_chunk() if cut else []
            case ev.Finish():
                finish = fields.write_finish(event.reason, event.raw)
                return [*self._choices(finish=finish), *self._usage_chunk(), _DONE]
            case ev.StreamError():
                return [Frame(dumps(write_error(event)))]
            case ev.Raw(api=api, frame=frame) if api == API:
                return [frame]
        return []

    def _start(self) -> list[Frame]:
        wanted = self._options.logprobs
        frames = []
        for index, head in enumerate(self._heads):
            if head:
                tokens = fields.prompt_tokens(head)
                logprobs = fields.write_logprobs(tokens, 0, wanted, head=True)
                frames.append(self._chunk([_choice(index, head, logprobs)]))
        return frames

    def _text(
        self, delta: ev.TextDelta | ev.RefusalDelta, *, logprobs: bool = False
    ) -> list[Frame]:
        tokens = tokens_in(delta)
        # The last token of a fragment may end in a later one.
        offset = max(self._length, self._tokens_end)
        self._length += len(delta.text)
        self._tokens_end = offset + sum(len(token.text) for token in tokens)
        most = _logprob_count(self._options, logprobs=logprobs)
        return self._choices(delta.text, tokens, offset, most)

    def _choices(
        self,
        text: str = "",
        tokens: Sequence[ev.Token] = (),
        offset: int = 0,
        most: int | None = None,
        finish: str | None = None,
    ) -> list[Frame]:
        frames = []
        for index, head in enumerate(self._heads):
            written = fields.write_logprobs(tokens, len(head) + offset, most)
            frames.append(self._chunk([_choice(index, text, written, finish)]))
        return frames

    def _usage_chunk(self) -> list[Frame]:
        if self._usage is None or not self._options.stream_usage:
            return []
        return [self._chunk([], fields.write_usage(self._usage))]

    def _chunk(self, choices: list[Json], usage: Json | None = None) -> Frame:
        chunk: Json = {
            "id": self._id,
            "object": "text_completion",
            "created": self._created,
            "choices": choices,
            "model": self._model,
            **self._fingerprint,
        }
        if self._options.stream_usage:
            # With `include_usage` every chunk but the usage chunk has an explicit null.
            chunk["usage"] = usage
        return Frame(dumps(chunk))


def _heads(turn: Turn, options: Options) -> tuple[str, ...]:
    """With what each choice begins. A recorded text has the echoed prompt already."""
    text = "".join(part.text for part in turn.parts if isinstance(part, (Text, Refusal)))
    return tuple("" if head and text.startswith(head) else head for head in options.heads)


def _choice(index: int, text: str, logprobs: Json | None, finish: str | None = None) -> Json:
    return {"text": text, "index": index, "logprobs": logprobs, "finish_reason": finish}


def _logprob_count(options: Options, *, logprobs: bool) -> int | None:
    """The number of log probabilities of a position of a text: as many as the request wants, and
    one where the scenario has some without that."""
    return 1 if options.logprobs is None and logprobs else options.logprobs


# The body


def encode_body(turn: Turn, reply: Reply) -> Json:
    """The body of an answer that is not streamed, equal to what its stream adds up to. The body of
    a turn with an error is the error only."""
    if turn.error is not None:
        return write_error(turn.error)
    options: Options = reply.options or Options()
    events = [
        timed.event
        for timed in expand(turn)
        if isinstance(timed.event, (ev.TextDelta, ev.RefusalDelta))
    ]
    fragments = [event.text for event in events]
    own = [token for event in events for token in tokens_in(event)]
    finish = fields.write_finish(turn.finish or "stop", turn.finish_raw)
    logprobs = isinstance(events[0], ev.TextDelta) and events[0].logprobs if events else False
    most = _logprob_count(options, logprobs=logprobs)
    body: Json = {
        "id": fields.answer_id(reply),
        "object": "text_completion",
        "created": reply.created,
        "model": reply.model,
        "choices": [],
    }
    for index, head in enumerate(_heads(turn, options)):
        tokens = [*fields.prompt_tokens(head), *own]
        written = fields.write_logprobs(tokens, 0, most, head=bool(head))
        body["choices"].append(_choice(index, head + "".join(fragments), written, finish))
    if turn.usage is not None:
        body["usage"] = fields.write_usage(turn.usage)
    return body | fields.fingerprint(reply)
