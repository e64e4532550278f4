"""One request to the server and its outcome: the entry of a journal. No clock is read here."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mockllm.core.target import Target
from mockllm.core.timed_bytes import TimedBytes
from mockllm.errors import RequestError
from mockllm.replay.sessions.shortened_bodies import MAX_BODY, shortened_body

__all__ = ["MISSED", "Exchange", "PassedAnswer", "not_kept_whole"]

MISSED = "a fault did not strike: "
"""The beginning of the problem that an exchange has whose fault did not strike."""

ExchangeOutcome = Literal[
    "played", "unmatched", "invalid", "error", "forwarded", "unknown route", "failed"
]


_INTERNAL = frozenset(
    (
        "body",
        "answer_id",
        "clock",
        "target",
        "complete",
        "in_use",
        "dropped",
        "charged",
        "left",
        "passed",
    )
)
"""The fields that no journal shows."""


@dataclass(slots=True)
class PassedAnswer:
    """What a service answered, as it passed.

    Args:
        headers: as received, names in lower case.
        chunks: of the body, as received; beyond `most` bytes they are counted in `left_out`.
    """

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    chunks: list[TimedBytes] = field(default_factory=list)
    size: int = 0
    left_out: int = 0
    most: int = 4 * 1024 * 1024

    def add(self, chunk: TimedBytes) -> None:
        """Keeps a chunk."""
        if self.size + len(chunk.data) > self.most:
            self.left_out += len(chunk.data)
            return
        self.size += len(chunk.data)
        self.chunks.append(chunk)


@dataclass(slots=True)
class Exchange:
    """One request to the server and its outcome: an entry of the journal.

    It has the request as received, and how the answer ended, but not the bytes of the answer.
    Recorders and importers have the bytes of both: `mockllm.tapes.captured.Captured`.

    Args:
        session: the name of its session; `number` counts from 1 within it.
        headers: as received, credentials masked.
        body: as received.
        turn: the index of the turn that answered; `position` as in
            `mockllm.matching.select.Selection`.
        attempt: the number of the attempt at the turn, from 1.
        outcome: `played`; `unmatched` (no scenario answers); `invalid` (refused by the rules of
            the API or the turn's `request` conditions); `error` (an HTTP error of the scenario);
            `forwarded` (the real service answers); `unknown route` (no API and no scenario has
            it); `failed` (mockllm could not answer, because of a mistake of its own).
        bytes_sent: of the answer's body, without HTTP chunk framing.
        client_gone: whether the client went away before the answer was complete.
        stopped: whether the server stopped before the answer was complete.
        duration: in seconds, from the request's arrival to the answer's end.
        ended: when the last pause of the answer was over and the rest was written, in seconds
            after the request's arrival; 0 for an answer without pauses. None until then, and
            where the client went away, or the server stopped, earlier.
        clock: when the request arrived, in seconds of a monotonic clock: for the order of
            exchanges, not for the time of day.
        fault: what broke on the way of the answer, as it is written; "" for nothing.
        struck: when it struck, in seconds after the request's arrival; None: it did not.
        struck_after: the bytes of the body that were sent before.
        retry_after: how long the answer says to wait before the next try, in seconds; None where
            it does not say it.
        connection: the client's port, by which its open connections can be told apart; 0 where it
            is not known.
        quirks: of the stream, besides those of the scenario: the server's and the request's.
        recorded: whether the recording of the turn was played (`exact`) or why not, as in
            `mockllm.replay.compilation.tape_player.Why`; "" for a turn without a recording.
        repeated: whether every recording of this very request had been played in the session
            before, so that the last one was played again.
        target: of a request for an answer, as its path and query give it; None for others.
        complete: whether the answer ends properly, rather than with a broken connection.
        body_size: the full size of a body that was shortened, in bytes; None for one that is kept
            as received.
        in_use: whether the server still works with it, and needs its whole body.
        dropped: whether it has left the journal of its session.
        charged: the memory that its journal counts for it, in bytes.
        left: of an answer that takes time, after each write: the bytes of the body that were
            written, and when that was, in seconds after the start of the answer. None: not noted.
        passed: what a service answered; None where nothing was forwarded, or it is not kept.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    api: str | None = None
    session: str = ""
    number: int = 0
    at: float = 0.0
    model: str | None = None
    scenario: str | None = None
    turn: int | None = None
    position: int | None = None
    attempt: int = 1
    stream: bool = False
    outcome: ExchangeOutcome = "invalid"
    status: int = 0
    problems: tuple[str, ...] = ()
    bytes_sent: int = 0
    client_gone: bool = False
    stopped: bool = False
    duration: float = 0.0
    ended: float | None = None
    quirks: tuple[str, ...] = ()
    fault: str = ""
    struck: float | None = None
    struck_after: int | None = None
    retry_after: float | None = None
    connection: int = 0
    recorded: str = ""
    repeated: bool = False
    answer_id: str | None = None
    clock: float = 0.0
    target: Target | None = None
    complete: bool = True
    body_size: int | None = None
    in_use: bool = False
    dropped: bool = False
    charged: int = 0
    left: array[float] | None = None
    passed: PassedAnswer | None = None

    @property
    def size(self) -> int:
        """An estimate of the memory that a journal needs for it, in bytes."""
        return 1024 + min(len(self.body), MAX_BODY) + sum(map(len, self.problems))

    @property
    def broken_off(self) -> bool:
        """Whether the answer was not sent whole: the client left, or the server stopped."""
        return self.client_gone or self.stopped

    @property
    def fault_missed(self) -> bool:
        """Whether it was to have a fault that did not strike."""
        return any(problem.startswith(MISSED) for problem in self.problems)

    def settle(self) -> None:
        """Gives up what only the server needed, once the answer is over."""
        self.in_use = False
        if self.dropped:
            self._clear()
        else:
            self._shorten()

    def drop(self) -> None:
        """Gives up headers and body, since the entry has left the journal."""
        self.dropped = True
        if not self.in_use:
            self._clear()

    def _clear(self) -> None:
        self._note_size()
        self.headers, self.body = {}, b""
        self.left = self.passed = None

    def _shorten(self) -> None:
        self._note_size()
        self.body = shortened_body(self.body)

    def _note_size(self) -> None:
        if len(self.body) > MAX_BODY:
            self.body_size = len(self.body)

    def as_json(self) -> dict[str, Any]:
        """As the control route shows it; a body that is not UTF-8 is in `body_base64`, and
        only a shortened one has `body_size`."""
        entry = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name not in _INTERNAL
        }
        if self.body_size is None:
            del entry["body_size"]
        try:
            entry["body"] = self.body.decode()
        except UnicodeDecodeError:
            entry["body_base64"] = base64.b64encode(self.body).decode()
        return entry


def not_kept_whole(id: str, exchange: Exchange) -> RequestError:
    """The error for an answer that cannot be given again, as its request was too large."""
    return RequestError(
        f"The answer {id!r} cannot be given again: its request had {exchange.body_size} bytes, and "
        f"a session keeps {MAX_BODY} bytes of a request. Send a smaller one.",
        status=404,
        code="request_not_kept",
    )
