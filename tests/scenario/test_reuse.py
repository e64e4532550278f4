"""Files that scenarios include, and the places of mistakes in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mockllm.core.errors import ScenarioError
from mockllm.play.replay.loading import load, loads
from mockllm.scenario.dump import dump
from mockllm.scenario.part_model import PausePart, TextPart, ToolPart
from mockllm.scenario.reading.nodes import MAX_NODES

COMMON = """\
tools:
  - {name: add, parameters: {type: object, properties: {n: {type: integer}}, required: [n]}}
replies:
  hello: {text: Hello!}
  busy: [{text: One moment.}, {tool: add, arguments: {n: 1}}]
"""
SCENARIO = """\
scenario: a
include: common.yaml
turns:
  - reply: {use: hello}
  - reply: [{text: Well.}, {use: busy}, {pause: 1s}]
"""
PARTS = (TextPart("One moment."), ToolPart("add", arguments='{"n":1}'))


@pytest.fixture
def write(tmp_path: Path):
    """Writes files into one folder, each from its name and its text."""

    def write(*files: tuple[str, str]) -> Path:
        for name, text in files:
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


def problems(folder: Path) -> list[str]:
    """The problems of a folder, without its path."""
    with pytest.raises(ScenarioError) as caught:
        load(folder)
    return [str(problem).replace(f"{folder}{os.sep}", "") for problem in caught.value.problems]


def test_a_turn_uses_replies_and_tools_of_a_file(write):
    """The parts stand where they are used, and the file is no scenario of the folder."""
    (scenario,) = load(write(("a.yaml", SCENARIO), ("common.yaml", "\ufeff" + COMMON)))
    assert [turn.reply for turn in scenario.turns] == [
        (TextPart("Hello!"),),
        (TextPart("Well."), *PARTS, PausePart(1_000_000)),
    ]
    assert [tool.name for tool in scenario.tools] == ["add"]


def test_variants_and_attempts_use_replies():
    """`use` works wherever a `reply` may stand."""
    (scenario,) = loads(
        "scenario: a\nreplies: {b: {text: c}}\nturns:\n  - reply: {text: hi}\n"
        "    attempts: [{reply: {use: b}, finish: length}]\n"
        "    when: {api: chat, reply: {use: b}}\n"
    )
    (turn,) = scenario.turns
    assert turn.attempts[0].reply == turn.branches[0].turn.reply == (TextPart("c"),)


def test_what_is_written_back_has_the_parts(write):
    """A dump needs no other file: it has parts and tools in place of their names."""
    (scenario,) = load(write(("a.yaml", SCENARIO), ("common.yaml", COMMON)))
    assert loads(dump(scenario)) == (scenario,)


def test_texts_of_included_files_are_beside_them(write):
    """A long text of an included reply stands in a file of the same folder."""
    common = "replies: {hello: {text: {file: hello.txt}}}"
    folder = write(("a.yaml", SCENARIO.replace("busy", "hello")), ("hello.txt", "Hello there"))
    (scenario,) = load(write(("common.yaml", common)))
    assert scenario.turns[0].reply == (TextPart("Hello there"),)
    assert folder.is_dir()


def test_a_text_in_memory_includes_what_its_reader_knows():
    """`loads` asks the function for included files, too."""
    (scenario,) = loads(SCENARIO, read_file={"common.yaml": COMMON.encode()}.__getitem__)
    assert scenario.turns[1].reply[1:3] == PARTS


def test_mistakes_of_an_included_file_are_reported_once(write):
    """With the line of that file, however many scenarios include it or use the reply."""
    common = (
        "tools: [{name: f, parameters: {type: 5}}]\n"
        "replies:\n  hello: {txt: hi}\n  busy: [{text: hi, split: [h]}, {tool: f}]\n  never: []\n"
    )
    folder = write(
        ("a.yaml", SCENARIO), ("b.yaml", SCENARIO.replace(": a", ": b")), ("common.yaml", common)
    )
    assert problems(folder) == [
        "common.yaml:1:38: tools[0].parameters.type: is not a JSON Schema: 5 is not valid under "
        "any of the given schemas",
        "common.yaml:3:11: replies.hello: unknown key 'txt'; did you mean 'text'?",
        "common.yaml:4:28: replies.busy[0].split: the fragments do not join to the text: from "
        "character 2 they give nothing more instead of 'i'",
        "common.yaml:5:10: replies.never: must have at least one part",
    ]
    (folder / "common.yaml").write_text("replies: [\n")
    (problem,) = problems(folder)
    assert problem.startswith("common.yaml:2:1: not valid YAML")


def test_what_one_scenario_lacks_is_reported_where_it_uses_the_reply(write):
    """A reply that fits one scenario and not another has no mistake of its own."""
    common = "replies: {hello: {text: hi}, busy: [{text: hi}, {tool: add, id: x}]}"
    own = SCENARIO.replace("scenario: a", "scenario: b\ntools: [{name: sub}]")
    folder = write(("a.yaml", SCENARIO), ("b.yaml", own), ("common.yaml", common))
    assert problems(folder) == [
        "b.yaml:6:34: turns[1].reply[1].use: 'add' is not among the scenario's tools; "
        "they are sub (at common.yaml:1:56)"
    ]


@pytest.mark.parametrize(
    ("common", "problem"),
    [
        (None, "a.yaml:2:10: include: 'common.yaml' cannot be read: No such file or directory; "
         "put it there"),
        (COMMON + "include: more.yaml\n", "common.yaml:6:1: an included file includes no other"),
        (COMMON + "match: any\n",
         "common.yaml:6:1: unknown key 'match'; it belongs into the scenario, beside 'turns'; what "
         "the request for one turn must have is its 'request'"),
        (COMMON + "---\n" + SCENARIO.replace("include: common.yaml", "replies: {busy: {text: a}, "
         "hello: {text: b}}").replace(": a\n", ": b\n"),
         "a.yaml:2:10: include: 'common.yaml' must be one document that has 'replies' and 'tools' "
         "alone, and no scenario"),
        ("scenario: b\nturns: [{reply: {text: hi}}]\n",
         "a.yaml:2:10: include: 'common.yaml' must be one document that has 'replies' and 'tools' "
         "alone, and no scenario"),
    ],
    ids=["missing", "nested", "other keys", "several", "scenario"],
)  # fmt: skip
def test_files_that_cannot_be_included(write, common, problem):
    """The message says which file is meant and what it must be; names are not reported then."""
    files = [("a.yaml", SCENARIO)] + ([("common.yaml", common)] if common else [])
    assert problems(write(*files))[0] == problem


def test_replies_beside_scenarios_are_refused(write):
    """Replies in one document of several would be out of reach."""
    text = "replies: {hello: {text: hi}}\n---\nscenario: b\nturns: [{reply: {text: hi}}]\n"
    assert problems(write(("b.yaml", text))) == [
        "b.yaml:1:1: replies and tools for scenarios must be in a file of their own"
    ]


def test_a_name_stands_once(write):
    """Names of replies and tools are not taken over without a word."""
    text = SCENARIO.replace("turns:", "tools: [{name: add}]\nreplies: {hello: {text: Hi}}\nturns:")
    assert problems(write(("a.yaml", text), ("common.yaml", COMMON))) == [
        "a.yaml:2:10: include: 'common.yaml' has the reply 'hello', which a.yaml:4 has, too",
        "a.yaml:2:10: include: tool 'add' is there twice",
    ]


def test_a_link_out_of_the_folder_is_not_included(write, tmp_path):
    """No key reads a file outside of the folder."""
    folder = tmp_path / "inside"
    folder.mkdir()
    write(("common.yaml", COMMON), ("inside/a.yaml", SCENARIO))
    (folder / "common.yaml").symlink_to(tmp_path / "common.yaml")
    with pytest.raises(ScenarioError, match=r"include: 'common.yaml' is a link that leaves"):
        load(folder / "a.yaml")


def test_uses_are_bounded():
    """A few lines cannot stand for billions of parts."""
    parts = ", ".join(["{text: a}"] * 1000)
    uses = ", ".join(["{use: b}"] * (MAX_NODES // 1000))
    with pytest.raises(ScenarioError, match="used up to here have more than 250,000 values"):
        loads(f"scenario: a\nreplies: {{b: [{parts}]}}\nturns: [{{reply: [{uses}]}}]\n")
