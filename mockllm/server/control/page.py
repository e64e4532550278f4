"""What a server asks of a live page above it.

The server knows no page: who starts it gives one in its options, and it is made when somebody opens
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from aiohttp import web

from mockllm.replay.sessions.exchange import Sent


class Page(Protocol):
    """A page that shows what the server does."""

    async def respond(
        self,
        request: web.BaseRequest,
        sent: Sent,
        target: str,
        headers: Mapping[str, str],
        fields: Mapping[str, str],
    ) -> web.StreamResponse:
        """Sends the answer to a request below the path of the page."""

    def reloaded(self) -> None:
        """The scenario files were read again."""

    def close(self) -> None:
        """The server stops."""
