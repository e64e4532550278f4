"""One case: a stream, and what a correct client makes of it. Only data may live here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mockllm.checking.outcome import Outcome
from mockllm.quirks.base import Right
from mockllm.scenario.model import Api, Scenario, ToolSpec
from mockllm.sse import Frame

__all__ = ["Case", "Payload"]


@dataclass(frozen=True, slots=True)
class Payload:
    """A decoded event: its data as a JSON value, and its `event:` line."""

    value: Any
    event: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A stream as one client gets it.

    Args:
        name: what the case is, in words that find it again: scenario, API, variation, quirk.
        api: the protocol that is spoken.
        scenario: has one turn, which is the answer; playing it gives these very bytes.
        prompt: what the user says.
        tools: what the client offers.
        chunks: the bytes as they arrive, cut as they arrive.
        frames: the same as SSE events and comments, as a decoder by the rules gives them.
        payloads: the same as decoded events, without `[DONE]`; None where an event has no JSON
            in it, so that the case shows at the level of bytes only.
        expected: what the stream means.
        right: whether a correct client comes to `expected`, reports an error, or does either.
        invariant: what a client breaks that gets only this case wrong, not the plain one.
        plain: the same answer without variation and quirk; None where this is it.
        ids: whether the calls' ids are those of `expected`; otherwise any unique ones are right.
        model: what the request names as its model.
    """

    name: str
    api: Api
    scenario: Scenario
    prompt: str
    tools: tuple[ToolSpec, ...]
    chunks: tuple[bytes, ...] = field(repr=False)
    frames: tuple[Frame, ...] = field(repr=False)
    payloads: tuple[Payload, ...] | None = field(repr=False)
    expected: Outcome
    right: Right = "same"
    invariant: str = "chunking-free"
    plain: Case | None = field(default=None, repr=False)
    ids: bool = True
    model: str = "mock-model"
