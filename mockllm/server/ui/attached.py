"""What a server keeps for its live page, and the page itself as soon as somebody opens it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mockllm.errors import Problem
from mockllm.replay.sessions.exchange import Exchange
from mockllm.server.ui.sent import SentAnswers

if TYPE_CHECKING:
    from mockllm.server.handler import Handler
    from mockllm.server.ui.routes import LivePage

__all__ = ["Attached"]


class Attached:
    """The live page of a server, whose modules are imported when it is opened.

    Args:
        enabled: whether there is a page; without one, no answers are kept.
    """

    def __init__(self, handler: Handler, *, enabled: bool) -> None:
        self.sent = SentAnswers() if enabled else None
        """The last answers; None: there is no page."""
        self.watch: Callable[[Exchange], None] | None = None
        """Is called with each request that comes or ends, while a page is open."""
        self.problems: Sequence[Problem] = ()
        """Of the scenario files, after the last change."""
        self.loaded = time.time()
        """When the scenario files were read last, in seconds since 1970."""
        self._handler = handler
        self._page: LivePage | None = None

    def page(self) -> LivePage:
        """The page."""
        if self._page is None:
            from mockllm.server.ui.routes import LivePage

            self._page = LivePage(self._handler, self)
        return self._page

    def reloaded(self, problems: Sequence[Problem]) -> None:
        """Notes that the scenario files were read again, and what is wrong with them."""
        self.problems, self.loaded = problems, time.time()
        if self._page is not None:
            self._page.reloaded()

    def close(self) -> None:
        """Ends the streams of events to open pages."""
        if self._page is not None:
            self._page.live.close()
