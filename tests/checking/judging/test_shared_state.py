"""Streams of one client must not disturb each other: not at once, and not one after another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mockllm.checking import Delta, Outcome, Policy, examine
from mockllm.checking.cases.build import case
from mockllm.checking.judging.running import run_together
from mockllm.play.quirks.samples import TEXT_AND_CALL, TWO_CALLS
from tests.checking.naive import Naive

ONE, OTHER = case(TWO_CALLS, "chat"), case(TEXT_AND_CALL, "chat")


class KeepsUntilTheEnd(Naive):
    """Keeps the calls of all streams by the id of the answer, and forgets them at the end.

    Streams with different ids do not disturb each other. What a stream leaves that is abandoned
    before its end is in the next answer with its id.
    """

    kept: dict[str, dict[Any, list[str]]]

    def feed(self, chunk: Any, event: str | None = None) -> Delta:
        self.calls = self.kept.setdefault(chunk["id"], self.calls)
        delta = super().feed(chunk, event)
        if self.finish:
            self.kept.pop(chunk["id"], None)
        return delta


class KeepsTheLatest(Naive):
    """Keeps the calls of one stream at a time, which is right until two run at once."""

    kept: dict[Any, list[str]]

    def __init__(self) -> None:
        super().__init__()
        type(self).kept = {}

    def delta(self, delta: dict[str, Any]) -> None:
        self.calls = type(self).kept
        super().delta(delta)


class TakesAWord(Naive):
    """Its second stream begins with what another one has left."""

    left: tuple[str, ...] = ("", "left over")

    def __init__(self) -> None:
        super().__init__()
        self.word, type(self).left = next(iter(self.left), ""), self.left[1:]

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=self.word + outcome.text)


def test_a_stream_that_is_right_when_played_again_shows_shared_state() -> None:
    """What another stream has left is in one stream alone, whatever that stream tests."""
    assert set(examine(type("Fresh", (TakesAWord,), {}), [ONE, OTHER]).broken()) == {
        "stage-empties"
    }


@pytest.mark.parametrize("sharing", [KeepsUntilTheEnd, KeepsTheLatest])
def test_streams_that_share_state_are_found(sharing: type[Naive]) -> None:
    """A stream that was abandoned disturbs the next one, or two streams at once each other."""

    fresh = type("Fresh", (sharing,), {"kept": {}})
    found = run_together(fresh, ONE, OTHER, Policy(), "payloads")
    assert found
    assert {difference.invariant for difference in found} == {"stage-empties"}
    assert all(one.description.startswith("streams disturb each other: ") for one in found)
    assert set(examine(fresh, [ONE, OTHER]).broken()) == {"stage-empties"}


def test_streams_with_a_state_of_their_own_are_right() -> None:
    """A client without shared state has no difference."""
    assert run_together(Naive, ONE, OTHER, Policy(), "payloads") == []
    assert examine(Naive, [ONE, OTHER]).good
