"""Scenarios with the same beginning: which are allowed, and which one answers."""

import json

import pytest

from mockllm.core.errors import NoMatchError, ScenarioError
from mockllm.core.http import NO_TARGET
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.matching.select import select
from mockllm.play.replay.loading import loads
from mockllm.scenario.precedence import orders
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


GENERAL = "scenario: general\nmatch: {user: weather}\nturns: [{reply: A}]\n"
SPECIAL = "scenario: special\nmatch: {user: {all: [weather, Paris]}}\nturns: [{reply: B}]\n"
OTHER = "scenario: other\nmatch: {user: in Paris}\nturns: [{reply: C}]\n"


def of_priority(text, number):
    return text.replace("turns:", f"priority: {number}\nturns:")


def test_conditions_inside_all_count():
    scenarios = load(GENERAL, SPECIAL)
    assert answers(scenarios, "the weather in Paris") == ("special", 0)
    assert answers(scenarios, "the weather in Rome") == ("general", 0)
    grouped = SPECIAL.replace(
        "{user: {all: [weather, Paris]}}", "{all: [{user: weather}, {user: Paris}]}"
    )
    assert answers(load(GENERAL, grouped), "the weather in Paris") == ("special", 0)


def test_a_priority_decides_between_as_many_conditions():
    with pytest.raises(NoMatchError, match="equally well: general, other"):
        answers(load(GENERAL, OTHER), "the weather in Paris")
    for texts in [
        (GENERAL, of_priority(OTHER, 1)),
        (of_priority(GENERAL, 2), of_priority(OTHER, 1)),
    ]:
        assert answers(load(*texts), "the weather in Paris") == ("other", 0)
    same = GENERAL.replace("general", "same")
    with pytest.raises(ScenarioError, match="or a 'priority'"):
        load(of_priority(GENERAL, 1), of_priority(same, 1))
    assert answers(load(GENERAL, of_priority(same, 1)), "weather") == ("same", 0)


def test_a_priority_does_not_beat_more_conditions():
    assert answers(load(of_priority(GENERAL, 1), SPECIAL), "weather, Paris") == ("special", 0)


def test_the_order_of_scenarios_is_told():
    assert list(orders(load(GENERAL, SPECIAL, OTHER))) == [
        "a message that meets special and general is answered by special, which has 2 conditions "
        "and no priority; general has 1 condition and no priority"
    ]
    (line,) = orders(load(GENERAL, of_priority(GENERAL.replace("general", "first"), 1)))
    assert line.startswith("a message that meets first and general is answered by first, which ")
    long = GENERAL.replace("general", "long").replace("weather", "bad weather")
    assert list(orders(load(GENERAL, long))) == [
        "a message that meets long and general is an error: both have 1 condition and no "
        "priority; give one a 'priority'"
    ]
