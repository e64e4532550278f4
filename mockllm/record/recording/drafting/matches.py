"""The `match` of a recorded scenario: the first text of the user, and further conditions only
where competing scenarios need them.

docs/recorded-files.md describes the rule. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from textwrap import wrap
from types import MappingProxyType
from typing import Any, Literal

from mockllm.core.jsontext import compact, is_in_json
from mockllm.core.request import Request, SentFile
from mockllm.play.matching.conditions import check_partial, judged_match
from mockllm.play.matching.conversation import openings
from mockllm.play.matching.sent_files import source_of
from mockllm.record.recording.drafting.conversations import Conversation
from mockllm.record.redaction.placeholders import wildcards
from mockllm.scenario.check import text_operators
from mockllm.scenario.ignoring import PLACEHOLDERS, competing, normal_body, normal_text
from mockllm.scenario.model import AnyText, Ignored, Match, Scenario, TextCondition
from mockllm.scenario.precedence import user_condition
from mockllm.scenario.reading.tables import is_tool_name
from mockllm.wire.protocols import PROTOCOLS

Condition = Literal["user", "system", "model", "tools"]

Pattern = Callable[[str], str | None]
"""A regular expression that finds a text as it was and without its secrets; None where it has
none."""


@dataclass(frozen=True, slots=True)
class MatchRule:
    """Which conditions the `match` of a recorded scenario has from the start; others are added
    only where another scenario competes. Without any it plays only when named.

    Args:
        ignore: what of a request differs from run to run.
        auxiliary: whether what agents ask beside the conversation is recorded, too.
    """

    conditions: tuple[Condition, ...] = ("user",)
    ignore: Ignored = ()
    auxiliary: bool = False


def match_rule(
    conditions: tuple[Condition, ...] | None = None,
    ignore: Ignored = (),
    *,
    auxiliary: bool = False,
) -> MatchRule:
    """The rule with these conditions; None: with the usual ones."""
    usual = MatchRule(ignore=ignore, auxiliary=auxiliary)
    return usual if conditions is None else replace(usual, conditions=conditions)


def no_pattern(text: str) -> str | None:
    """The pattern of texts without secrets."""
    return None


_GLOB = re.compile(r"([*?[])")
_DISTINGUISHING: tuple[str, ...] = ("user_files", "tools", "system", "model", "stream")
"""The conditions that may distinguish conversations with the same first text, the best first."""


Distinguished = tuple[Scenario, list[tuple[Conversation, Scenario]]]
"""A scenario, and its competitors as they are then."""


@dataclass(slots=True)
class Matches:
    """Chooses the matches of scenarios, so that each is found by its own first request."""

    rule: MatchRule
    pattern: Pattern
    first: Callable[[Conversation], Request | None]
    _by_user: dict[AnyText | None, list[Conversation]] = field(default_factory=dict)

    def condition(self, text: str, ignore: Ignored = ()) -> TextCondition:
        """The condition that this text meets, and others only if they differ in what is ignored."""
        pattern = self.pattern(normal_text(ignore, text))
        if pattern is None:
            return TextCondition("equals", str(text), ignore)
        for placeholder in PLACEHOLDERS if ignore else ():
            pattern = pattern.replace(placeholder, "(?s:.+?)")
        return TextCondition("regex", rf"\A(?:{pattern})\Z", ignore)

    def opening(self, request: Request, user: str | None, ignore: Ignored = ()) -> Match | None:
        """The match of a conversation that begins with this request, competitors not considered."""
        match = Match(ignore=ignore)
        for name in self.rule.conditions:
            found = self._with(match, name, request, user)
            match = found or match
        if user is None and self.rule.conditions and match.conditions == 0:
            match = self._with(match, "system", request, user) or match
        return match if match.conditions else None

    def _with(
        self, match: Match, name: str, request: Request, user: str | None = None
    ) -> Match | None:
        match name:
            case "user" if user:
                return replace(match, user=self.condition(user, match.ignore))
            case "user" | "user_files":
                files = _opening_files(request)
                sources = tuple(map(source_of, files))
                had_secret = any(self.pattern(file.data or file.reference) for file in files)
                if files and all(sources) and not had_secret:
                    return replace(match, user_files=sources)
            case "system" if request.system:
                return replace(match, system=self.condition(request.system, match.ignore))
            case "model" if request.model:
                return replace(match, model=_GLOB.sub(r"[\1]", request.model))
            case "tools" if request.tools and all(is_tool_name(t.name) for t in request.tools):
                return replace(match, tools=tuple(tool.name for tool in request.tools))
            case "stream":
                return replace(match, stream=request.stream)
        return None

    def keep(self, conversation: Conversation) -> None:
        """Considers a conversation from now on."""
        match = conversation.scenario.match
        if match is not None:
            self._by_user.setdefault(competing(match.user), []).append(conversation)

    def drop(self, conversation: Conversation) -> None:
        """Considers a conversation no longer."""
        match = conversation.scenario.match
        if match is not None:
            same = self._by_user.get(competing(match.user), [])
            if conversation in same:
                same.remove(conversation)

    def distinguish(self, scenario: Scenario, request: Request | None) -> Distinguished:
        """The scenario with a match that its own first request meets and no other's does, and the
        competitors that have to change for it, as they are then.

        Both sides get a condition: a request that meets that of neither gets no answer, and not
        that of the one without. Where no condition distinguishes it from another one, only the
        digests of their requests do.
        """
        competitors = self._competitors(scenario, request)
        if request is None or not competitors:
            return scenario, []
        firsts = [first for other in competitors if (first := self.first(other)) is not None]
        has_other_apis = any(first.api != request.api for first in firsts)
        narrower: Iterator[Distinguished] = (
            (narrow, [])
            for narrow in self._narrower(scenario, request, firsts)
            if not self._competitors(narrow, request)
        )
        own = replace(scenario, apis=(request.api,)) if has_other_apis else scenario
        changing = self._with_changes(own, request, firsts)
        ways = (changing, narrower) if has_other_apis else (narrower, changing)
        return next(chain(*ways), (scenario, []))

    def _competitors(
        self,
        scenario: Scenario,
        request: Request | None,
        changed: Mapping[str, Scenario] = MappingProxyType({}),
    ) -> list[Conversation]:
        """The conversations of which one would get the other's request."""
        if scenario.match is None:
            return []
        return [
            other
            for other in self._by_user.get(competing(scenario.match.user), ())
            if (theirs := changed.get(other.scenario.name, other.scenario)).name != scenario.name
            and not self._both_found(scenario, request, theirs, self.first(other))
        ]

    def _both_found(
        self, one: Scenario, request: Request | None, other: Scenario, first: Request | None
    ) -> bool:
        """Whether each of two scenarios is found by its own first request."""
        mine, theirs = one.match, other.match
        ignore = mine.ignore if mine is not None else ()
        if request is not None and first is not None and is_same(request, first, ignore):
            return True  # they are played in their order
        if mine is None or theirs is None or not one.shares_api(other):
            return True
        if mine.conditions == theirs.conditions and _users_differ_later(one, other):
            return True
        if request is None or first is None:
            # It is not known what the other one is found by: the one with more conditions wins.
            shadowed = theirs.conditions >= mine.conditions and _holds(other, request)
            shadows = mine.conditions >= theirs.conditions and _holds(one, first)
            return not shadowed and not shadows
        return not _holds(other, request) and not _holds(one, first)

    def _narrower(
        self, scenario: Scenario, request: Request, rivals: Sequence[Request]
    ) -> Iterator[Scenario]:
        """The scenario with further conditions that its request meets, as few as possible first."""
        if scenario.match is None:
            return
        for count in range(1, len(_DISTINGUISHING) + 1):
            if count == 2 and scenario.match.body is None:
                body = distinguishing_fields(request, rivals, scenario.match.ignore)
                if body is not None:
                    yield replace(scenario, match=replace(scenario.match, body=body))
            for names in combinations(_DISTINGUISHING, count):
                match: Match | None = scenario.match
                for name in names:
                    if match is not None:
                        match = self._with_telling(match, name, request, rivals)
                if match is not None:
                    yield replace(scenario, match=match)

    def _with_telling(
        self, match: Match, name: str, request: Request, rivals: Sequence[Request]
    ) -> Match | None:
        """The match with a condition that its request meets and rivals do not, as short as may
        be."""
        if name == "tools":
            tools = _telling_tools(request, rivals)
            return replace(match, tools=tools) if tools else None
        if name == "system":
            piece = _telling_piece(request, rivals, match.ignore)
            if piece is not None:
                return replace(match, system=piece)
            if request.agent:  # its whole system prompt has the date in it
                return None
        return self._with(match, name, request)

    def _with_changes(
        self, scenario: Scenario, request: Request, firsts: Sequence[Request]
    ) -> Iterator[Distinguished]:
        """The scenario, as it is or narrower, with changes of all its competitors."""
        ways: dict[str, list[Scenario]] = {}
        for mine in (scenario, *self._narrower(scenario, request, firsts)):
            changes = self._changes(mine, request, ways)
            if changes is not None:
                yield mine, changes
        for theirs in chain.from_iterable(tuple(ways.values())):
            for mine in _without_added(scenario, theirs):
                changes = self._changes(mine, request, ways)
                if changes is not None:
                    yield mine, changes

    def _changes(
        self, mine: Scenario, request: Request, ways: dict[str, list[Scenario]]
    ) -> list[tuple[Conversation, Scenario]] | None:
        changed = {mine.name: mine}
        changes = []
        for competitor in self._competitors(mine, request):
            name, first = competitor.scenario.name, self.first(competitor)
            if name not in ways:
                ways[name] = list(self._alternatives(competitor.scenario, first, request))
            for theirs in (*ways[name], *_without_added(competitor.scenario, mine)):
                if self._both_found(mine, request, theirs, first) and not self._competitors(
                    theirs, first, changed
                ):
                    changed[name] = theirs
                    changes.append((competitor, theirs))
                    break
            else:
                return None
        return changes

    def _alternatives(
        self, competitor: Scenario, first: Request | None, request: Request
    ) -> Iterator[Scenario]:
        """The ways in which a competitor can change: without the API of the other's request, if its
        own is another, or with further conditions that its own first request meets."""
        if first is not None and first.api != request.api:
            others = tuple(api for api in competitor.apis or PROTOCOLS if api != request.api)
            yield replace(competitor, apis=others)
        if first is not None:
            yield from self._narrower(competitor, first, [request])


