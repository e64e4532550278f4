"""Resolves a written turn of a scenario to the neutral `Turn` that is played.

`resolve` applies the rules of the language: defaults, cutting, interleaving, pauses, derived ids,
counted usage. *Position* is explained in `mockllm.play.matching.conversation`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from mockllm.core.events import Cite, FinishReason, Frame, Passage, StreamError, Token, Unit
from mockllm.core.jsontext import compact
from mockllm.core.seeded import derive_unit
from mockllm.core.timeline import normal
from mockllm.core.tokens_and_fragments import Split, fragments, tokens
from mockllm.core.turn import (
    Media,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    TokenUsage,
    ToolCall,
    Turn,
    beats,
    usual_finish,
)
from mockllm.play.matching.conversation import call_id, turn_at, turn_index
from mockllm.play.replay.compilation.gates import TurnGate
from mockllm.scenario.model import Defaults, Scenario, Timing, TurnSpec, UsageSpec, expected_texts
from mockllm.scenario.part_model import (
    AnyPart,
    AudioPart,
    AutoPart,
    Citation,
    ErrorPart,
    FramePart,
    GatePart,
    ImagePart,
    InterleavedPart,
    Member,
    NativePart,
    ParallelPart,
    PausePart,
    ReasoningPart,
    RefusalPart,
    ServerToolPart,
    TextPart,
    TokenSpec,
    ToolPart,
    gates_in,
    token_count,
)
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol


def resolve(
    scenario: Scenario,
    position: int,
    api: str,
    *,
    auto: Sequence[AnyPart] = (),
    spec: TurnSpec | None = None,
) -> Turn:
    """The neutral turn at a position of a scenario's conversation.

    Args:
        auto: the parts that replace an `auto: true` part.
        spec: the turn as a request gets it; None: that of the scenario.

    Raises:
        LookupError: the scenario has no turn there, or the turn is an HTTP error.
    """
    spec = spec or turn_at(scenario, position, api)
    if spec is None or spec.http is not None:
        raise LookupError(f"{scenario.name} has no reply at position {position}")
    resolver = _Resolver(scenario, position, api, spec.timing or Timing())
    for part in spec.reply:
        for written in auto if isinstance(part, AutoPart) else (part,):
            resolver.add(written)
    return resolver.turn(spec)


def resolve_gates(scenario: Scenario, position: int, api: str, spec: TurnSpec) -> list[TurnGate]:
    """The gates in the reply of a turn as a request gets it."""
    if not gates_in(spec.reply):
        return []
    resolver = _Resolver(scenario, position, api, spec.timing or Timing())
    for part in spec.reply:
        resolver.add(part)
    return resolver.gates


def resolve_choices(
    scenario: Scenario, position: int, api: str, spec: TurnSpec, first: Turn, count: int
) -> tuple[Turn, ...]:
    """The turns of an answer with several choices: the reply and `choices` in order, from the
    beginning again where the request wants more. Without `choices` it is the reply alone, which
    protocols repeat. The usage of the first turn is that of all choices; the others have none.

    Args:
        first: the turn of the reply.
        count: how many choices the answer has.
    """
    turns = [replace(first, usage=None)]
    for choice in spec.choices[: count - 1]:
        calls = sum(len(turn.tool_calls) for turn in turns)
        resolver = _Resolver(scenario, position, api, spec.timing or Timing(), calls)
        for part in choice.reply:
            resolver.add(part)
        turns.append(replace(resolver.turn(choice), usage=None))
    turns = [turns[number % len(turns)] for number in range(count)]
    parts = [part for turn in turns for part in turn.parts]
    total = usage(scenario, turn_index(scenario, position) or 0, spec, parts)
    return (replace(first, usage=total), *(turns[1:] if spec.choices else ()))


class _Resolver:
    """Collects the neutral parts of one turn, and the order and the gaps of their beats.

    A *beat* is one event of a part that has a time of its own (`mockllm.core.turn.beats`): a
    fragment, or the opening of a call.
    """

    def __init__(
        self, scenario: Scenario, position: int, api: str, timing: Timing, calls: int = 0
    ) -> None:
        self._scenario = scenario
        self._position = position
        self._api = api
        self._timing = timing
        self._defaults: Defaults = scenario.defaults
        self._parts: list[Part] = []
        self._order: list[int] = []
        self._gaps: list[int] = []
        self._pause = 0
        self._calls = calls
        self.gates: list[TurnGate] = []
        self._error: StreamError | None = None

    def add(self, part: AnyPart) -> None:
        """Adds a part of the reply: fragments, their order, pauses before them."""
        match part:
            case PausePart(duration=duration):
                self._pause += duration
            case GatePart(gate=gate):
                self.gates.append(TurnGate(gate, sum(map(beats, self._parts)), self._pause))
            case ErrorPart(error=error):
                message = error.message
                if message is None:
                    message = "The server had an error while processing your request."
                self._error = StreamError(message, error.type, error.code)
            case ParallelPart():
                self._parallel(part)
            case InterleavedPart(parts=members, order=order):
                self._interleave(members, order)
            case FramePart(first=True):
                pass  # it comes before the turn (`first_frames`)
            case AutoPart():
                raise LookupError("an auto part has to be replaced by an answer first")
            case _:
                self._interleave((part,), ())

    def _neutral(self, part: Member) -> Part:
        match part:
            case FramePart():
                return Opaque(part.api, frame_of(part))
            case NativePart(api=api, value=value):
                text = value if isinstance(value, str) else compact(value)
                return Opaque(api, Frame(text), native=True)
            case TextPart():
                cites = tuple(map(_cite, part.citations))
                cut = self._cut(part.text, part.rule(None))
                tokens = tuple(map(_token, part.tokens))
                return Text(cut, cites, bool(part.logprobs), part.signature, tokens)
            case ReasoningPart():
                cut = self._cut(part.text, part.split)
                return Reasoning(cut, part.signature, part.summary)
            case RefusalPart():
                return Refusal(self._cut(part.text, part.split))
            case ToolPart():
                number = self._calls
                self._calls += 1
                id = part.id or call_id(self._scenario, self._position, number, self._api)
                cut = self._cut_input(part.arguments, part.split)
                return ToolCall(part.name, id, cut, part.signature, part.custom)
            case ServerToolPart():
                cut = self._cut_input(part.input, part.split)
                return ServerTool(part.kind, part.id or "", part.name or "", cut, part.output)
            case ImagePart(image=image):
                return Media(image.type, (image.data,), signature=part.signature)
            case AudioPart():
                cut = self._cut(part.transcript, part.split)
                return Media(part.audio.type, _pieces(part), cut, part.signature)

    def _cut_input(self, text: str | None, split: Split | None) -> tuple[str, ...]:
        """The fragments of a call's input; a call without input has none."""
        return self._cut(text or "", split) if text or isinstance(split, tuple) else ()

    def _cut(self, text: str, split: Split | None) -> tuple[str, ...]:
        rule = split if split is not None else self._defaults.split or "whole"
        return fragments(text, rule, self._seed("split", len(self._parts)))

    def _every(self, part: Member) -> int:
        if isinstance(part, FramePart | NativePart):
            return 0
        for every in (part.every, self._timing.every, self._defaults.every):
            if every is not None:
                return every
        return 0

    def _parallel(self, part: ParallelPart) -> None:
        """Adds calls that open in the order written: clients expect rising indexes."""
        first = self._add(part.calls)
        counts = [beats(call) - 1 for call in self._parts[first:]]
        for number in parallel_beats(counts, part.order):
            self._beat(first + number, self._every(part.calls[number]))

    def _interleave(self, members: Sequence[Member], order: Sequence[int]) -> None:
        first = self._add(members)
        for number in order or range(len(members)):
            for _ in range(1 if order else beats(self._parts[first + number])):
                self._beat(first + number, self._every(members[number]))

    def _add(self, members: Sequence[Member]) -> int:
        """Adds parts without their beats; returns the index of the first of them."""
        first = len(self._parts)
        for member in members:
            self._parts.append(self._neutral(member))
        return first

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
        """The turn that the parts so far make."""
        index = turn_index(self._scenario, self._position)
        gaps = [*self._gaps, self._pause]
        if self._timing.at:
            gaps = _gaps_from_offsets(self._timing.at, len(self._order), self._pause)
        turn = normal(
            Turn(
                parts=tuple(self._parts),
                finish=self._finish(spec),
                usage=usage(self._scenario, index or 0, spec, self._parts),
                order=tuple(self._order),
                gaps=tuple(gaps),
                error=self._error,
                finish_raw=None if self._error else spec.finish_raw,
                stop_sequence=None if self._error else spec.stop_sequence,
            )
        )
        return turn if spec.finish else _with_finish_of_raw(turn, PROTOCOLS[self._api])

    def _finish(self, spec: TurnSpec) -> FinishReason | None:
        if self._error is not None or spec.finish == "none":
            return None
        if spec.stop_sequence is not None:
            return "stop"
        return spec.finish or usual_finish(self._parts)


