"""The shipped scenarios: one idea each, served together, and as large as they claim."""

from collections import Counter
from pathlib import Path

import pytest

from mockllm.core.timeline import expand, fold
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.loading import load
from mockllm.scenario.part_model import ParallelPart, ToolPart
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

APIS = tuple(PROTOCOLS)

FOLDER = Path(__file__).parents[1] / "scenarios"
FILES = sorted(FOLDER.glob("*.yaml"))
SCENARIOS = {scenario.name: scenario for scenario in load([FOLDER])}
every = for_all("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())


def play(name, position=0, api="chat"):
    return resolve(SCENARIOS[name], position, api)


def calls(turn):
    for part in turn.reply:
        if isinstance(part, ToolPart):
            yield part
        elif isinstance(part, ParallelPart):
            yield from part.calls


def test_names_are_file_names():
    """Each file has the name of its scenario."""
    assert sorted(SCENARIOS) == [file.stem for file in FILES]
    assert len(FILES) >= 16


@for_all("file", FILES, ids=lambda file: file.stem)
def test_each_file_begins_with_a_comment(file):
    """The first line sets the schema for editors; a comment about the file follows."""
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# yaml-language-server: $schema=../mockllm/scenario/schema.json"
    assert lines[1].startswith("# ")
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 50 or file.stem == "hundred-tools"


@every
def test_each_is_described_and_complete(scenario):
    """Each scenario has a description for lists, plays over every API, and declares every tool that
    it calls."""
    assert scenario.description.endswith(".")
    assert all(scenario.plays_over(api) for api in PROTOCOLS)
    assert {call.name for turn in scenario.turns for call in calls(turn)} <= {
        tool.name for tool in scenario.tools
    }


@every
def test_one_request_means_one_scenario(scenario):
    """A scenario's phrase matches no other scenario; only `auto` matches any message."""
    if scenario.match.anything:
        assert scenario.name == "auto"
        return
    assert scenario.match.conditions == 1
    phrase = scenario.match.user.value
    assert ScenarioIndex(SCENARIOS.values()).by_user_text(f"Please {phrase} now!") == (scenario,)


@every
@for_all("api", APIS)
def test_every_turn_resolves(scenario, api):
    """Every turn resolves for every API, and survives being played."""
    for position, spec in enumerate(scenario.turns):
        for own in spec.answering(api).values():
            if own.http is not None or scenario.name == "auto":
                continue
            turn = resolve(scenario, position, api, spec=own)
            assert turn.parts
            assert fold(expand(turn)) == turn


def test_every_feature_has_an_example():
    """Each key of the language that needs no file of its own is used at least once."""
    shown = Counter()
    for scenario in SCENARIOS.values():
        shown["seed"] += scenario.seed is not None
        shown["defaults"] += scenario.defaults.every is not None
        shown["restart"] += scenario.restart
        for turn in scenario.turns:
            for key in ("http", "request", "finish", "usage", "timing", "attempts", "wire"):
                shown[key] += bool(getattr(turn, key))
            for key in ("expect", "repeat", "branches", "one_of", "headers", "template", "go_to"):
                shown[key] += bool(getattr(turn, key))
            for part in turn.reply:
                shown[type(part).__name__] += 1
    missing = {key for key, count in shown.items() if not count}
    assert not missing
    assert {name for name in shown if name.endswith("Part")} == {
        "AutoPart",
        "ErrorPart",
        "FramePart",
        "ParallelPart",
        "PausePart",
        "ReasoningPart",
        "RefusalPart",
        "TextPart",
        "ToolPart",
    }


def test_long_text():
    """The long text has two hundred fragments that join to readable prose."""
    (part,) = play("long-text").parts
    assert len(part.fragments) == 200
    assert len(part.text.split()) == 200
    assert "  " not in part.text


def test_hundred_tools():
    """A hundred calls, each with its own id and arguments, cut into fragments."""
    turn = play("hundred-tools")
    assert [call.parse_arguments() for call in turn.tool_calls] == [{"n": n} for n in range(1, 101)]
    assert len({call.id for call in turn.tool_calls}) == 100
    assert all(len(call.fragments) > 1 for call in turn.tool_calls)


def test_parallel_tools_interleave():
    """The fragments of each call alternate with those of the others."""
    turn = play("parallel-tools")
    assert [call.parse_arguments()["city"] for call in turn.tool_calls] == ["Oslo", "Rome", "Cairo"]
    assert turn.order != tuple(sorted(turn.order))


def test_sequential_tools_do_not_interleave():
    """The first call, which is cut into fragments, is complete before the second opens."""
    turn = play("sequential-tools")
    assert turn.order == ()
    assert [len(call.fragments) > 1 for call in turn.tool_calls] == [True, False]


def test_zero_argument_tool():
    """The call without arguments has no fragment, and reads as an empty object."""
    (call,) = play("zero-argument-tool").tool_calls
    assert call.fragments == ()
    assert call.parse_arguments() == {}


def test_multi_hop_has_three_turns():
    """Two round trips with tools, then a text."""
    turns = [play("multi-hop", position) for position in range(3)]
    assert [turn.finish for turn in turns] == ["tool_calls", "tool_calls", "stop"]


def test_endless_tools_never_ends():
    """However far the conversation goes, there is another call, with another id."""
    turns = [play("endless-tools", position) for position in range(50)]
    assert {turn.finish for turn in turns} == {"tool_calls"}
    assert len({turn.tool_calls[0].id for turn in turns}) == 50


def test_malformed_arguments():
    """One call's arguments are no JSON, the other's are."""
    broken, fine = play("malformed-arguments").tool_calls
    with pytest.raises(ValueError):
        broken.parse_arguments()
    assert fine.parse_arguments() == {"city": "Rome"}


def test_unicode():
    """Every kind of difficult character is in arguments and text, and is cut."""
    (call,) = play("unicode").tool_calls
    text = play("unicode", 1).text
    assert "👩‍👩‍👧‍👦" in call.arguments
    for char in ("\u0301", "\u200d", "\u2028", "\U0001d11e", "ש", "م", "こ", "한", "न"):
        assert char in text + call.arguments, hex(ord(char))
    assert all(len(fragment) == 1 for fragment in call.fragments)


def test_reasoning_differs_over_responses():
    """Where a service shows only a summary of its reasoning, so does the scenario."""
    assert not play("reasoning").parts[0].summary
    assert play("reasoning", api="responses").parts[0].summary
    assert play("reasoning").text == play("reasoning", api="responses").text


def test_endings():
    """Each way in which an answer can end has its scenario."""
    assert play("length-truncated").finish == "length"
    assert play("content-filtered").finish == "content_filter"
    assert play("refusal").finish == "refusal"
    assert play("stream-error").error is not None
    assert SCENARIOS["continuation-error"].turns[1].http.status == 500


def test_rate_limited_is_quick():
    """Two attempts get a 429, and a client that obeys `retry-after` waits a short time."""
    (turn,) = SCENARIOS["rate-limited"].turns
    assert [attempt.http.status for attempt in turn.attempts] == [429, 429]
    assert all(attempt.http.retry_after <= 1_000_000 for attempt in turn.attempts)
