"""Requests that a recorded service accepted although the API that it speaks refuses them.

Servers that speak OpenAI's or another API (vLLM, Ollama, llama.cpp) are often less strict than the
original, and their clients rely on that. A request that the recorded service answered is no mistake
when a client sends it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from mockllm.core.http import Target
from mockllm.errors import MockLLMError, RequestError
from mockllm.protocols.base import WireProtocol
from mockllm.replay.compilation.tape_player import load
from mockllm.scenario.model import Recorded
from mockllm.tapes.captured import detected


@dataclass(frozen=True, slots=True)
class AcceptedRequest:
    """The request of a recorded turn, as the client sent it."""

    target: Target
    body: bytes


def accepted_request(recorded: Recorded, protocol: WireProtocol) -> AcceptedRequest | None:
    """The request of a recorded turn; None where it is of another API, or its tape unreadable."""
    try:
        captured = load(recorded).exchange
    except (OSError, MockLLMError):
        return None  # playing the turn reports it
    sent = detected(captured)
    if sent.protocol is not protocol:
        return None
    return AcceptedRequest(sent.target, captured.request_body)


def same_refusal(one: RequestError, other: RequestError) -> bool:
    """Whether two refusals have the same reason: the same field, or without one, the same text."""
    if one.param is None:
        return one.message == other.message
    return (one.param, one.code) == (other.param, other.code)
