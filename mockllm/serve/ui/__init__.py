"""The live page at `/_mockllm/ui`: its files, what it reads, and what it is sent.

The pages run in a browser (`site/`), and everything that they show comes from the routes here. The
server knows none of it: `ServerOptions(page=live_page)` gives it its page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockllm.serve.server.control.server_view import ServerView
    from mockllm.serve.server.options import Page


def live_page(server: ServerView) -> Page:
    """The page of a server, whose modules are imported when it is opened."""
    from mockllm.serve.ui.page_routes import LivePage

    return LivePage(server)
