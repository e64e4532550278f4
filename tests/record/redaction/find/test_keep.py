"""What a user keeps: kinds, places, both, and patterns; from the file and from options."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mockllm.cli import main
from mockllm.core.errors import UsageError, WireError
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.rules import Rules, rules_from

ARGUMENTS = json.dumps({"to": "alice@example.com", "body": "hello bob@example.com"})
KEY = "sk-proj-" + "Ab3dEf6hIj" * 4


def event(**fields: Any) -> str:
    return f"data: {json.dumps(fields)}\n\n"


def chat(parts: Iterable[str]) -> str:
    calls = ([{"index": 0, "function": {"arguments": part}}] for part in parts)
    return "".join(event(choices=[{"index": 0, "delta": {"tool_calls": call}}]) for call in calls)


def responses(parts: Iterable[str]) -> str:
    kind = "response.function_call_arguments.delta"
    return "".join(event(type=kind, item_id="fc_1", delta=part) for part in parts)


def anthropic(parts: Iterable[str]) -> str:
    return "".join(
        event(index=1, delta={"type": "input_json_delta", "partial_json": part}) for part in parts
    )


def agui(parts: Iterable[str]) -> str:
    return "".join(event(type="TOOL_CALL_ARGS", toolCallId="c", delta=part) for part in parts)


STREAMS = (chat, responses, anthropic, agui)


def in_stream(text: str) -> str:
    """The joined arguments of a stream."""
    joined = []

    def walk(value: Any) -> None:
        match value:
            case dict():
                for name, inner in value.items():
                    if name in ("arguments", "partial_json", "delta") and isinstance(inner, str):
                        joined.append(inner)
                    else:
                        walk(inner)
            case list():
                for inner in value:
                    walk(inner)

    for line in text.splitlines():
        if line:
            walk(json.loads(line.removeprefix("data: ")))
    return "".join(joined)


def cut(text: str, cuts: Iterable[int]) -> list[str]:
    ends = sorted({0, len(text), *(one % len(text) for one in cuts)})
    return [text[start:end] for start, end in pairwise(ends)]


@pytest.mark.parametrize("stream", STREAMS)
@given(cuts=st.lists(st.integers(0, 200), max_size=12))
def test_an_argument_that_is_kept_in_a_stream(
    stream: Callable[[Iterable[str]], str], cuts: list[int]
) -> None:
    """However the arguments are cut, the argument at the path is as it was; others are not."""
    clean = Redactor(Rules(keep=("$..arguments.to",))).text(stream(cut(ARGUMENTS, cuts)))
    assert json.loads(in_stream(clean)) == {
        "to": "alice@example.com",
        "body": "hello hidden-1@mail.example",
    }


@pytest.mark.parametrize("stream", STREAMS)
def test_a_kind_in_arguments(stream: Callable[[Iterable[str]], str]) -> None:
    """Only that kind stays, and only there."""
    arguments = json.dumps({"to": "alice@example.com", "note": KEY})
    clean = Redactor(Rules(keep=("email in $..arguments",))).text(stream(cut(arguments, [7, 30])))
    kept = json.loads(in_stream(clean))
    assert kept["to"] == "alice@example.com"
    assert KEY not in kept["note"]
    message = {"content": "to alice@example.com", "tool_calls": [{"arguments": ARGUMENTS}]}
    clean = Redactor(Rules(keep=("email in $..arguments",))).json(message)
    assert clean["content"] == "to hidden-1@mail.example"
    assert clean["tool_calls"][0]["arguments"] == ARGUMENTS


@pytest.mark.parametrize(
    "body",
    [
        {"function": {"arguments": ARGUMENTS}},
        {"content": [{"type": "tool_use", "input": json.loads(ARGUMENTS)}]},
        {"functionCall": {"args": json.loads(ARGUMENTS)}},
        {"messages": [{"tool_calls": [{"function": {"arguments": ARGUMENTS}}]}]},
    ],
)
def test_arguments_that_come_whole(body: dict[str, Any]) -> None:
    """As JSON in a string or as an object, under the name of any service."""
    clean = json.dumps(Redactor(Rules(keep=("$..arguments.to",))).json(body))
    assert "alice@example.com" in clean
    assert "bob@example.com" not in clean


def test_a_kind_that_is_kept_everywhere() -> None:
    """Other kinds do not."""
    text = f"mail alice@example.com the key {KEY}"
    assert Redactor(Rules(keep=("email",))).text(text).startswith("mail alice@example.com the key")
    assert KEY not in Redactor(Rules(keep=("email",))).text(text)
    named = {"password": "hunter22"}
    assert Redactor(Rules(keep=("password",))).json(named) == named


def test_a_pattern_for_whole_secrets() -> None:
    """It must match all of a secret."""
    redactor = Redactor(Rules(keep=(r"/[a-z]+@example\.com/", "/hunter22/")))
    assert redactor.text("alice@example.com") == "alice@example.com"
    assert redactor.text("alice2@example.com") != "alice2@example.com"
    assert redactor.json({"password": "hunter22"}) == {"password": "hunter22"}


def test_a_place_does_not_cover_another() -> None:
    """The input of a request at its root is no argument of a call."""
    body = {"input": {"to": "alice@example.com"}}
    assert Redactor(Rules(keep=("$..arguments.to",))).json(body) != body
    assert Redactor(Rules(keep=("$.input.to",))).json(body) == body


# The file and the options

FILE = """
[redact]
patterns = ['cust_[0-9]+']
keep = ["email in $..arguments"]
kinds = {phone = true, organization = false}
"""


def test_rules_of_a_file_and_of_options(tmp_path: Path) -> None:
    """They add up; a kind that is switched off is kept."""
    file = tmp_path / "mockllm.toml"
    file.write_text(FILE)
    rules = rules_from(file, ["zz+"], ["$.a"], ["card"], ["email"])
    assert rules.patterns == ("cust_[0-9]+", "zz+")
    assert rules.json_paths == ("$.a",)
    assert rules.kinds == ("phone", "card")
    assert rules.keep == ("organization", "email in $..arguments", "email")
    text = "org-abcdefghij0123456789 +41 44 668 18 00, 4242 4242 4242 4242"
    clean = Redactor(rules).text(text)
    assert clean.startswith("org-abcdefghij0123456789 REDACTED-1")
    assert "4242" not in clean


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("keep = ['emial']", "keep: 'emial' is no kind of secret; did you mean 'email'?"),
        (
            "keep = ['zzzz']",
            "keep: 'zzzz' is no kind of secret; `mockllm docs secrets` lists them",
        ),
        ("keep = ['email in $.a...b']", "keep: '$.a...b' is no path that is known here; "),
        (
            "keep = ['/(/']",
            "keep: '(' must be a regular expression of Python; missing )",
        ),
        ("keep = 5", "keep must be a list of strings, got 5"),
        ("kinds = {phne = true}", "kinds: 'phne' is no kind of secret; did you mean 'phone'?"),
        ("kinds = ['phone']", "kinds must be a table such as {phone = true, email = false}, got"),
        ("kind = {}", "has 'kind'; what it may have is headers, json_paths, keep, kinds, patterns"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    """The message has the file, the key, and the nearest name."""
    file = tmp_path / "mockllm.toml"
    file.write_text(f"[redact]\n{text}\n")
    with pytest.raises(UsageError) as caught:
        rules_from(file)
    assert str(caught.value).startswith(f"{file}: [redact]")
    assert message in str(caught.value)


def test_a_pattern_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it keeps a secret is not known then."""
    monkeypatch.setattr("mockllm.core.patterns.LIMIT", 0.02)
    rules = Rules(keep=("/(x+x+)+y/", "email"), patterns=("x+y?",))
    assert Redactor(rules).text("xxxy") == "xxxy"
    with pytest.raises(WireError, match="it is not known which secrets it has"):
        Redactor(rules).text("x" * 3000)


