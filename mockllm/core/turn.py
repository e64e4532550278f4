"""The neutral form of one answer: its parts, finish, usage and timing. Only data may live here.

A `Turn` keeps the fragments of each part, the order of fragments of different parts, and the
pauses between them, so that nothing is lost between a recorded stream and a scenario.
`Turn.whole()` removes the fragments, order and pauses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from mockllm.core.events import Cite, FinishReason, Frame, StreamError, Token, Usage
from mockllm.core.record import record

TokenUsage = Usage
"""The tokens of a turn; in a stream an event has them."""


@record
class _Fragmented:
    """Text in at least one fragment, which may be empty."""

    fragments: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fragments", self.fragments or ("",))

    @property
    def text(self) -> str:
        return "".join(self.fragments)


@record
class Text(_Fragmented):
    """Visible text.

    Args:
        logprobs: whether it comes with log probabilities.
        signature: the provider's opaque value (Gemini signs text, too).
        tokens: they join to the text; none: log probabilities are derived.
    """

    citations: tuple[Cite, ...] = ()
    logprobs: bool = False
    signature: str | None = None
    tokens: tuple[Token, ...] = ()

    def tokens_of(self, number: int) -> tuple[Token, ...] | None:
        """The tokens that begin in a fragment; those at the end are of the last one."""
        if not self.tokens:
            return None
        *starts, _ = accumulate((len(token.text) for token in self.tokens), initial=0)
        begin = sum(map(len, self.fragments[:number]))
        is_last = number == len(self.fragments) - 1
        end = len(self.text) + 1 if is_last else begin + len(self.fragments[number])
        return tuple(
            token for token, start in zip(self.tokens, starts, strict=True) if begin <= start < end
        )


@record
class Reasoning(_Fragmented):
    """Reasoning, or (`summary`) a summary of it; `signature` is the provider's opaque value."""

    signature: str | None = None
    summary: bool = False


@record
class Refusal(_Fragmented):
    """The text in which the model declines to answer."""


@record
class ToolCall:
    """A tool call. `fragments` join to the arguments as JSON text; without fragments the call has
    no arguments, which each service sends in its own way (`""`, `"{}"`, or nothing).

    With `custom` the client defined the tool with free text as its input, and the fragments join
    to that text.
    """

    name: str
    id: str
    fragments: tuple[str, ...] = ()
    signature: str | None = None
    custom: bool = False

    def __post_init__(self) -> None:
        # For a call without arguments OpenAI sends one fragment "{}", and Anthropic "".
        if self.fragments == ("",) or (self.fragments == ("{}",) and not self.custom):
            object.__setattr__(self, "fragments", ())

    @property
    def arguments(self) -> str:
        """The arguments as JSON text, `{}` for a zero-argument call; the input of a custom call."""
        return "".join(self.fragments) or ("" if self.custom else "{}")

    def parse_arguments(self) -> Any:
        """The arguments as a value; raises `ValueError` where they are not JSON."""
        return json.loads(self.arguments)


@record
class ServerTool:
    """A call of a tool that the service hosts and runs itself, with its result.

    Args:
        kind: the tool: `web_search`, `code_interpreter`, `file_search`, `mcp` and so on.
        id: of the call; "" where the API has none.
        name: the name on the wire, where it is not `kind`; "" otherwise.
        fragments: they join to the input as JSON text; none: without input.
        output: the result as JSON text; None where the answer has none.
    """

    kind: str
    id: str = ""
    name: str = ""
    fragments: tuple[str, ...] = ()
    output: str | None = None

    def __post_init__(self) -> None:
        if self.fragments == ("",):
            object.__setattr__(self, "fragments", ())

    @property
    def input(self) -> str:
        """The input as JSON text; "" where there is none."""
        return "".join(self.fragments)


