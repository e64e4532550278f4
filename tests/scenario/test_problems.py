"""Every mistake is reported with its location, the value found and what was expected."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import Problem, ScenarioError
from mockllm.play.replay.loading import loads
from mockllm.scenario.dump import dump
from mockllm.scenario.model import TextCondition
from mockllm.scenario.reading.nodes import Mapping, Node, Scalar, documents
from tests.cases import for_all
from tests.scenario.bad_branches import BRANCHES
from tests.scenario.bad_heads import HEADS
from tests.scenario.bad_parts import PARTS
from tests.scenario.bad_routes import ROUTE_SEMANTICS, ROUTES
from tests.scenario.bad_semantics import SEMANTICS as MODEL_SEMANTICS
from tests.scenario.bad_turns import TURNS
from tests.scenario.bad_words import TYPED, WORDS
from tests.scenario.bad_yaml import YAML as BROKEN
from tests.scenario.documents import part, top, turn, two

SHAPE = HEADS + TURNS + PARTS + ROUTES + WORDS
YAML = BROKEN + TYPED
SEMANTICS = MODEL_SEMANTICS + ROUTE_SEMANTICS + BRANCHES
without_c = pytest.mark.skipif(
    not hasattr(yaml, "CSafeLoader"), reason="PyYAML was built without libyaml"
)


def printed_problems(text: str, name: str = "greet.yaml") -> list[str]:
    """The problems of a text, as they are printed."""
    with pytest.raises(ScenarioError) as caught:
        loads(text, name)
    return [str(problem) for problem in caught.value.problems]


@for_all(
    ("text", "problems"),
    [row[1:] for row in SHAPE + SEMANTICS],
    ids=[row[0] for row in SHAPE + SEMANTICS],
)
def test_problems_are_exact(text: str, problems: list[str]) -> None:
    """Each bad document has exactly these problems."""
    assert printed_problems(text) == [
        f"greet.yaml:{problem}".replace("<text>", "greet.yaml") for problem in problems
    ]


@without_c
@for_all(("text", "problems"), [row[1:] for row in YAML], ids=[row[0] for row in YAML])
def test_problems_of_broken_yaml_are_exact(text: str, problems: list[str]) -> None:
    """Broken YAML has exactly these problems."""
    assert printed_problems(text) == [f"greet.yaml:{problem}" for problem in problems]


def located(node: Node) -> object:
    """A tree as plain values with the line and column of each."""
    where = (node.mark.line, node.mark.column)
    if isinstance(node, Scalar):
        # The parsers differ in whether an empty node comes before or after white space.
        return where if node.value else None, node.value, node.plain
    if isinstance(node, Mapping):
        return where, [(key, located(value)) for key, value in node.entries.items()]
    return where, [located(item) for item in node.items]


@without_c
@for_all("text", [row[1] for row in SHAPE + SEMANTICS], ids=[row[0] for row in SHAPE + SEMANTICS])
def test_parsers_agree(text: str) -> None:
    """PyYAML's parser in Python gives the same trees as the one in C."""
    slow, fast = (
        [located(document.root) for document in documents(text, "x", parser)]
        for parser in (yaml.SafeLoader, yaml.CSafeLoader)
    )
    assert slow == fast


def refused(text: str) -> bool:
    """Whether the parser in Python refuses a text or finds no mapping in it."""
    try:
        found = list(documents(text, "x", yaml.SafeLoader))
    except ScenarioError:
        return True
    return any(one.notes or not isinstance(one.root, Mapping) for one in found) or not found


@for_all(
    "text",
    [row[1] for row in YAML if row[0] not in ("lone", "empty doc")],
    ids=[row[0] for row in YAML if row[0] not in ("lone", "empty doc")],
)
def test_the_slow_parser_refuses_too(text: str) -> None:
    """The parser in Python refuses every text that the one in C refuses."""
    assert refused(text)


@given(st.data())
def test_damage_is_reported_and_never_a_crash(data: st.DataObject) -> None:
    """A file with stray characters loads, or its problems are reported."""
    text = data.draw(st.sampled_from([row[1] for row in SHAPE + SEMANTICS]))
    start = data.draw(st.integers(0, len(text)))
    end = start + data.draw(st.integers(0, 4))
    stray = data.draw(st.sampled_from(STRAY) | st.text(max_size=3))
    try:
        loads(text[:start] + stray + text[end:])
    except ScenarioError as error:
        lines = [problem.line for problem in error.problems]
    else:
        lines = []
    assert lines == sorted(lines)