def test_the_file_of_scrub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps, and finds more; a mistake names file, table and key."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"arguments": {"to": "alice@example.com"}, "call": "+41446681800"}))

    def scrub(table: str = "") -> tuple[int, str]:
        (tmp_path / "mockllm.toml").write_text(f"[redact]\n{table}\n")
        result = CliRunner().invoke(main, ["scrub", str(file), "--check"])
        return result.exit_code, result.output

    assert scrub()[0] == 1
    assert scrub('keep = ["$..arguments.to"]') == (0, "no secrets in 1 file\n")
    assert "phone" in scrub('keep = ["email"]\nkinds = {phone = true}')[1]
    assert "[redact] keep: 'emial' is no kind" in scrub('keep = ["emial"]')[1]
    assert "[redact] kinds: 'phon' is no kind" in scrub("kinds = {phon = true}")[1]


def test_an_argument_that_is_kept_in_a_scenario(tmp_path: Path) -> None:
    """`mockllm scrub` leaves it in the YAML of a recording, in its fragments too."""
    text = (
        "scenario: mail\nturns:\n- reply:\n  - tool: send\n    id: c\n"
        "    arguments: {to: alice@example.com, body: bob@example.com}\n"
        '    split: [\'{"to":"alice@exam\', \'ple.com","body":"bob@example.com"}\']\n'
    )
    file = tmp_path / "mail.yaml"
    file.write_text(text)
    config = tmp_path / "mockllm.toml"
    config.write_text('[redact]\nkeep = ["$..arguments.to"]\n')
    result = CliRunner().invoke(main, ["--config", str(config), "scrub", str(file)])
    assert result.exit_code == 0, result.output
    clean = file.read_text()
    assert (clean.count("alice@example.com"), clean.count("alice@exam'")) == (1, 1)
    assert "bob@example.com" not in clean
