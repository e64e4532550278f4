"""What a client says in the conversation of a scenario, and what it must understand of each answer.

`converse` knows no client: it yields requests and is sent what a client made of the answers, so
that every client, blocking or not, is driven through the same conversation.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mockllm.resolve import resolve, turn_at, turn_index
from mockllm.scenario.load import load
from mockllm.scenario.model import ErrorPart, ResultCondition, Scenario, TextPart
from mockllm.turn import Text, Turn

Json = dict[str, Any]

MODEL = "gpt-4o"
APIS = ("chat", "responses")
FOLDER = Path(__file__).parents[2] / "scenarios"
SCENARIOS = {scenario.name: scenario for scenario in load([FOLDER])}

# A text that meets each regular expression in the shipped scenarios.
_MEETS = {"(?i)error|fail|not found": "Error: file not found", "(?i)confirmed": "CONFIRMED"}


@dataclass(frozen=True)
class Seen:
    """What one answer says to a client.

    `calls` are (id, name, arguments); arguments that are not JSON stay text. `finish` is the
    API's own word. `usage` is (input, output, reasoning, cached). `tokens` are those that log
    probabilities came for, joined.
    """

    text: str = ""
    refusal: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str, Any], ...] = ()
    finish: str = ""
    usage: tuple[int, int, int, int] = (0, 0, 0, 0)
    cites: tuple[tuple[str, str], ...] = ()
    tokens: str = ""


@dataclass(frozen=True)
class Answer:
    """What a client saw, what it appends to its history for it, and the answer's id."""

    seen: Seen
    echo: list[Any]
    id: str


def read_arguments(text: str) -> Any:
    """Arguments as a value, or as they are where they are not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


# What is asked


def opening(scenario: Scenario) -> str:
    """What the user says to get this scenario."""
    match = scenario.match
    return match.user.value if match is not None and match.user is not None else "Hello"


def tools(scenario: Scenario, api: str) -> Json:
    """The scenario's tools as an API is offered them; nothing where there are none."""
    offered = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters or {"type": "object", "properties": {}},
        }
        for tool in scenario.tools
    ]
    if not offered:
        return {}
    if api == "chat":
        return {"tools": [{"type": "function", "function": tool} for tool in offered]}
    return {"tools": [{"type": "function", "strict": False, **tool} for tool in offered]}


def first(scenario: Scenario, api: str) -> Json:
    """The request that begins a scenario's conversation."""
    said = [{"role": "user", "content": opening(scenario)}]
    history = {"messages": said} if api == "chat" else {"input": said}
    return {"model": MODEL, **history, **tools(scenario, api)}


def result(condition: ResultCondition | None) -> str:
    """The result of a tool that meets a condition."""
    if condition is None:
        return "ok"
    if condition.text is None:
        return "Error: it failed"
    text = condition.text
    return _MEETS[text.value] if text.op == "regex" else text.value


def follow_up(scenario: Scenario, position: int, api: str, seen: Seen) -> list[Json]:
    """What comes after the answer at a position: a result for each call, or what the user says."""
    spec = turn_at(scenario, position + 1, api)
    expected = spec.request if spec is not None else None
    if not seen.calls:
        user = expected.user if expected is not None else None
        return [{"role": "user", "content": user.value if user is not None else "Go on."}]
    conditions = dict(expected.results) if expected is not None else {}
    told = {id: result(conditions.get(id)) for id, _, _ in seen.calls}
    if api == "chat":
        return [{"role": "tool", "tool_call_id": id, "content": text} for id, text in told.items()]
    return [
        {"type": "function_call_output", "call_id": id, "output": text} for id, text in told.items()
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

_CHAT_FINISH = {"refusal": "stop"}
_RESPONSES_FINISH = {"length": "max_output_tokens", "content_filter": "content_filter"}


def expected(scenario: Scenario, position: int, api: str, said: str = "") -> Seen:
    """What every client must understand of the answer at a position.

    Args:
        said: what the user said last, which automatic answers repeat.
    """
    turn = resolve(scenario, position, api, "call_", auto=(TextPart(said),))
    usage = turn.usage
    assert usage is not None
    return Seen(
        text=turn.text,
        refusal=turn.refusal,
        reasoning=turn.reasoning,
        calls=tuple((c.id, c.name, read_arguments(c.arguments)) for c in turn.tool_calls),
        finish=finish_word(turn, api),
        usage=(usage.input, usage.output, usage.reasoning, usage.cached),
        cites=tuple((c.url, c.title) for part in _texts(turn) for c in part.citations),
        tokens="".join(part.text for part in _texts(turn) if part.logprobs),
    )


def _texts(turn: Turn) -> list[Text]:
    return [part for part in turn.parts if isinstance(part, Text)]


def finish_word(turn: Turn, api: str) -> str:
    """The word that an API has for the end of a turn."""
    assert turn.finish is not None
    if api == "chat":
        return _CHAT_FINISH.get(turn.finish, turn.finish)
    return _RESPONSES_FINISH.get(turn.finish, "completed")


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

Conversation = Generator[Json, Answer, None]


def converse(
    scenario: Scenario,
    api: str,
    *,
    carry: Callable[[Json, Answer, list[Json]], Json] | None = None,
) -> Conversation:
    """Yields each request of a conversation, is sent what the client made of the answer to it,
    and asserts that this is what the scenario says.

    Args:
        carry: makes the next request from the one before, its answer, and what is new; without
            it the whole history is sent.
    """
    request = first(scenario, api)
    said = opening(scenario)
    for position in plain_positions(scenario, api):
        answer = yield request
        assert answer.seen == expected(scenario, position, api, said)
        new = follow_up(scenario, position, api, answer.seen)
        said = next((item["content"] for item in new if item.get("role") == "user"), said)
        request = (carry or whole_history)(request, answer, new)


def whole_history(request: Json, answer: Answer, new: list[Json]) -> Json:
    """The next request of a client that keeps the history itself."""
    key = "messages" if "messages" in request else "input"
    return {**request, key: [*request[key], *answer.echo, *new]}


def drive(conversation: Conversation, ask: Callable[[Json], Answer]) -> None:
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
