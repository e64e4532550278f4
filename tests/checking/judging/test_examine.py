"""The kit finds the mistake of a client, names the broken invariant, and shrinks the case."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from examples.accumulators import AnthropicAccumulator
from mockllm.checking import (
    Delta,
    Outcome,
    Policy,
    case_specs,
    cases,
    check,
    examine,
    examine_bodies,
)
from mockllm.checking.cases.build import case
from mockllm.checking.reports.check import report_text, reproduction, shrunk
from mockllm.core.errors import UsageError
from mockllm.play.quirks.samples import NOT_OFFERED, SAMPLES, TEXT_AND_CALL, TWO_CALLS
from mockllm.play.replay.loading import load, loads, shipped_scenarios
from tests.checking.naive import Naive
from tests.inner_pytest import ADDOPTS

SCENARIOS = load([shipped_scenarios()])


class KeyedById(Naive):
    """Keys calls by their id, which only the first fragment has."""

    def key(self, entry: dict[str, Any]) -> Any:
        return entry.get("id") or ""


class ChangesItsInput(Naive):
    """Writes into the payload that it is fed."""

    def entry(self, entry: dict[str, Any]) -> None:
        super().entry(entry)
        entry["seen"] = True


class RaisesOnSecondChunk(Naive):
    """Raises on the second chunk."""

    def feed(self, chunk: Any, event: str | None = None) -> Delta:
        if self.text:
            raise KeyError("content")
        return super().feed(chunk, event)


_STAGE: dict[Any, list[str]] = {}


class SharesItsStage(Naive):
    """Keeps one stage for all streams."""

    def __init__(self) -> None:
        super().__init__()
        if len(_STAGE) > 300:
            _STAGE.clear()
        self.calls = _STAGE

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        if self.closed:
            _STAGE.clear()
        return outcome


def _broken(client: Any, **options: Any) -> set[str]:
    policy = options.pop("policy", Policy())
    found = cases("chat", SCENARIOS, variations=2, quirks=False, level="payloads")
    return set(examine(client, found, policy).broken())


@pytest.mark.slow
def test_a_correct_client_passes_plain_streams() -> None:
    """A client that is correct for plain streams passes all of them, however they are cut."""
    report = check(Naive, SCENARIOS, api="chat", variations=10, policy=Policy(intermediate=True))
    assert report.runs > 300


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "invariant"),
    [
        (KeyedById, "arguments-concatenate"),
        (ChangesItsInput, "input-untouched"),
        (RaisesOnSecondChunk, "null-tolerant"),
        (SharesItsStage, "stage-empties"),
    ],
)
def test_a_mistake_breaks_one_invariant(client: Any, invariant: str) -> None:
    """One mistake breaks one invariant, however many cases show it."""
    assert _broken(client) == {invariant}


def test_a_failure_under_a_quirk_breaks_the_invariant_of_the_quirk() -> None:
    """A client that passes the plain case and fails with a quirk breaks the quirk's invariant."""
    plain = case(TEXT_AND_CALL, "chat")
    with_quirk = case(TEXT_AND_CALL, "chat", quirk="chat-name-repeated")

    class AppendsTheName(Naive):
        def entry(self, entry: dict[str, Any]) -> None:
            super().entry(entry)
            call = self.calls[self.key(entry)]
            if call[2]:
                call[1] += entry["function"].get("name") or ""

    report = examine(AppendsTheName, [plain, with_quirk])
    (failure,) = report.failures
    assert (failure.invariant, failure.case.name) == ("name-kept", with_quirk.name)


def test_a_failure_is_shrunk(tmp_path: Path) -> None:
    """A long answer is reduced to the smallest scenario that shows the mistake."""
    (scenario,) = loads(
        """
        scenario: long
        turns:
          - reply:
              - text: A text that is there for no reason.
                split: words
              - {tool: alpha, id: call_1, arguments: {one: 1, two: some words, three: [1, 2]}}
              - {tool: beta, id: call_2, arguments: {four: 4}, split: chars}
        """
    )
    report = examine(KeyedById, cases("chat", [scenario], variations=3, quirks=False))
    small = shrunk(report, lambda some: examine(KeyedById, some))
    shrunk_case = small.failures[0].shrunk
    assert shrunk_case is not None
    (turn,) = shrunk_case.scenario.turns
    assert len(turn.reply) == 1
    assert len(shrunk_case.chunks) <= 5
    text = report_text(small, KeyedById)
    assert "arguments-concatenate" in text
    assert "test_arguments_concatenate_chat_long.py" in text


