"""Answers of Completions back to events, as any server sends them.

https://platform.openai.com/docs/api-reference/completions/object

The decoder never fails. A frame without any known content (a comment, malformed JSON, a choice
that does not repeat the first one) is kept as `Raw`, and so is everything after `[DONE]`.
"""

from __future__ import annotations

from mockllm.core import events as ev
from mockllm.core.errors import WireError
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.openai_choices import ChoicesDecoder
from mockllm.wire.protocols.openai_common import error_of, usage_of
from mockllm.wire.protocols.openai_completions import API, fields
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import kind, mapping, objects, string

_TEXT = 0
"""The key of the text; the frames that are kept follow."""


class Decoder(ChoicesDecoder):
    """Frames of one stream to events."""

    def __init__(self) -> None:
        super().__init__(API, _TEXT + 1)
        self._open = False

    def _end_parts(self) -> list[ev.Event]:
        is_open, self._open = self._open, False
        return [ev.PartEnd(_TEXT)] if is_open else []

    def _chunk(self, chunk: Json) -> list[ev.Event]:
        self._id = string(chunk.get("id"))
        events: list[ev.Event] = []
        finish = ""
        for choice in objects(chunk.get("choices")):
            content = choice.get("text"), choice.get("finish_reason")
            if choice.get("index"):  # another choice than the first one
                self._known |= content == self._first_choice
                continue
            events += self._choice(choice)
            finish = string(choice.get("finish_reason")) or finish
            self._first_choice = content
        return events + self._ending(chunk, usage_of(chunk.get("usage")), finish)

    def _choice(self, choice: Json) -> list[ev.Event]:
        text = choice.get("text")
        self._known |= "text" in choice
        # The text of the chunk with the finish reason is usually empty, which is no fragment.
        if not isinstance(text, str) or (not text and choice.get("finish_reason")):
            return []
        self._open = True
        return [ev.TextDelta(_TEXT, text, has_logprobs(choice))]

    def _read_finish(self, reason: str) -> ev.Finish:
        return fields.read_finish(reason)


def has_logprobs(choice: Fields) -> bool:
    """Whether a choice has log probabilities."""
    return isinstance(mapping(choice.get("logprobs")).get("tokens"), list)


def decode_body(body: Fields) -> Turn:
    """The turn of an answer that was not streamed: its choice with index 0; raises `WireError`
    without one."""
    if body.get("error"):
        return Turn(error=error_of(body["error"]))
    choices = objects(body.get("choices"))
    choice = next((c for c in choices if not c.get("index")), choices[0] if choices else {})
    text, finish = choice.get("text"), string(choice.get("finish_reason"))
    if not isinstance(text, str):
        raise WireError(
            f"choices[0].text must be a string in the body of a completion, got {kind(text)}; is "
            "this the answer of /completions, not streamed?"
        )
    events: list[ev.Event] = [ev.TextDelta(_TEXT, text, has_logprobs(choice))] if text else []
    usage = usage_of(body.get("usage"))
    events += [usage] if usage is not None else []
    events += [fields.read_finish(finish)] if finish else []
    return fold(ev.Timed(0, event) for event in events)
