"""The parts of a reply as they are written: what a `model.TurnSpec` is made of. Only data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

Api = str
"""The name of a wire protocol: a key of `mockllm.protocols.PROTOCOLS`."""


class TextFile(str):
    """A text that has a file of its own beside the YAML: `{file: NAME}`."""

    __slots__ = ("file",)
    file: str

    def __new__(cls, text: str, file: str) -> Self:
        self = super().__new__(cls, text)
        self.file = file
        return self

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # str has one
        return str(self), self.file


@dataclass(frozen=True, slots=True)
class RandomSplit:
    """Fragments of `low` to `high` characters, drawn from the seed."""

    low: int
    high: int


Split = Literal["whole", "chars", "words"] | int | RandomSplit | tuple[str, ...]
"""How a value is cut: by a rule, every n characters, at random, or into the fragments given."""


@dataclass(frozen=True, slots=True)
class Citation:
    """The source of a claim in a text."""

    url: str
    title: str = ""
    cited_text: str = ""


@dataclass(frozen=True, slots=True)
class TextPart:
    """Visible text."""

    text: str
    split: Split | None = None
    every: int | None = None
    citations: tuple[Citation, ...] = ()
    logprobs: bool = False
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """Reasoning, or a summary of it; `signature` is the provider's opaque proof."""

    text: str
    split: Split | None = None
    every: int | None = None
    signature: str | None = None
    summary: bool = False


@dataclass(frozen=True, slots=True)
class RefusalPart:
    """The text with which the model declines to answer."""

    text: str
    split: Split | None = None
    every: int | None = None


@dataclass(frozen=True, slots=True)
class ToolPart:
    """A tool call.

    Args:
        id: None is derived (`mockllm.matching.positions.call_id`).
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class ParallelPart:
    """Calls whose fragments interleave: round robin, or in the order of `order`, which has an
    index into `calls` for each fragment."""

    calls: tuple[ToolPart, ...]
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PausePart:
    """A pause, in microseconds."""

    duration: int


@dataclass(frozen=True, slots=True)
class FramePart:
    """One frame of protocol `api`, sent unchanged: `data` (text, or a JSON value) with `event`,
    `id` and `retry`; or a `comment`; or `raw` text."""

    api: Api
    data: Any = None
    event: str | None = None
    id: str | None = None
    retry: int | None = None
    comment: str | None = None
    raw: str | None = None


Member = TextPart | ReasoningPart | RefusalPart | ToolPart | ServerToolPart | FramePart


@dataclass(frozen=True, slots=True)
class InterleavedPart:
    """Parts whose fragments interleave in the order of `order`, which has an index into `parts`
    for each fragment. The opening of a call counts as a fragment, and so does a frame."""

    parts: tuple[Member, ...]
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    """An error; None stands for the default of the API."""

    message: str | None = None
    type: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class ErrorPart:
    """The error inside the stream, which ends it."""

    error: ErrorSpec


@dataclass(frozen=True, slots=True)
class AutoPart:
    """An answer made from the request."""


AnyPart = (
    TextPart
    | ReasoningPart
    | RefusalPart
    | ToolPart
    | ServerToolPart
    | ParallelPart
    | InterleavedPart
    | PausePart
    | FramePart
    | ErrorPart
    | AutoPart
)
