"""A turn of a scenario as a scenario of its own, and with other wire settings. Pure.

A `Variation` is a way of cutting the same answer into fragments, frames, lines and bytes. It is
part of a scenario then (`split`, `wire`), so that every failure can be saved as one and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mockllm.core.events import LineEnd
from mockllm.core.seeded import derive, derive_int
from mockllm.scenario.model import Api, Comments, Match, Scenario, TurnSpec, Wire
from mockllm.scenario.part_model import (
    AnyPart,
    AutoPart,
    InterleavedPart,
    TextPart,
    ToolPart,
    Written,
    content_of,
    map_members,
    members,
)
from mockllm.wire.framing.sse import LINE_ENDS


def single(scenario: Scenario, position: int = 0) -> Scenario:
    """One turn of a scenario as a scenario of its own, which answers every request."""
    name = scenario.name if len(scenario.turns) == 1 else f"{scenario.name}-{position + 1}"
    return replace(
        scenario,
        name=name,
        seed=scenario.seeded,
        match=Match(anything=True),
        turns=(scenario.turns[position].with_each(_alone),),
        obey=(),
        restart=False,
        template=False,
    )


def singles(scenario: Scenario, api: Api) -> Iterator[Scenario]:
    """Every answer of a scenario over a protocol as a scenario of its own, those of branches and
    choices, too. A template is a text like others."""
    for position, turn in enumerate(scenario.turns):
        alone = single(scenario, position)
        if not turn.varies:
            yield alone
            continue
        for number, form in alone.turns[0].answering(api).items():
            name = f"{alone.name}-form-{number}" if number else alone.name
            only = replace(form, branches=(), one_of=())
            yield replace(alone, name=name, turns=(only,))


def _alone(turn: TurnSpec) -> TurnSpec:
    reply = tuple(map(_without_auto, turn.reply))
    return replace(
        turn,
        request=None,
        attempts=(),
        repeat=False,
        fault=(),
        reply=reply,
        obey=(),
        go_to="",
        template=None,
    )


def _without_auto(part: Any) -> Any:
    """Replaces an answer made from the request by fixed text: a case is the same every time."""
    return TextPart("You said: Hello") if isinstance(part, AutoPart) else part


def with_quirks(scenario: Scenario, quirks: tuple[str, ...] | None) -> Scenario:
    """The scenario with more quirks; None removes those it has."""
    return _change_wire(
        scenario,
        lambda wire: replace(wire, quirks=() if quirks is None else (*wire.quirks, *quirks)),
    )


def without_wire(scenario: Scenario) -> Scenario:
    """The scenario without settings of how its events are written."""
    return _change_wire(scenario, lambda _: Wire())


def uncut(scenario: Scenario) -> Scenario:
    """The scenario with its bytes in one piece, under a name of its own if it has them cut."""
    whole = _change_wire(scenario, lambda wire: replace(wire, segments=None))
    return scenario if whole == scenario else replace(whole, name=f"{scenario.name}-uncut")


def without_quirk(scenario: Scenario, quirk: str) -> Scenario:
    """The scenario without one of its quirks."""
    return _change_wire(
        scenario,
        lambda wire: replace(wire, quirks=tuple(name for name in wire.quirks if name != quirk)),
    )


def _change_wire(scenario: Scenario, change: Callable[[Wire], Wire]) -> Scenario:
    def change_turn(spec: TurnSpec) -> TurnSpec:
        wire = change(spec.wire or Wire())
        return replace(spec, wire=None if wire == Wire() else wire)

    turns = tuple(turn.with_each(change_turn) for turn in scenario.turns)
    return replace(scenario, turns=turns)


def answer_size(parts: Iterable[AnyPart]) -> int:
    """About how many characters an answer has; a call counts for 100."""
    size = 0
    for part in members(parts):
        content = content_of(part)
        if content is not None and isinstance(part, Written):
            size += len(content.text) + 100 * isinstance(part, ToolPart)
    return size


_MOST_FRAGMENTS = 400
"""At most so many fragments of one part: longer parts are cut into larger ones. More would cost
time and find nothing new."""

_MOST_CHUNKS = 1000
"""At most about so many chunks of bytes of one stream; in longer ones, small
chunks alternate with a large one."""

_SMALL_CHUNKS = 8


@dataclass(frozen=True, slots=True)
class Variation:
    """The cut of an answer; an empty or None field keeps what the scenario has. But where the
    events change and `cut` is empty, the bytes of the scenario's `wire.segments` are not cut.

    Args:
        split: sizes of fragments, in characters, repeated in a cycle.
        group: how many consecutive fragments of a part are joined into one.
        line_end, bom, multiline: how events are written.
        comments: a comment after every so many events.
        cut: sizes of the chunks of bytes, repeated in a cycle.
    """

    split: tuple[int, ...] = ()
    group: int | None = None
    line_end: LineEnd | None = None
    bom: bool = False
    multiline: bool = False
    comments: int | None = None
    cut: tuple[int, ...] = ()

    @property
    def in_payloads(self) -> bool:
        """Whether the variation changes the decoded events."""
        return bool(self.split or self.group)

    def __str__(self) -> str:
        """In one word, as in the names of cases: `split3-1,group2,crlf,cut12`."""
        items = []
        if self.split:
            items.append("split" + "-".join(map(str, self.split)))
        if self.group:
            items.append(f"group{self.group}")
        if self.line_end:
            items.append(self.line_end)
        items += [name for name in ("bom", "multiline") if getattr(self, name)]
        if self.comments:
            items.append(f"comments{self.comments}")
        if self.cut:
            items.append("cut" + "-".join(map(str, self.cut)))
        return ",".join(items)


PLAIN = Variation()


def draw(seed: str, *, payloads: bool = False) -> Variation:
    """The variation derived from a seed."""

    def below(label: str, bound: int) -> int:
        return derive_int(seed, label, below=bound)

    def sizes(label: str, longest: int) -> tuple[int, ...]:
        count = below(f"{label} count", 4)
        # Most bugs show with small sizes, so every other size is at most three.
        return tuple(
            1 + below(f"{label} {i}", 3 if below(f"{label} small {i}", 2) else longest)
            for i in range(count)
        )

    split = sizes("split", 12)
    group = 2 + below("group", 4) if not below("grouped", 4) else None
    if payloads:
        return Variation(split or (1,), group)
    return Variation(
        split=split,
        group=group,
        line_end=(*LINE_ENDS, None)[below("line end", len(LINE_ENDS) + 1)],
        bom=not below("bom", 4),
        multiline=not below("multiline", 4),
        comments=1 + below("comments", 3) if not below("commented", 4) else None,
        cut=sizes("cut", 40) or (1,),
    )


def draws(seed: str, name: str, *, payloads: bool = False) -> Iterator[Variation]:
    """Different variations for the case of a name, in an order that the seed decides."""
    found: set[Variation] = set()
    for number in range(_MOST_DRAWS):
        variation = draw(derive(seed, name, number), payloads=payloads)
        if variation not in found:
            found.add(variation)
            yield variation


_MOST_DRAWS = 10_000


def limit_chunks(variation: Variation, size: int) -> Variation:
    """The variation with larger chunks, where its own would be too many."""
    cut = variation.cut
    if not cut or size * len(cut) <= _MOST_CHUNKS * sum(cut):
        return variation
    small = cut * -(-_SMALL_CHUNKS // len(cut))
    large = size * (len(small) + 1) // _MOST_CHUNKS
    return replace(variation, cut=(*small, large))


def vary(scenario: Scenario, variation: Variation) -> Scenario:
    """The scenario with a variation applied to every turn."""
    if variation == PLAIN:
        return scenario
    turns = tuple(_turn(turn, variation) for turn in scenario.turns)
    return replace(scenario, turns=turns)


def _turn(turn: TurnSpec, variation: Variation) -> TurnSpec:
    wire = turn.wire or Wire()
    wire = replace(
        wire,
        line_end=variation.line_end or wire.line_end,
        bom=variation.bom or wire.bom,
        multiline=variation.multiline or wire.multiline,
        comments=wire.comments if variation.comments is None else Comments(variation.comments, "~"),
        group=variation.group or wire.group,
        segments=variation.cut or (None if variation.in_payloads else wire.segments),
    )
    varied = replace(
        turn,
        reply=tuple(_part(part, variation.split) for part in turn.reply),
        wire=None if wire == Wire() else wire,
        branches=(),
    )
    branches = [replace(branch, turn=_turn(branch.turn, variation)) for branch in turn.branches]
    # A branch that differed only in how it was cut is now the same as the turn.
    return replace(varied, branches=tuple(branch for branch in branches if branch.turn != varied))


def _part(part: AnyPart, sizes: Sequence[int]) -> Any:
    # The order of interleaved parts has each of their fragments as they are written.
    if not sizes or isinstance(part, InterleavedPart):
        return part

    def cut(_: object, member: Any) -> Any:
        content = content_of(member)
        if content is None or not isinstance(member, Written):
            return member
        return replace(member, split=tuple(_fragments(content.text, sizes)) or None)

    varied: Any = map_members(part, cut)
    return replace(varied, order=()) if getattr(varied, "order", ()) else varied


def _fragments(text: str, sizes: Sequence[int]) -> Iterator[str]:
    scale = 1 + len(text) * len(sizes) // (_MOST_FRAGMENTS * sum(sizes))
    start = number = 0
    while start < len(text):
        end = start + sizes[number % len(sizes)] * scale
        yield text[start:end]
        start, number = end, number + 1
