"""A scenario as it was written: what `load` gives and `dump` takes.

The authored form is kept (`split: words` stays a rule, `parallel` stays a group), so that a
scenario can be written back readable; `mockllm.scenario.resolve` works out the neutral `Turn`.
Durations are whole microseconds. JSON values are plain Python values, not to be changed.
Only data may live here.
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
"""The name of a wire protocol, as `mockllm.protocols.PROTOCOLS` has it."""


@dataclass(frozen=True, slots=True)
class RandomSplit:
    """Fragments of `low` to `high` characters, drawn from the seed."""

    low: int
    high: int


Split = Literal["whole", "chars", "words"] | int | RandomSplit | tuple[str, ...]
"""How a value is cut: by rule, every so many characters, at random, or as written."""


@dataclass(frozen=True, slots=True)
class TextCondition:
    """A condition on a text; without an operator, YAML means `contains`."""

    op: Literal["contains", "equals", "regex"]
    value: str


@dataclass(frozen=True, slots=True)
class Match:
    """When a scenario answers a request that did not name one; all conditions must hold.

    `anything` (`match: any`) answers whatever no other scenario does. `headers` pairs
    lower-case names with conditions. `body` is a partial JSON body.
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
    """Tokens as written; what is None is counted from the text by a fixed rule. Where they are
    not `sent` (`usage: none`) the answer says nothing of them."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | None = None
    sent: bool = True


@dataclass(frozen=True, slots=True)
class Timing:
    """Pauses: before the first fragment, between fragments, their random share, or the exact
    offset of each fragment from the start of the answer.

    `jitter` is a share of each pause (0.2 for `20%`).
    """

    ttft: int | None = None
    every: int | None = None
    jitter: float | None = None
    at: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for all turns that do not say otherwise."""

    split: Split | None = None
    every: int | None = None
    ttft: int | None = None
    jitter: float | None = None
    usage: UsageSpec | None = None


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a claim in a text comes from."""

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
    """The model's words for not answering."""

    text: str
    split: Split | None = None
    every: int | None = None


@dataclass(frozen=True, slots=True)
class ToolPart:
    """A tool call. `arguments` is JSON text (compact, where YAML had a mapping); None is a
    call without arguments. `id` of None is derived. `signature` is the provider's opaque proof
    of the reasoning behind it."""

    name: str
    id: str | None = None
    arguments: str | None = None
    malformed: bool = False
    split: Split | None = None
    every: int | None = None
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class ParallelPart:
    """Calls whose fragments interleave: round robin, or as `order` says (an index into
    `calls` for each fragment)."""

    calls: tuple[ToolPart, ...]
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PausePart:
    """Nothing is sent for so long."""

    duration: int


@dataclass(frozen=True, slots=True)
class FramePart:
    """One frame of protocol `api`, as it is: `data` (text, or a JSON value), with `event`,
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
    """Parts whose fragments come between each other's, exactly as `order` says: an index into
    `parts` for each fragment, the opening of a call and a frame being one, too."""

    parts: tuple[Member, ...]
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    """An error in the terms of the API; what is None takes the API's own default."""

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
    """What the result of a call must be: a text condition, or (`error`) a failure."""

    text: TextCondition | None = None
    error: bool = False


@dataclass(frozen=True, slots=True)
class Expect:
    """`request:` of a turn: what the client must have sent to deserve it."""

    results: tuple[tuple[str, ResultCondition], ...] = ()
    offers: tuple[str, ...] = ()
    tool_choice: str | None = None
    user: TextCondition | None = None
    body: Any = None
    schema: Any = None


@dataclass(frozen=True, slots=True)
class Comments:
    """A comment line after every so many events."""

    every: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Segments:
    """TCP writes of `low` to `high` bytes."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Wire:
    """How the bytes travel; None leaves what the protocol's own service does.

    `multiline` spreads the data of each event over several `data` lines. `group` joins so many
    events into one where the protocol has a way to. `segments` of several numbers are the sizes
    of the writes, in bytes, over and over. `quirks` are names as in `mockllm.quirks`.
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
    """`expect:` of a turn: what a correct client must end up with, where it is not simply
    what `reply` says. `tool_calls` are mappings with `id`, `name` and `arguments`; `errors`
    are mappings with `tool` (an index) and `kind`. What is None follows from `reply`."""

    text: str | None = None
    tool_calls: Any = None
    finish: FinishReason | None = None
    errors: Any = None


Ending = Literal["stop", "tool_calls", "length", "content_filter", "refusal", "none"]
"""Why an answer ends; `none`: it is cut off, and nothing says why."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The exact bytes of a turn's answer, in a tape: a file beside the YAML.

    `file` is as written, a path in the folder of the YAML. `path` is where the tape is; None
    for a scenario that came without a folder.
    """

    file: str
    path: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TurnSpec:
    """One turn of the model as written.

    Exactly one of `reply` (at least one part) and `http` is there. `finish_raw` is the wire's
    own word for the finish where it is not the usual one. `variants` are whole turns
    that replace this one for the protocols named (`when:`). `recorded` is of the turn as a
    whole; variants have none.
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

    `apis` of () means every protocol that there is. `seed` of None means the name.
    `restart` (`then: restart`) begins anew after the last turn.
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

    def plays_over(self, api: str) -> bool:
        """Whether it answers requests of a protocol."""
        return not self.apis or api in self.apis

    def shares_api(self, other: Scenario) -> bool:
        """Whether there is a protocol that both play over."""
        return not self.apis or not other.apis or not set(self.apis).isdisjoint(other.apis)

    @property
    def seeded(self) -> str:
        """What everything random in this scenario is drawn from."""
        return self.name if self.seed is None else self.seed
