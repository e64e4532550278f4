"""How much shared state is kept. What goes beyond is given up, the oldest first, and counted."""

from __future__ import annotations

from dataclasses import dataclass

from mockllm.server.state.store import StateStore, Totals


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a store keeps.

    Args:
        sessions: beyond this number, the least recently used session is evicted.
        session_bytes: of a session's journal; the oldest entries are forgotten.
        all_bytes: of all sessions; the largest one forgets its oldest entries. If it has only its
            last ones, the least recently used session is evicted.
    """

    sessions: int = 1000
    session_bytes: int = 48 * 1024 * 1024
    all_bytes: int = 256 * 1024 * 1024

    def hold(self, totals: Totals) -> bool:
        return (
            totals.sessions <= self.sessions
            and totals.session_bytes <= self.session_bytes
            and totals.all_bytes <= self.all_bytes
        )


BOUNDS = Bounds()
"""As large as those of a process that keeps its state itself."""


async def hold_bounds(store: StateStore, bounds: Bounds) -> None:
    """Gives up what is too much.

    Where several processes do that at the same moment, a little more than needed is given up.
    """
    sizes = await store.sizes()
    for name in list(sizes)[: max(0, len(sizes) - bounds.sessions)]:
        await _evict(store, name, sizes)
    for name in sizes:
        while sizes[name] > bounds.session_bytes and await _forget_oldest(store, name, sizes):
            pass
    while sum(sizes.values()) > bounds.all_bytes:
        largest = max(sizes, key=sizes.__getitem__)
        if not await _forget_oldest(store, largest, sizes):
            if len(sizes) == 1:
                return
            await _evict(store, next(iter(sizes)), sizes)


async def _evict(store: StateStore, session: str, sizes: dict[str, int]) -> None:
    await store.evict(session)
    del sizes[session]


async def _forget_oldest(store: StateStore, session: str, sizes: dict[str, int]) -> bool:
    freed = await store.forget_oldest(session)
    sizes[session] -= freed
    return freed > 0
