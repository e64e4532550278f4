"""Which scenarios answer a test, and what a request without an answer gets."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mockllm.core.errors import NoMatchError, UsageError
from mockllm.core.jsontext import parse_object
from mockllm.core.request import Message, OfferedTool, Request
from mockllm.core.text import display
from mockllm.play.agents.agent_requests import read_request
from mockllm.play.matching.conditions import first_problem, judged_match
from mockllm.play.matching.index import SCENARIO_HEADER, named_scenario
from mockllm.play.matching.mismatch import nearest_scenarios
from mockllm.play.replay.auto.schema_sample import UnsatisfiableError, bounded_sample
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.decision import Decision
from mockllm.play.replay.player import DecisionDraft, Player
from mockllm.scenario.model import Match, Scenario
from mockllm_pytest.replies import is_inline

if TYPE_CHECKING:
    from mockllm.serve.server.app import MockServer

Advice = Callable[[Request, Mapping[str, str]], list[str]]
"""From a request, and its headers with lower-case names, to the lines of a message."""

_MOST_SUGGESTED = 3
_LONGEST_TEXT = 60


@dataclass(frozen=True, slots=True)
class Answering:
    """The scenarios that answer in a session.

    Args:
        scenarios: all that are served.
        named: the name of the one that answers every request that names none.
        lone: the only one that the test has, if its `match` counts.
        automatic: whether one of the test answers anything from the request, such as `auto`: so do
            routes that call no model, such as embeddings.
    """

    scenarios: tuple[Scenario, ...]
    named: str | None = None
    lone: Scenario | None = None
    automatic: bool = False

    @classmethod
    def of(
        cls, own: Iterable[Scenario], anything: Collection[str], others: Iterable[Scenario]
    ) -> Answering:
        """The scenarios of a test, which answer by their `match`; and others, which answer
        requests that name them.

        Args:
            anything: names of scenarios of the test whose `match` does not count.
            others: those of the run, without `match`.

        Raises:
            UsageError: several scenarios would answer anything.
        """
        own = tuple(own)
        names = {scenario.name for scenario in own}
        rest = tuple(scenario for scenario in others if scenario.name not in names)
        answering = [scenario for scenario in own if scenario.server is None]
        if len(answering) == 1:
            (lone,) = answering
            named = lone.name in anything or lone.match is None
            automatic = is_automatic(lone)
            if named:
                return cls((*own, *rest), named=lone.name, automatic=automatic)
            return cls((*own, *rest), lone=lone, automatic=automatic)
        _check_anything([scenario.name for scenario in own if scenario.name in anything])
        any_match = Match(anything=True)
        matched = (
            replace(scenario, match=any_match) if scenario.name in anything else scenario
            for scenario in own
        )
        return cls((*matched, *rest), automatic=any(map(is_automatic, own)))


def is_automatic(scenario: Scenario) -> bool:
    """Whether a scenario answers whatever no other one does, from the request."""
    anything = scenario.match is not None and scenario.match.anything
    return anything and scenario.turns[-1].is_auto


def _check_anything(names: list[str]) -> None:
    if len(names) > 1:
        raise UsageError(
            f"{' and '.join(names)} would answer the same requests: with match=False, and of "
            "replies, only one scenario may answer anything; leave match=False out for the others"
        )


class NoMatchRule:
    """Decides about the requests of a session that no scenario answers.

    The only scenario of a test answers a request that meets its `match` although the history has
    other tool calls: the verdict then names the mistake in the history. Every other request is
    refused, with a message that shows which reply to write.

    Args:
        advice: the lines of the message for a request: what to do next.
    """

    def __init__(self, player: Player, lone: Scenario | None, advice: Advice) -> None:
        self._player = player
        self._lone = lone
        self._advice = advice

    def __call__(self, call: ApiCall, error: NoMatchError) -> Decision:
        """The decision for a request.

        Raises:
            NoMatchError: no scenario answers the request.
        """
        if error.code == "no_turn" and any(map(is_inline, self._player.served.by_name)):
            message = f"{error.message}\nFor a further turn: mockllm_session.reply(...)"
            raise NoMatchError(message, status=404, code="no_turn")
        request = read_request(call.protocol, parse_object(call.body), call.target, call.headers)
        names_one = named_scenario(self._player.served, request, call.headers)
        if error.code != "no_scenario" or names_one:
            raise error
        lone = self._lone
        if (
            lone is not None
            and lone.plays_over(request.api)
            and _holds(lone, request, call.headers)
        ):
            named = call._replace(headers={**call.headers, SCENARIO_HEADER: lone.name})
            return self._player.select(named, self._player.strict, DecisionDraft())
        raise NoMatchError(self._message(request, call.headers), status=404, code="no_scenario")

    def _message(self, request: Request, headers: Mapping[str, str]) -> str:
        return "\n".join(
            [
                f"Nothing in this test answers the request (model {display(request.model)}, user "
                f"message {display(request.last_user.text)}).",
                *nearest_scenarios(self._player.served, request, headers),
                *self._advice(request, headers),
            ]
        )


def serve(
    server: MockServer, session: str, answering: Answering, advice: Advice, **options: Any
) -> None:
    """Serves a session from now on; to be called in the server's thread.

    Args:
        advice: as of `NoMatchRule`.
        options: further arguments of `MockServer.assign`.
    """
    server.assign(session, answering.scenarios, named=answering.named, **options)
    player = server.player_of(session)
    player.no_match = NoMatchRule(player, answering.lone, advice)
    player.fallback = player.fallback or answering.automatic


def _holds(scenario: Scenario, request: Request, headers: Mapping[str, str]) -> bool:
    """Whether the request meets the scenario's `match` at one of its user messages."""
    if scenario.match is None:
        return False
    return any(
        first_problem(judged_match(scenario.match, request, headers, message=message)) is None
        for message in request.users or [Message("user")]
    )


