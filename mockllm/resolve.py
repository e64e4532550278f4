"""A scenario's turn as written to the neutral `Turn` that is played.

`resolve` applies the rules of the language: defaults, cutting, interleaving, pauses, derived
identifiers, counted usage. A *position* is how many turns of the model came before in the
conversation; it differs from the index of the turn where a scenario repeats or restarts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mockllm.derive import derive, derive_unit, tokens
from mockllm.events import Cite, FinishReason, StreamError
from mockllm.scenario.cutting import fragments
from mockllm.scenario.jsontext import compact
from mockllm.scenario.model import (
    AnyPart,
    AutoPart,
    Defaults,
    ErrorPart,
    FramePart,
    ParallelPart,
    PausePart,
    ReasoningPart,
    RefusalPart,
    Scenario,
    Split,
    TextPart,
    Timing,
    ToolPart,
    TurnSpec,
)
from mockllm.sse import Frame
from mockllm.timeline import normal
from mockllm.turn import (
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    TokenUsage,
    ToolCall,
    Turn,
    beats,
)

__all__ = ["PlannedCall", "planned_calls", "resolve", "turn_at", "turn_index"]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that a turn makes. One that is `malformed` a client may rightly leave out."""

    name: str
    id: str
    malformed: bool = False


def turn_index(scenario: Scenario, position: int) -> int | None:
    """Which turn is played at a position; None past the end."""
    count = len(scenario.turns)
    if position < count:
        return position
    if scenario.restart:
        return position % count
    return count - 1 if scenario.turns[-1].repeat else None


def turn_at(scenario: Scenario, position: int, api: str) -> TurnSpec | None:
    """The turn at a position, as protocol `api` plays it; None past the end."""
    index = turn_index(scenario, position)
    return None if index is None else scenario.turns[index].for_api(api)


def planned_calls(
    scenario: Scenario, position: int, api: str, prefix: str
) -> tuple[PlannedCall, ...] | None:
    """The calls that the turn at a position makes, in order.

    None where they are not known from the scenario alone: the turn answers by itself (`auto`),
    or there is no such turn.
    """
    spec = turn_at(scenario, position, api)
    if spec is None or any(isinstance(part, AutoPart) for part in spec.reply):
        return None
    return tuple(
        PlannedCall(
            call.name, call.id or _call_id(scenario, position, number, prefix), call.malformed
        )
        for number, call in enumerate(_tool_parts(spec.reply))
    )


def resolve(
    scenario: Scenario,
    position: int,
    api: str,
    prefix: str,
    *,
    auto: Sequence[AnyPart] = (),
) -> Turn:
    """The neutral turn at a position of a scenario's conversation.

    Args:
        prefix: what derived tool call ids begin with.
        auto: what stands in for an `auto: true` part.

    Raises:
        LookupError: the scenario has no turn there, or the turn is an HTTP error.
    """
    spec = turn_at(scenario, position, api)
    if spec is None or spec.http is not None:
        raise LookupError(f"{scenario.name} has no reply at position {position}")
    lowering = _Lowering(scenario, position, prefix, spec.timing or Timing())
    for part in spec.reply:
        for piece in auto if isinstance(part, AutoPart) else (part,):
            lowering.add(piece)
    return lowering.turn(spec)


def _tool_parts(reply: Sequence[AnyPart]) -> Iterator[ToolPart]:
    for part in reply:
        if isinstance(part, ToolPart):
            yield part
        elif isinstance(part, ParallelPart):
            yield from part.calls


def _call_id(scenario: Scenario, position: int, number: int, prefix: str) -> str:
    return prefix + derive(scenario.seeded, scenario.name, position, "call", number)


