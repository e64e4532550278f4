"""One case: a stream, and what a correct client makes of it. Only data may live here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from mockllm.checking.cases.variation import PLAIN, Variation
from mockllm.checking.outcome import Outcome
from mockllm.quirks.base import Right
from mockllm.replay.answer import Answer
from mockllm.scenario.model import Api, Scenario, ToolSpec

__all__ = ["Case", "Events", "Payload", "recut"]


@dataclass(frozen=True, slots=True)
class Payload:
    """A decoded event: its data as a JSON value, and its `event:` line."""

    value: Any
    event: str | None = None


class Events:
    """Decoded events (JSON value, `event:` line) to be fed to one client after another.

    They are not copied for each, which would cost more than the rest of a case, but looked at
    afterwards: `restore` says whether a client changed them, and makes them what they were.
    """

    __slots__ = ("_pristine", "fed")

    def __init__(self, fed: list[tuple[Any, str | None]]) -> None:
        self.fed = fed
        self._pristine = [(copied(value), event) for value, event in fed]

    def restore(self) -> bool:
        """Whether anything had changed; it has not any more."""
        if self.fed == self._pristine:
            return False
        self.fed = [(copied(value), event) for value, event in self._pristine]
        return True


def copied(value: Any) -> Any:
    """A JSON value that shares nothing changeable with another."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(copied, value))
    return value


@dataclass(frozen=True, slots=True)
class Case:
    """A stream as one client gets it.

    Args:
        name: what the case is, in words that find it again: scenario, API, variation, quirk.
        api: the protocol that is spoken.
        scenario: has one turn, which is the answer; playing it gives these very bytes.
        prompt: what the user says.
        tools: what the client offers.
        answer: the compiled answer.
        events: its decoded events, without `[DONE]`; None where the case shows at the level of
            bytes only.
        expected: what the stream means; `tool_calls` hold those with arguments that do not
            parse, too, with the arguments as text.
        finishes: the words that are right for `Outcome.finish`.
        right: whether a correct client comes to `expected`, reports an error, or does either.
        invariant: what a client breaks that gets only this case wrong, not the plain one.
        plain: the same answer without variation and quirk; None where this is it.
        variation, quirk: what was done to the plain one; the quirk as `NAME` or `NAME:VARIANT`.
        ids: whether the calls' ids are those of `expected`; otherwise none are sent.
        model: what the request names as its model.
        body: the same answer, not streamed, as a JSON value; None where it has no such form.
    """

    name: str
    api: Api
    scenario: Scenario
    prompt: str
    tools: tuple[ToolSpec, ...]
    answer: Answer = field(repr=False)
    events: Events | None = field(repr=False)
    expected: Outcome
    finishes: frozenset[str] = frozenset()
    right: Right = "same"
    invariant: str = "chunking-free"
    plain: Case | None = field(default=None, repr=False)
    variation: Variation = PLAIN
    quirk: str = ""
    ids: bool = True
    model: str = "mock-model"
    body: Any = field(default=None, repr=False)

    @property
    def payloads(self) -> tuple[Payload, ...] | None:
        """The decoded events, made anew each time: whoever gets them may change them."""
        if self.events is None:
            return None
        return tuple(Payload(copied(value), event) for value, event in self.events.fed)

    @property
    def chunks(self) -> tuple[bytes, ...]:
        """The bytes of the answer, cut as they arrive."""
        return self.answer.data

    def byte_chunks(self, *sizes: int) -> Iterator[bytes]:
        """The bytes of the answer cut into chunks of these sizes, over and over.

        Without sizes, they come as the case cuts them.
        """
        return iter(self.chunks) if not sizes else recut(self.chunks, sizes)


def recut(chunks: Iterable[bytes], sizes: Iterable[int]) -> Iterator[bytes]:
    """The same bytes in chunks of other sizes, over and over."""
    data = b"".join(chunks)
    start = 0
    for size in cycle(sizes):
        if start >= len(data):
            return
        yield data[start : start + size]
        start += size
