"""Warnings about texts that YAML may not read as they are meant."""

import pytest

from mockllm.play.replay.loading import load, loads
from mockllm.scenario.model import Http
from mockllm.scenario.part_model import TextPart


def warnings(folder, turns):
    """The warnings about a scenario with these lines of turns."""
    file = folder / "a.yaml"
    file.write_text("scenario: a\nturns:\n" + "".join(f"- {turn}\n" for turn in turns))
    found = []
    load(file, found.append)
    return [f"{problem.line}:{problem.column}: {problem.message}" for problem in found]


@pytest.mark.parametrize(
    ("turn", "rest"),
    [
        ("reply: it costs #5 now", "'#5 now'"),
        ("reply: Hello # world", "'# world'"),
        ("reply: [{text: a}, b] ", None),
        ("reply: {text: Hello} # a comment", None),
        ("reply: Hello  # a comment", None),
        ('reply: "Hello # world"', None),
        ("{reply: x, request: {user: a}} # a comment", None),
        ("reply: |\n    one # two", None),
    ],
)
def test_a_text_that_a_comment_cuts_is_warned_of(tmp_path, turn, rest):
    found = warnings(tmp_path, [turn])
    assert len(found) == (rest is not None)
    assert rest is None or (rest in found[0] and found[0].startswith("3:10: "))


@pytest.mark.parametrize(
    ("turn", "warning"),
    [
        ("{request: {user: /weather/i}, reply: Dry.}", "looked for with its slashes"),
        ("{request: {user: /v1/chat}, reply: Dry.}", None),
        ("reply: '{% if x %}Dry.{% endif %}'", "has '{% %}', which is sent as it stands"),
    ],
)
def test_notations_of_other_languages_are_warned_of(tmp_path, turn, warning):
    """A regular expression between slashes and a statement of a template are only text here."""
    found = warnings(tmp_path, [turn])
    assert len(found) == (warning is not None)
    assert warning is None or warning in found[0]


def test_what_yaml_1_1_cannot_load_is_warned_of(tmp_path):
    (found,) = warnings(tmp_path, ["reply: {tool: f, arguments: {sign: =}}"])
    assert found.startswith("1:1: a reader of YAML 1.1, such as PyYAML, cannot load this file (")
    assert not warnings(tmp_path, ["reply: {tool: f, arguments: {sign: '=', on: yes}}"])


def test_a_string_is_a_text():
    (scenario,) = loads("scenario: a\nturns:\n- reply: Hello\n- reply: [Hi, {text: you}]")
    assert [turn.reply for turn in scenario.turns] == [
        (TextPart("Hello"),),
        (TextPart("Hi"), TextPart("you")),
    ]


def test_an_error_of_a_turn_is_written_as_one_of_an_attempt():
    tries = "{http: 429, retry_after: 2s, attempts: [{http: 429, retry_after: 2s}]}"
    (scenario,) = loads(f"scenario: a\nturns:\n- {tries}")
    (turn,) = scenario.turns
    assert turn.http == turn.attempts[0].http == Http(429, retry_after=2_000_000)
