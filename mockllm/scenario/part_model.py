"""The parts of a reply as they are written. Only data may live here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mockllm.core.record import record
from mockllm.core.tokens_and_fragments import Split


@record
class Citation:
    """The source of a claim in a text: an address, or something that the client sent.

    Args:
        document, search_result: its number among those of the request, from 0.
        characters, pages, blocks: where in it, from and to, as in a slice; pages count from 1.
    """

    url: str = ""
    title: str = ""
    cited_text: str = ""
    document: int | None = None
    search_result: int | None = None
    characters: tuple[int, int] | None = None
    pages: tuple[int, int] | None = None
    blocks: tuple[int, int] | None = None


@record
class TokenSpec:
    """A token with its log probability, and with the most likely tokens at its position."""

    token: str
    logprob: float
    top: tuple[TokenSpec, ...] = ()


@record
class TextPart:
    """Visible text.

    Args:
        logprobs: whether it has log probabilities, derived ones; or its tokens with theirs, which
            are its fragments, too, where `split` is None.
    """

    text: str
    split: Split | None = None
    every: int | None = None
    citations: tuple[Citation, ...] = ()
    logprobs: bool | tuple[TokenSpec, ...] = False
    signature: str | None = None

    @property
    def tokens(self) -> tuple[TokenSpec, ...]:
        """Its tokens; () where the log probabilities are derived, or where it has none."""
        return () if isinstance(self.logprobs, bool) else self.logprobs

    def rule(self, default: Split | None) -> Split | None:
        """The cut of the text: as written, else into its tokens, else by a default."""
        if self.split is None and self.tokens:
            return tuple(token.token for token in self.tokens if token.token)
        return default if self.split is None else self.split


@record
class ReasoningPart:
    """Reasoning, or a summary of it; `signature` is the provider's opaque proof."""

    text: str
    split: Split | None = None
    every: int | None = None
    signature: str | None = None
    summary: bool = False


@record
class RefusalPart:
    """The text with which the model declines to answer."""

    text: str
    split: Split | None = None
    every: int | None = None


@record
class ToolPart:
    """A tool call.

    Args:
        id: None is derived (`mockllm.play.matching.conversation.call_id`).
        arguments: JSON text, compact where YAML has a mapping; None: a call without arguments.
        malformed: whether name or arguments are wrong on purpose.
        signature: the provider's opaque proof of the reasoning behind the call.
        custom: whether the tool takes free text (`input:`), which `arguments` then holds.
    """

    name: str
    id: str | None = None
    arguments: str | None = None
    malformed: bool = False
    split: Split | None = None
    every: int | None = None
    signature: str | None = None
    custom: bool = False


@record
class ServerToolPart:
    """A call of a tool that the service hosts and runs itself, with its result.

    Args:
        kind: the tool: `web_search`, `code_interpreter`, `file_search`, `mcp` and so on.
        id: None is derived, where the API has ids.
        name: the name on the wire, where it is not `kind`.
        input, output: JSON text, compact where YAML has a value; None: there is none.
    """

    kind: str
    id: str | None = None
    name: str | None = None
    input: str | None = None
    output: str | None = None
    split: Split | None = None
    every: int | None = None


@record
class MediaSource:
    """The bytes of an image or sound, and their media type.

    Args:
        file: the name of the file beside the YAML that has them; "": the YAML has them, as base64.
    """

    data: bytes
    type: str
    file: str = ""


@record
class ImagePart:
    """An image that the model answers; `signature` is the provider's opaque value."""

    image: MediaSource
    every: int | None = None
    signature: str | None = None


@record
class AudioPart:
    """Sound that the model answers.

    Args:
        transcript: what is spoken; `split` cuts it.
        fragment_bytes: how many bytes of the sound a fragment has; None: all.
        signature: the provider's opaque value.
    """

    audio: MediaSource
    transcript: str = ""
    fragment_bytes: int | None = None
    split: Split | None = None
    every: int | None = None
    signature: str | None = None


@record
class ParallelPart:
    """Calls whose fragments interleave: round robin, or in the order of `order`, which has an
    index into `calls` for each fragment."""

    calls: tuple[ToolPart, ...]
    order: tuple[int, ...] = ()


@record
class PausePart:
    """A pause, in microseconds."""

    duration: int


@record
class FramePart:
    """One frame of protocol `api`, sent unchanged: `data` (text, or a JSON value) with `event`,
    `id` and `retry`; or a `comment`; or `raw` text."""

    api: str
    data: Any = None
    event: str | None = None
    id: str | None = None
    retry: int | None = None
    comment: str | None = None
    raw: str | None = None


Member = (
    TextPart
    | ReasoningPart
    | RefusalPart
    | ToolPart
    | ServerToolPart
    | ImagePart
    | AudioPart
    | FramePart
)


@record
class InterleavedPart:
    """Parts whose fragments interleave in the order of `order`, which has an index into `parts`
    for each fragment. The opening of a call counts as a fragment, and so does a frame."""

    parts: tuple[Member, ...]
    order: tuple[int, ...]


@record
class ErrorSpec:
    """An error; None stands for the default of the API."""

    message: str | None = None
    type: str | None = None
    code: str | None = None


@record
class ErrorPart:
    """The error inside the stream, which ends it."""

    error: ErrorSpec


@record
class AutoPart:
    """An answer made from the request.

    Args:
        tokens: the distribution of its length (`mockllm.core.distributions`), as written: the
            answer is words then, and no echo; "" for an echo.
    """

    tokens: str = ""


AnyPart = (
    TextPart
    | ReasoningPart
    | RefusalPart
    | ToolPart
    | ServerToolPart
    | ImagePart
    | AudioPart
    | ParallelPart
    | InterleavedPart
    | PausePart
    | FramePart
    | ErrorPart
    | AutoPart
)


def members(reply: Iterable[AnyPart]) -> Iterator[AnyPart]:
    """The parts of a reply, with the members of groups in place of the groups."""
    for part in reply:
        if isinstance(part, ParallelPart):
            yield from part.calls
        elif isinstance(part, InterleavedPart):
            yield from part.parts
        else:
            yield part


def takes_time(part: AnyPart) -> bool:
    """Whether a part has a pause as it is written."""
    return bool(part.duration if isinstance(part, PausePart) else getattr(part, "every", None))
