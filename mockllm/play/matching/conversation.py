"""A conversation: the history of it that a request carries, and the turns of a scenario. Pure.

No other module finds turns in the messages of a request. Matching counts them, the recorder finds
the conversation that a request continues, and the checking kit compares the turns that a client
sends back with those that it received. Single messages are asked of `Request`.

A *position* is the number of turns of the model before in the conversation. It differs from the
index of the turn where a scenario repeats or restarts.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

from mockllm.core.record import record
from mockllm.core.request import CallEcho, Message, SentFile
from mockllm.core.seeded import derive
from mockllm.play.agents.tools import may_call
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.scenario.part_model import MAY_CALL, plain_text, tool_parts
from mockllm.wire.protocols import PROTOCOLS


@record
class ModelTurn:
    """One turn of the model: consecutive assistant messages.

    Args:
        messages: these, at least one.
        before: the messages of the user and the results of tools between the turn before and
            this one.
        begin, end: the indices of its first and its last message in the messages that were read.
    """

    messages: tuple[Message, ...]
    before: tuple[Message, ...]
    begin: int
    end: int

    @property
    def user(self) -> str | None:
        """The last user message right before the turn; None where there are only tool results."""
        return _last_user(self.before)

    @property
    def text(self) -> str:
        """The text of the turn."""
        return "".join(message.text for message in self.messages)

    @property
    def calls(self) -> tuple[CallEcho, ...]:
        """The tool calls of the turn, in order."""
        if len(self.messages) == 1:  # as nearly always
            return self.messages[0].calls
        return tuple(call for message in self.messages for call in message.calls)


@record
class History:
    """A conversation as one request carries it, without system messages.

    Args:
        turns: the turns of the model.
        after: the messages of the user and the results of tools after the last of them.
    """

    turns: tuple[ModelTurn, ...]
    after: tuple[Message, ...]

    @property
    def user(self) -> str | None:
        """The last user message after the last turn; None where there are only tool results."""
        return _last_user(self.after)

    @property
    def results(self) -> list[Message]:
        """The results of tools after the last turn."""
        return [message for message in self.after if message.role == "tool"]

    @property
    def opening(self) -> str:
        """The text of the first message; "" where there is none."""
        first = self._first
        return "" if first is None else first.text

    @property
    def opening_files(self) -> tuple[SentFile, ...]:
        """The images and files of the first message."""
        first = self._first
        return () if first is None else first.files

    @property
    def _first(self) -> Message | None:
        messages = self.turns[0].before if self.turns else self.after
        return messages[0] if messages else None


def read_history(messages: Sequence[Message], start: int = 0) -> History:
    """The history in the messages of a request.

    System messages do not count: clients add them anywhere, and often put the date into them.
    """
    turns: list[ModelTurn] = []
    before: list[Message] = []
    for index in range(start, len(messages)):
        message = messages[index]
        if message.role == "system":
            continue
        if message.role != "assistant":
            before.append(message)
        elif turns and not before:
            last = turns[-1]
            turns[-1] = ModelTurn((*last.messages, message), last.before, last.begin, index)
        else:
            turns.append(ModelTurn((message,), tuple(before), index, index))
            before = []
    return History(tuple(turns), tuple(before))


def openings(messages: Sequence[Message]) -> Iterator[History]:
    """The history from each place where a conversation may begin, the latest first.

    That is each user message right before a turn of the model, and the last one.
    """
    kept = [message for message in messages if message.role != "system"]
    for start in range(len(kept) - 1, -1, -1):
        following = kept[start + 1].role if start + 1 < len(kept) else "assistant"
        if kept[start].role == "user" and following != "user":
            yield read_history(kept, start)


def _last_user(messages: Sequence[Message]) -> str | None:
    users = (message.text for message in reversed(messages) if message.role == "user")
    return next(users, None)


@record
class PlannedCall:
    """A tool call of a scenario's turn.

    Args:
        malformed: whether a correct client may leave the call out of its history.
        any_id: whether the client may send any id: the scenario allows it (`ids: any`), or the call
            was recorded without one, so clients make one up.
        refused: whether the client is not to run it.
    """

    name: str
    id: str
    malformed: bool = False
    any_id: bool = False
    refused: bool = False


def turn_index(scenario: Scenario, position: int) -> int | None:
    """The index of the turn at a position; None past the end."""
    steps = scenario.steps
    if position < len(steps):
        return steps[position]
    if scenario.restart:
        return steps[position % len(steps)]
    return steps[-1] if scenario.turns[-1].repeat else None


def turn_at(scenario: Scenario, position: int, api: str) -> TurnSpec | None:
    """The turn at a position, as protocol `api` plays it; None past the end."""
    index = turn_index(scenario, position)
    return None if index is None else scenario.turns[index].for_api(api)


@record
class Selection:
    """The turn that answers a request.

    Args:
        scenario: as this conversation goes, where that may differ
            (`mockllm.play.matching.branching`).
        position: how many turns of the model came before in the scenario's conversation.
        index: of the turn in the scenario.
        start: the index of the message at which the scenario's conversation begins.
        continued: whether the position comes from the id of an answer of ours, not from the
            history.
        recordings: the recorded turns that answer equally well, in their order, each a scenario and
            the index of its turn; this one is the first of them.
        variation: what of the request the turn has in it; what is kept of an answer is kept by it.
    """

    scenario: Scenario
    position: int
    index: int
    start: int = 0
    continued: bool = False
    recordings: tuple[tuple[Scenario, int], ...] = ()
    variation: tuple[Hashable, ...] = ()

    def with_turn(self, scenario: Scenario, index: int) -> Selection:
        """The same selection with another turn of `recordings`."""
        same = turn_index(scenario, self.position) == index
        position = self.position if same else index
        return replace(self, scenario=scenario, index=index, position=position)

    def playing(self, turn: TurnSpec, variation: Hashable, form: int | None = None) -> Selection:
        """The same selection with a turn that was made for the request, in place of its own.

        Args:
            form: the number of the form that this is; None: it is the same as before.
        """
        scenario, index = self.scenario, self.index
        turns = (*scenario.turns[:index], turn, *scenario.turns[index + 1 :])
        path = scenario.path
        if path and form is not None:
            number, _, step = path[index]
            path = (*path[:index], (number, form, step), *path[index + 1 :])
        changed = replace(scenario, turns=turns, path=path)
        return replace(self, scenario=changed, variation=(*self.variation, variation))

    @property
    def form(self) -> int:
        """The number of the form of the turn that answers (`TurnSpec.forms`)."""
        path = self.scenario.path
        return path[self.index][1] if path else 0

    @property
    def turn(self) -> int:
        """The index of the turn in the scenario as it is written."""
        path = self.scenario.path
        return path[self.index][0] if path else self.index


def planned_calls(scenario: Scenario, position: int, api: str) -> tuple[PlannedCall, ...] | None:
    """The tool calls of the turn at a position, in order.

    None where the scenario alone does not determine them: the turn is `auto`, or there is no such
    turn.

    Args:
        scenario: as the conversation goes, where that may differ
            (`mockllm.play.matching.branching`).
    """
    spec = turn_at(scenario, position, api)
    return None if spec is None else calls_of(scenario, position, spec, api)


def calls_of(
    scenario: Scenario, position: int, spec: TurnSpec, api: str
) -> tuple[PlannedCall, ...] | None:
    """The tool calls of a form of the turn at a position, as `planned_calls` gives them."""
    if not PROTOCOLS[api].client.tool_fields:
        return ()  # an API without tools
    for part in spec.reply:  # of each turn of each history: most have no calls
        if isinstance(part, MAY_CALL):
            break
    else:
        return ()
    if spec.is_auto:
        return None
    return tuple(
        PlannedCall(
            call.name,
            call.id or call_id(scenario, position, number, api),
            call.malformed,
            any_id=scenario.any_ids or (call.id is None and spec.recorded is not None),
            refused=call.refused,
        )
        for number, call in enumerate(tool_parts(spec.reply))
    )


def has_derived_ids(scenario: Scenario) -> bool:
    """Whether ids of calls follow from their position in the conversation, and count."""
    if scenario.any_ids:
        return False
    forms = (form for turn in scenario.turns for form in turn.every())
    return any(not call.id for form in forms for call in tool_parts(form.reply))


def history_agrees(scenario: Scenario, after: Sequence[ModelTurn], api: str) -> bool:
    """Whether the turns of the history have the tool calls of the scenario's turns."""
    for position, turn in enumerate(after):
        spec = turn_at(scenario, position, api)
        if spec is None:
            return True  # past the end, which the caller reports
        if not calls_agree(scenario, position, spec, turn, api):
            return False
    return True


