"""One case: a stream, and the outcome that a correct client reaches. Only data may live here."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Literal, TypeAlias

from mockllm.checking.cases.scenarios import PLAIN, Variation
from mockllm.checking.outcome import Outcome, is_kept
from mockllm.play.quirks.base import Right
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.scenario.model import Api, Scenario, ToolSpec

Cancel = Literal["", "leave", "call", "drop"]
"""How a client is cancelled; "" for not at all."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A decoded event: its data as a JSON value, and the value of its `event:` line."""

    value: Any
    event: str | None = None


Decoded: TypeAlias = list[tuple[Any, str | None]]
"""The JSON value and the `event:` line of each event."""


class Events:
    """The events of a stream, decoded when they are first needed: not for clients of bytes."""

    __slots__ = ("_decode", "_stored")

    def __init__(self, decode: Callable[[], Decoded]) -> None:
        self._decode = decode
        self._stored = b""

    @property
    def decoded(self) -> Decoded:
        """The events as a new copy, which a client may change."""
        if not self._stored:
            # The fastest deep copy of JSON values in the standard library.
            self._stored = marshal.dumps(self._decode())
        copy: Decoded = marshal.loads(self._stored)  # noqa: S302 - written by the line above
        return copy


Level = Literal["payloads", "bytes"]
"""What a client gets of a stream: decoded events, or its bytes."""

MODEL = "mock-model"
"""The model that clients request."""

_READ = 16 * 1024
"""The most bytes that a client of a case gets at once: the largest TLS record (RFC 8446, 5.1), and
about what HTTP clients read at once."""


@dataclass(frozen=True, slots=True)
class Case:
    """A stream as one client receives it.

    Args:
        name: unique among the cases of an API; see `build.case_name`.
        scenario: has one turn, the answer; playing it gives exactly these bytes.
        events: its decoded events, without `[DONE]`; None where the case is special only in its
            bytes.
        expected: the outcome of a correct client. Its `tool_calls` include those whose arguments
            do not parse, with the arguments as text.
        finish_values: every value of `Outcome.finish` that is correct.
        reaction: whether a correct client reaches `expected` (`same`), reports an error
            (`error`), or does one of the two (`either`).
        invariant: the one that a client breaks if it fails this case, but not the plain one.
        plain: the same answer without variation and quirk; None if this is the plain case.
        variation, quirk: how this case differs from the plain one; the quirk as `NAME` or
            `NAME:VARIANT`.
        ids: whether the stream carries the call ids of `expected`; if not, a client may use any.
        custom: the names and ids of the calls of custom tools. These calls, whose input is text
            and no JSON, are not judged.
        body: the same answer, not streamed, as a JSON value; None if it has no such form.
        tolerated: other outcomes that are acceptable, however calls with malformed arguments
            are dealt with under the client's policy.
        rules: the rules of resilience that it can judge; () where it is judged by its outcome.
        cut: where the stream breaks off; None where it does not.
        fault: what is broken besides, over HTTP; None for nothing.
        deadline: seconds after which a whole client is to have answered a case with a fault.
        tries, idle_timeout: the settings that it should have then, the latter in seconds.
        requests: how often it sends the prompt then; `together`: at the same time.
        cancel: how it cancels then, once the first piece of the answer has come: it leaves the loop
            and keeps the stream (`leave`), calls what the client has for that (`call`), or drops
            the stream where it is (`drop`); "" for not at all.
    """

    name: str
    api: Api
    scenario: Scenario
    prompt: str
    tools: tuple[ToolSpec, ...]
    answer: HttpAnswer = field(repr=False)
    events: Events | None = field(repr=False)
    expected: Outcome
    finish_values: frozenset[str] = frozenset()
    reaction: Right = "same"
    invariant: str = "chunking-free"
    plain: Case | None = field(default=None, repr=False)
    variation: Variation = PLAIN
    quirk: str = ""
    ids: bool = True
    custom: frozenset[str] = frozenset()
    model: str = MODEL
    body: Any = field(default=None, repr=False)
    tolerated: tuple[Outcome, ...] = ()
    rules: tuple[str, ...] = ()
    cut: Cut | None = field(default=None, repr=False)
    fault: CaseFault | None = None
    deadline: float = 10.0
    tries: int = 3
    idle_timeout: float = 0.3
    requests: int = 1
    together: bool = False
    cancel: Cancel = ""

    @property
    def malformed(self) -> bool:
        """Whether the whole stream has a call whose arguments are no JSON object."""
        return any(not isinstance(call.arguments, dict) for call in self.expected.tool_calls)

    @property
    def payloads(self) -> tuple[Payload, ...] | None:
        """The decoded events as a new copy, which the caller may change."""
        if self.events is None:
            return None
        return tuple(Payload(value, event) for value, event in self.events.decoded)

    @property
    def chunks(self) -> tuple[bytes, ...]:
        """The bytes of the answer, cut as the server sends them; an HTTP client reads a long
        part in several reads."""
        if self.answer.size <= _READ:
            return self.answer.data
        return tuple(
            part[start : start + _READ]
            for part in self.answer.data
            for start in range(0, len(part), _READ)
        )

    def expects(self, field: str) -> bool:
        """Whether a correct client has a value of a field of the outcome, or of calls: `call_id` or
        `raw_arguments`."""
        if field == "call_id":
            return any(call.id for call in self.expected.tool_calls)
        if field == "raw_arguments":
            return any(is_kept(call.raw_arguments) for call in self.expected.tool_calls)
        value = getattr(self.expected, field)
        return is_kept(value) and value not in (None, (), "")

    def byte_chunks(self, *sizes: int) -> Iterator[bytes]:
        """The bytes of the answer, cut into chunks of these sizes, repeated in a cycle.

        Without sizes, the chunks are those of the case.
        """
        return iter(self.chunks) if not sizes else recut(self.chunks, sizes)


