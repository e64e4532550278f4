"""The conversation of a scenario: a client's requests, and the expected content of each answer.

`converse` is independent of the client: it yields requests and is sent the answers that a client
read. So every client, sync or async, has the same conversation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Generator
from pathlib import Path

from mockllm.play.matching.conversation import turn_at, turn_index
from mockllm.play.replay.loading import load
from mockllm.scenario.model import ResultCondition, Scenario
from mockllm.scenario.part_model import ErrorPart
from tests.clients.dialects import DIALECTS, Json, Result
from tests.clients.oracle import (
    Answer,
    Failure,
    Seen,
    expected,
    failure,
    fields_without,
    same_calls,
    written,
)

MODEL = DIALECTS["chat"].model
APIS = ("chat", "responses")
FOLDER = Path(__file__).parents[2] / "scenarios"
# Those whose conversations may go in several ways have tests of their own (tests/play/replay).
SCENARIOS = {scenario.name: scenario for scenario in load([FOLDER]) if not scenario.varies}

# For each regular expression in the shipped scenarios a text that it matches.
_MATCHING = {"(?i)error|fail|not found": "Error: file not found", "(?i)confirmed": "CONFIRMED"}


# Requests


def opening(scenario: Scenario) -> str:
    """The user message that selects this scenario."""
    match = scenario.match
    return match.user.value if match is not None and match.user is not None else "Hello"


def tools(scenario: Scenario) -> list[Json]:
    """The scenario's tools in a neutral form."""
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
    """A tool result that fulfils a condition."""
    if condition is None:
        return "ok"
    if condition.text is None:
        return "Error: it failed"
    text = condition.text
    return _MATCHING[text.value] if text.op == "regex" else text.value


def next_user_text(scenario: Scenario, position: int, api: str) -> str:
    """The user message after the answer at a position, if that calls no tool."""
    spec = turn_at(scenario, position + 1, api)
    user = spec.request.user if spec is not None and spec.request is not None else None
    return user.value if user is not None else "Go on."


def results(scenario: Scenario, position: int, api: str, seen: Seen) -> list[Result]:
    """A result for each call of the answer at a position, as the next turn requires."""
    spec = turn_at(scenario, position + 1, api)
    conditions = dict(spec.request.results) if spec is not None and spec.request else {}
    scenario_calls = written(scenario, position, api)
    ids = same_calls(seen.calls, scenario_calls.calls)
    return [
        Result(id, name, result(conditions.get(scenario_id)))
        for (id, name, _), scenario_id in zip(seen.calls, ids, strict=True)
    ]


# Positions, and the expected journal


def plain_positions(scenario: Scenario, api: str) -> tuple[int, ...]:
    """The positions that are played, up to a turn that fails.

    A repeated turn is played three times, and a scenario that restarts twice.
    """
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
"""The scenarios whose first turn is an answer."""
LONGER = tuple(s for s in PLAIN if len(plain_positions(s, "chat")) > 1)
"""Those of more than one turn."""


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
    ignored: Container[str] = (),
    failing: bool = False,
) -> Conversation:
    """Yields each request of a conversation, is sent the answer that the client read, and asserts
    that it is the answer of the scenario.

    Args:
        carry: builds the next request from the last one, its answer, and the new items; without
            it the whole history is sent.
        ids: whether calls have ids.
        ignored: the fields of `Seen` that this client reads wrongly.
        failing: request the turn that fails as well, if there is one, and expect a `Failure`.
    """
    request = first(scenario, api)
    user_text = opening(scenario)
    positions = plain_positions(scenario, api)
    for position in positions:
        answer = yield request
        assert isinstance(answer, Answer), answer
        wanted = expected(scenario, position, api, user_text, ids=ids)
        assert fields_without(answer.seen, ignored) == fields_without(wanted, ignored)
        if wanted.calls:
            new = DIALECTS[api].results(results(scenario, position, api, wanted))
        else:
            user_text = next_user_text(scenario, position, api)
            new = [DIALECTS[api].user_message(user_text)]
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


def drive(conversation: Conversation, send: Callable[[Json], Answer | Failure]) -> None:
    """Runs a conversation with a synchronous client."""
    request = next(conversation)
    while True:
        answer = send(request)
        try:
            request = conversation.send(answer)
        except StopIteration:
            return


async def drive_async(
    conversation: Conversation, send: Callable[[Json], Awaitable[Answer]]
) -> None:
    """Runs a conversation with an asynchronous client."""
    request = next(conversation)
    while True:
        answer = await send(request)
        try:
            request = conversation.send(answer)
        except StopIteration:
            return


# For clients that call the tools themselves

TOOL_RESULTS: dict[str, dict[str, str]] = {
    "get_secret_number": {"alice": "42", "bob": "7"},
    "find_flights": {"OSL": "SK4711 at 08:25, DY1872 at 14:10"},
    "book_flight": {"SK4711": "Confirmed."},
    "search": {"the needle in the haystack": "Nothing yet."},
}


def run_tool(name: str, arguments: Json) -> str:
    """The result of a tool that an agent runs, by its first argument."""
    return TOOL_RESULTS[name][next(iter(arguments.values()))]


def ending(scenario: Scenario) -> str:
    """The text of a scenario's last turn."""
    return expected(scenario, len(scenario.turns) - 1, "chat").text
