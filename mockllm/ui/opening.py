"""Gives a server its live page: `ServerOptions(page=live_page)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockllm.server.control.server_view import ServerView
    from mockllm.server.options import Page


def live_page(server: ServerView) -> Page:
    """The page of a server, whose modules are imported when it is opened."""
    from mockllm.ui.routes import LivePage

    return LivePage(server)
