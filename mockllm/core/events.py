"""The neutral vocabulary of a streamed answer: what any of the protocols can say, in order.

An answer is `Start`, then deltas of its parts, then `Usage` and `Finish` (or `StreamError`, or
nothing more where the stream was cut). Each delta names the part it belongs to by a key that
is the same for all deltas of that part; parts sort by their keys. Only data may live here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mockllm.core.frame import Frame

__all__ = [
    "Cite",
    "Event",
    "Finish",
    "FinishReason",
    "PartEnd",
    "Raw",
    "ReasoningDelta",
    "RefusalDelta",
    "Signature",
    "Start",
    "StreamError",
    "TextDelta",
    "Timed",
    "ToolArgs",
    "ToolStart",
    "Usage",
]

FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]


@dataclass(frozen=True, slots=True)
class Start:
    """The answer begins; what a decoder learnt about its identity (an encoder has its own)."""

    id: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A fragment of visible text; `logprobs` says that log probabilities travel with it."""

    part: int
    text: str
    logprobs: bool = False


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A fragment of reasoning; `summary` marks a summary of reasoning that stays hidden."""

    part: int
    text: str
    summary: bool = False


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """A fragment of a refusal."""

    part: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolStart:
    """A tool call opens. Arguments come in `ToolArgs`; none at all is a zero-argument call."""

    part: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolArgs:
    """A fragment of a call's arguments: JSON text, cut anywhere between code points."""

    part: int
    text: str


@dataclass(frozen=True, slots=True)
class Signature:
    """The provider's opaque proof of a part (Anthropic `signature`, Responses
    `encrypted_content`, Gemini `thoughtSignature`)."""

    part: int
    value: str


@dataclass(frozen=True, slots=True)
class Cite:
    """A citation of a text part: where a claim comes from."""

    part: int
    url: str
    title: str = ""
    cited_text: str = ""


@dataclass(frozen=True, slots=True)
class PartEnd:
    """Nothing more comes for this part."""

    part: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens counted: `input` includes `cached`, `output` includes `reasoning`."""

    input: int
    output: int
    reasoning: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Finish:
    """The answer is complete. `raw` is the wire's own word where it is not the usual one."""

    reason: FinishReason
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class StreamError:
    """The service reports an error inside the stream, which ends with it."""

    message: str
    type: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Raw:
    """A frame of one protocol that the neutral vocabulary has no word for, kept as it is."""

    part: int
    api: str
    frame: Frame


Event = (
    Start
    | TextDelta
    | ReasoningDelta
    | RefusalDelta
    | ToolStart
    | ToolArgs
    | Signature
    | Cite
    | PartEnd
    | Usage
    | Finish
    | StreamError
    | Raw
)


@dataclass(frozen=True, slots=True)
class Timed:
    """An event and when it is due, in microseconds after the answer was asked for."""

    at: int
    event: Event
