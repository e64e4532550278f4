"""The kinds of parts: who tells them apart, and the functions that visit them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from mockllm.core.tokens_and_fragments import tokens
from mockllm.scenario.part_model import (
    AnyPart,
    ImagePart,
    InterleavedPart,
    MediaSource,
    ParallelPart,
    PausePart,
    ReasoningPart,
    RefusalPart,
    ServerToolPart,
    TextPart,
    TokenSpec,
    ToolPart,
    content_of,
    cut_short,
    frame_apis,
    map_members,
    map_texts,
    members,
    token_count,
)

ROOT = Path(__file__).parents[2]

TELL_KINDS_APART = {
    "mockllm/scenario/part_model.py",  # the model
    "mockllm/scenario/reading/parts.py",  # the reader, and what it checks of whole scenarios
    "mockllm/scenario/check.py",
    "mockllm/scenario/dump.py",
    "mockllm/play/replay/compilation/resolve.py",  # to the neutral form, and back
    "mockllm/record/recording/drafting/turns.py",
}
"""What a new kind of part may change, besides encoders and decoders; they know the neutral form."""


def _kinds_told_apart(function: ast.FunctionDef) -> set[str]:
    """The kinds that a function asks for by `isinstance` or a pattern."""
    asked: list[ast.expr] = []
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name("isinstance"), args=[_, kinds]):
                asked.append(kinds)
            case ast.MatchClass(cls=kind):
                asked.append(kind)
    names = {node.id for kind in asked for node in ast.walk(kind) if isinstance(node, ast.Name)}
    return names & {kind.__name__ for kind in get_args(AnyPart)}


def test_a_new_kind_of_part_changes_few_modules() -> None:
    """Other modules may ask for one kind, such as calls. Who asks for two decides for all kinds and
    would have to know a new one: for that the model has functions."""
    telling = set()
    for folder in ("mockllm", "pytest_plugin"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            if "part_model" in text or path.name == "part_model.py":
                functions = (f for f in ast.walk(ast.parse(text)) if isinstance(f, ast.FunctionDef))
                if any(len(_kinds_told_apart(function)) > 1 for function in functions):
                    telling.add(path.relative_to(ROOT).as_posix())
    assert telling <= TELL_KINDS_APART


CALLS = ToolPart("a", arguments="{}"), ToolPart("b", arguments='{"x":1}')


def test_members_are_changed_inside_of_their_groups() -> None:
    """A change sees each member with its path; the group stays, with its order."""
    group = InterleavedPart((TextPart("a"), CALLS[0]), (0, 1, 1))
    paths = []

    def rename(path: object, part: object) -> object:
        paths.append(path)
        return TextPart("b") if isinstance(part, TextPart) else part

    assert map_members(group, rename) == InterleavedPart((TextPart("b"), CALLS[0]), (0, 1, 1))
    assert paths == [("interleaved", 0), ("interleaved", 1)]
    assert map_members(TextPart("a"), rename) == TextPart("b")
    assert paths[-1] == ()
    assert list(members((ParallelPart(CALLS), PausePart(1)))) == [*CALLS, PausePart(1)]


def test_texts_are_changed_at_their_keys() -> None:
    """Each text comes with the key that YAML has it under, and with its form."""
    seen = []

    def upper(path: object, value: str | None, form: str) -> str | None:
        seen.append((path, form))
        return value and value.upper()

    assert map_texts(RefusalPart("no"), upper) == RefusalPart("NO")
    assert map_texts(ToolPart("t", arguments="a", custom=True), upper).arguments == "A"
    assert map_texts(ServerToolPart("k", output="o"), upper) == ServerToolPart("k", output="O")
    assert map_texts(PausePart(1), upper) == PausePart(1)
    keys = [("refusal",), ("input",), ("output",), ("input",)]
    assert seen == list(zip(keys, ("text", "text", "json", "json"), strict=True))


@pytest.mark.parametrize(
    ("part", "cut"),
    [
        (TextPart("abcd", split=("ab", "cd")), TextPart("abc", split=("ab", "c"))),
        (
            TextPart("abcd", logprobs=(TokenSpec("ab", -0.1), TokenSpec("cd", -0.1))),
            TextPart("abc", logprobs=True),
        ),
        (ReasoningPart("abcd", signature="s"), ReasoningPart("abc")),
        (ToolPart("t", arguments='{"a":1}'), ToolPart("t", arguments='{"a', malformed=True)),
        (TextPart(""), None),
        (ToolPart("t"), None),
        (ImagePart(MediaSource(b"x", "image/png")), None),
    ],
)
def test_a_part_that_breaks_off(part: AnyPart, cut: AnyPart | None) -> None:
    """It has the first characters, in the fragments that there were, and no proof of the rest."""
    assert cut_short(part, 3) == cut


def test_values_of_parts() -> None:
    """The text that is cut, the tokens, and the protocols of frames."""
    content = content_of(ToolPart("t", arguments="free", custom=True))
    assert content is not None
    assert (content.noun, content.text, content.is_json) == ("input", "free", False)
    assert content_of(PausePart(1)) is None
    assert token_count((ParallelPart(CALLS), TextPart("some words"))) == sum(
        map(tokens, ("a", "{}", "b", '{"x":1}', "some words"))
    )
    assert frame_apis((TextPart("a"),)) == set()