def is_raw_sent(raw: str, received: Turn, protocol: WireProtocol) -> bool:
    """Whether a client finds a `finish_raw` in the turn that it receives."""
    usual = protocol.finish_values.get(received.finish or "", ())
    return raw in (received.finish_raw, *(usual if received.finish_raw is None else ()))


def _with_finish_of_raw(turn: Turn, protocol: WireProtocol) -> Turn:
    """The turn with the finish that its `finish_raw` means in an API, where that is sent."""
    if turn.finish is None or turn.finish_raw is None:
        return turn
    received = protocol.project(turn)
    is_sent = is_raw_sent(turn.finish_raw, received, protocol)
    return replace(turn, finish=received.finish) if is_sent else turn


def spread(turn: Turn, duration: int) -> Turn:
    """The turn with its beats evenly over a time, in microseconds; the last one is at its end."""
    count = sum(map(beats, turn.parts))
    if not count:
        return replace(turn, gaps=(duration,))
    due = [duration * number // count for number in range(count + 1)]
    return replace(turn, gaps=(*(later - one for one, later in pairwise(due)), 0))


def parallel_beats(counts: Sequence[int], order: Sequence[int]) -> Iterator[int]:
    """The index of the call for each beat of `parallel` calls, their openings included.

    Args:
        counts: how many fragments each call has.
        order: the call of each fragment; empty for round robin after all calls have opened.
    """
    if not order:
        yield from range(len(counts))
        yield from _round_robin(counts)
        return
    open_ = 0
    for number in order:
        yield from range(open_, number + 1)
        open_ = max(open_, number + 1)
        yield number
    yield from range(open_, len(counts))


def _round_robin(counts: Sequence[int]) -> Iterator[int]:
    for number in range(max(counts, default=0)):
        yield from (call for call, count in enumerate(counts) if number < count)


def _token(token: TokenSpec) -> Token:
    return Token(token.token, token.logprob, tuple(map(_token, token.top)))


def _cite(citation: Citation) -> Cite:
    return Cite(0, citation.url, citation.title, citation.cited_text, _passage(citation))


def _passage(citation: Citation) -> Passage | None:
    of_search = citation.search_result is not None
    source = citation.search_result if of_search else citation.document
    if source is None:
        return None
    units: tuple[Unit, ...] = ("characters", "pages", "blocks")
    unit = next(unit for unit in units if getattr(citation, unit) is not None)
    start, end = getattr(citation, unit)
    return Passage(source, unit, start, end, of_search)


def _pieces(part: AudioPart) -> tuple[bytes, ...]:
    data = part.audio.data
    size = part.fragment_bytes or len(data) or 1
    return tuple(data[at : at + size] for at in range(0, len(data), size))


def _gaps_from_offsets(at: Sequence[int], count: int, last: int) -> list[int]:
    """The gaps for beats with these offsets; beats beyond the last offset follow it at once."""
    offsets = [*at[:count], *[at[-1]] * (count - len(at))]
    return [b - a for a, b in zip([0, *offsets], offsets, strict=False)] + [last]


def frame_of(part: FramePart) -> Frame:
    """The frame that a part of a scenario writes out."""
    data = part.data
    if data is not None and not isinstance(data, str):
        data = compact(data)
    return Frame(data, part.event, part.id, part.retry, part.comment, part.raw)


def usage(
    scenario: Scenario, index: int, spec: TurnSpec, parts: Sequence[Part]
) -> TokenUsage | None:
    """The usage of a turn: as written, else counted; None where the scenario has `usage: none`.

    Input tokens are counted from what the scenario has of the prompt: its tools, the texts of
    its conditions, and the turns before this one with the results that they expect.
    """
    written = spec.usage
    default = scenario.defaults.usage
    if not (written or default or UsageSpec()).sent:
        return None

    def count(name: str) -> int | None:
        for usage in (written, default):
            value = None if usage is None else getattr(usage, name)
            if value is not None:
                return 0 if value == "prefix" else int(value)  # of a first request
        return None

    reasoning = count("reasoning")
    if reasoning is None:
        reasoning = _reasoning_tokens(parts)
    output = count("output")
    if output is None:
        output = reasoning + sum(map(_size, parts))
    input = count("input")
    if input is None:
        input = _prompt_size(scenario, index)
    cached, cache_written = count("cached") or 0, count("cache_written") or 0
    return TokenUsage(input, output, reasoning, cached, cache_written)


def output_tokens(turn: Turn) -> int:
    """The tokens of a turn: those that it says, or counted."""
    if turn.usage is not None:
        return turn.usage.output
    return _reasoning_tokens(turn.parts) + sum(map(_size, turn.parts))


def _reasoning_tokens(parts: Iterable[Part]) -> int:
    """The tokens of the reasoning."""
    return sum(tokens(part.text) for part in parts if isinstance(part, Reasoning))


def _size(part: Part) -> int:
    """The tokens of a part, none for reasoning."""
    match part:
        case Text(text=text) | Refusal(text=text):
            return tokens(text)
        case ToolCall(name=name, arguments=arguments):
            return tokens(name) + tokens(arguments)
        case Media(transcript=transcript):
            return tokens(transcript)
        case _:
            return 0


def _prompt_size(scenario: Scenario, index: int) -> int:
    size = 0
    if scenario.match is not None:
        for condition in (scenario.match.user, scenario.match.system):
            size += sum(map(tokens, expected_texts(condition)))
    for tool in scenario.tools:
        size += tokens(tool.name) + tokens(tool.description)
        size += tokens(json.dumps(tool.parameters)) if tool.parameters is not None else 0
    for spec in scenario.turns[:index]:
        size += token_count(spec.reply)
        for _, result in spec.request.results if spec.request else ():
            size += sum(map(tokens, expected_texts(result.text)))
    return max(1, size)
