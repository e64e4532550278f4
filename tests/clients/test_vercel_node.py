"""Every scenario with the providers of Vercel's AI SDK under Node, in the versions 6 and 7, with
`streamText` and with `generateText`."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import product

import pytest

from mockllm.play.matching.conversation import turn_at, turn_index
from mockllm.scenario.model import Scenario
from mockllm.serve.server.thread import ServerThread
from tests.cases import for_all
from tests.clients.conftest import Run
from tests.clients.conversation import SCENARIOS, ending, plain_positions, plays
from tests.clients.vercel_matrix import (
    MODELS,
    PROVIDERS,
    VERSIONS,
    Json,
    Step,
    job,
    loss_of,
    missing,
    played,
    run_jobs,
    story,
    without_ids,
)

MISSING = missing()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(MISSING is not None, reason=MISSING or "everything is there"),
]

TRIES = 3
"""How many requests the SDK sends in all, if the service fails."""

COMBINATIONS = [(s.name, api) for s in SCENARIOS.values() for api in MODELS if s.plays_over(api)]
FURTHER = [
    (s.name, provider)
    for s in SCENARIOS.values()
    for provider, (api, _) in PROVIDERS.items()
    if s.plays_over(api)
]
"""The scenarios that the further providers play."""
AGENTS = [
    (name, api)
    for name, api in COMBINATIONS
    if {step.finish for step in story(SCENARIOS[name], api)[:-1]} == {"tool-calls"}
]
"""The conversations with one user message, and then tools until the end."""

REFERRED = ("text-and-tools", "two-questions")
"""Conversations that refer to a stored answer by its id."""

FINISHES = {
    "length-truncated": "length",
    "content-filtered": "content-filter",
    "refusal": "content-filter",
    "secret-numbers": "tool-calls",
    "token-usage": "stop",
    "stream-error": "error",
}

every_api = for_all("api", MODELS)
every_version = pytest.mark.parametrize("version", VERSIONS)


class Conversations:
    """All conversations of this file, run in one process a version on first use."""

    def __init__(self, server: ServerThread) -> None:
        self._runs: dict[str, Run] = {}
        self._server = server
        self._version = ""
        self._steps: dict[str, list[Step]] = {}
        for self._version in VERSIONS:
            self._steps |= run_jobs(self._jobs(), self._version)

    def _jobs(self) -> Iterator[Json]:
        for name, api in COMBINATIONS:
            yield self._job("by hand", name, api)
            yield self._job("whole", name, api, whole=True)
        for (name, provider), whole in product(FURTHER, (False, True)):
            kind, api = f"{provider} {'whole' if whole else 'by hand'}", PROVIDERS[provider][0]
            yield self._job(kind, name, api, whole=whole, provider=provider)
        for name, api in AGENTS:
            yield self._job("automatic", name, api, automatic=True)
        for api in MODELS:
            # Google's provider reads a name with a slash as a path.
            owner = "models/mock" if api == "gemini" else "mock"
            other: Json = {"userMessages": ["No scenario matches this."]}
            header = {"x-mockllm-scenario": "multi-hop"}
            wrong_result = {'get_secret_number {"name":"alice"}': "41"}
            yield self._job("by model", "multi-hop", api, model=f"{owner}/multi-hop", **other)
            yield self._job("by header", "multi-hop", api, headers=header, **other)
            yield self._job("unserved", "multi-hop", api, model=f"{owner}/multi-hops", **other)
            yield self._job("wrong", "secret-numbers", api, results=wrong_result)
        for name in REFERRED:
            options = {"openai": {"store": False}}
            yield self._job("not stored", name, "responses", providerOptions=options)

    def _job(self, kind: str, name: str, api: str, **changes: object) -> Json:
        id = f"{self._version} {kind} {name} {api}"
        # A server keeps a thousand sessions; whose journals are not read have one together.
        session = f"{self._version} {kind}" if "provider" in changes else id
        self._runs[id] = Run(self._server, f"ai-sdk-{zlib.crc32(session.encode()):08x}")
        return job(SCENARIOS[name], api, self._runs[id].root, id=id, **changes)

    def steps(self, kind: str, name: str, api: str, version: str = VERSIONS[-1]) -> list[Step]:
        """The steps that the SDK read, without generated ids."""
        return without_ids(self._steps[f"{version} {kind} {name} {api}"], api)

    def run(self, kind: str, name: str, api: str, version: str = VERSIONS[-1]) -> Run:
        """The session of the conversation."""
        return self._runs[f"{version} {kind} {name} {api}"]


# Of the session: a module's would be made again where a worker gets tests of the module twice, and
# send all requests once more, in the same sessions of the server.
@pytest.fixture(scope="session")
def conversations(server: ServerThread) -> Conversations:
    return Conversations(server)


def expected_steps(name: str, api: str, *, whole: bool = False) -> list[Step]:
    return without_ids(story(SCENARIOS[name], api, whole=whole), api)


def journal(
    scenario: Scenario, api: str, *, whole: bool = False
) -> list[tuple[str, int | None, str]]:
    """The expected journal of a conversation, with the turn that fails."""
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
    loss = loss_of(scenario.name, api, whole=whole)
    ends = loss is not None and loss.instead.get("error")
    return entries[: len(story(scenario, api, whole=whole))] if ends else entries


@every_version
@for_all("name, api", COMBINATIONS)
def test_conversation(conversations: Conversations, name: str, api: str, version: str) -> None:
    """The SDK reads every answer of every scenario, errors included, and retries failed requests;
    the server reads its history."""
    assert conversations.steps("by hand", name, api, version) == expected_steps(name, api)
    assert conversations.run("by hand", name, api, version).plays == journal(SCENARIOS[name], api)


@every_version
@for_all("name, api", COMBINATIONS)
def test_whole_answers(conversations: Conversations, name: str, api: str, version: str) -> None:
    """`generateText` accepts every body: its schemas refuse a null where the service sends none."""
    steps = conversations.steps("whole", name, api, version)
    assert steps == expected_steps(name, api, whole=True)
    run = conversations.run("whole", name, api, version)
    plays = journal(SCENARIOS[name], api, whole=True)
    # A body with an error has a status that is tried again.
    assert run.plays == (plays * TRIES if name == "stream-error" else plays)


@every_version
@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
@for_all("name, provider", FURTHER)
def test_further_providers(
    conversations: Conversations, name: str, provider: str, whole: bool, version: str
) -> None:
    """Providers of others, for compatible services and for Ollama, read every scenario, too."""
    kind, api = f"{provider} {'whole' if whole else 'by hand'}", PROVIDERS[provider][0]
    expected = story(SCENARIOS[name], api, whole=whole, provider=provider)
    assert conversations.steps(kind, name, api, version) == without_ids(expected, api)


@every_version
@for_all("name, api", AGENTS)
def test_automatic_tools(conversations: Conversations, name: str, api: str, version: str) -> None:
    """The SDK runs the tools by itself until the model ends, or up to its limit of steps."""
    assert conversations.steps("automatic", name, api, version) == expected_steps(name, api)
    run = conversations.run("automatic", name, api, version)
    assert run.plays == journal(SCENARIOS[name], api)


@for_all("name, api", product(["secret-numbers", "multi-hop"], MODELS))
def test_automatic_tools_reach_the_last_turn(
    conversations: Conversations, name: str, api: str
) -> None:
    """The last step has the text of the scenario's last turn."""
    assert conversations.steps("automatic", name, api)[-1].text == ending(SCENARIOS[name])


