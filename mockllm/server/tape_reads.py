"""Tapes are read in threads: a slow disk holds up the requests that need it, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from mockllm.replay.call import TapeNotReadError

__all__ = ["NO_TAPES", "TapeReads"]

NO_TAPES: Mapping[Hashable, Callable[[], Any]] = {}
"""The `tapes` of a call for which nothing was read yet."""


class _Taped(Protocol):
    tapes: Mapping[Hashable, Callable[[], Any]] | None


_Call = TypeVar("_Call", bound=_Taped)
_Played = TypeVar("_Played", bound=_Taped, contravariant=True)
_Answer = TypeVar("_Answer")
_Given = TypeVar("_Given", covariant=True)


class _Player(Protocol[_Played, _Given]):
    """`Player` and `RoutePlayer`, each with its calls."""

    def play(self, call: _Played) -> _Given: ...


class TapeReads:
    """Plays calls that need tapes. However many wait for a tape, it is read once."""

    def __init__(self) -> None:
        self._running: dict[tuple[object, Hashable], asyncio.Task[object]] = {}

    async def play(
        self, player: _Player[_Call, _Answer], call: _Call, missing: TapeNotReadError
    ) -> _Answer:
        """The answer to a call.

        Args:
            missing: what the player raised for it.
        """
        while True:
            task = self._read((player, missing.key), missing.read)
            # A client that leaves ends its own request; others may wait for the same tape.
            await asyncio.wait([task])
            call.tapes = {**(call.tapes or NO_TAPES), missing.key: task.result}
            try:
                return player.play(call)
            except TapeNotReadError as another:
                missing = another

    def _read(
        self, key: tuple[object, Hashable], read: Callable[[], object]
    ) -> asyncio.Task[object]:
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.create_task(asyncio.to_thread(read))
            task.add_done_callback(partial(self._end, key))
        return task

    def _end(self, key: tuple[object, Hashable], task: asyncio.Task[object]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # or asyncio logs it where every client has left
