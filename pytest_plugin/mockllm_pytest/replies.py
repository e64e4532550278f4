"""The scenarios that `MockSession.reply` writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mockllm.core.errors import Problem, ScenarioError
from mockllm.core.text import json_as_yaml
from mockllm_pytest.parts import Part

if TYPE_CHECKING:
    from mockllm.scenario.model import Scenario

_INLINE = "replies-of-"
_LONGEST = 100


def inline_name(test: str) -> str:
    """The name, for messages, of the first scenario that `MockSession.reply` writes in a test."""
    return _INLINE + re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")[:_LONGEST]


Turn = Mapping[str, Any]
"""A turn with the keys of a scenario file."""

_WRITTEN = "reply()"
_PLACE = re.compile(r"^turns\[\d+\]\.?")
"""Where a turn is in the text that is made of the replies, which nobody wrote."""

ANY = "any"
"""The `match` of replies that answer any request."""


@dataclass(slots=True)
class Replies:
    """The conversations that a test writes with `MockSession.reply`, turn by turn.

    Args:
        name: of the first conversation, as a scenario; that of the second one ends in `-2`, and so
            on.
        again: whether the last reply is given again, where none is left.
        conversations: the `match` and the turns of each.
    """

    name: str
    again: bool = False
    conversations: list[tuple[Any, list[Turn]]] = field(default_factory=list)
    scenarios: tuple[Scenario, ...] = ()

    def add(self, turn: Turn, match: Mapping[str, Any] | None) -> None:
        """Adds a turn to the last conversation or, with a `match`, begins another one.

        Raises:
            ScenarioError: with every problem in the turn, which is then not added.
        """
        if match is not None or not self.conversations:
            changed = [*self.conversations, (ANY if match is None else match, [turn])]
        else:
            *before, (last, turns) = self.conversations
            changed = [*before, (last, [*turns, turn])]
        self.scenarios = _scenarios(self.name, changed, again=self.again)
        self.conversations = changed

    @property
    def answers_any(self) -> bool:
        """Whether a reply answers any request."""
        return any(match == ANY for match, _ in self.conversations)


def is_inline(name: str | None) -> bool:
    """Whether this is the name of a scenario that replies make."""
    return name is not None and name.startswith(_INLINE)


def _scenarios(
    name: str, conversations: Sequence[tuple[Any, list[Turn]]], *, again: bool
) -> tuple[Scenario, ...]:
    from mockllm.play.replay.loading import loads

    documents = [
        {
            "scenario": name if not index else f"{name}-{index + 1}",
            "match": match,
            # Before a scenario that answers anything, such as `auto`.
            **({"priority": 1} if match == ANY else {}),
            **_in_order(turns, again=again),
        }
        for index, (match, turns) in enumerate(conversations)
    ]
    try:
        return loads("\n---\n".join(map(json_as_yaml, documents)), _WRITTEN)
    except TypeError as error:
        message = (
            f"holds what a scenario cannot ({error}); a part is a text, or what text(), tool() and "
            "other functions of mockllm_pytest return"
        )
        problems = [Problem(_WRITTEN, 0, 0, "", message)]
    except ScenarioError as error:
        problems = [
            Problem(_WRITTEN, 0, 0, _PLACE.sub("", problem.path), problem.message)
            for problem in error.problems
        ]
    raise ScenarioError(problems)


def _in_order(turns: Sequence[Turn], *, again: bool) -> dict[str, Any]:
    """The turns as keys of a scenario. Each answers once, unless they say themselves which one is
    next."""
    if any("go_to" in form for turn in turns for form in _forms(turn)):
        return {"turns": list(turns)}
    *before, last = turns
    return {"in_order": True, "turns": [*before, {**last, "repeat": True} if again else last]}


def _forms(turn: Turn) -> Iterator[Turn]:
    yield turn
    for form in (*turn.get("when", ()), *turn.get("one_of", ())):
        yield from _forms(form) if isinstance(form, Mapping) else ()


def turn_of(parts: Iterable[Part | str], **keys: Any) -> Turn:
    """The turn as a scenario file would have it.

    Args:
        parts: of the reply; a string is text.
        keys: of the turn; those that are None are left out.
    """
    reply = [{"text": part} if isinstance(part, str) else part for part in parts] or None
    return {key: value for key, value in {"reply": reply, **keys}.items() if value is not None}
