"""The `match` of a recorded scenario: as wide as what the user said, and no wider than needed
to tell it from the other scenarios.

The rule is told in docs/recording.md. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from types import MappingProxyType
from typing import Literal

from mockllm.core.request import Request
from mockllm.matching.conditions import check_match
from mockllm.protocols import PROTOCOLS
from mockllm.recording.drafting.conversations import Conversation
from mockllm.scenario.model import Match, Scenario, TextCondition
from mockllm.scenario.precedence import precedence, differ_later

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
    _by_user: dict[TextCondition | None, list[Conversation]] = field(default_factory=dict)

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
            self._by_user.setdefault(match.user, []).append(conversation)

    def drop(self, conversation: Conversation) -> None:
        """Regards a conversation no more."""
        match = conversation.scenario.match
        if match is not None and conversation in self._by_user.get(match.user, ()):
            self._by_user[match.user].remove(conversation)

    def settled(
        self, scenario: Scenario, request: Request | None
    ) -> tuple[Scenario, list[tuple[Conversation, Scenario]]]:
        """A scenario with a match by which its first request finds it and no other's does, if
        need be with conditions more.

        Args:
            request: its first one; None where that is not known.

        Returns:
            the scenario, without a match where nothing tells it from one that is there; and the
            others that have to change for it, as they are then.
        """
        rivals = self._rivals(scenario, request)
        if not rivals:
            return scenario, []
        for told in self._narrower(scenario, request):
            if not self._rivals(told, request):
                return told, []
        changed = self._with_changes(scenario, request, rivals) if request is not None else None
        if changed is not None:
            return changed
        if all(precedence(scenario) < precedence(rival.scenario) for rival in rivals):
            return scenario, [(rival, replace(rival.scenario, match=None)) for rival in rivals]
        return replace(scenario, match=None), []

    def _rivals(
        self,
        scenario: Scenario,
        request: Request | None,
        changed: Mapping[str, Scenario] = MappingProxyType({}),
    ) -> list[Conversation]:
        """The conversations whose requests, or its own, would not find the right one.

        Args:
            changed: by name, the scenarios that are to be others than they are now.
        """
        if scenario.match is None:
            return []
        return [
            other
            for other in self._by_user.get(scenario.match.user, ())
            if (theirs := changed.get(other.scenario.name, other.scenario)).name != scenario.name
            and not self._part(scenario, request, theirs, self.first(other))
        ]

    def _part(
        self, one: Scenario, request: Request | None, other: Scenario, first: Request | None
    ) -> bool:
        """Whether each of two scenarios is found by its own first request."""
        mine, theirs = one.match, other.match
        if mine is None or theirs is None or not one.shares_api(other):
            return True
        if mine.conditions == theirs.conditions and differ_later(one, other):
            return True
        shadowed = theirs.conditions >= mine.conditions and _holds(other, request)
        shadows = mine.conditions >= theirs.conditions and _holds(one, first)
        return not shadowed and not shadows

    def _narrower(self, scenario: Scenario, request: Request | None) -> Iterator[Scenario]:
        """The scenario with further conditions that its request meets, as few as may be."""
        for count in range(1, len(_TELLING) + 1 if request is not None else 1):
            for names in combinations(_TELLING, count):
                match = scenario.match
                for name in names:
                    assert request is not None
                    match = self._with(match, name, request) if match is not None else None
                if match is not None:
                    yield replace(scenario, match=match)

    def _with_changes(
        self, scenario: Scenario, request: Request, rivals: list[Conversation]
    ) -> tuple[Scenario, list[tuple[Conversation, Scenario]]] | None:
        """The scenario, and its rivals as they are told from it; None where that cannot be."""
        firsts = [self.first(rival) for rival in rivals]
        if any(first is not None and first.api != request.api for first in firsts):
            scenario = replace(scenario, apis=(request.api,))
        ways: dict[str, list[Scenario]] = {}
        for mine in (scenario, *self._narrower(scenario, request)):
            changes = self._changes(mine, request, ways)
            if changes is not None:
                return mine, changes
        return None

    def _changes(
        self, mine: Scenario, request: Request, ways: dict[str, list[Scenario]]
    ) -> list[tuple[Conversation, Scenario]] | None:
        """A scenario's rivals, each as it is told from it and from all others.

        Args:
            ways: what is known of how the rivals can change, by name; it is added to.
        """
        changed = {mine.name: mine}
        changes = []
        for rival in self._rivals(mine, request):
            name, first = rival.scenario.name, self.first(rival)
            if name not in ways:
                ways[name] = list(self._giving_way(rival.scenario, first, request))
            for theirs in ways[name]:
                if self._part(mine, request, theirs, first) and not self._rivals(
                    theirs, first, changed
                ):
                    changed[name] = theirs
                    changes.append((rival, theirs))
                    break
            else:
                return None
        return changes

    def _giving_way(
        self, rival: Scenario, first: Request | None, request: Request
    ) -> Iterator[Scenario]:
        """A scenario without the API of another one's request, if its own is another; or with
        what its first request has."""
        if first is not None and first.api != request.api:
            others = tuple(api for api in rival.apis or PROTOCOLS if api != request.api)
            yield replace(rival, apis=others)
        yield from self._narrower(rival, first)


def _holds(scenario: Scenario, request: Request | None) -> bool:
    """Whether a request meets a scenario's match, but for its `user`; so it is taken to where
    the request is not known."""
    if request is None:
        return True
    assert scenario.match is not None
    if not scenario.plays_over(request.api):
        return False
    found = check_match(scenario.match, request, {}, user="")
    return all(problem is None for problem in found)
