"""A scenario as it is written: what `load` returns and `dump` writes. Only data may live here.

The written form is kept (`split: words` stays a rule, `parallel` stays a group), so that a
scenario can be written back in a readable form; `mockllm.replay.resolve` makes the neutral `Turn`.
Durations are whole microseconds. JSON values are plain Python values that no one may change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from mockllm.core.request import OfferedTool

if TYPE_CHECKING:
    from mockllm.core.events import FinishReason

__all__ = [
    "AnyPart",
    "Api",
    "AutoPart",
    "Citation",
    "Comments",
    "Defaults",
    "Ending",
    "ErrorPart",
    "ErrorSpec",
    "Expect",
    "FramePart",
    "Http",
    "InterleavedPart",
    "Match",
    "Member",
    "Outcome",
    "ParallelPart",
    "PausePart",
    "RandomSplit",
    "ReasoningPart",
    "Recorded",
    "RefusalPart",
    "ResultCondition",
    "Scenario",
    "Segments",
    "Split",
    "TextCondition",
    "TextPart",
    "Timing",
    "ToolPart",
    "ToolSpec",
    "TurnSpec",
    "UsageSpec",
    "Wire",
]

Api = str
"""The name of a wire protocol: a key of `mockllm.protocols.PROTOCOLS`."""


@dataclass(frozen=True, slots=True)
class RandomSplit:
    """Fragments of `low` to `high` characters, drawn from the seed."""

    low: int
    high: int


Split = Literal["whole", "chars", "words"] | int | RandomSplit | tuple[str, ...]
"""How a value is cut: by a rule, every n characters, at random, or into the fragments given."""


@dataclass(frozen=True, slots=True)
class TextCondition:
    """A condition on a text; without an operator, YAML means `contains`."""

    op: Literal["contains", "equals", "regex"]
    value: str


@dataclass(frozen=True, slots=True)
class Match:
    """When a scenario answers a request that did not name one; all conditions must hold.

    `anything` (`match: any`) answers what no other scenario answers. `headers` pairs lower-case
    names with conditions. `body` is a partial JSON body.
    """

    anything: bool = False
    model: str | None = None
    user: TextCondition | None = None
    system: TextCondition | None = None
    tools: tuple[str, ...] = ()
    headers: tuple[tuple[str, TextCondition], ...] = ()
    body: Any = None

    @property
    def conditions(self) -> int:
        """How many conditions there are; the scenario with the most wins."""
        return (
            (self.model is not None)
            + (self.user is not None)
            + (self.system is not None)
            + len(self.tools)
            + len(self.headers)
            + (self.body is not None)
        )


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that the client is expected to offer; `parameters` is a JSON Schema."""

    name: str
    description: str = ""
    parameters: Any = None

    def offered(self) -> OfferedTool:
        """The tool as a client offers it."""
        return OfferedTool(self.name, self.description, self.parameters or {})


@dataclass(frozen=True, slots=True)
class UsageSpec:
    """Token counts. None is counted from the text by a fixed rule (`mockllm.replay.usage`).
    With `sent` False (`usage: none`) the answer has no usage."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | None = None
    sent: bool = True


@dataclass(frozen=True, slots=True)
class Timing:
    """When fragments are sent, in microseconds.

    Args:
        ttft: the pause before the first fragment.
        every: the pause between fragments.
        jitter: the largest random change of each pause, as a share of it (0.2 for `20%`).
        at: the offset of each fragment from the start of the answer, in place of all others.
    """

    ttft: int | None = None
    every: int | None = None
    jitter: float | None = None
    at: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values for all turns that have none of their own."""

    split: Split | None = None
    every: int | None = None
    ttft: int | None = None
    jitter: float | None = None
    usage: UsageSpec | None = None


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
    """

    name: str
    id: str | None = None
    arguments: str | None = None
    malformed: bool = False
    split: Split | None = None
    every: int | None = None
    signature: str | None = None


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


Member = TextPart | ReasoningPart | RefusalPart | ToolPart | FramePart


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
    | ParallelPart
    | InterleavedPart
    | PausePart
    | FramePart
    | ErrorPart
    | AutoPart
)


@dataclass(frozen=True, slots=True)
class Http:
    """An HTTP error in place of an answer; `retry_after` in microseconds."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    retry_after: int | None = None
    error: ErrorSpec | None = None


