"""What follows from requests alone, kept for when they come again. Only data may live here."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from mockllm.core.request import Request
from mockllm.matching.select import Pick
from mockllm.replay.answer import Answer
from mockllm.scenario.model import TurnSpec

__all__ = ["Decision", "RequestCache"]


@dataclass(slots=True)
class Decision:
    """What follows from a request alone, and the answer once it has been asked for.

    Args:
        lasting: whether nothing of its session went into it.
        recorded, problems: of the answer, as the journal's exchange has them.
    """

    request: Request
    picked: Pick
    spec: TurnSpec
    quirks: tuple[str, ...] = ()
    lasting: bool = True
    answer: Answer | None = None
    recorded: str = ""
    problems: tuple[str, ...] = ()


class RequestCache:
    """The decisions of requests that came before, by everything that they depend on.

    Clients repeat themselves: retries, tests in a loop, many users of one prompt. Kept only
    while small, for the answers have a cache of their own.
    """

    _MOST = 1024
    _LARGEST = 64 * 1024

    def __init__(self) -> None:
        self._plans: dict[Hashable, Decision] = {}

    def get(self, key: Hashable) -> Decision | None:
        """The decision of a request that came before."""
        return self._plans.get(key)

    def keep(self, key: tuple[str | bytes | None, ...], decision: Decision) -> None:
        """Remembers a decision, if it is worth the memory."""
        if sum(len(piece) for piece in key if piece is not None) > self._LARGEST:
            return
        if len(self._plans) >= self._MOST:
            self._plans.clear()
        self._plans[key] = decision
