"""One request to a `Player`, with the outcomes of reading its tapes. No I/O here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from mockllm.core.later import NotDoneError
from mockllm.core.target import Target
from mockllm.protocols.base import WireProtocol
from mockllm.replay.sessions.session import Exchange, Session

__all__ = ["Call", "TapeNotReadError", "read_tape"]

_Read = TypeVar("_Read")


TapeNotReadError = NotDoneError
"""A tape must be read, or something computed, before a request can be answered; see there. Only a
call with `tapes` raises it."""


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
        tapes: the outcomes of reading tapes, and of other long work: functions that return what
            was read, or raise. None where the player does the work itself when it needs it.
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
