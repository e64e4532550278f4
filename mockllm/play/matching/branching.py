"""Which way a conversation goes through a scenario whose turns have conditions or choices. Pure.

Nothing is kept for that: the way so far is read from the history again, by any process. A turn of
the model was made by the first form of the scenario's turn whose conditions the messages before it
meet; of several that may be drawn, by the one whose calls and text it has.

The way is a scenario of its own: its turns are the forms that answered, then the turn that answers
now. There, the position in the conversation is the index of the turn, as in every scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mockllm.core.errors import NoMatchError
from mockllm.core.request import Request
from mockllm.play.matching.conversation import ModelTurn, Selection, calls_agree, text_agrees
from mockllm.play.matching.request_validation import judged_alone, judged_request
from mockllm.scenario.model import Expect, Scenario, Taken, TurnSpec
from mockllm.scenario.part_model import plain_text
from mockllm.wire.protocols import PROTOCOLS

Holds = Callable[[Expect], bool]
"""Whether a request meets conditions."""

MOST_BEFORE = 10_000
"""So many turns at most before one of which only the position is known. The position stands in ids
and addresses, where clients may write any number, and the way has a step for each."""

_UNKNOWN = TurnSpec()
"""Stands for a turn of which nothing is known: it was before an answer that is continued by its
id."""


def way_after(
    scenario: Scenario, position: int, taken: Taken, request: Request, turns: Sequence[ModelTurn]
) -> Scenario:
    """A scenario as a conversation goes after an answer that is known by its id.

    Args:
        position: of that answer.
        turns: the turns of the model after it.
    """
    known = [*_unknown_steps(scenario, position), (taken, _form(scenario, taken))]
    return way_of(scenario, request, 0, turns, known)


def way_to(scenario: Scenario, position: int, turn: int, form: int) -> Scenario:
    """A scenario as a conversation went of which only one answer is known: that is its last
    turn."""
    taken = taken_at(scenario, position, turn, form)
    known = (taken, _form(scenario, taken))
    return _way(scenario, [*_unknown_steps(scenario, position), known])


def taken_at(scenario: Scenario, position: int, turn: int, form: int) -> Taken:
    """Which form of a turn answered, of an answer whose way is not known."""
    steps = scenario.steps
    # A turn that answers several times has a step for each. Without jumps, the position says
    # which it was.
    step = position % len(steps) if scenario.restart else min(position, len(steps) - 1)
    return turn, form, step if steps[step] == turn else steps.index(turn)


_NOT_KNOWN: Taken = (0, 0, 0)
_Step = tuple[Taken, TurnSpec]


def _unknown_steps(scenario: Scenario, position: int) -> list[_Step]:
    if position > MOST_BEFORE:
        raise NoMatchError(
            f"Turn {position + 1} of scenario {scenario.name!r} is past what is played: its turns "
            f"have conditions, choices or templates, and before them at most {MOST_BEFORE:,} turns "
            "are counted. Begin the conversation anew.",
            status=404,
            code="no_turn",
        )
    return [(_NOT_KNOWN, _UNKNOWN)] * position


def _form(scenario: Scenario, taken: Taken) -> TurnSpec:
    turn, form, _ = taken
    return scenario.turns[turn].forms()[form]


def way_of(
    scenario: Scenario,
    request: Request,
    start: int,
    turns: Sequence[ModelTurn],
    known: Sequence[_Step] = (),
    judged: dict[tuple[int, int], int | None] | None = None,
) -> Scenario:
    """A scenario as a conversation goes.

    Args:
        start: the index of the message at which the conversation begins.
        turns: the turns of the model since then.
        known: the forms that are known to have answered before these turns.
        judged: keeps which form answered, by the end of a turn of the model and the index of the
            scenario's turn, where that depends on no beginning (None: where it does): for further
            ways of the same scenario in the same request.
    """
    judged = {} if judged is None else judged
    steps = list(known)
    step = _next_step(scenario, *known[-1]) if known else 0
    for turn in turns:
        if step is None:
            break
        if scenario.in_order:
            step = _step_in_order(scenario, step, turn, request.api)
        index, form = scenario.steps[step], 0
        spec = scenario.turns[index]
        if spec.branches:
            place = turn.end, index
            if place not in judged:
                judged[place] = _branch_alone(spec, request, turn)
            found = judged[place]
            if found is None:
                way = _way(scenario, [*steps, ((index, 0, step), spec)])
                found = branch_number(spec, request.api, _holds_before(way, request, start, turn))
            form = found
        if spec.forms()[form].one_of:
            form = _drawn_form(
                spec.forms()[form].forms_to_draw(form), turn, request.api, scenario, len(steps)
            )
        steps.append(((index, form, step), spec.forms()[form]))
        step = _next_step(scenario, *steps[-1])
    if step is None and scenario.in_order:
        step = 0  # the session says which turns are left
    if step is not None:
        index = scenario.steps[step]
        steps.append(((index, 0, step), scenario.turns[index]))
    return _way(scenario, steps)


def _step_in_order(scenario: Scenario, step: int, turn: ModelTurn, api: str) -> int:
    """The step that made a turn of the model, at or after another: a conversation may begin with
    any. The first with the same text, else the first that agrees, else the other itself."""
    agreeing = [
        number
        for number in range(step, len(scenario.steps))
        if any(
            calls_agree(scenario, number, form, turn, api) and text_agrees(form, turn)
            for form in scenario.turns[scenario.steps[number]].forms()
        )
    ]
    same = (n for n in agreeing if plain_text(scenario.turns[n].reply) == turn.text)
    return next(same, next(iter(agreeing), step))


def left_in_order(scenario: Scenario, way: Scenario) -> Iterator[tuple[Scenario, int]]:
    """The turns that may answer next, of a scenario whose turns answer once: those after the last
    one of a conversation's way, then those before.

    Args:
        way: the scenario as the conversation goes.
    """
    (_, _, next_step), count = way.path[-1], len(scenario.steps)
    return ((scenario, number % count) for number in range(next_step, next_step + count))


def with_next(selection: Selection, scenario: Scenario, index: int) -> Selection:
    """A selection with another turn of its scenario in place of the one that answers."""
    way = selection.scenario
    turns = (*way.turns[:-1], scenario.turns[index])
    path = (*way.path[:-1], (index, 0, index))
    return replace(selection, scenario=replace(way, turns=turns, path=path))


def _way(scenario: Scenario, steps: Sequence[_Step]) -> Scenario:
    # A turn that answers several times stands in the way as often as it did.
    turns = [replace(spec, times=1) if spec.times > 1 else spec for _, spec in steps]
    path = tuple([taken for taken, _ in steps])
    return replace(scenario, turns=tuple(turns), path=path, restart=False)


def _next_step(scenario: Scenario, taken: Taken, form: TurnSpec) -> int | None:
    """The step after one; None where the conversation is over."""
    turn, _, step = taken
    following = step + 1
    is_last = following == len(scenario.steps) or scenario.steps[following] != turn
    if form.repeat and is_last:
        return step
    if form.go_to and is_last:
        named = next(n for n, other in enumerate(scenario.turns) if other.name == form.go_to)
        return scenario.steps.index(named)
    if following < len(scenario.steps):
        return following
    return 0 if scenario.restart else None


def _branch_alone(spec: TurnSpec, request: Request, turn: ModelTurn) -> int | None:
    """The number of the form of a turn that answered before a turn of the model; None where that
    depends on results, and so on the way before."""
    earlier, protocol = _before(request, turn), PROTOCOLS[request.api]

    def judge(condition: Expect) -> bool:
        judged = judged_alone(condition, earlier, protocol)
        if judged is None:
            raise _NeedsWayError
        return all(condition.met for condition in judged)

    try:
        return branch_number(spec, request.api, judge)
    except _NeedsWayError:
        return None


class _NeedsWayError(Exception):
    """A condition depends on the turns before."""


def _before(request: Request, turn: ModelTurn) -> Request:
    """The request as it was before a turn of the model."""
    return replace(request, messages=request.messages[: turn.begin])


def _holds_before(way: Scenario, request: Request, start: int, turn: ModelTurn) -> Holds:
    """A judge of conditions by the messages before a turn of the model."""
    last = len(way.turns) - 1
    return holds(Selection(way, last, last, start), _before(request, turn))


def holds(selection: Selection, request: Request) -> Holds:
    """A judge of conditions by a request for the selected turn."""

    def judge(condition: Expect) -> bool:
        judged = judged_request(selection, condition, request, PROTOCOLS[request.api])
        return all(condition.met for condition in judged)

    return judge


def take_branch(selection: Selection, request: Request) -> Selection:
    """The selection with the form of its turn whose conditions a request meets, before one of
    several is drawn."""
    turn = selection.scenario.turns[selection.index]
    number = branch_number(turn, request.api, holds(selection, request))
    return selection.playing(turn.forms()[number], number, number) if number else selection


def _drawn_form(
    forms: Mapping[int, TurnSpec], turn: ModelTurn, api: str, scenario: Scenario, position: int
) -> int:
    """The number of the form that made a turn of the model, of those that may be drawn."""
    return next(_agreeing(forms.items(), turn, api, scenario, position), next(iter(forms)))


def _agreeing(
    forms: Iterable[tuple[int, TurnSpec]],
    turn: ModelTurn,
    api: str,
    scenario: Scenario,
    position: int,
) -> Iterator[int]:
    for number, form in forms:
        if calls_agree(scenario, position, form, turn, api) and text_agrees(form, turn):
            yield number


def branch_number(turn: TurnSpec, api: str, holds: Holds) -> int:
    """The number of the form of a turn that answers, before one of several is drawn."""
    number = 1 + len(turn.one_of)
    for branch in turn.branches:
        condition = branch.condition
        if branch.api in (None, api) and (condition is None or holds(condition)):
            return number
        number += 1 + len(branch.turn.one_of)
    return 0
