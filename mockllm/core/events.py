"""The protocol-neutral events of a streamed answer, and the frames that its stream consists of.
Only data may live here.

An answer is `Start` (where its stream says that it begins), then deltas of its parts, then `Usage`
and `Finish` (or `StreamError`, or nothing if the stream was cut). Each delta has the key of its
part; parts sort by their keys.
"""

from __future__ import annotations

from typing import Literal

from mockllm.core.record import record

FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]


@record
class Start:
    """The answer begins. Id and model are set by decoders only; encoders have them in `Reply`."""

    id: str = ""
    model: str = ""


@record
class Token:
    """A token with its log probability, at most 0.

    Args:
        top: the most likely tokens at its position, as far as they are known.
    """

    text: str
    logprob: float
    top: tuple[Token, ...] = ()


@record
class TextDelta:
    """A fragment of visible text; `logprobs` is whether it comes with log probabilities.

    Args:
        tokens: those that begin in the fragment; None where the log probabilities are derived.
    """

    part: int
    text: str
    logprobs: bool = False
    tokens: tuple[Token, ...] | None = None


@record
class ReasoningDelta:
    """A fragment of reasoning, or with `summary` of a summary of hidden reasoning."""

    part: int
    text: str
    summary: bool = False


@record
class RefusalDelta:
    """A fragment of a refusal."""

    part: int
    text: str


@record
class ToolStart:
    """A tool call opens. Its arguments come in `ToolArgs`; without any it has no arguments.

    With `custom` the client defined the tool with free text as its input, and the fragments in
    `ToolArgs` are that text and no JSON.
    """

    part: int
    id: str
    name: str
    custom: bool = False


@record
class ToolArgs:
    """A fragment of a call's arguments: JSON text, cut anywhere between code points."""

    part: int
    text: str


@record
class ServerToolStart:
    """The service itself calls a tool that it hosts. The input comes in `ToolArgs`, as JSON text.

    Args:
        kind: the tool: `web_search`, `code_interpreter`, `file_search`, `mcp` and so on.
        name: the name on the wire, where it is not `kind`; "" otherwise.
    """

    part: int
    id: str
    kind: str
    name: str = ""


@record
class ServerToolResult:
    """The result of a tool that the service hosts, as JSON text."""

    part: int
    output: str


@record
class MediaDelta:
    """A fragment of an image or of sound: some of its bytes, or of the text that is spoken in it.

    Args:
        media_type: of the whole, such as `image/png`; the same in each fragment.
        data: the next bytes; b"" in a fragment of the transcript.
        text: the next piece of the transcript; "" in a fragment of the bytes.
    """

    part: int
    media_type: str
    data: bytes = b""
    text: str = ""


@record
class Replacement:
    """The whole value of a part, text or arguments, where it contradicts the fragments so far. Only
    decoders return it: the final value of Responses counts, whatever its deltas were."""

    part: int
    text: str


@record
class Signature:
    """The provider's opaque signature of a part (Anthropic `signature`, Responses
    `encrypted_content`, Gemini `thoughtSignature`), which clients must send back unchanged."""

    part: int
    value: str


Unit = Literal["characters", "pages", "blocks"]


@record
class Passage:
    """Where in a document of the request, or in a search result of it, a citation is from.

    Args:
        source: its number among the documents (or the search results) of the request, from 0.
        unit: what `start` and `end` count: characters and blocks from 0, pages from 1.
        end: after the passage, as in a slice.
        of_search: whether the source is a search result, which has blocks only.
    """

    source: int
    unit: Unit
    start: int
    end: int
    of_search: bool = False


@record
class Cite:
    """A citation of a text part: a source and the text cited from it. A source that the client sent
    is known by its `passage`, and may have no `url`."""

    part: int
    url: str
    title: str = ""
    cited_text: str = ""
    passage: Passage | None = None

    @property
    def has_address(self) -> bool:
        """Whether it can be sent where citations have an address and nothing else."""
        return bool(self.url) or self.passage is None


@record
class PartEnd:
    """The part is complete."""

    part: int


@record
class Usage:
    """Token counts: `input` includes `cached` (read from a cache) and `cache_written` (written into
    one), `output` includes `reasoning`."""

    input: int
    output: int
    reasoning: int = 0
    cached: int = 0
    cache_written: int = 0


@record
class Finish:
    """The answer is complete.

    Args:
        raw: the value on the wire, if it is not the usual one of the protocol for this reason.
        stop_sequence: the text that the request stops at, if that ended the answer.
    """

    reason: FinishReason
    raw: str | None = None
    stop_sequence: str | None = None


@record
class StreamError:
    """The service reports an error in the stream, which ends there."""

    message: str
    type: str | None = None
    code: str | None = None


LineEnd = Literal["lf", "crlf", "cr"]

FrameKind = Literal["event", "exception", "error"]


@record
class Frame:
    """One event of the stream, or one comment, or (`raw`) text that is sent unchanged.

    `retry` is in milliseconds. `data` is None if there is no `data` line. `kind` counts only where
    the carrier has kinds of frames: those of AWS are events, exceptions and errors.
    """

    data: str | None = None
    event: str | None = None
    id: str | None = None
    retry: int | None = None
    comment: str | None = None
    raw: str | None = None
    kind: FrameKind = "event"


@record
class Raw:
    """A frame of one protocol that has no neutral event; its bytes are kept.

    Args:
        native: whether the data are a part in the form of the API, which its encoder completes with
            ids and numbers, and puts into as many frames as it needs.
    """

    part: int
    api: str
    frame: Frame
    native: bool = False


Delta = TextDelta | ReasoningDelta | RefusalDelta | ToolArgs | MediaDelta
"""The events with a fragment of a part."""

Event = (
    Start
    | Delta
    | ToolStart
    | ServerToolStart
    | ServerToolResult
    | Replacement
    | Signature
    | Cite
    | PartEnd
    | Usage
    | Finish
    | StreamError
    | Raw
)


@record
class Timed:
    """An event and when it is due, in microseconds after the request."""

    at: int
    event: Event
