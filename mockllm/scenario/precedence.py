"""Competing scenarios: several whose `match` the same requests meet. How ties are broken.

Two scenarios compete if their `match` has the same conditions (`match_key`) and they have a
protocol in common. Of two authored scenarios that is a mistake. Recordings may compete: two
conversations can begin with the same user message and get different answers. Then the later user
messages decide (`user_condition`): a recording answers if all of its turns so far agree with them.
Where several still agree, the first by `precedence` answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from mockllm.core.text import quantity
from mockllm.scenario.ignoring import competing, normal_value
from mockllm.scenario.model import AnyText, Match, Scenario, expected_texts

_NAMED = re.compile(r"\{\w+\}")


def precedence(scenario: Scenario) -> tuple[bool, int, str]:
    """The sort key of competing scenarios, of which the first wins: authored ones, then recordings
    as `hello`, `hello-2`, ..., `hello-10`."""
    return is_recorded(scenario), len(scenario.name), scenario.name


def user_condition(scenario: Scenario, index: int) -> AnyText | None:
    """The condition on the user message right before a turn; None where there is none."""
    request = scenario.turns[index].request
    return request.user if request is not None else None


def is_recorded(scenario: Scenario) -> bool:
    """Whether any turn of the scenario was recorded."""
    return any(turn.recorded is not None for turn in scenario.turns)


def found_by_request(scenario: Scenario) -> bool:
    """Whether a turn of the scenario is found by the digest of its recorded request."""
    return any(turn.recorded is not None and turn.recorded.request for turn in scenario.turns)


def differ_later(one: Scenario, other: Scenario) -> bool:
    """Whether two scenarios with the same `match` may compete.

    They may if the later one by `precedence` is recorded and is found by its own request; or, in
    any turn after the first, either has another condition on the user message or goes on where the
    other one ends.
    """
    earlier, later = sorted((one, other), key=precedence)
    if not is_recorded(later):
        return False
    if found_by_request(later) or later.route is not None:
        return True
    for index in range(1, len(later.turns)):
        if index >= len(earlier.turns):
            return True
        condition, other_condition = user_condition(earlier, index), user_condition(later, index)
        if None not in (condition, other_condition) and condition != other_condition:
            return True
    return False


def routes_of_several_hosts(scenarios: Iterable[Scenario]) -> Iterator[tuple[Scenario, str]]:
    """For each route of which there are scenarios for several hosts, the last scenario and a
    warning: a client with a base URL does not say which of the hosts it means."""
    known: dict[Hashable, list[Scenario]] = {}
    for scenario in scenarios:
        if scenario.route is not None and scenario.route.host:
            key = scenario_key(replace(scenario, route=replace(scenario.route, host="")))
            known.setdefault(key, []).append(scenario)
    for same in known.values():
        routes = [scenario.route for scenario in same if scenario.route is not None]
        hosts = sorted({route.host for route in routes})
        if len(hosts) > 1:
            route = f"{routes[0].method} {routes[0].path}"
            warning = (
                f"{route} has answers of {len(hosts)} hosts, {', '.join(hosts)}, and a client with "
                "a base URL of mockllm does not say which of them it means: it gets any. Intercept "
                "the hosts, or serve the answers of each from a folder of its own"
            )
            yield same[-1], warning


_MOST_ORDERED = 500
"""Of more scenarios no order is shown: each is compared with all others."""


def orders(scenarios: Iterable[Scenario]) -> Iterator[str]:
    """Which of two authored scenarios answers a user's message that meets both, a line for each
    pair of which one has all words of the other."""
    asked = [
        (scenario, expected_texts(scenario.match.user))
        for scenario in scenarios
        if scenario.match is not None and scenario.match.user is not None
        if scenario.route is None and not is_recorded(scenario)
    ]
    for special, words in asked if len(asked) <= _MOST_ORDERED else ():
        for general, fewer in asked:
            if general is special or not fewer or not general.shares_api(special):
                continue
            has_all = all(any(few in word for word in words) for few in fewer)
            if has_all and (words != fewer or special.specificity > general.specificity):
                yield _order(special, general)


def _order(special: Scenario, general: Scenario) -> str:
    both = f"a message that meets {special.name} and {general.name}"
    ranks = special.specificity, general.specificity
    if ranks[0] == ranks[1]:
        return f"{both} is an error: both have {_rank(special)}; give one a 'priority'"
    first, second = (special, general) if ranks[0] > ranks[1] else (general, special)
    return (
        f"{both} is answered by {first.name}, which has {_rank(first)}; {second.name} has "
        f"{_rank(second)}"
    )


def _rank(scenario: Scenario) -> str:
    conditions, _ = scenario.specificity
    priority = "no priority" if scenario.priority is None else f"priority {scenario.priority}"
    return f"{quantity(conditions, 'condition')} and {priority}"


def scenario_key(scenario: Scenario) -> Hashable:
    """A key that is equal for two scenarios that match the same requests, of the protocols that
    both play over; None for a scenario that plays only when a request names it."""
    route, match = scenario.route, scenario.match
    if route is None:
        return None if match is None else (match_key(match), scenario.priority)
    method = "WebSocket" if scenario.socket else route.method
    path = _NAMED.sub("{}", route.path)
    return method, route.host, path, match_key(match or Match()), scenario.priority


def match_key(match: Match) -> Hashable:
    """A key that is equal for two matches with the same conditions."""
    body = normal_value(match.ignore, match.body)
    return (
        match.anything,
        match.model,
        competing(match.user),
        match.user_files,
        competing(match.system),
        frozenset(match.tools),
        frozenset((name, competing(condition)) for name, condition in match.headers),
        None if body is None else json.dumps(body, sort_keys=True),
        match.stream,
        frozenset((name, competing(condition)) for name, condition in match.query),
        frozenset(map(match_key, match.any_of)),
        frozenset(map(match_key, match.all_of)),
        None if match.negated is None else match_key(match.negated),
    )