@dataclass(frozen=True, slots=True)
class ResultCondition:
    """A condition on the result of a call: on its text, or (`error`) that it is a failure."""

    text: TextCondition | None = None
    error: bool = False


@dataclass(frozen=True, slots=True)
class Expect:
    """`request:` of a turn: conditions that the request must meet to be answered."""

    results: tuple[tuple[str, ResultCondition], ...] = ()
    offers: tuple[str, ...] = ()
    tool_choice: str | None = None
    user: TextCondition | None = None
    body: Any = None
    schema: Any = None


@dataclass(frozen=True, slots=True)
class Comments:
    """A comment line after every n-th event, with n in `every`."""

    every: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Segments:
    """TCP writes of `low` to `high` bytes."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Wire:
    """How the stream is written; None is what the service of the protocol does.

    Args:
        multiline: whether the data of each event are spread over several `data` lines.
        group: how many events are joined into one, where the protocol can join them.
        segments: the sizes of TCP writes in bytes; a tuple is used over and over.
        quirks: names as in `mockllm.quirks`.
    """

    line_end: Literal["lf", "crlf", "cr"] | None = None
    bom: bool = False
    multiline: bool = False
    comments: Comments | None = None
    group: int | None = None
    segments: Segments | tuple[int, ...] | None = None
    quirks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """`expect:` of a turn: the outcome of a correct client, where it does not follow from
    `reply`; None follows from `reply`.

    Args:
        tool_calls: mappings with `id`, `name` and `arguments`.
        usage: a count that is None follows from `reply`.
        opaque: signatures, redacted and encrypted reasoning.
        errors: mappings with `tool` (an index) and `kind`.
    """

    text: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: Any = None
    finish: FinishReason | None = None
    usage: UsageSpec | None = None
    opaque: tuple[str, ...] | None = None
    errors: Any = None


Ending = Literal["stop", "tool_calls", "length", "content_filter", "refusal", "none"]
"""Why an answer ends; `none`: it is cut off, without a reason."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The recorded bytes of a turn's answer, in a tape: a file beside the YAML.

    Args:
        file: as written: a path in the folder of the YAML.
        path: of the tape; None for a scenario that was not loaded from a file.
    """

    file: str
    path: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TurnSpec:
    """One turn of the model as written.

    Exactly one of `reply` (at least one part) and `http` is set.

    Args:
        finish_raw: the finish reason that is sent, where it is not the usual one of the API.
        variants: whole turns that replace this one for the protocols named (`when:`).
        recorded: of the turn itself; variants have none.
    """

    reply: tuple[AnyPart, ...] = ()
    http: Http | None = None
    request: Expect | None = None
    finish: Ending | None = None
    finish_raw: str | None = None
    usage: UsageSpec | None = None
    timing: Timing | None = None
    attempts: tuple[Http, ...] = ()
    wire: Wire | None = None
    expect: Outcome | None = None
    repeat: bool = False
    recorded: Recorded | None = None
    variants: tuple[tuple[Api, TurnSpec], ...] = ()

    def for_api(self, api: str) -> TurnSpec:
        """This turn as protocol `api` plays it."""
        for name, variant in self.variants:
            if name == api:
                return variant
        return self


@dataclass(frozen=True, slots=True)
class Scenario:
    """A conversation with a model, as one YAML document describes it.

    Args:
        apis: the protocols that it plays over; () means every protocol.
        seed: None means the name.
        restart: whether the first turn follows the last one (`then: restart`).
        any_ids: whether calls in a history may have ids that are not those of the scenario
            (`ids: any`).
    """

    name: str
    turns: tuple[TurnSpec, ...]
    description: str = ""
    apis: tuple[Api, ...] = ()
    match: Match | None = None
    tools: tuple[ToolSpec, ...] = ()
    seed: str | None = None
    defaults: Defaults = Defaults()
    restart: bool = False
    any_ids: bool = False

    def plays_over(self, api: str) -> bool:
        """Whether the scenario answers requests of a protocol."""
        return not self.apis or api in self.apis

    def shares_api(self, other: Scenario) -> bool:
        """Whether there is a protocol that both play over."""
        return not self.apis or not other.apis or not set(self.apis).isdisjoint(other.apis)

    @property
    def seeded(self) -> str:
        """The seed of everything random in this scenario."""
        return self.name if self.seed is None else self.seed