_LONGEST_PIECE = 100
_SHORTEST_PIECE = 12
"""Characters of a piece of a system prompt in a condition."""


def _telling_tools(request: Request, rivals: Sequence[Request]) -> tuple[str, ...]:
    """The fewest tools that a request offers of which each rival lacks one; () where it offers none
    that a rival lacks."""
    names = [tool.name for tool in request.tools if is_tool_name(tool.name)]
    telling: dict[str, None] = {}
    for rival in rivals:
        offered = {tool.name for tool in rival.tools}
        if offered.issuperset(telling):
            missing = next((name for name in names if name not in offered), None)
            telling |= {} if missing is None else {missing: None}
    return tuple(telling)


def _telling_piece(
    request: Request, rivals: Sequence[Request], ignore: Ignored
) -> TextCondition | None:
    """A condition on a system prompt that has nothing that differs from run to run: all of a short
    one, or the first piece of a longer one that no rival has."""
    system, *others = (normal_text(ignore, sent.system) for sent in (request, *rivals))
    if len(system) <= _LONGEST_PIECE:
        return TextCondition("equals", system, ignore) if _is_stable(system) else None
    for line in system.splitlines():
        for piece in wrap(line, _LONGEST_PIECE, break_long_words=False, break_on_hyphens=False):
            told = piece in line and not any(piece in other for other in others)
            if told and len(piece) >= _SHORTEST_PIECE and _is_stable(piece):
                return TextCondition("contains", piece, ignore)
    return None