class _Lowering:
    """Collects the parts of one turn with the order and the pauses of their beats."""

    def __init__(self, scenario: Scenario, position: int, prefix: str, timing: Timing) -> None:
        self._scenario = scenario
        self._position = position
        self._prefix = prefix
        self._timing = timing
        self._defaults: Defaults = scenario.defaults
        self._parts: list[Part] = []
        self._order: list[int] = []
        self._gaps: list[int] = []
        self._pause = 0
        self._calls = 0
        self._error: StreamError | None = None

    def add(self, part: AnyPart) -> None:
        match part:
            case PausePart(duration=duration):
                self._pause += duration
            case ErrorPart(error=error):
                message = error.message or "The server had an error while processing your request."
                self._error = StreamError(message, error.type, error.code)
            case ParallelPart():
                self._parallel(part)
            case FramePart():
                self._sequential(Opaque(part.api, _frame(part)), 0)
            case TextPart() | ReasoningPart() | RefusalPart() | ToolPart():
                self._sequential(self._neutral(part), self._every(part.every))
            case AutoPart():
                raise LookupError("an auto part has to be replaced by an answer first")

    def _neutral(self, part: TextPart | ReasoningPart | RefusalPart | ToolPart) -> Part:
        match part:
            case TextPart():
                cites = tuple(Cite(0, c.url, c.title, c.cited_text) for c in part.citations)
                return Text(self._cut(part.text, part.split), cites, part.logprobs)
            case ReasoningPart():
                cut = self._cut(part.text, part.split)
                return Reasoning(cut, part.signature, part.summary)
            case RefusalPart():
                return Refusal(self._cut(part.text, part.split))
            case ToolPart():
                number = self._calls
                self._calls += 1
                id = part.id or _call_id(self._scenario, self._position, number, self._prefix)
                arguments = part.arguments or ""
                cut = self._cut(arguments, part.split) if arguments else ()
                return ToolCall(part.name, id, cut)

    def _cut(self, text: str, split: Split | None) -> tuple[str, ...]:
        rule = split if split is not None else self._defaults.split or "whole"
        return fragments(text, rule, self._seed("split", len(self._parts)))

    def _every(self, own: int | None) -> int:
        for every in (own, self._timing.every, self._defaults.every):
            if every is not None:
                return every
        return 0

    def _sequential(self, part: Part, every: int) -> None:
        index = len(self._parts)
        self._parts.append(part)
        for _ in range(beats(part)):
            self._beat(index, every)

    def _parallel(self, part: ParallelPart) -> None:
        """Calls open in the order written, as clients expect their indexes to appear."""
        first = len(self._parts)
        for call in part.calls:
            self._parts.append(self._neutral(call))
        opened = 0

        def beat(number: int) -> None:
            self._beat(first + number, self._every(part.calls[number].every))

        if not part.order:
            for number in range(len(part.calls)):
                beat(number)
            for number in _round_robin([beats(p) - 1 for p in self._parts[first:]]):
                beat(number)
            return
        for number in part.order:
            while opened <= number:
                beat(opened)
                opened += 1
            beat(number)
        for number in range(opened, len(part.calls)):
            beat(number)

    def _beat(self, index: int, every: int) -> None:
        number = len(self._gaps)
        if number:
            gap = every
        else:
            ttft = self._timing.ttft if self._timing.ttft is not None else self._defaults.ttft
            gap = ttft or 0
        jitter = self._timing.jitter if self._timing.jitter is not None else self._defaults.jitter
        if jitter and gap:
            gap = round(gap * (1 + jitter * derive_unit(self._seed("jitter", number))))
        self._order.append(index)
        self._gaps.append(max(0, gap) + self._pause)
        self._pause = 0

    def _seed(self, *what: object) -> str:
        return "\x1f".join(map(str, (self._scenario.seeded, self._position, *what)))

    def turn(self, spec: TurnSpec) -> Turn:
        gaps = [*self._gaps, self._pause]
        if self._timing.at:
            gaps = _exact(self._timing.at, len(self._order), self._pause)
        return normal(
            Turn(
                parts=tuple(self._parts),
                finish=None if self._error else spec.finish or self._finish(),
                usage=_usage(self._scenario, self._position, spec, self._parts),
                order=tuple(self._order),
                gaps=tuple(gaps),
                error=self._error,
            )
        )

    def _finish(self) -> FinishReason:
        if any(isinstance(part, ToolCall) for part in self._parts):
            return "tool_calls"
        if any(isinstance(part, Refusal) for part in self._parts):
            return "refusal"
        return "stop"


def _round_robin(counts: list[int]) -> Iterator[int]:
    left = list(counts)
    while any(left):
        for call, count in enumerate(left):
            if count:
                left[call] -= 1
                yield call


def _exact(at: Sequence[int], count: int, last: int) -> list[int]:
    """Gaps for exact offsets; beats beyond the last offset follow it at once."""
    offsets = [*at[:count], *[at[-1]] * (count - len(at))]
    return [b - a for a, b in zip([0, *offsets], offsets, strict=False)] + [last]


def _frame(part: FramePart) -> Frame:
    data = part.data
    if data is not None and not isinstance(data, str):
        data = compact(data)
    return Frame(data, part.event, part.id, part.retry, part.comment, part.raw)


def _usage(scenario: Scenario, position: int, spec: TurnSpec, parts: Sequence[Part]) -> TokenUsage:
    """What the turn costs: as written, else counted from what the scenario says.

    The input is counted from what the scenario knows of the prompt: its tools, the texts of
    its conditions, and the turns before this one with the results that they asked for.
    """
    written = spec.usage
    default = scenario.defaults.usage

    def given(name: str) -> int | None:
        for usage in (written, default):
            value: int | None = None if usage is None else getattr(usage, name)
            if value is not None:
                return value
        return None

    reasoning = given("reasoning")
    if reasoning is None:
        reasoning = sum(tokens(part.text) for part in parts if isinstance(part, Reasoning))
    output = given("output")
    if output is None:
        output = reasoning + sum(_size(part) for part in parts if not isinstance(part, Reasoning))
    input = given("input")
    if input is None:
        input = _prompt_size(scenario, position)
    return TokenUsage(input, output, reasoning, given("cached") or 0)


def _size(part: Part) -> int:
    match part:
        case Text(text=text) | Refusal(text=text):
            return tokens(text)
        case ToolCall(name=name, arguments=arguments):
            return tokens(name) + tokens(arguments)
        case _:
            return 0


def _prompt_size(scenario: Scenario, position: int) -> int:
    size = 0
    if scenario.match is not None:
        for condition in (scenario.match.user, scenario.match.system):
            size += tokens(condition.value) if condition is not None else 0
    for tool in scenario.tools:
        size += tokens(tool.name) + tokens(tool.description)
        size += tokens(json.dumps(tool.parameters)) if tool.parameters is not None else 0
    for spec in scenario.turns[: turn_index(scenario, position)]:
        for part in spec.reply:
            if isinstance(part, TextPart | ReasoningPart | RefusalPart):
                size += tokens(part.text)
        for call in _tool_parts(spec.reply):
            size += tokens(call.name) + tokens(call.arguments or "{}")
        for _, result in spec.request.results if spec.request else ():
            size += tokens(result.text.value) if result.text is not None else 0
    return max(1, size)