STRAY = ["- ", ": ", "[", "]", "{", "}", '"', "'", "&a ", "*a", "!x ", "|\n", "? ", "---\n", "<<: "]


def test_a_problem_reads_as_a_sentence() -> None:
    """File, line, column, path, expectation and finding, in this order."""
    text = turn("reply:\n      - text: hi\n      - text: 5")
    (problem,) = printed_problems(text)
    assert problem.startswith("greet.yaml:5:15: turns[0].reply[1].text: must be a string, got 5")


def test_all_problems_at_once() -> None:
    """One run reports problems of syntax, shape and semantics in several documents, in order."""
    text = (
        "scenario: A\nturns:\n"
        "  - reply:\n"
        "      - {tool: f, id: c1}\n"
        "      - {tool: f, id: c1, argument: {}}\n"
        "  - finish: done\n"
        "---\nscenario: b\nturns: 5\n"
        "---\nscenario: b\nturns: [{reply: {text: hi}}]\n"
        "---\n- ]\n"
    )
    lines = [int(problem.split(":")[1]) for problem in printed_problems(text)]
    assert lines == [1, 5, 5, 6, 6, 9, 11, 14]


@for_all(
    "text",
    [
        part("text: yes"),
        part("text: 2001-01-01"),
        part("text: '5'"),
        part('text: "\\0\\U0001F600"'),
        part("text: !!str 5"),
        part("text: hi, split: [hi, '']"),
        part("tool: f, arguments: '{', malformed: true"),
        part("tool: f, arguments: {on: yes, 1: 2}"),
        turn("reply: [{text: &t hi}, {text: *t}]"),
        turn("{reply: &r {text: hi}, when: {api: chat, reply: {<<: *r, split: chars}}}"),
        top("match: {user: no, headers: {X-A: {equals: 'on'}}}"),
        top("seed: 42"),
        two("{request: {results: {c1: 42, c2: true}}, reply: {text: a}}"),
        two("{request: {results: {c1: {error: true}, c2: {contains: x}}}, reply: {text: a}}"),
        turn("{reply: {auto: true}}\n  - {request: {results: {any: x}}, reply: {text: a}}"),
        turn("{reply: {tool: f, id: c}, when: {api: chat, reply: {tool: f, id: c, split: whole}}}"),
    ],
)
def test_valid_documents_load(text: str) -> None:
    """Documents that look like mistakes, but are valid, load."""
    assert loads(text)


def test_scenarios_of_other_protocols_may_have_the_same_match() -> None:
    """Equal conditions are no conflict between scenarios that share no protocol."""
    text = "scenario: {}\napis: [{}]\nmatch: any\nturns: [{{reply: {{text: hi}}}}]\n"
    assert len(loads(text.format("a", "chat") + "---\n" + text.format("b", "agui"))) == 2
    assert (
        "match: matches the same"
        in printed_problems(text.format("a", "chat") + "---\n" + text.format("b", "chat"))[0]
    )


def test_numbers_in_results_are_as_written() -> None:
    """A result that is written as a number or boolean is equal to that text; a string, also in
    quotes, is contained, as in every condition."""
    (scenario,) = loads(two("{request: {results: {c1: 1.50, c2: True}}, reply: {text: a}}"))
    (quoted,) = loads(two("{request: {results: {c1: '1.50', c2: rain}}, reply: {text: a}}"))
    found = [scenario.turns[1].request, quoted.turns[1].request]
    assert [[result.text for _, result in request.results] for request in found if request] == [
        [TextCondition("equals", "1.50"), TextCondition("equals", "true")],
        [TextCondition("contains", "1.50"), TextCondition("contains", "rain")],
    ]
    assert "c1:\n          equals: '1.50'\n" in dump(scenario)


def test_problems_sort_by_location() -> None:
    """Problems have the order of the file."""
    problems = [Problem("a", 2, 1), Problem("a", 1, 9), Problem("a", 1, 2)]
    assert [problem.line for problem in ScenarioError(problems).problems] == [1, 1, 2]
