"""What a client says in the conversation of a scenario, and what it must understand of each answer.

`converse` knows no client: it yields requests and is sent what a client made of the answers, so
that every client, blocking or not, is driven through the same conversation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Generator
from pathlib import Path

from mockllm.matching.positions import turn_at, turn_index
from mockllm.replay.loading import load
from mockllm.scenario.model import ErrorPart, ResultCondition, Scenario
from tests.clients.dialects import DIALECTS, Json, Result
from tests.clients.oracle import (
    Answer,
    Failure,
    Seen,
    expected,
    failure,
    same_calls,
    seen_but,
    written,
)

MODEL = DIALECTS["chat"].model
APIS = ("chat", "responses")
FOLDER = Path(__file__).parents[2] / "scenarios"
SCENARIOS = {scenario.name: scenario for scenario in load([FOLDER])}

# A text that meets each regular expression in the shipped scenarios.
_MEETS = {"(?i)error|fail|not found": "Error: file not found", "(?i)confirmed": "CONFIRMED"}


# What is asked


def opening(scenario: Scenario) -> str:
    """What the user says to get this scenario."""
    match = scenario.match
    return match.user.value if match is not None and match.user is not None else "Hello"


def tools(scenario: Scenario) -> list[Json]:
    """The scenario's tools, in no API's form."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters or {"type": "object", "properties": {}},
        }
        for tool in scenario.tools
    ]


def first(scenario: Scenario, api: str) -> Json:
    """The request that begins a scenario's conversation."""
    return DIALECTS[api].request(opening(scenario), tools(scenario))


def result(condition: ResultCondition | None) -> str:
    """The result of a tool that meets a condition."""
    if condition is None:
        return "ok"
    if condition.text is None:
        return "Error: it failed"
    text = condition.text
    return _MEETS[text.value] if text.op == "regex" else text.value


def words(scenario: Scenario, position: int, api: str) -> str:
    """What the user says after the answer at a position, where it calls no tool."""
    spec = turn_at(scenario, position + 1, api)
    user = spec.request.user if spec is not None and spec.request is not None else None
    return user.value if user is not None else "Go on."


def results(scenario: Scenario, position: int, api: str, seen: Seen) -> list[Result]:
    """A result for each call of the answer at a position, as the turn after it expects them."""
    spec = turn_at(scenario, position + 1, api)
    conditions = dict(spec.request.results) if spec is not None and spec.request else {}
    made = written(scenario, position, api)
    ids = same_calls(seen.calls, made.calls)
    return [
        Result(id, name, result(conditions.get(known)))
        for (id, name, _), known in zip(seen.calls, ids, strict=True)
    ]


# What has to be understood


def plain_positions(scenario: Scenario, api: str) -> tuple[int, ...]:
    """The positions played: up to a turn that fails, and some more where there is no end."""
    count = len(scenario.turns)
    if scenario.restart:
        count *= 2
    elif scenario.turns[-1].repeat:
        count += 2
    positions = []
    for position in range(count):
        spec = turn_at(scenario, position, api)
        assert spec is not None
        if spec.http is not None or any(isinstance(part, ErrorPart) for part in spec.reply):
            break
        positions.append(position)
    return tuple(positions)


PLAIN = tuple(s for s in SCENARIOS.values() if plain_positions(s, "chat"))
"""The scenarios whose first turn is an answer at all."""
LONGER = tuple(s for s in PLAIN if len(plain_positions(s, "chat")) > 1)
"""Those that go on after it."""


def plays(scenario: Scenario, api: str) -> list[tuple[str, int | None, str]]:
    """The journal of the conversation: (scenario, index of the turn, outcome)."""
    entries = []
    for position in plain_positions(scenario, api):
        spec, index = turn_at(scenario, position, api), turn_index(scenario, position)
        assert spec is not None
        entries += [(scenario.name, index, "error")] * len(spec.attempts)
        entries.append((scenario.name, index, "played"))
    return entries


# The conversation itself

Conversation = Generator[Json, Answer | Failure, None]


def converse(
    scenario: Scenario,
    api: str,
    *,
    carry: Callable[[Json, Answer, list[Json]], Json] | None = None,
    ids: bool = True,
    blind: Container[str] = (),
    failing: bool = False,
) -> Conversation:
    """Yields each request of a conversation, is sent what the client made of the answer to it,
    and asserts that this is what the scenario says.

    Args:
        carry: makes the next request from the one before, its answer, and what is new; without
            it the whole history is sent.
        ids: whether calls have ids.
        blind: the fields of `Seen` that this client is known to get wrong.
        failing: ask for the turn that fails too, if there is one, and expect a `Failure`.
    """
    request = first(scenario, api)
    said = opening(scenario)
    positions = plain_positions(scenario, api)
    for position in positions:
        answer = yield request
        assert isinstance(answer, Answer), answer
        wanted = expected(scenario, position, api, said, ids=ids)
        assert seen_but(answer.seen, blind) == seen_but(wanted, blind)
        if wanted.calls:
            new = DIALECTS[api].results(results(scenario, position, api, wanted))
        else:
            said = words(scenario, position, api)
            new = [DIALECTS[api].said(said)]
        request = (carry or whole_history)(request, answer, new)
    message = failure(scenario, len(positions), api) if failing else None
    if message is not None:
        answer = yield request
        assert isinstance(answer, Failure), answer
        assert message in answer.message


def whole_history(request: Json, answer: Answer, new: list[Json]) -> Json:
    """The next request of a client that keeps the history itself."""
    (key,) = request.keys() & {dialect.history for dialect in DIALECTS.values()}
    return {**request, key: [*request[key], *answer.echo, *new]}


def drive(conversation: Conversation, ask: Callable[[Json], Answer | Failure]) -> None:
    """Lets a blocking client have a conversation."""
    request = next(conversation)
    while True:
        answer = ask(request)
        try:
            request = conversation.send(answer)
        except StopIteration:
            return


async def drive_async(conversation: Conversation, ask: Callable[[Json], Awaitable[Answer]]) -> None:
    """Lets an asynchronous client have a conversation."""
    request = next(conversation)
    while True:
        answer = await ask(request)
        try:
            request = conversation.send(answer)
        except StopIteration:
            return


# For clients that call the tools themselves

WORK: dict[str, dict[str, str]] = {
    "get_secret_number": {"alice": "42", "bob": "7"},
    "find_flights": {"OSL": "SK4711 at 08:25, DY1872 at 14:10"},
    "book_flight": {"SK4711": "Confirmed."},
    "search": {"the needle in the haystack": "Nothing yet."},
}


def work(name: str, arguments: Json) -> str:
    """What a tool of a scenario gives that an agent plays: found by the first argument."""
    return WORK[name][next(iter(arguments.values()))]


def ending(scenario: Scenario) -> str:
    """What the model says at the end of a scenario."""
    return expected(scenario, len(scenario.turns) - 1, "chat").text
