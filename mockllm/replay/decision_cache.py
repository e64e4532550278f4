"""The cache of decisions: which turn answers a request. Only data may live here."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from mockllm.core.request import Request
from mockllm.matching.select import Selection
from mockllm.replay.call import Answered
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.model import TurnSpec


@dataclass(slots=True)
class Decision:
    """Which turn answers a request, and what it got once that was made.

    Args:
        spec: the turn, as the protocol of the request plays it.
        quirks: that the server and the request add to those of the turn.
        lasting: whether it depends on the request alone, not on the session.
        faults: those that the request asks for; the turn's own are in `spec`, too.
    """

    request: Request
    selection: Selection
    spec: TurnSpec
    quirks: tuple[str, ...] = ()
    lasting: bool = True
    path: str = ""
    faults: tuple[Fault, ...] = ()
    answered: Answered | None = None


RequestKey = tuple[str | bytes | None, ...]
"""All parts of a request that a decision depends on."""


class RequestCache:
    """Decisions by all parts of the request that they depend on.

    Clients repeat requests: in retries, in loops of tests, in load tests. The cache is cleared when
    it is full. The largest requests are not kept, and other large ones from their second time on:
    most never come again, and would be what fills the memory.
    """

    _MAX_DECISIONS = 1024
    _MAX_KEY = 64 * 1024
    _MAX_FIRST = 2 * 1024
    _MAX_SEEN = 16 * 1024

    def __init__(self) -> None:
        # A plain dictionary, since every request is looked up here. `cachetools.LRUCache` hashes
        # and compares the key, with the whole body in it, three times: 0.5 instead of 0.2 µs for
        # a body of 300 bytes, 17 instead of 12 µs for one of 60 kB.
        self.decisions: dict[RequestKey, Decision] = {}
        """Those that are kept."""
        self._seen: set[int] = set()

    def keep(self, key: RequestKey, decision: Decision) -> None:
        """Keeps a decision, unless its request is large, or large and new."""
        size = sum(len(part) for part in key if part is not None)
        if size > self._MAX_KEY or (size > self._MAX_FIRST and not self._comes_again(key)):
            return
        if len(self.decisions) >= self._MAX_DECISIONS:
            self.decisions.clear()
        self.decisions[key] = decision

    def _comes_again(self, key: Hashable) -> bool:
        """Whether a request was there before; a wrong yes is possible, and does no harm."""
        digest = hash(key)  # a bytes object computes its hash once
        if digest in self._seen:
            return True
        if len(self._seen) >= self._MAX_SEEN:
            self._seen.clear()
        self._seen.add(digest)
        return False
