"""Scenarios with the same beginning: which are allowed, and which one answers."""

import json

import pytest

from mockllm.core.errors import ScenarioError
from mockllm.core.http import NO_TARGET
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.matching.select import select
from mockllm.play.replay.loading import loads
from mockllm.wire.protocols import PROTOCOLS


def scenario(name, *follow_ups, recorded=True):
    """A scenario that answers `hello`, and then each of these."""
    messages = [None, *follow_ups]
    tape = f"\n    recorded: {name}.jsonl" if recorded else ""
    turns = "".join(
        f"  - reply: {{text: x}}{tape}\n"
        + (f"    request: {{user: {{equals: {user}}}}}\n" if user else "")
        for user in messages
    )
    return f"scenario: {name}\nmatch: {{user: {{equals: hello}}}}\nturns:\n{turns}"


def load(*texts):
    return loads("---\n".join(texts))


def answers(scenarios, *texts):
    messages = []
    for text in texts:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "x"}]
    body = json.loads(json.dumps({"model": "m", "messages": messages[:-1]}))
    selection = select(
        ScenarioIndex(scenarios), PROTOCOLS["chat"].parse(body, NO_TARGET, False), {}
    )
    return selection.scenario.name, selection.index


@pytest.mark.parametrize(
    "texts",
    [
        (scenario("a", "one"), scenario("b", "two")),
        (scenario("a"), scenario("b", "two")),
        (scenario("a", "one"), scenario("b", "one", "two")),
        (scenario("a", "one", recorded=False), scenario("b", "two")),
        (scenario("a", "one"), scenario("b", "two", recorded=False)),
    ],
)
def test_recordings_may_have_the_same_beginning(texts):
    """A recording with another or a further user message later can be played."""
    assert len(load(*texts)) == 2


@pytest.mark.parametrize(
    "texts",
    [
        (scenario("a"), scenario("b")),
        (scenario("a", "one"), scenario("b", "one")),
        (scenario("a", "one"), scenario("b")),
        (scenario("a", "one", recorded=False), scenario("b", "two", recorded=False)),
    ],
)
def test_equal_scenarios_are_refused(texts):
    """A scenario that could never be played, or that was not recorded, needs a condition."""
    with pytest.raises(ScenarioError, match="matches the same requests"):
        load(*texts)


def test_the_first_recording_answers_the_common_beginning():
    """Names are sorted with numbers as numbers, `-2` before `-10`. After the common beginning each
    recording answers its own requests, wherever it is in the folder."""
    many = [scenario(f"hello-{n}", f"say {n}", f"more {n}") for n in range(12, 1, -1)]
    scenarios = load(*many, scenario("hello", "say 1"))
    assert answers(scenarios, "hello") == ("hello", 0)
    assert answers(scenarios, "hello", "say 1") == ("hello", 1)
    assert answers(scenarios, "hello", "say 11") == ("hello-11", 1)
    assert answers(scenarios, "hello", "say 3", "more 3") == ("hello-3", 2)
    assert answers(load(*many), "hello") == ("hello-2", 0)
