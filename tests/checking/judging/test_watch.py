"""The state of a client after every chunk, and what it hands on: `Policy(intermediate=True)`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from examples.accumulators import REFERENCES
from examples.accumulators.chat import ChatAccumulator
from mockllm.checking import Delta, Fragment, Policy, examine
from mockllm.checking.cases.build import case
from mockllm.core.errors import ProbeError
from mockllm.play.quirks.samples import CALL, INTERLEAVED, TWO_CALLS, TWO_SAME
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import CALLING
from tests.checking.naive import Naive

EVERY_CHUNK = Policy(intermediate=True)
CASES = [case(one, "chat") for one in (CALL, TWO_CALLS, TWO_SAME, INTERLEAVED)]


class Altered(ChatAccumulator):
    """Alters the fragments of arguments that it hands on."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        return None if delta is None else replace(delta, tool=self.altered(delta.tool))

    def altered(self, fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
        return fragments


class HandsOnSums(Altered):
    """Hands on the arguments so far, and not the fragment of the chunk."""

    def __init__(self) -> None:
        super().__init__()
        self.sums: dict[int | None, str] = {}

    def altered(self, fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
        for fragment in fragments:
            self.sums[fragment.index] = self.sums.get(fragment.index, "") + fragment.arguments
        return tuple(
            replace(fragment, arguments=self.sums[fragment.index]) for fragment in fragments
        )


class HandsOnTwice(Altered):
    """Hands on every fragment twice."""

    def altered(self, fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
        return fragments * 2


class LosesTheFirst(Altered):
    """Hands on nothing for the first fragment."""

    seen = False

    def altered(self, fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
        first, self.seen = not self.seen and bool(fragments), self.seen or bool(fragments)
        return () if first else fragments


class HandsOnToTheFirstCall(Altered):
    """Hands on all fragments as those of the first call."""

    def altered(self, fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
        return tuple(replace(fragment, index=0, id=None) for fragment in fragments)


@pytest.mark.parametrize("client", [HandsOnSums, HandsOnTwice, LosesTheFirst])
def test_fragments_of_arguments_join_to_the_arguments(client: Any) -> None:
    """Fragments that are handed on are each chunk's own, and none is lost."""
    report = examine(client, CASES, EVERY_CHUNK)
    assert set(report.broken()) == {"delta-is-fragment"}
    assert "the fragments of the arguments of get_weather join to" in str(report.failures[0])


def test_fragments_belong_to_their_call() -> None:
    """Fragments of one call that are handed on as those of another are found."""
    report = examine(HandsOnToTheFirstCall, CASES, EVERY_CHUNK)
    assert set(report.broken()) == {"delta-is-fragment"}


def test_fragments_are_not_judged_without_a_look_at_every_chunk() -> None:
    """Without `intermediate` only the end is judged."""
    assert examine(HandsOnSums, CASES).good


IN_FRAGMENTS = [api for api in CALLING if PROTOCOLS[api].zero_arguments is not None]


@pytest.mark.parametrize("api", IN_FRAGMENTS)
def test_the_references_hand_on_fragments(api: Any) -> None:
    """The correct accumulators hand on fragments that join to the arguments. Gemini and Ollama send
    the arguments of a call as one object, so they have no fragments."""
    found = [case(one, api) for one in (CALL, TWO_CALLS, TWO_SAME)]
    handed_on: list[Fragment] = []

    class Records(REFERENCES[api]):  # type: ignore[misc]  # a class of a table
        def feed(self, payload: Any, event: str | None = None) -> Delta | None:
            delta: Delta | None = super().feed(payload, event)
            handed_on.extend(delta.tool if delta is not None else ())
            return delta

    assert examine(Records, found, EVERY_CHUNK).good
    assert handed_on


@pytest.mark.parametrize("keys", [("id",), ("index",), ("id", "name"), ()])
def test_a_client_names_the_call_of_a_fragment_as_it_can(keys: tuple[str, ...]) -> None:
    """Id, index or name are each enough; with a single call, none is needed."""

    class Names(Altered):
        def altered(self, fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
            kept = ({key: getattr(fragment, key) for key in keys} for fragment in fragments)
            texts = (fragment.arguments for fragment in fragments)
            return tuple(Fragment(text, **key) for text, key in zip(texts, kept, strict=True))

    found = CASES if keys else CASES[:1]
    assert examine(Names, found, EVERY_CHUNK).good


@pytest.mark.parametrize(
    "value",
    [5, {"text": "Hel"}, Delta(text=5), Delta(tool=("{",)), Delta(tool_calls=({},))],  # type: ignore[arg-type]
    ids=repr,
)
def test_feed_returns_a_delta_a_text_or_nothing(value: Any) -> None:
    """Anything else is an error of the probe, which names what may be returned."""

    class Returns(Naive):
        def feed(self, chunk: Any, event: str | None = None) -> Any:
            super().feed(chunk, event)
            return value

    with pytest.raises(ProbeError, match=r"feed must return a mockllm.checking.Delta, the new"):
        examine(Returns, CASES, EVERY_CHUNK)
