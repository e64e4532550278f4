"""The parts of a reply as they are written, and the functions that visit them.

A new kind of part changes this module, its reader, its neutral form
(`mockllm.play.replay.compilation.resolve`, and `drafting.turns` for the way back) and the encoders
that can say it. Nothing else tells kinds apart, which `tests/scenario/test_part_model.py` holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Literal

from mockllm.core.record import record
from mockllm.core.tokens_and_fragments import Split, tokens


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


ACTION_NAME = re.compile(r"<(shell|write|read|edit)>")


@record
class ToolPart:
    """A tool call.

    Args:
        id: None is derived (`mockllm.play.matching.conversation.call_id`).
        arguments: JSON text, compact where YAML has a mapping; None: a call without arguments.
        malformed: whether name or arguments are wrong on purpose.
        signature: the provider's opaque proof of the reasoning behind the call.
        custom: whether the tool takes free text (`input:`), which `arguments` then holds.
        refused: whether the client is not to run it, as its user or a rule refuses it.

    A name in angle brackets is no tool but an action (`shell`, `write`, `read`, `edit`), whose
    values `arguments` has: each coding agent has its own tool for it.
    """

    name: str
    id: str | None = None
    arguments: str | None = None
    malformed: bool = False
    split: Split | None = None
    every: int | None = None
    signature: str | None = None
    custom: bool = False
    refused: bool = False

    @property
    def action(self) -> str:
        """The action that the call is; "" for a call of a tool."""
        named = ACTION_NAME.fullmatch(self.name)
        return "" if named is None or self.malformed else named[1]


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
class Gate:
    """A place at which an answer waits until the test opens it.

    Args:
        limit: after so many microseconds the answer goes on, and the verdict is bad.
    """

    name: str
    limit: int = 30_000_000


@record
class GatePart:
    """A gate: what comes after it waits."""

    gate: Gate


@record
class FramePart:
    """One frame of protocol `api`, sent unchanged: `data` (text, or a JSON value) with `event`,
    `id` and `retry`; or a `comment`; or `raw` text.

    Args:
        first: whether it comes before the first event that the API sends by itself.
    """

    api: str
    data: Any = None
    event: str | None = None
    id: str | None = None
    retry: int | None = None
    comment: str | None = None
    raw: str | None = None
    first: bool = False


@record
class NativePart:
    """A part that only protocol `api` has, in the form of that API.

    Args:
        value: a JSON object with a `type`, or the text of a file that has one.
    """

    api: str
    value: Any


Written = TextPart | ReasoningPart | RefusalPart | ToolPart
"""The parts that the model writes word by word."""

Member = Written | ServerToolPart | ImagePart | AudioPart | FramePart | NativePart


@record
class InterleavedPart:
    """Parts whose fragments interleave in the order of `order`, which has an index into `parts`
    for each fragment. The opening of a call counts as a fragment, and so do a frame and a native
    part."""

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


PartPath = tuple[str | int, ...]
"""The keys and numbers that lead to a part or a value."""

AnyPart = Member | ParallelPart | InterleavedPart | PausePart | GatePart | ErrorPart | AutoPart


# Groups


def members(reply: Iterable[AnyPart]) -> Iterator[AnyPart]:
    """The parts of a reply, with the members of groups in place of the groups."""
    for part in reply:
        if isinstance(part, ParallelPart):
            yield from part.calls
        elif isinstance(part, InterleavedPart):
            yield from part.parts
        else:
            yield part


def placed_members(part: AnyPart) -> list[tuple[PartPath, AnyPart]]:
    """The members of a group, with their paths in it; a part that is no group is its own member."""
    match part:
        case ParallelPart():
            return [(("parallel", index), call) for index, call in enumerate(part.calls)]
        case InterleavedPart():
            return [(("interleaved", index), member) for index, member in enumerate(part.parts)]
    return [((), part)]


def map_members(part: AnyPart, change: Callable[[PartPath, AnyPart], Any]) -> AnyPart:
    """A group with a change of each of its members; of a part that is no group, of itself."""
    changed = tuple(change(path, member) for path, member in placed_members(part))
    match part:
        case ParallelPart():
            return replace(part, calls=changed)
        case InterleavedPart():
            return replace(part, parts=changed)
    whole: AnyPart = changed[0]
    return whole


# Kinds


def kind_of(part: AnyPart) -> str:
    """The kind of a part in one word."""
    return type(part).__name__.removesuffix("Part").lower()


def title_of(part: AnyPart) -> str:
    """A part in a few words: a text, the name of a call, else its kind."""
    if isinstance(part, ToolPart):
        return f"{part.name}()"
    return str(part.text) if isinstance(part, TextPart) else kind_of(part)


MAY_CALL = (ToolPart, ParallelPart, InterleavedPart, AutoPart)
"""The kinds of which `tool_parts`, or the request, may make calls."""


def tool_parts(reply: Iterable[AnyPart]) -> Iterator[ToolPart]:
    """The calls in a reply, in order."""
    return (part for part in members(reply) if isinstance(part, ToolPart))


def frame_apis(reply: Iterable[AnyPart]) -> set[str]:
    """The protocols of the frames that a reply sends unchanged."""
    return {part.api for part in members(reply) if isinstance(part, FramePart)}


def apis_written_out(reply: Iterable[AnyPart]) -> set[str]:
    """The protocols in whose own form something of a reply is written: frames and native parts."""
    return {part.api for part in members(reply) if isinstance(part, FramePart | NativePart)}


def first_frames(reply: Iterable[AnyPart], api: str) -> Iterator[FramePart]:
    """The frames that a reply sends over a protocol before its first event."""
    frames = (part for part in reply if isinstance(part, FramePart))
    return (frame for frame in frames if frame.first and frame.api == api)


def visible_text(reply: Iterable[AnyPart]) -> str:
    """The text of a reply, as the user sees it."""
    parts = members(reply)
    return "".join(part.text for part in parts if isinstance(part, TextPart | RefusalPart))


def plain_text(reply: Sequence[AnyPart]) -> str | None:
    """The text of a reply of nothing but text and reasoning; None for any other reply."""
    is_plain = all(isinstance(part, TextPart | ReasoningPart) for part in reply)
    texts = (part.text for part in reply if isinstance(part, TextPart))
    return "".join(texts) if is_plain else None


def gates_in(reply: Iterable[AnyPart]) -> list[Gate]:
    """The gates of a reply, in order."""
    return [part.gate for part in reply if isinstance(part, GatePart)]


def without_gates(reply: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
    """A reply in which nothing waits; one of gates alone is empty."""
    kept = tuple(part for part in reply if not isinstance(part, GatePart))
    return kept or tuple(PausePart(0) for _ in reply[:1])


def takes_time(part: AnyPart) -> bool:
    """Whether a part has a pause as it is written."""
    return bool(part.duration if isinstance(part, PausePart) else getattr(part, "every", None))


# Values


@record
class Content:
    """The text of a part that is streamed in fragments.

    Args:
        field: of the part.
        noun: in messages.
        is_json: whether it is JSON text.
    """

    field: str
    noun: str
    text: str
    is_json: bool = False


def content_of(part: AnyPart) -> Content | None:
    """The text that `split` cuts; None for a part that cannot be cut."""
    match part:
        case TextPart() | ReasoningPart() | RefusalPart():
            return Content("text", "text", part.text)
        case ToolPart(custom=True):
            return Content("arguments", "input", part.arguments or "")
        case ToolPart():
            return Content("arguments", "arguments", part.arguments or "", True)
        case ServerToolPart():
            return Content("input", "input", part.input or "", True)
        case AudioPart():
            return Content("transcript", "transcript", part.transcript)
    return None


def cut_short(part: Any, length: int) -> Any:
    """A part after the first characters of its content, as where an answer breaks off: a call is
    malformed, and reasoning has no signature, which comes last. None where nothing is left."""
    content = content_of(part)
    if content is None or not content.text[:length]:
        return None
    changes: dict[str, Any] = {content.field: content.text[:length]}
    if isinstance(part.split, tuple):
        placed = zip(part.split, accumulate(map(len, part.split), initial=0), strict=False)
        changes["split"] = tuple(cut[: length - at] for cut, at in placed if at < length)
    match part:
        case TextPart() if part.tokens:
            changes["logprobs"] = True  # the tokens are those of the whole text
        case ReasoningPart():
            changes["signature"] = None
        case ToolPart():
            changes["malformed"] = True
    return replace(part, **changes)


def token_count(reply: Iterable[AnyPart]) -> int:
    """The tokens of parts, as the usage counts them: those of words and of calls."""
    count = 0
    for part in members(reply):
        if isinstance(part, ToolPart):
            count += tokens(part.name) + tokens(part.arguments or ("" if part.custom else "{}"))
        elif isinstance(part, Written):
            count += tokens(part.text)
    return count


ValueForm = Literal["text", "json", "value"]
"""A text, JSON as text, or a JSON value."""


def map_texts(part: AnyPart, change: Callable[[PartPath, Any, ValueForm], Any]) -> AnyPart:
    """A part that is no group, with a change of all that it says, each at its path."""
    match part:
        case TextPart() | ReasoningPart() | RefusalPart():
            return replace(part, text=change((kind_of(part),), part.text, "text"))
        case ToolPart(custom=True):
            return replace(part, arguments=change(("input",), part.arguments or "", "text"))
        case ToolPart():
            return replace(part, arguments=change(("arguments",), part.arguments, "json"))
        case ServerToolPart():
            output = change(("output",), part.output, "json")
            return replace(part, input=change(("input",), part.input, "json"), output=output)
        case AudioPart():
            return replace(part, transcript=change(("transcript",), part.transcript, "text"))
        case FramePart():
            return replace(part, data=change(("frame", "data"), part.data, "value"))
        case NativePart():
            return replace(part, value=change(("native",), part.value, "value"))
    return part


_IN_FILES: dict[type, tuple[str, ...]] = {
    TextPart: ("text", "signature"),
    ReasoningPart: ("text", "signature"),
    ToolPart: ("signature",),
    ServerToolPart: ("output",),
    ImagePart: ("image", "signature"),
    AudioPart: ("audio", "signature"),
    FramePart: ("data",),
    NativePart: ("value",),
}


def filed_values(part: AnyPart) -> list[tuple[str, Any]]:
    """The fields of a part that is no group whose values may be in a file beside the YAML."""
    return [(name, getattr(part, name)) for name in _IN_FILES.get(type(part), ())]
