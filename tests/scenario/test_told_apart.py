"""Scenarios that begin alike: which of them may, and which of them answers."""

import json

import pytest

from mockllm.errors import ScenarioError
from mockllm.matching.index import Catalogue
from mockllm.matching.select import pick
from mockllm.protocols import PROTOCOLS
from mockllm.replay.loading import loads


def scenario(name, *follow_ups, recorded=True):
    """One that answers `hello`, and then each of these."""
    asked = [None, *follow_ups]
    tape = f"\n    recorded: {name}.jsonl" if recorded else ""
    turns = "".join(
        f"  - reply: {{text: x}}{tape}\n"
        + (f"    request: {{user: {{equals: {user}}}}}\n" if user else "")
        for user in asked
    )
    return f"scenario: {name}\nmatch: {{user: {{equals: hello}}}}\nturns:\n{turns}"


def load(*texts):
    return loads("---\n".join(texts))


def answers(scenarios, *said):
    messages = []
    for text in said:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "x"}]
    body = json.loads(json.dumps({"model": "m", "messages": messages[:-1]}))
    picked = pick(Catalogue(scenarios), PROTOCOLS["chat"].parse(body, {}, False), {}, "call_")
    return picked.scenario.name, picked.index


@pytest.mark.parametrize(
    "texts",
    [
        (scenario("a", "one"), scenario("b", "two")),
        (scenario("a"), scenario("b", "two")),
        (scenario("a", "one"), scenario("b", "one", "two")),
        (scenario("a", "one", recorded=False), scenario("b", "two")),
    ],
)
def test_recordings_may_begin_alike(texts):
    """A recording that is asked something else later, or more, has its use."""
    assert len(load(*texts)) == 2


@pytest.mark.parametrize(
    "texts",
    [
        (scenario("a"), scenario("b")),
        (scenario("a", "one"), scenario("b", "one")),
        (scenario("a", "one"), scenario("b")),
        (scenario("a", "one"), scenario("b", "two", recorded=False)),
    ],
)
def test_others_may_not(texts):
    """One that could never answer, and one that a person wrote, needs a condition."""
    with pytest.raises(ScenarioError, match="matches the same requests"):
        load(*texts)


def test_which_of_them_answers():
    """What they have in common the first answers, `-2` being before `-10`; then each answers
    what it was asked, wherever it lies in the folder."""
    many = [scenario(f"hello-{n}", f"say {n}", f"more {n}") for n in range(12, 1, -1)]
    scenarios = load(*many, scenario("hello", "say 1"))
    assert answers(scenarios, "hello") == ("hello", 0)
    assert answers(scenarios, "hello", "say 1") == ("hello", 1)
    assert answers(scenarios, "hello", "say 11") == ("hello-11", 1)
    assert answers(scenarios, "hello", "say 3", "more 3") == ("hello-3", 2)
    assert answers(load(*many), "hello") == ("hello-2", 0)
