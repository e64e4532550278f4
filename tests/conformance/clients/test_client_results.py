"""What goes into a results file besides the judgement: fields, values, places, the commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mockllm.checking import Outcome, Policy, Trouble, case
from mockllm.checking.cases.scenarios import Variation
from mockllm.checking.judging.compare import judge
from mockllm.cli.check.plan import source_commit
from mockllm.conformance.case_names import Setting, check_command, show_command
from mockllm.conformance.clients.client_results import (
    AdapterFrames,
    json_value,
    outcome_field,
    stream_of,
)
from mockllm.conformance.clients.costs import fields_about, unjudged_fields
from mockllm.conformance.clients.messages import Answer, read_answer
from mockllm.play.quirks import find
from mockllm.play.quirks.samples import CALL, SAMPLES


@pytest.mark.parametrize(
    ("quirk", "fields"),
    [
        ("chat-reasoning-fields:reasoning", ("reasoning",)),
        ("chat-role-every-chunk", ("role",)),
        ("chat-finish-stop-with-tools", ("finish", "usage")),
        ("usage-in-finish-chunk", ("usage",)),
        ("chat-index-missing", ("tool_calls",)),
        ("sse-crlf:crlf", ("text",)),
        ("sse-cut:eof", ()),
    ],
)
def test_the_fields_that_a_quirk_is_about(quirk: str, fields: tuple[str, ...]) -> None:
    """A client without a place for them is not judged, whatever else it gets right."""
    found, variant = find(quirk)
    one = case(found.sample_of(variant), "chat", quirk=quirk)
    assert fields_about(one) == fields


def test_a_quirk_is_about_the_same_fields_however_the_answer_is_cut() -> None:
    """A cut makes other events, and no other quirk."""
    cut = case(SAMPLES["sample-text"], "chat", Variation(split=(3, 1)), "chat-role-every-chunk")
    assert fields_about(cut) == ("role",)


def test_a_quirk_of_calls_in_a_stream_without_one() -> None:
    """It shows that everything else is read, so a client that has nothing is not judged."""
    one = case(SAMPLES["sample-text"], "chat", quirk="chat-tool-calls-null:null")
    everything = ("text", "finish", "usage", "role", "model", "response_id")
    assert fields_about(one) == everything
    assert unjudged_fields(one, everything, ()) == everything


def test_the_signatures_of_reasoning() -> None:
    """A quirk of signatures is about them, not about the reasoning that they sign."""
    found, variant = find("anth-signature:split")
    one = case(found.sample_of(variant), "anthropic", quirk="anth-signature:split")
    assert fields_about(one) == ("opaque",)
    assert unjudged_fields(one, {"opaque", "refusal"}, ()) == ("opaque",)


@pytest.mark.parametrize(
    ("outcome", "fields"),
    [
        (Outcome.of("Hello", finish="length"), ["tool_calls", "finish"]),
        (Outcome.of(errors=["no index"]), ["errors"]),
    ],
)
def test_a_difference_names_the_field_of_the_outcome(outcome: Outcome, fields: list[str]) -> None:
    """So that a page can mark it; an error stands for what is missing because of it."""
    differences = judge(case(CALL, "chat"), outcome, Policy()).differences
    assert set(fields) <= set(map(outcome_field, differences)) <= {*fields, "text", "usage"}


def _frame(raised: str, adapter: str, command: tuple[str, ...] = ()) -> str:
    value = {"crash": {"message": "KeyError: 'x'", "raised": raised}}
    answer: Answer = read_answer(value)
    judgement = judge(case(CALL, "chat"), answer.outcome, Policy())
    return AdapterFrames(adapter, command).of(answer, judgement)


def test_exceptions_of_the_adapter(tmp_path: Path) -> None:
    """The innermost frame decides; a runner that names no adapter is one itself."""
    runner = tmp_path / "runner.mjs"
    runner.touch()
    here = "/elsewhere/runner.mjs:41:7 in add"
    assert _frame(here, "", ("node", str(runner))) == here
    assert _frame(r"C:\clients\adapter.py:3 in run", "clients/adapter.py")
    assert _frame(here, "clients/adapter.mjs", ("node", str(runner))) == ""
    assert _frame("/lib/client.mjs:41 in add", "", ("node", str(runner))) == ""
    assert _frame("", "adapter.mjs") == ""


def test_an_answer_without_a_mistake_is_not_the_adapters() -> None:
    """An error where one is required is right, wherever it is raised."""
    answer = Answer(Outcome(errors=(Trouble("cut", raised="adapter.py:3 in run"),)))
    one = case(CALL, "chat", quirk="sse-cut:eof")
    judgement = judge(one, answer.outcome, Policy())
    assert AdapterFrames("adapter.py", ()).of(answer, judgement) == ""


def test_values_that_json_has_not() -> None:
    """They are written as text, so that a file can always be written."""
    given = {"a": (1, float("nan")), 2: {"b": float("-inf"), "c": b"x"}}
    assert json_value(given) == {"a": [1, "nan"], "2": {"b": "-inf", "c": "b'x'"}}


def test_streams() -> None:
    """At the level of bytes what the client reads, else what the server writes."""
    huge = case(CALL, "chat", quirk="sse-huge-event")
    assert max(map(len, stream_of(huge, "bytes").writes)) <= 16 * 1024
    assert stream_of(huge, "http").writes == huge.answer.data
    cut = stream_of(case(CALL, "chat", quirk="sse-cut:reset"), "http")
    assert (cut.ending, cut.status, cut.times) == ("reset", 200, ())
    assert ("content-type", "text/event-stream; charset=utf-8") in cut.headers


def test_commands_are_quoted() -> None:
    """They can be pasted into a shell."""
    setting = Setting(("node", "my runner.mjs"), ("--api", "chat"), ("my scenarios",))
    line = (
        "mockllm check --api chat --scenarios 'my scenarios' --only 'a~b' -- node 'my runner.mjs'"
    )
    assert check_command(setting, "a~b") == line
    assert show_command(setting, "a~b") == "mockllm show 'a~b' --scenarios 'my scenarios'"


@pytest.mark.slow
def test_commit(tmp_path: Path) -> None:
    """The commit of a checkout, marked where a file differs; "" without one."""
    assert source_commit(tmp_path) == ""

    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", *identity, "-C", str(tmp_path), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("init")
    except FileNotFoundError:
        pytest.skip("git is not here")
    assert source_commit(tmp_path) == ""
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-m", "a", "--no-gpg-sign")
    commit = git("rev-parse", "HEAD")
    assert commit.startswith(source_commit(tmp_path))
    (tmp_path / "a").write_text("2")
    assert source_commit(tmp_path).endswith("-dirty")


def test_no_commit_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without git is no error."""
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert source_commit(tmp_path) == ""
