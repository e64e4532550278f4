"""Vercel's AI SDK under Node: what its providers make of every scenario."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from mockllm.matching.positions import turn_at, turn_index
from mockllm.scenario.model import Scenario
from mockllm.server.thread import ServerThread
from tests.clients.conftest import Run
from tests.clients.conversation import SCENARIOS, ending, plain_positions, plays
from tests.clients.vercel_matrix import (
    LOSSES,
    MODELS,
    Json,
    Step,
    cells,
    job,
    missing,
    played,
    story,
    told,
    without_ids,
)

MISSING = missing()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(MISSING is not None, reason=MISSING or "everything is there"),
]

TRIES = 3
"""How often the SDK asks, all in all, where the service fails."""

PLACES = [(s.name, api) for s in SCENARIOS.values() for api in MODELS if api in s.apis]
AGENTS = [
    (name, api)
    for name, api in PLACES
    if {step.finish for step in story(SCENARIOS[name], api)[:-1]} == {"tool-calls"}
]
"""The conversations in which the user speaks once, and then tools run until the end."""

REFERRED = ("text-and-tools", "two-questions")
"""Conversations in which a stored answer is referred to by its id."""

FINISHES = {
    "length-truncated": "length",
    "content-filtered": "content-filter",
    "refusal": "content-filter",
    "secret-numbers": "tool-calls",
    "token-usage": "stop",
    "stream-error": "error",
}

every_place = pytest.mark.parametrize(("name", "api"), PLACES)
every_agent = pytest.mark.parametrize(("name", "api"), AGENTS)
every_api = pytest.mark.parametrize("api", MODELS)


class Talks:
    """All conversations of this file, had in one process as soon as one of them is asked for."""

    def __init__(self, server: ServerThread) -> None:
        self._runs: dict[str, Run] = {}
        self._server = server
        self._steps = told(self._jobs())

    def _jobs(self) -> Iterator[Json]:
        for name, api in PLACES:
            yield self._job("by hand", name, api)
        for name, api in AGENTS:
            yield self._job("automatic", name, api, automatic=True)
        for api in MODELS:
            # A name with a slash is a path to Google's provider.
            owner = "models/mock" if api == "gemini" else "mock"
            other: Json = {"said": ["Nobody matches this."]}
            header = {"x-mockllm-scenario": "multi-hop"}
            wrong = {'get_secret_number {"name":"alice"}': "41"}
            yield self._job("by model", "multi-hop", api, model=f"{owner}/multi-hop", **other)
            yield self._job("by header", "multi-hop", api, headers=header, **other)
            yield self._job("unserved", "multi-hop", api, model=f"{owner}/multi-hops", **other)
            yield self._job("wrong", "secret-numbers", api, results=wrong)
        for name in REFERRED:
            options = {"openai": {"store": False}}
            yield self._job("not stored", name, "responses", providerOptions=options)

    def _job(self, kind: str, name: str, api: str, **changes: object) -> Json:
        id = f"{kind} {name} {api}"
        self._runs[id] = Run(self._server, f"ai-sdk-{zlib.crc32(id.encode()):08x}")
        return job(SCENARIOS[name], api, self._runs[id].root, id=id, **changes)

    def steps(self, kind: str, name: str, api: str) -> list[Step]:
        """What the SDK understood; without ids where it had to make them up."""
        return without_ids(self._steps[f"{kind} {name} {api}"], api)

    def run(self, kind: str, name: str, api: str) -> Run:
        """What the server noted."""
        return self._runs[f"{kind} {name} {api}"]


@pytest.fixture(scope="module")
def talks(server: ServerThread) -> Talks:
    return Talks(server)


def wanted(name: str, api: str) -> list[Step]:
    return without_ids(story(SCENARIOS[name], api), api)


def journal(scenario: Scenario, api: str) -> list[tuple[str, int | None, str]]:
    """What the server notes of a conversation, the turn that fails included."""
    entries = plays(scenario, api)
    for position in played(scenario, api)[len(plain_positions(scenario, api)) :]:
        spec, index = turn_at(scenario, position, api), turn_index(scenario, position)
        assert spec is not None
        failed = spec.http is not None
        entries += (
            [(scenario.name, index, "error")] * TRIES
            if failed
            else [(scenario.name, index, "played")]
        )
    return entries


@every_place
def test_conversation(talks: Talks, name: str, api: str) -> None:
    """The SDK understands every answer of every scenario, errors too, and tries again where it
    may; what it sends back is understood."""
    assert talks.steps("by hand", name, api) == wanted(name, api)
    assert talks.run("by hand", name, api).plays == journal(SCENARIOS[name], api)


@every_agent
def test_tools_that_the_sdk_runs(talks: Talks, name: str, api: str) -> None:
    """The SDK runs the tools by itself until the model is done, or for as long as it is let."""
    assert talks.steps("automatic", name, api) == wanted(name, api)
    assert talks.run("automatic", name, api).plays == journal(SCENARIOS[name], api)


@every_api
@pytest.mark.parametrize("name", ["secret-numbers", "multi-hop"])
def test_the_end_is_reached(talks: Talks, name: str, api: str) -> None:
    """After the tools comes the answer."""
    assert talks.steps("automatic", name, api)[-1].text == ending(SCENARIOS[name])


@every_api
@pytest.mark.parametrize(("name", "finish"), FINISHES.items())
def test_finish(talks: Talks, name: str, api: str, finish: str) -> None:
    """Why an answer ended is told in the SDK's words."""
    loss = LOSSES.get((name, api))
    finish = loss.instead.get("finish", finish) if loss is not None else finish
    assert talks.steps("by hand", name, api)[0].finish == finish


