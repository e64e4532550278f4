"""How a client is attached to the kit: three small protocols, one for each level.

At the level of payloads a client is handed decoded events, at that of bytes what the network
gives, and over HTTP it is a whole client that is told a base URL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Call, Outcome

__all__ = ["ByteProbe", "Closing", "Delta", "Offering", "Probe", "Run", "Staging"]


@dataclass(frozen=True, slots=True)
class Delta:
    """What a client hands on for one chunk: fragments of text and reasoning, and the calls
    that became complete with it."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[Call, ...] = field(default=())


@runtime_checkable
class Probe(Protocol):
    """An accumulator of decoded events.

    A new one is made for each stream. `feed` gets the JSON value of one event (in Chat
    Completions a chunk; `[DONE]` is not handed in) and may return what the client hands on for
    it: a `Delta`, or the text of it, or None. `outcome` says what the stream adds up to so far;
    after the last event, what it adds up to.
    """

    def feed(self, payload: Any, event: str | None = None) -> Delta | str | None: ...

    def outcome(self) -> Outcome: ...


@runtime_checkable
class ByteProbe(Protocol):
    """An accumulator of bytes, cut anywhere; otherwise like `Probe`."""

    def feed(self, data: bytes) -> Delta | str | None: ...

    def outcome(self) -> Outcome: ...


@runtime_checkable
class Closing(Protocol):
    """A probe that wants to be told that nothing more comes, before it is asked for the end."""

    def close(self) -> None: ...


@runtime_checkable
class Staging(Protocol):
    """A probe that tells how many calls it has begun that are not complete yet."""

    def pending(self) -> int: ...


@runtime_checkable
class Offering(Protocol):
    """A probe that wants to know the names of the tools that were offered."""

    def offer(self, tools: tuple[str, ...]) -> None: ...


Run: TypeAlias = Callable[[str, Case], Outcome]
"""A whole client: asks the base URL for a streamed answer to the case's prompt, offering its
tools, and says what it made of it. What it raises is taken as the error that it reports."""
