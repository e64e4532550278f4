"""One request to a `Player`, with the outcomes of reading its tapes. No I/O here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from mockllm.core.target import Target
from mockllm.protocols.base import WireProtocol
from mockllm.replay.session import Exchange, Session

__all__ = ["Call", "TapeNotReadError", "read_tape"]

_Read = TypeVar("_Read")


class TapeNotReadError(Exception):
    """A tape must be read before a request can be answered.

    Only a call with `tapes` raises it, and before anything is counted or recorded. The caller runs
    `read` in a thread that may block, adds the outcome to `tapes` and plays the call again.

    Args:
        key: of the outcome in `Call.tapes`; unique among the tapes of one player.
        read: reads the tape and raises what is wrong with it; it may run in any thread.
    """

    def __init__(self, key: Hashable, read: Callable[[], object]) -> None:
        super().__init__(key)
        self.key = key
        self.read = read


@dataclass(slots=True)
class Call:
    """One request to a `Player`.

    Args:
        protocol: the API that was called.
        target: path and query, parsed.
        headers: of the request, names in lower case.
        session: the one that the request belongs to.
        exchange: the entry of the journal, with the body; the outcome is written into it.
        path: as it was sent, with the query; "" where nothing was sent.
        tapes: the outcomes of reading tapes: functions that return what was read, or raise.
            None where the player reads tapes itself when it needs them.
    """

    protocol: WireProtocol
    target: Target
    headers: Mapping[str, str]
    session: Session
    exchange: Exchange
    tapes: Mapping[Hashable, Callable[[], Any]] | None = None
    path: str = ""

    def read(self, key: Hashable, read: Callable[[], _Read]) -> _Read:
        """What `read` returns, called now or, where this call has `tapes`, before.

        Raises:
            TapeNotReadError: `tapes` has no outcome for this key.
        """
        return read_tape(self.tapes, key, read)


def read_tape(
    tapes: Mapping[Hashable, Callable[[], Any]] | None, key: Hashable, read: Callable[[], _Read]
) -> _Read:
    """What `read` returns, called now or, with `tapes`, before.

    Raises:
        TapeNotReadError: `tapes` has no outcome for this key.
    """
    if tapes is None:
        return read()
    outcome = tapes.get(key)
    if outcome is None:
        raise TapeNotReadError(key, read)
    result: _Read = outcome()
    return result
