"""The kit finds what a client gets wrong, names it rightly, and makes it small."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mockllm.checking import Delta, Outcome, Policy, cases, check, examine, examine_bodies
from mockllm.checking.cases.compile import case
from mockllm.checking.reports.check import shrunk, told
from mockllm.checking.reports.reproduction import reproduction
from mockllm.errors import UsageError
from mockllm.quirks.samples import SAMPLES, TEXT_AND_CALL, TWO_CALLS
from mockllm.replay.loading import load, loads
from mockllm.scenario.shipped import shipped_scenarios
from tests.checking.naive import Naive

SCENARIOS = load([shipped_scenarios()])


class ById(Naive):
    """Keeps calls by their id, which only the first fragment has."""

    def key(self, entry: dict[str, Any]) -> Any:
        return entry.get("id") or ""


class Changing(Naive):
    """Writes into what it is handed."""

    def entry(self, entry: dict[str, Any]) -> None:
        super().entry(entry)
        entry["seen"] = True


class Breaking(Naive):
    """Breaks on the second chunk."""

    def feed(self, chunk: Any, event: str | None = None) -> Delta:
        if self.text:
            raise KeyError("content")
        return super().feed(chunk, event)


_STAGE: dict[Any, list[str]] = {}


class Sharing(Naive):
    """Has one stage for all streams."""

    def __init__(self) -> None:
        super().__init__()
        if len(_STAGE) > 300:
            _STAGE.clear()
        self.calls = _STAGE

    def outcome(self) -> Outcome:
        told = super().outcome()
        if self.over:
            _STAGE.clear()
        return told


def _broken(client: Any, **options: Any) -> set[str]:
    policy = options.pop("policy", Policy())
    found = cases("chat", SCENARIOS, variations=2, quirks=False, level="payloads")
    return set(examine(client, found, policy).broken())


@pytest.mark.slow
def test_who_is_right_is_not_blamed() -> None:
    """A client that is right for plain streams passes all of them, however they are cut."""
    report = check(Naive, SCENARIOS, api="chat", variations=10, policy=Policy(intermediate=True))
    assert report.runs > 300


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "invariant"),
    [
        (ById, "arguments-concatenate"),
        (Changing, "input-untouched"),
        (Breaking, "null-tolerant"),
        (Sharing, "stage-empties"),
    ],
)
def test_a_mistake_has_its_own_name(client: Any, invariant: str) -> None:
    """One mistake is told under one name, however many cases show it."""
    assert _broken(client) == {invariant}


def test_what_only_a_quirk_shows_is_blamed_on_what_the_quirk_tests() -> None:
    """The plain stream is right, so the quirk's invariant is what is broken."""
    plain = case(TEXT_AND_CALL, "chat")
    odd = case(TEXT_AND_CALL, "chat", quirk="chat-name-repeated")

    class Appending(Naive):
        def entry(self, entry: dict[str, Any]) -> None:
            super().entry(entry)
            call = self.calls[self.key(entry)]
            if call[2]:
                call[1] += entry["function"].get("name") or ""

    report = examine(Appending, [plain, odd])
    (failure,) = report.failures
    assert (failure.invariant, failure.case.name) == ("name-kept", odd.name)


def test_a_failure_is_made_small(tmp_path: Path) -> None:
    """Of a long answer, the smallest scenario that shows the mistake is left."""
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
    report = examine(ById, cases("chat", [scenario], variations=3, quirks=False))
    small = shrunk(report, ById).failures[0].shrunk
    assert small is not None
    (turn,) = small.scenario.turns
    assert len(turn.reply) == 1
    assert len(small.chunks) <= 5
    words = told(shrunk(report, ById), ById)
    assert "arguments-concatenate" in words
    assert "test_arguments_concatenate_chat_long.py" in words


@pytest.mark.slow
def test_a_failure_can_be_played_again(tmp_path: Path) -> None:
    """The two files that are written out fail in the same way, in another process."""
    report = shrunk(examine(ById, [case(TWO_CALLS, "chat")]), ById)
    files = reproduction(report.failures[0], ById)
    (tmp_path / files.scenario_name).write_text(files.scenario)
    (tmp_path / files.test_name).write_text(files.test)
    assert len([line for line in files.test.splitlines() if line.strip()]) <= 6
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 1, done.stdout
    assert "breaks arguments-concatenate" in done.stdout


@pytest.mark.slow
def test_a_seed_gives_the_same_cases() -> None:
    """The cases follow from the seed, and from nothing else."""
    names = [[c.name for c in cases("chat", SCENARIOS, variations=2, seed=s)] for s in "112"]
    assert names[0] == names[1] != names[2]


def test_bodies_are_compared_with_streams() -> None:
    """A client that reads a plain answer wrongly breaks `stream-equals-body`."""

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
    assert examine_bodies(read, found).good
    wrong = examine_bodies(lambda body: Outcome.of("?"), found)
    assert set(wrong.broken()) == {"stream-equals-body"}


def test_an_unknown_api_is_told() -> None:
    """The message names those that there are."""
    with pytest.raises(UsageError, match="there is no API 'chats'; there are: chat, responses"):
        list(cases("chats", SCENARIOS))  # type: ignore[arg-type]


def test_a_tool_that_was_not_offered_is_among_the_cases() -> None:
    """Policies about unknown tools are put to the test, whatever scenarios there are."""

    class Choosy(Naive):
        def offer(self, tools: tuple[str, ...]) -> None:
            self.tools = tools

        def outcome(self) -> Outcome:
            told = super().outcome()
            kept = [call for call in told.tool_calls if call.name in self.tools]
            lost = [call.name for call in told.tool_calls if call.name not in self.tools]
            errors = [*told.errors, *(f"nobody offered {name}" for name in lost)]
            return replace(told, tool_calls=tuple(kept), errors=Outcome.of(errors=errors).errors)

    found = [each for each in cases("chat", []) if each.plain is None]
    assert found
    assert examine(Choosy, found, Policy(unknown_tool="error")).good
    assert set(examine(Naive, found, Policy(unknown_tool="skip")).broken()) == {"unknown-tool"}
