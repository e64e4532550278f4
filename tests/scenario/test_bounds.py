"""Hostile files get a clear error, in bounded time and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mockllm.core.errors import ScenarioError
from mockllm.play.replay.loading import loads
from mockllm.scenario.reading.nodes import MAX_DEPTH, documents
from tests.cases import for_all
from tests.scenario.documents import part, turn

pytestmark = pytest.mark.slow

PARSERS = [getattr(yaml, name) for name in ("CSafeLoader", "SafeLoader") if hasattr(yaml, name)]

LAUGHS = "".join(
    f"  - &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
BOMB = f"scenario: a\nturns:\n  - &a [lol]\n{LAUGHS}"
MAPPINGS = "x0: &x0 {a: b}\n" + "".join(
    f"x{n}: &x{n} {{{', '.join(f'k{i}: *x{n - 1}' for i in range(9))}}}\n" for n in range(1, 12)
)
LADDER = "x0: &x0 [a]\n" + "".join(f"x{n}: &x{n} [*x{n - 1}]\n" for n in range(1, 200))

HOSTILE = {
    "laughs": (BOMB, "aliases repeat more than 250,000 values in one document"),
    "mappings": (MAPPINGS, "aliases repeat more than 250,000 values in one document"),
    "merges": (
        "b: &b {k: v}\nc:\n  <<: [" + "*b, " * 300_000 + "*b]\n",
        "aliases repeat more than 250,000 values in one document",
    ),
    "ladder": (LADDER, "nested more than 100 levels deep, through aliases"),
    "lists": ("[" * 10_000, "nested more than 100 levels deep"),
    "closed lists": ("[" * 10_000 + "]" * 10_000, "nested more than 100 levels deep"),
    "mappings in a line": ("{a: " * 10_000, "nested more than 100 levels deep"),
    "dashes": ("- " * 10_000, "nested more than 100 levels deep"),
    "questions": ("? " * 10_000, "nested more than 100 levels deep"),
    "indents": (
        "\n".join(" " * depth + "a:" for depth in range(3_000)),
        "nested more than 100 levels deep",
    ),
    "values": ("- a\n" * 300_000, "more than 250,000 values in one document"),
}


@for_all("parser", PARSERS, ids=lambda parser: parser.__name__)
@for_all("name", [name for name in HOSTILE if name not in ("values", "merges")])
def test_bounds_hold_with_either_parser(name: str, parser: type) -> None:
    """Depth and aliases are bounded with each of PyYAML's parsers."""
    text, message = HOSTILE[name]
    with pytest.raises(ScenarioError) as caught:
        list(documents(text, "x", parser))
    assert caught.value.problems[0].message == message


PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from mockllm.core.errors import ScenarioError
from mockllm.play.replay.loading import load
try:
    load([sys.argv[1]])
except ScenarioError as error:
    print(len(error.problems), error.problems[0].message)
"""


def run(path: Path) -> str:
    """The problems of a file that is loaded within 512 MiB and 20 seconds of CPU time."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are as Linux has them")
@pytest.mark.parametrize("name", HOSTILE)
def test_bounds_hold_in_time_and_memory(name: str, tmp_path: Path) -> None:
    """A hostile file is refused within 512 MiB and 20 seconds of CPU time."""
    text, message = HOSTILE[name]
    path = tmp_path / "a.yaml"
    path.write_text(text)
    assert run(path) == f"1 {message}"


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are as Linux has them")
def test_a_large_file_is_not_read_whole(tmp_path: Path) -> None:
    """A file of 50 MB is refused for its size."""
    path = tmp_path / "a.yaml"
    with path.open("w") as file:
        file.writelines(["# " + "x" * 1022 + "\n"] * 50_000)
    assert run(path) == "1 is larger than 8 MiB; make several files of it"


def test_problems_are_bounded() -> None:
    """A file with many problems gets the first thousand, and a note that there are more."""
    many = "".join(f"key{n}: x\n" for n in range(5_000))
    with pytest.raises(ScenarioError) as caught:
        loads("scenario: a\n" + many)
    problems = caught.value.problems
    assert len(problems) == 1_001
    assert any("what follows is not reported" in problem.message for problem in problems)
    with pytest.raises(ScenarioError) as caught:
        loads("--- x\n" * 5_000)
    assert len(caught.value.problems) == 1_001


def test_large_files_within_the_bounds_load() -> None:
    """Deep nesting, long text and anchors load as long as they are within the bounds."""
    depth = MAX_DEPTH - 5
    deep = part("tool: f, arguments: {a: " + "[" * (depth - 1) + "]" * (depth - 1) + "}")
    assert loads(deep)
    assert loads(part(f"text: {'x' * 1_000_000}"))
    shared = turn("reply: [{text: &t hi}" + ", {text: *t}" * 1_000 + "]")
    assert len(loads(shared)[0].turns[0].reply) == 1_001


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5_000 + "}", "integer"),
    ],
)
def test_arguments_are_bounded_too(arguments: str, message: str) -> None:
    """JSON in a string is bounded as well."""
    with pytest.raises(ScenarioError, match=message):
        loads(part(f"tool: f, arguments: '{arguments}'"))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{$ref: '#'}", "refers to itself without end"),
        ("{$ref: 'https://example.com/schema'}", "leads nowhere"),
        ("{$ref: 'file:///etc/passwd'}", "leads nowhere"),
        ("{$ref: '#/$defs/x'}", "leads nowhere"),
    ],
)
def test_references_of_schemas_are_bounded(schema: str, message: str) -> None:
    """References of a tool's schema are never fetched, and never followed endlessly."""
    text = part("tool: f, arguments: {a: 1}") + f"tools: [{{name: f, parameters: {schema}}}]\n"
    with pytest.raises(ScenarioError, match=message):
        loads(text)


@pytest.mark.parametrize("number", ["9" * 5_000, "-" + "9" * 5_000, "1e999", "0x" + "f" * 5_000])
def test_numbers_are_bounded(number: str) -> None:
    """A huge number is a problem where a number is expected, and never a crash."""
    with pytest.raises(ScenarioError):
        loads(turn(f"{{reply: {{text: a}}, usage: {{input: {number}}}}}"))