@record
class Media:
    """An image or sound that the model answers.

    Args:
        media_type: such as `image/png` or `audio/wav`.
        data: the bytes, in the pieces in which they are streamed.
        fragments: they join to the transcript, the text that is spoken; none: without one.
        signature: the provider's opaque value.
    """

    media_type: str
    data: tuple[bytes, ...]
    fragments: tuple[str, ...] = ()
    signature: str | None = None

    def __post_init__(self) -> None:
        texts = tuple(filter(None, self.fragments))
        object.__setattr__(self, "fragments", texts)
        pieces = tuple(filter(None, self.data))
        object.__setattr__(self, "data", pieces if pieces or texts else (b"",))

    @property
    def transcript(self) -> str:
        return "".join(self.fragments)

    def beat(self, number: int) -> tuple[bytes, str]:
        """The bytes or the text of a beat: texts and bytes alternate while there are both, as a
        service sends what is spoken just before its sound."""
        alternating = min(len(self.data), len(self.fragments))
        if number < 2 * alternating:
            index, is_data = divmod(number, 2)
        else:
            index, is_data = number - alternating, len(self.data) > len(self.fragments)
        return (self.data[index], "") if is_data else (b"", self.fragments[index])


@record
class Opaque:
    """A frame of one protocol without a neutral form, at its position among the parts. Other
    protocols ignore it. With `native` its data are a part in the form of the API (`Raw`)."""

    api: str
    frame: Frame
    native: bool = False


Part = Text | Reasoning | Refusal | ToolCall | ServerTool | Media | Opaque


@record
class Turn:
    """One answer of the model.

    Args:
        parts: in the order of the finished answer.
        finish: the finish reason; None if the stream was cut or ended in `error`.
        usage: token counts; None if the stream has none.
        order: the index of the part of each beat of the stream; empty if the parts come one after
            the other. A text, reasoning or refusal part has a beat for each fragment, a tool call
            (of the client or of the service) one for its opening and one for each fragment, an
            image or sound one for each fragment of its bytes and of its transcript, an opaque part
            one.
        gaps: the pauses in microseconds before each beat, then before the end; empty: no timing.
        error: the error in the stream that ended it.
        finish_raw: the finish reason on the wire, if it is not the usual one.
        stop_sequence: the text that the request stops at, if that ended the answer, whose `finish`
            is `stop`.
    """

    parts: tuple[Part, ...] = ()
    finish: FinishReason | None = None
    usage: TokenUsage | None = None
    order: tuple[int, ...] = ()
    gaps: tuple[int, ...] = ()
    error: StreamError | None = None
    finish_raw: str | None = None
    stop_sequence: str | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def refusal(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Refusal))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    def whole(self) -> Turn:
        """The same turn with one fragment for each part, in order, without timing."""
        return replace(self, parts=tuple(map(_whole, self.parts)), order=(), gaps=())


def _whole(part: Part) -> Part:
    if isinstance(part, Opaque):
        return part
    if isinstance(part, Media):
        part = replace(part, data=(b"".join(part.data),))
    return replace(part, fragments=("".join(part.fragments),))


def with_call_names(turn: Turn, names: Mapping[str, str]) -> Turn:
    """The turn with other names of its calls, by those that they have."""
    if not any(call.name in names for call in turn.tool_calls):
        return turn
    parts = [
        replace(part, name=names.get(part.name, part.name)) if isinstance(part, ToolCall) else part
        for part in turn.parts
    ]
    return replace(turn, parts=tuple(parts))


def beats(part: Part) -> int:
    """The number of beats of a part (see `Turn.order`)."""
    match part:
        case ToolCall(fragments=fragments) | ServerTool(fragments=fragments):
            return 1 + len(fragments)
        case Media(data=data, fragments=fragments):
            return len(data) + len(fragments)
        case Opaque():
            return 1
        case _:
            return len(part.fragments)


def usual_finish(parts: Sequence[Part]) -> FinishReason:
    """The finish reason of an answer with these parts, where the scenario has none."""
    if any(isinstance(part, ToolCall) for part in parts):
        return "tool_calls"
    if any(isinstance(part, Refusal) for part in parts):
        return "refusal"
    return "stop"
