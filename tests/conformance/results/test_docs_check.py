"""docs/check.md and docs/gateway.md: every example parses, every option and value is documented."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import get_args, get_type_hints

import click
import pytest

from mockllm.checking import Policy
from mockllm.checking.rules import COSTS, GATEWAYS
from mockllm.cli import main
from mockllm.cli.check.options import read_policy
from mockllm.cli.options.config import FileKey
from mockllm.conformance.results.known import read_known

PAGE = Path(__file__).parents[3] / "docs" / "check.md"
TEXT = PAGE.read_text(encoding="utf-8")
GATEWAY_PAGE = PAGE.with_name("gateway.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(?:sh|text)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
EXAMPLES = [line for block in BLOCKS for line in block.splitlines() if line.startswith("mockllm ")]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_parse(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example parses as a command with its options."""
    monkeypatch.chdir(tmp_path)
    Path("answers.jsonl").touch()
    _, name, *arguments = shlex.split(example)
    command = main.get_command(click.Context(main), name)
    assert command is not None
    with command.make_context(name, arguments) as context:
        assert not context.args


def test_every_option_is_documented() -> None:
    """The tables name every option; keys of the file stand elsewhere."""
    for name, text in (("check", TEXT), ("check-gateway", GATEWAY_PAGE)):
        command = main.get_command(click.Context(main), name)
        assert command is not None
        params = (param for param in command.params if not isinstance(param, FileKey))
        options = {name for param in params for name in param.opts if name.startswith("--")}
        assert {option for option in options if f"`{option}" not in text} == set()


def test_every_choice_of_a_policy_is_documented() -> None:
    """The values of a policy are those that the command takes."""
    rows = dict(re.findall(r"^\| `(\w+)`[^|]*\|([^\n]*)\|$", TEXT, re.MULTILINE))
    for key, hint in get_type_hints(Policy).items():
        for value in get_args(hint) if key in ("malformed", "missing_id", "unknown_tool") else ():
            assert f"`{value}`" in rows[key]
            assert getattr(read_policy([f"{key}={value}"]), key) == value
    assert read_policy(["ignore=usage,role", "usage_requested=false"]) == Policy(
        ignore=frozenset({"usage", "role"}), usage_requested=False
    )


def test_costs_and_the_list_of_known_mistakes(tmp_path: Path) -> None:
    """Each cost has its row, and the example of a list can be read."""
    assert [cost for cost in COSTS if f"| {cost} |" not in TEXT + GATEWAY_PAGE] == []
    (text,) = (block for block in BLOCKS if block.startswith("# We send"))
    (tmp_path / "known.txt").write_text(text)
    known = read_known(tmp_path / "known.txt").lines
    assert [bool(one.pattern) for one in known] == [False, True, True]
    assert known[1].matches("chat/sample-call+chat-index-missing:empty-id")
    assert known[2].reason == "needs a change of the interface"


def test_the_rules_of_gateways_are_documented() -> None:
    """Each has its row, with its promise."""
    for rule, promise in GATEWAYS.items():
        assert f"| `{rule}` | {promise} |" in GATEWAY_PAGE