@for_all("name, api", product(FINISHES, MODELS))
def test_finish(conversations: Conversations, name: str, api: str) -> None:
    """The finish reason of an answer is mapped to that of the SDK."""
    loss, finish = loss_of(name, api), FINISHES[name]
    finish = loss.instead.get("finish", finish) if loss is not None else finish
    assert conversations.steps("by hand", name, api)[0].finish == finish


@for_all("how, api", product(["by model", "by header"], MODELS))
def test_named_scenario(conversations: Conversations, how: str, api: str) -> None:
    """A scenario that the model or a header names is played for any user message."""
    seen = [(step.text, step.calls) for step in conversations.steps(how, "multi-hop", api)]
    assert seen == [(step.text, step.calls) for step in expected_steps("multi-hop", api)]


@for_all("name", REFERRED)
def test_responses_that_are_not_stored(conversations: Conversations, name: str) -> None:
    """Without `store` the provider sends the answers back, and not their ids."""
    assert conversations.steps("not stored", name, "responses") == expected_steps(name, "responses")
    body = conversations.run("not stored", name, "responses").exchanges[-1].body
    assert b"item_reference" not in body
    stored = conversations.run("by hand", name, "responses").exchanges[-1].body
    assert b"item_reference" in stored


@every_api
def test_a_wrong_result_is_refused(conversations: Conversations, api: str) -> None:
    """A wrong tool result is refused, and the SDK's error has the message."""
    first, second = conversations.steps("wrong", "secret-numbers", api)
    assert first.calls
    assert "must be '42', got '41'" in second.error
    run = conversations.run("wrong", "secret-numbers", api)
    assert [outcome for _, _, outcome in run.plays] == ["played", "invalid"]


@every_api
def test_scenario_that_is_not_served(conversations: Conversations, api: str) -> None:
    """The error for an unknown scenario suggests the nearest, and is not retried."""
    (step,) = conversations.steps("unserved", "multi-hop", api)
    assert "did you mean 'multi-hop'?" in step.error
    run = conversations.run("unserved", "multi-hop", api)
    assert [outcome for _, _, outcome in run.plays] == ["unmatched"]
