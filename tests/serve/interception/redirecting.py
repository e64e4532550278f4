"""The requests of this process, redirected to a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mockllm.serve.interception import patches
from mockllm.serve.interception.hosts import Hosts
from mockllm.serve.interception.ownership import Owner, begin, end
from mockllm.serve.interception.redirect import redirect_to


@contextmanager
def redirected(server_url: str, hosts: Hosts, key: str) -> Iterator[None]:
    """Redirects what the `with` block asks, and what it starts, to the session `test`."""
    patches.install()
    owner = Owner("test", redirect_to(server_url, lambda: "test", hosts, key))
    begin(owner)
    try:
        yield
    finally:
        end(owner)
