"""The attachment of a client to the kit: one small protocol for each level.

A `Probe` takes decoded events, a `ByteProbe` takes bytes as they come from the network, and a
`Run` is a whole client that gets a base URL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Call, Outcome


class Tool(str):
    """A tool that the request offers. It equals its name, so that a probe may use it as one."""

    __slots__ = ("description", "parameters")

    description: str
    parameters: Any

    def __new__(cls, name: str, description: str = "", parameters: Any = None) -> Self:
        tool = super().__new__(cls, name)
        tool.description = description
        tool.parameters = parameters
        return tool

    @property
    def name(self) -> str:
        """The name."""
        return str(self)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment of the arguments of a call, as a client passes it on.

    Args:
        arguments: the new text alone.
        id, name: of the call, as far as the client knows them.
        index: the position of the call among those of the answer, from 0.
    """

    arguments: str
    id: str | None = None
    name: str | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """The parts that a client passes on after one chunk.

    Args:
        tool_calls: the calls that became complete with this chunk.
        tool: the new fragments of the arguments of calls.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[Call, ...] = field(default=())
    tool: tuple[Fragment, ...] = field(default=())


@runtime_checkable
class Probe(Protocol):
    """An accumulator of decoded events; the kit makes a new one for each stream.

    `feed` takes the JSON value of one event (in Chat Completions a chunk; `[DONE]` is left out)
    and may return what the client passes on: a `Delta`, or only its text, or None. `outcome`
    returns the answer so far; after the last event, the final one.

    It may have three methods more: `offer` gets the offered tools, a tuple of `Tool`s, before the
    first `feed`; `close` is called after the last one, and before `outcome`; `pending` returns how
    many calls have begun and are not complete yet.
    """

    def feed(self, payload: Any, event: str | None = None) -> Delta | str | None: ...

    def outcome(self) -> Outcome: ...


@runtime_checkable
class ByteProbe(Protocol):
    """An accumulator of bytes, which may be cut anywhere; otherwise like `Probe`."""

    def feed(self, data: bytes) -> Delta | str | None: ...

    def outcome(self) -> Outcome: ...


Run: TypeAlias = Callable[[str, Case], Outcome]
"""A whole client: requests a streamed answer to the case's prompt at the base URL, offers the
case's tools, and returns the outcome. An exception counts as an error that it reports."""
