"""The view of a server that a live page above it reads.

The server knows no page: who starts it gives one in its options, and it is made when somebody opens
it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mockllm.core.errors import Problem
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.serve.server.options import Page
from mockllm.serve.server.sources import Sources

if TYPE_CHECKING:
    from mockllm.serve.server.control.control_routes import LocalSessions
    from mockllm.serve.server.state.shared_sessions import SharedSessions


KEEPS = 256
"""So many answers are kept."""

_MOST = 32 * 1024 * 1024


class SentAnswers:
    """Answers with their exchanges, the oldest first. Bounded in number and bytes.

    Adding one is all that a request costs, so it copies nothing: answers are immutable, and many
    requests share one.
    """

    def __init__(self) -> None:
        self._answers: deque[tuple[Exchange, HttpAnswer]] = deque()
        self._size = 0

    def add(self, exchange: Exchange, answer: HttpAnswer) -> None:
        answers = self._answers
        answers.append((exchange, answer))
        self._size += answer.size
        while len(answers) > KEEPS or self._size > _MOST:
            self._size -= answers.popleft()[1].size

    def find(self, wanted: Exchange) -> tuple[Exchange, HttpAnswer] | None:
        """The answer of an exchange, and the exchange that has its times; None where it is not
        kept.

        Args:
            wanted: of the journal; one that was read from a state store is a copy, which differs
                in its number, and in its time by the difference of two clocks.
        """
        answers = [pair for pair in self._answers if pair[0] is wanted]
        answers = answers or [pair for pair in self._answers if _key(pair[0]) == _key(wanted)]
        late = [abs(exchange.received.at - wanted.received.at) for exchange, _ in answers]
        return answers[late.index(min(late))] if answers else None


def _key(exchange: Exchange) -> tuple[object, ...]:
    """The values that a copy of an exchange has in common with it."""
    connection, duration = exchange.received.connection, exchange.sent.duration
    return connection, exchange.session, exchange.path, exchange.status, duration


@dataclass(slots=True)
class ServerView:
    """A server as its page sees it.

    Args:
        make_page: of this view; None: there is no page.
        sent: the last answers; None: there is no page.
        watch: is called with each request that comes or ends, while a page is open.
        problems: of the scenario files, after the last change.
        loaded: when these were read last, in seconds since 1970.
        began: when the server was made, likewise.
    """

    sources: Sources
    sessions: LocalSessions | SharedSessions
    make_page: Callable[[ServerView], Page] | None
    sent: SentAnswers | None
    watch: Callable[[Exchange], None] | None = None
    problems: Sequence[Problem] = ()
    loaded: float = field(default_factory=time.time)
    began: float = field(default_factory=time.time)
    _page: Page | None = None

    def page(self) -> Page | None:
        if self._page is None and self.make_page is not None:
            self._page = self.make_page(self)
        return self._page

    def note_reload(self, problems: Sequence[Problem]) -> None:
        """Notes that the scenario files were read again, and what is wrong with them."""
        self.problems, self.loaded = problems, time.time()
        if self._page is not None:
            self._page.announce_reload()

    def close(self) -> None:
        if self._page is not None:
            self._page.close()
