"""Whether a server can answer requests now, for the probes of a cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable


class Readiness:
    """What keeps a server from answering requests. Its scenarios are loaded before it listens.

    Args:
        stopping: whether it stops: open streams go on, and no other request is answered.
        checks: each returns why a part of the server is not ready, in words that anyone may read,
            or None where it is.
    """

    def __init__(self) -> None:
        self.stopping = False
        self.checks: list[Callable[[], Awaitable[str | None]]] = []

    async def problems(self) -> list[str]:
        """Why the server is not ready; [] where it is."""
        found = []
        for check in tuple(self.checks):
            problem = await check()
            if problem is not None:
                found.append(problem)
        if self.stopping:  # after the checks, which may take time
            found.append("the server stops")
        return found