_CHANGING: Ignored = ("uuid", "timestamp", "date")


def _is_stable(text: str) -> bool:
    """Whether a text, which may be part of a condition, is the same in another run."""
    if not text or wildcards(text) or any(mark in text for mark in PLACEHOLDERS):
        return False
    return normal_text(_CHANGING, text) == text


def _without_added(other: Scenario, narrow: Scenario) -> Iterator[Scenario]:
    """A competitor with what a scenario demands and the competitor does not, as what must not
    hold."""
    theirs, match = other.match, narrow.match
    if theirs is None or match is None or theirs.negated is not None:
        return
    added = Match(
        system=match.system if match.system != theirs.system else None,
        tools=tuple(name for name in match.tools if name not in theirs.tools),
        body=match.body if match.body != theirs.body else None,
    )
    if added.conditions == 1:
        yield replace(other, match=replace(theirs, negated=added))


def _opening_files(request: Request) -> tuple[SentFile, ...]:
    """The files of the message that a request's conversation begins with."""
    history = next(openings(request.messages), None)
    return history.opening_files if history is not None else ()


def is_same(one: Request, other: Request, ignore: Ignored = ()) -> bool:
    """Whether two requests ask for the same, but for what is ignored."""
    if (one.api, one.model, one.stream) != (other.api, other.model, other.stream):
        return False
    return bool(normal_body(ignore, one) == normal_body(ignore, other))