@every_api
@pytest.mark.parametrize("how", ["by model", "by header"])
def test_named_scenario(talks: Talks, how: str, api: str) -> None:
    """A scenario that the model or a header names plays whatever the user says."""
    seen = [(step.text, step.calls) for step in talks.steps(how, "multi-hop", api)]
    assert seen == [(step.text, step.calls) for step in wanted("multi-hop", api)]


@pytest.mark.parametrize("name", REFERRED)
def test_responses_that_are_not_stored(talks: Talks, name: str) -> None:
    """Without `store` the provider sends the answers themselves back, not their ids."""
    assert talks.steps("not stored", name, "responses") == wanted(name, "responses")
    body = talks.run("not stored", name, "responses").exchanges[-1].body
    assert b"item_reference" not in body
    stored = talks.run("by hand", name, "responses").exchanges[-1].body
    assert b"item_reference" in stored


@every_api
def test_wrong_result(talks: Talks, api: str) -> None:
    """A result that the scenario does not expect is refused, with words that reach the user."""
    first, second = talks.steps("wrong", "secret-numbers", api)
    assert first.calls
    assert "must be '42', got '41'" in second.error
    run = talks.run("wrong", "secret-numbers", api)
    assert [outcome for _, _, outcome in run.plays] == ["played", "invalid"]


@every_api
def test_scenario_that_is_not_served(talks: Talks, api: str) -> None:
    """A name that is not served is answered with the nearest one, and not tried again."""
    (step,) = talks.steps("unserved", "multi-hop", api)
    assert "Did you mean 'multi-hop'?" in step.error
    run = talks.run("unserved", "multi-hop", api)
    assert [outcome for _, _, outcome in run.plays] == ["unmatched"]


def test_table(server: ServerThread) -> None:
    """Every shipped scenario has a cell for each API, and only listed losses are not equal."""
    table = cells(server.url)
    assert table.keys() == {(name, api, "ai-sdk") for name, api in PLACES}
    lossy = {(name, api) for (name, api, _), cell in table.items() if cell != "equal"}
    assert lossy == LOSSES.keys()