def calls_agree(
    scenario: Scenario, position: int, spec: TurnSpec, turn: ModelTurn, api: str
) -> bool:
    """Whether a turn of the history has the tool calls of a form of the scenario's turn."""
    planned = calls_of(scenario, position, spec, api)
    if planned is None:
        return True
    if not planned:  # most turns have no calls, and neither has the history
        return not turn.calls
    return are_echoed(planned, turn)


def are_echoed(planned: Iterable[PlannedCall], turn: ModelTurn) -> bool:
    """Whether a turn of the history has these calls and no others. Clients may leave out ids."""
    echoed = [(call.name, call.id) for call in turn.calls]
    # A malformed call may be missing. It is compared last, so that where ids are absent it does
    # not use up the echo of another call.
    for call in sorted(planned, key=lambda call: (call.malformed, call.any_id)):
        exact = (call.name, call.id)
        key = next((key for key in echoed if _is_echo(call, *key)), None)
        if exact in echoed:
            echoed.remove(exact)
        elif key is not None:
            echoed.remove(key)
        elif not call.malformed:
            return False
    return not echoed


def _is_echo(call: PlannedCall, name: str, id: str) -> bool:
    return may_call(call.name, name) and (call.any_id or id in (call.id, ""))


def texts_agree(scenario: Scenario, turns: Sequence[ModelTurn], api: str) -> bool:
    """Whether turns of the model may be those of a scenario, by their texts."""
    for position, turn in enumerate(turns):
        spec = turn_at(scenario, position, api)
        if spec is None:
            return True  # past the end
        if not text_agrees(spec, turn):
            return False
    return True


def text_agrees(spec: TurnSpec, turn: ModelTurn) -> bool:
    """Whether a turn of the history may be a form of a scenario's turn, by its text. Clients trim,
    shorten and rewrite texts, so much of the words is enough; a turn with calls is known by
    these."""
    text = plain_text(spec.reply)
    return text is None or spec.template is True or _is_alike(text, turn.text)


def _is_alike(own: str, sent: str) -> bool:
    """Whether a text contains the other one, or half of its words; an empty one says nothing."""
    # Half, so that a text that a client rewrote is known, and the one of another scenario is not.
    if own in sent or sent in own:
        return True
    first, second = (set(re.findall(r"\w+", text.casefold())) for text in (own, sent))
    return 2 * len(first & second) >= min(len(first), len(second))


def call_id(scenario: Scenario, position: int, number: int, api: str) -> str:
    """The derived id of a call that has none in the scenario, the same in every process.

    Args:
        number: of the call in its turn, from 0.
    """
    prefix = PROTOCOLS[api].call_prefix
    if scenario.in_order and scenario.path:  # a conversation may begin with any turn
        position = scenario.path[position][2]
    return prefix + derive(scenario.seeded, scenario.name, position, "call", number)
