"""The scenarios that `MockSession.reply` writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mockllm.core.text import json_as_yaml
from mockllm_pytest.parts import Part

if TYPE_CHECKING:
    from mockllm.scenario.model import Scenario

INLINE = "inline"
"""The name of the first scenario that `MockSession.reply` writes."""

Turn = Mapping[str, Any]
"""A turn with the keys of a scenario file."""

ANY = "any"
"""The `match` of replies that answer any request."""


@dataclass(slots=True)
class Replies:
    """The conversations that a test writes with `MockSession.reply`, turn by turn.

    Args:
        conversations: the `match` and the turns of each; the first one is the scenario `inline`,
            the second one `inline-2`, and so on.
    """

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
        self.scenarios = _scenarios(changed)
        self.conversations = changed

    @property
    def answers_any(self) -> bool:
        """Whether a reply answers any request."""
        return any(match == ANY for match, _ in self.conversations)


def is_inline(name: str | None) -> bool:
    """Whether this is the name of a scenario that replies make."""
    return name is not None and name.partition("-")[0] == INLINE


def _scenarios(conversations: Sequence[tuple[Any, list[Turn]]]) -> tuple[Scenario, ...]:
    from mockllm.replay.loading import loads

    documents = [
        {
            "scenario": INLINE if not index else f"{INLINE}-{index + 1}",
            "match": match,
            "turns": turns,
        }
        for index, (match, turns) in enumerate(conversations)
    ]
    return loads("\n---\n".join(map(json_as_yaml, documents)), "<reply>")


def turn_of(parts: Iterable[Part | str], **keys: Any) -> Turn:
    """The turn as a scenario file would have it.

    Args:
        parts: of the reply; a string is text.
        keys: of the turn; those that are None are left out.
    """
    reply = [{"text": part} if isinstance(part, str) else part for part in parts] or None
    return {key: value for key, value in {"reply": reply, **keys}.items() if value is not None}