Ending = Literal["orderly", "close"]
Place = Literal[
    "before-first-event",
    "between-events",
    "inside-event",
    "inside-character",
    "before-blank-line",
    "whole",
]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a stream breaks off, and what came before.

    Args:
        whole: the case whose stream it is.
        size: the bytes that came.
        place: where it is cut; `whole` if it is not.
        events: how many came as a whole.
        content_complete: whether the whole content of the answer came, with its finish reason.
        begun: how many calls have begun.
        ended: of each call whose end was sent, name and arguments, as `call_key` has them.
        last_event: the data of the last event that came as a whole; "" if none did.
        rest: the bytes behind it.
        ending: over HTTP, how the answer ends: `orderly`, with the last HTTP chunk, or `close`.
    """

    whole: Case
    size: int
    place: Place
    events: int = 0
    content_complete: bool = False
    begun: int = 0
    ended: tuple[str, ...] = ()
    last_event: str = ""
    rest: bytes = b""
    ending: Ending = "orderly"

    @property
    def chunks(self) -> tuple[bytes, ...]:
        """The bytes that came, cut as the server sends them."""
        found: list[bytes] = []
        remaining = self.size
        for chunk in self.whole.chunks:
            found += [chunk[:remaining]] if remaining > 0 else []
            remaining -= len(chunk)
        return tuple(found)

    @property
    def name(self) -> str:
        """The cut in one word, such as `chat/cut-call@385`: the number of bytes follows `@`."""
        ending = "+close" if self.ending == "close" else ""
        return f"{self.whole.api}/{self.whole.scenario.name}@{self.size}{ending}"


@dataclass(frozen=True, slots=True)
class CaseFault:
    """The fault of a case, and the sign by which a client's reaction shows.

    Args:
        title: what happens, in a sentence.
        texts: the faults of every answer, besides those of the scenario, as `--fault` has them.
        kinds: the kinds of error that name the cause.
        wait: what `retry-after` says, in seconds.
        final: the code of the error, for clients that call it final.
    """

    title: str
    texts: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    wait: float = 0.0
    final: str = ""


def recut(chunks: Iterable[bytes], sizes: Iterable[int]) -> Iterator[bytes]:
    """The same bytes in chunks of other sizes, repeated in a cycle."""
    data = b"".join(chunks)
    start = 0
    for size in cycle(sizes):
        if start >= len(data):
            return
        yield data[start : start + size]
        start += size