def _users_differ_later(one: Scenario, other: Scenario) -> bool:
    """Whether any turn after the first expects another message of the user."""
    for index in range(1, min(len(one.turns), len(other.turns))):
        mine, theirs = user_condition(one, index), user_condition(other, index)
        if None not in (mine, theirs) and mine != theirs:
            return True
    return False


def _holds(scenario: Scenario, request: Request | None) -> bool:
    """Whether a request meets a scenario's match, `user` left out; True where it is not known."""
    if request is None:
        return True
    assert scenario.match is not None
    if not scenario.plays_over(request.api):
        return False
    return all(condition.met for condition in judged_match(scenario.match, request, {}))


_MOST_FIELDS = 3
_MOST_TRIED = 24
_LONGEST = 160
"""The longest value of a field in a condition, in characters of JSON."""


def distinguishing_fields(
    request: Request, others: Sequence[Request], ignore: Ignored = ()
) -> dict[str, Any] | None:
    """The fewest fields of a request's body of which each other body lacks at least one; None
    where no such fields are there. What is ignored does not distinguish.

    Nested fields are nested here, too: `{"reasoning": {"effort": "low"}}`.
    """
    if not others:
        return None
    if ignore:
        request, *others = (
            replace(sent, body=normal_body(ignore, sent)) for sent in (request, *others)
        )
    paths = [path for path in _fields(request, request.body, ()) if _differs(path, request, others)]
    # Some fields distinguish those that one of them does: what a condition on several lacks is what
    # those on each lack. So each is asked once, and not each combination.
    distinguished = [
        (path, _misses(_part(request.body, [path]), others)) for path in paths[:_MOST_TRIED]
    ]
    for count in range(1, _MOST_FIELDS + 1):
        for some in combinations(distinguished, count):
            if len(frozenset().union(*(numbers for _, numbers in some))) < len(others):
                continue
            body: dict[str, Any] = _part(request.body, [path for path, _ in some])
            if check_partial("body", body, request.body) is None and not any(text_operators(body)):
                return body
    return None


def _misses(body: Any, others: Sequence[Request]) -> frozenset[int]:
    """The numbers of the requests that do not meet a condition on the body."""
    return frozenset(
        number
        for number, other in enumerate(others)
        if check_partial("body", body, other.body) is not None
    )


_Path = tuple[str | int, ...]


def _fields(request: Request, value: Any, path: _Path) -> Iterator[_Path]:
    """The paths of short values, those nearer to the top first."""
    deeper: list[tuple[Any, _Path]] = []
    for key, item in _items(value):
        here = (*path, key)
        if not path and (_is_history(str(key), item) or key in ("user", "metadata")):
            continue
        if isinstance(item, Mapping | list) and item:
            deeper.append((item, here))
        elif (isinstance(item, str) and item and not _is_stable(item)) or _is_time(key, item):
            continue
        elif len(compact(item)) <= _LONGEST and is_in_json(item):
            yield here
    for item, here in deeper:
        yield from _fields(request, item, here)


def _is_time(key: str | int, value: Any) -> bool:
    """Whether a number is a time, or an amount of milliseconds: it differs in each run."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 1e9 or str(key).lower().endswith(("_ms", "_at", "timestamp"))


def _items(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


_TOOLS = frozenset(
    field for protocol in PROTOCOLS.values() for field in protocol.client.tool_fields
)


def _is_history(name: str, value: Any) -> bool:
    """Whether a field holds messages: a list of objects that is no list of tools."""
    if name in _TOOLS or not isinstance(value, list):
        return False
    return any(isinstance(item, Mapping) for item in value)


_ABSENT = object()


def _differs(path: _Path, request: Request, others: Sequence[Request]) -> bool:
    mine = _at(request.body, path)
    return any(_at(other.body, path) != mine for other in others)


def _at(value: Any, path: _Path) -> Any:
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return _ABSENT
    return value


def _part(value: Any, paths: Sequence[_Path]) -> Any:
    """A value with what some paths lead to. Lists are compared item by item, so that a condition on
    one item needs the others, too."""
    if () in paths:
        return value
    below = {key: [path[1:] for path in paths if path[0] == key] for key, _ in _items(value)}
    if isinstance(value, Mapping):
        return {key: _part(value[key], tails) for key, tails in below.items() if tails}
    return [
        _part(item, tails) if tails else {} if isinstance(item, Mapping) else item
        for item, tails in zip(value, below.values(), strict=True)
    ]
