"""What a live page above the server reads of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from mockllm.errors import Problem
from mockllm.replay.sessions.exchange import Exchange
from mockllm.replay.sessions.session import Sessions
from mockllm.server.answers import Answers
from mockllm.server.control.page import Page
from mockllm.server.control.sent_answers import SentAnswers
from mockllm.server.state.shared_control import SharedControl


class ServerView:
    """A server as its page sees it.

    Args:
        make_page: None: there is no page, and nothing is kept for one.
    """

    def __init__(
        self,
        answers: Answers,
        sessions: Sessions,
        make_page: Callable[[ServerView], Page] | None,
    ) -> None:
        self.answers, self.sessions = answers, sessions
        self.shared: SharedControl | None = None
        """The sessions that other processes share; None: there are none."""
        self.sent = None if make_page is None else SentAnswers()
        """The last answers; None: there is no page."""
        self.watch: Callable[[Exchange], None] | None = None
        """Is called with each request that comes or ends, while a page is open."""
        self.problems: Sequence[Problem] = ()
        """Of the scenario files, after the last change."""
        self.loaded = time.time()
        """When the scenario files were read last, in seconds since 1970."""
        self._make_page = make_page
        self._page: Page | None = None

    def page(self) -> Page | None:
        if self._page is None and self._make_page is not None:
            self._page = self._make_page(self)
        return self._page

    def reloaded(self, problems: Sequence[Problem]) -> None:
        """Notes that the scenario files were read again, and what is wrong with them."""
        self.problems, self.loaded = problems, time.time()
        if self._page is not None:
            self._page.reloaded()

    def close(self) -> None:
        if self._page is not None:
            self._page.close()