@pytest.mark.slow
def test_the_files_of_a_failure_reproduce_it(tmp_path: Path) -> None:
    """The scenario and the test that the report writes fail in the same way in a new process."""
    report = examine(KeyedById, [case(TWO_CALLS, "chat")])
    report = shrunk(report, lambda some: examine(KeyedById, some))
    files = reproduction(report.failures[0], KeyedById)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    _, test = files.values()
    assert len([line for line in test.splitlines() if line.strip()]) <= 6
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *ADDOPTS.split(), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 1, done.stdout
    assert "breaks arguments-concatenate" in done.stdout


@pytest.mark.slow
def test_a_seed_gives_the_same_cases() -> None:
    """The same seed gives the same cases, and another seed gives others."""
    names = [[c.name for c in cases("chat", SCENARIOS, variations=2, seed=s)] for s in "112"]
    assert names[0] == names[1] != names[2]


def test_a_wrong_body_breaks_stream_equals_body() -> None:
    """A reader of bodies passes if it agrees with the stream, and else breaks one invariant."""

    def read(body: Any) -> Outcome:
        message = body["choices"][0]["message"]
        usage = body["usage"]
        calls = [
            (c["id"], c["function"]["name"], c["function"]["arguments"])
            for c in message.get("tool_calls") or []
        ]
        return Outcome.of(
            message["content"],
            refusal=message.get("refusal"),
            reasoning=message.get("reasoning_content"),
            tool_calls=calls,
            finish=body["choices"][0]["finish_reason"],
            usage=(usage["prompt_tokens"], usage["completion_tokens"]),
        )

    found = list(cases("chat", SAMPLES.values(), variations=0, quirks=False))
    assert examine_bodies(read, found, Policy(malformed="keep")).good
    failing = examine_bodies(lambda body: Outcome.of("?"), found)
    assert set(failing.broken()) == {"stream-equals-body"}


def test_an_unknown_api_is_an_error_that_lists_the_apis() -> None:
    """The message names the known APIs."""
    with pytest.raises(UsageError, match="there is no API 'chats'; there are: chat, responses"):
        list(cases("chats", SCENARIOS))  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_cases_call_a_tool_that_was_not_offered() -> None:
    """Policies for unknown tools are tested, even without scenarios."""

    class OfferedToolsOnly(Naive):
        def offer(self, tools: tuple[str, ...]) -> None:
            self.tools = tools

        def outcome(self) -> Outcome:
            outcome = super().outcome()
            kept = [call for call in outcome.tool_calls if call.name in self.tools]
            lost = [call.name for call in outcome.tool_calls if call.name not in self.tools]
            errors = [*outcome.errors, *(f"{name} was not offered" for name in lost)]
            return replace(outcome, tool_calls=tuple(kept), errors=Outcome.of(errors=errors).errors)

    found = [each for each in cases("chat", []) if each.scenario.name == NOT_OFFERED.name]
    assert found
    assert examine(OfferedToolsOnly, found, Policy(unknown_tool="error")).good
    assert set(examine(Naive, found, Policy(unknown_tool="skip")).broken()) == {"unknown-tool"}


class LastFragmentOnly(AnthropicAccumulator):
    """Writes `=` where `+=` is meant."""

    def feed(self, payload: Any, event: str | None = None) -> Any:
        if payload.get("delta", {}).get("type") == "text_delta" and not self._answer.failed:
            self._answer._texts["text"].clear()
        return super().feed(payload, event)


def test_the_plain_case_of_an_invariant_comes_first() -> None:
    """Not the smallest one, which has a rare form of a block and is written by hand."""
    specs = case_specs("anthropic", variations=2, level="payloads")
    failures = examine(LastFragmentOnly, (spec.compile() for spec in specs)).broken()
    first, *others = failures["text-accumulates"]
    assert first.case.name == "anthropic/sample-text"
    assert min(one.case.answer.size for one in others) < first.case.answer.size
