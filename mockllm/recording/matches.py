"""The `match` of a recorded scenario: as wide as what the user said, and no wider than needed
to tell it from the other scenarios.

The rule is told in docs/recording.md. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from mockllm.conditions import check_match
from mockllm.recording.conversations import Conversation
from mockllm.request import Request
from mockllm.scenario.check import alike
from mockllm.scenario.model import Match, Scenario, TextCondition
from mockllm.scenario.told_apart import precedence, told_apart

__all__ = ["Condition", "MatchRule", "Matches", "Pattern", "no_pattern"]

Condition = Literal["user", "system", "model", "tools"]

Pattern = Callable[[str], str | None]
"""A regular expression that finds a text as it was and without its secrets; None where it has
none."""


@dataclass(frozen=True, slots=True)
class MatchRule:
    """Which conditions the `match` of a recorded scenario has from the start; others are added
    only where they tell it from one that is there already. None: it plays only when named."""

    conditions: tuple[Condition, ...] = ("user",)


def no_pattern(text: str) -> str | None:
    """The pattern of texts without secrets."""
    return None


_GLOB = re.compile(r"([*?[])")
_TELLING: tuple[str, ...] = ("system", "tools", "model", "stream")
"""What may tell two conversations apart that begin with the same words, the best first."""


@dataclass(slots=True)
class Matches:
    """Makes the matches of scenarios, and knows those that are there."""

    rule: MatchRule
    pattern: Pattern
    first: Callable[[Conversation], Request | None]
    _by_key: dict[Hashable, list[Conversation]] = field(default_factory=dict)

    def condition(self, text: str) -> TextCondition:
        """What a text has to be to be this one."""
        pattern = self.pattern(text)
        if pattern is None:
            return TextCondition("equals", text)
        return TextCondition("regex", rf"\A(?:{pattern})\Z")

    def opening(self, request: Request, user: str | None) -> Match | None:
        """The match of a conversation that begins with this request, others not regarded."""
        match = Match()
        for name in self.rule.conditions:
            found = self._with(match, name, request, user)
            match = found or match
        if user is None and self.rule.conditions and match.conditions == 0:
            match = self._with(match, "system", request, user) or match
        return match if match.conditions else None

    def _with(
        self, match: Match, name: str, request: Request, user: str | None = None
    ) -> Match | None:
        """The match with one more condition of a request; None where the request has nothing
        for it."""
        match name:
            case "user" if user:
                return replace(match, user=self.condition(user))
            case "system" if request.system:
                return replace(match, system=self.condition(request.system))
            case "model" if request.model:
                return replace(match, model=_GLOB.sub(r"[\1]", request.model))
            case "tools" if request.tools:
                return replace(match, tools=tuple(tool.name for tool in request.tools))
            case "stream" if isinstance(request.body.get("stream"), bool):
                return replace(match, body={"stream": request.stream})
        return None

    def keep(self, conversation: Conversation) -> None:
        """Regards a conversation from now on."""
        match = conversation.scenario.match
        if match is not None:
            self._by_key.setdefault(alike(match), []).append(conversation)

    def drop(self, conversation: Conversation) -> None:
        """Regards a conversation no more."""
        match = conversation.scenario.match
        if match is not None:
            found = self._by_key.get(alike(match), [])
            if conversation in found:
                found.remove(conversation)

    def rivals(self, scenario: Scenario) -> list[Conversation]:
        """The conversations that answer the same requests, so that nobody could say which."""
        if scenario.match is None:
            return []
        return [
            other
            for other in self._by_key.get(alike(scenario.match), ())
            if other.scenario.name != scenario.name and not told_apart(scenario, other.scenario)
        ]

    def settled(
        self, scenario: Scenario, request: Request | None
    ) -> tuple[Scenario, list[tuple[Conversation, Match | None]]]:
        """A scenario with a match that no other has, if need be with a condition more.

        Args:
            request: its first one.

        Returns:
            the scenario, without a match where nothing tells it from one that is there; and the
            others that need another match, or can have none.
        """
        rivals, match = self.rivals(scenario), scenario.match
        if not rivals or match is None:
            return scenario, []
        for name in _TELLING if request is not None else ():
            assert request is not None
            more = self._with(match, name, request)
            told = replace(scenario, match=more)
            if more is None or self.rivals(told):
                continue
            if not any(self._meets(rival, more) for rival in rivals):
                return told, []
        if len(rivals) == 1 and request is not None:
            for more in self._of_rival(rivals[0], match, request):
                if not self.rivals(replace(rivals[0].scenario, match=more)):
                    return scenario, [(rivals[0], more)]
        if all(precedence(scenario) < precedence(rival.scenario) for rival in rivals):
            return scenario, [(rival, None) for rival in rivals]
        return replace(scenario, match=None), []

    def _meets(self, rival: Conversation, match: Match) -> bool:
        """Whether the first request of a conversation meets a match; so it is taken to where
        that request is not known."""
        first = self.first(rival)
        return first is None or _holds(match, first)

    def _of_rival(self, rival: Conversation, match: Match, request: Request) -> Iterator[Match]:
        """The rival's match with a condition more, which the request does not meet."""
        first = self.first(rival)
        for name in _TELLING if first is not None else ():
            assert first is not None
            more = self._with(match, name, first)
            if more is not None and more != match and not _holds(more, request):
                yield more


_NO_HEADERS: Mapping[str, str] = {}


def _holds(match: Match, request: Request) -> bool:
    """Whether a request meets a match, but for its `user`."""
    found: Sequence[str | None] = list(check_match(match, request, _NO_HEADERS, user=""))
    return all(problem is None for problem in found)
