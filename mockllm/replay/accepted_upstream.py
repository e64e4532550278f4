"""What a recorded service was asked: it may take what the API of that name refuses.

Servers that speak another's API are often less strict than it is, and clients of theirs rightly
rely on that. What was asked when a turn was recorded is no mistake when it is asked again.
"""

from __future__ import annotations

from dataclasses import dataclass

from mockllm.core.target import Target
from mockllm.errors import MockLLMError, RequestError
from mockllm.protocols.base import WireProtocol
from mockllm.replay.tape_player import load
from mockllm.scenario.model import Recorded
from mockllm.tapes.conversion import captured_of, detected

__all__ = ["AcceptedRequest", "same_refusal", "accepted_request"]


@dataclass(frozen=True, slots=True)
class AcceptedRequest:
    """A request that a service has answered: as it was sent."""

    target: Target
    body: bytes


def accepted_request(recorded: Recorded, protocol: WireProtocol) -> AcceptedRequest | None:
    """The request of a recorded turn; None where it came over another API, or is not there."""
    try:
        captured = captured_of(load(recorded))
    except (OSError, MockLLMError):
        return None  # whoever plays the turn is told
    found = detected(captured)
    if found.protocol is not protocol:
        return None
    return AcceptedRequest(found.target, captured.request_body)


def same_refusal(one: RequestError, other: RequestError) -> bool:
    """Whether two refusals are about the same: the same field, or if none, in the same words."""
    if one.param is None:
        return one.message == other.message
    return (one.param, one.code) == (other.param, other.code)