def suggestions(
    request: Request,
    headers: Mapping[str, str],
    known: Iterable[Scenario],
    used: str | None,
    *,
    another: bool,
) -> list[str]:
    """Lines of Python that would answer a request.

    Args:
        known: scenarios that the test may name.
        used: the name or path of the only scenario that the test uses, if its `match` counts.
        another: whether the test has replies already, to other questions.
    """
    user = request.last_user.text[:_LONGEST_TEXT]
    match = f', match={{"user": {json.dumps(user)}}}' if another and user else ""
    return [
        "To answer it, write into the test one of:",
        *(f"  mockllm_session.reply({reply}{match})" for reply in _replies(request)),
        *(f"  mockllm_session.use({use})" for use in _uses(request, headers, known, used)),
    ]


def _replies(request: Request) -> Iterator[str]:
    """The parts of a reply to a request: a text, or a call of the first tool that is offered."""
    yield '"..."'
    if request.tools and request.users and request.messages[-1] is request.last_user:
        yield _call(request.tools[0])


def _call(tool: OfferedTool) -> str:
    arguments = _arguments(dict(tool.parameters))
    return f"tool({json.dumps(tool.name)}{', ' if arguments else ''}{arguments or ''})"


def _arguments(schema: dict[str, Any]) -> Any:
    """Arguments that satisfy the schema of a tool; None where none are found."""
    try:
        made = bounded_sample(schema if "$ref" in schema else {"type": "object", **schema})
    except UnsatisfiableError:
        return None
    return None if made.gave_up else made.value


def _uses(
    request: Request, headers: Mapping[str, str], known: Iterable[Scenario], used: str | None
) -> Iterator[str]:
    """The arguments of `use` for a request."""
    if used is not None:
        yield f"{json.dumps(used)}, match=False"
    names = [
        scenario.name
        for scenario in known
        if scenario.match is not None
        and scenario.plays_over(request.api)
        and _holds(scenario, request, headers)
    ]
    yield from map(json.dumps, names[:_MOST_SUGGESTED])
