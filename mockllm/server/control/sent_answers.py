"""The last answers, as they were sent: what the live page shows of them."""

from __future__ import annotations

from collections import deque

from mockllm.replay.compilation.http_answer import HttpAnswer
from mockllm.replay.sessions.exchange import Exchange

KEEPS = 256
"""So many answers are kept."""

_MOST = 32 * 1024 * 1024


class SentAnswers:
    """Answers with their exchanges, the oldest first. Bounded in number and bytes.

    Adding one is all that a request costs, so it copies nothing: answers are immutable, and many
    requests share one.
    """

    def __init__(self) -> None:
        self._kept: deque[tuple[Exchange, HttpAnswer]] = deque()
        self._size = 0

    def add(self, exchange: Exchange, answer: HttpAnswer) -> None:
        kept = self._kept
        kept.append((exchange, answer))
        self._size += answer.size
        if len(kept) > KEEPS or self._size > _MOST:
            self._size -= kept.popleft()[1].size
            while self._size > _MOST and len(kept) > 1:
                self._size -= kept.popleft()[1].size

    def find(self, wanted: Exchange) -> tuple[Exchange, HttpAnswer] | None:
        """The answer of an exchange, and the exchange that has its times; None where it is not
        kept.

        Args:
            wanted: of the journal; one that was read from a state store is a copy, which differs
                in its number, and in its time by the difference of two clocks.
        """
        for exchange, answer in self._kept:
            if exchange is wanted:
                return exchange, answer
        near = [
            (abs(one.at - wanted.at), at)
            for at, (one, _) in enumerate(self._kept)
            if (one.connection, one.session, one.path, one.status)
            == (wanted.connection, wanted.session, wanted.path, wanted.status)
            and one.duration == wanted.duration
        ]
        return self._kept[min(near)[1]] if near else None
