"""Sessions: the journal of each, its attempt counters and the turns that were played.

There is no other state: each request alone determines which turn answers. No clock is read here;
exchanges carry their times.
"""

from __future__ import annotations

import base64
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mockllm.core.target import Target
from mockllm.scenario.model import Scenario

__all__ = ["Exchange", "Session", "Sessions"]

ExchangeOutcome = Literal["played", "unmatched", "invalid", "error", "forwarded"]


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
            `forwarded` (the real service answers).
        bytes_sent: of the answer's body, without HTTP chunk framing.
        client_gone: whether the client went away before the answer was complete.
        duration: in seconds, from the request's arrival to the answer's end.
        ended: when the last pause of the answer was over and the rest was written, in seconds
            after the request's arrival; 0 for an answer without pauses. None until then, and
            where the client went away earlier.
        clock: when the request arrived, in seconds of a monotonic clock: for the order of
            exchanges, not for the time of day.
        quirks: of the stream, besides those of the scenario: the server's and the request's.
        recorded: whether the recording of the turn was played (`exact`) or why not, as in
            `mockllm.replay.tape_player.Why`; "" for a turn without a recording.
        target: of a request for an answer, as its path and query give it; None for others.
    """

    method: str
    path: str
    headers: dict[str, str]
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
    duration: float = 0.0
    ended: float | None = None
    quirks: tuple[str, ...] = ()
    recorded: str = ""
    answer_id: str | None = None
    clock: float = 0.0
    target: Target | None = None

    @property
    def size(self) -> int:
        """An estimate of the memory it needs, in bytes."""
        return 1024 + len(self.body) + sum(map(len, self.problems))

    def as_json(self) -> dict[str, Any]:
        """As the control route shows it; a body that is not UTF-8 is in `body_base64`."""
        entry = {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if name not in ("body", "answer_id", "clock", "target")
        }
        try:
            entry["body"] = self.body.decode()
        except UnicodeDecodeError:
            entry["body_base64"] = base64.b64encode(self.body).decode()
        return entry


@dataclass(slots=True)
class Session:
    """The state of one session; no other session sees it.

    Args:
        max_exchanges, max_bytes: bounds of the journal; the oldest entries are dropped first.
        played: the indices of the turns that were played, by the name of the scenario.
        conversations: the latest token of each conversation that requests name by an id.
    """

    name: str
    max_exchanges: int = 1000
    max_bytes: int = 16 * 1024 * 1024
    journal: deque[Exchange] = field(default_factory=deque)
    size: int = 0
    count: int = 0
    played: dict[str, set[int]] = field(default_factory=dict)
    conversations: dict[str, str] = field(default_factory=dict)
    _attempts: dict[tuple[str, int], int] = field(default_factory=dict)
    _answers: dict[str, Exchange] = field(default_factory=dict)

    def record(self, exchange: Exchange) -> None:
        """Adds an exchange to the journal; the session's bounds hold afterwards."""
        self.count += 1
        exchange.session = self.name
        exchange.number = self.count
        self.journal.append(exchange)
        self.size += exchange.size
        while self.journal and (
            len(self.journal) > self.max_exchanges
            or (self.size > self.max_bytes and len(self.journal) > 1)
        ):
            self._forget(self.journal.popleft())

    def _forget(self, exchange: Exchange) -> None:
        self.size -= exchange.size
        if exchange.answer_id and self._answers.get(exchange.answer_id) is exchange:
            del self._answers[exchange.answer_id]

    def attempt(self, scenario: Scenario, position: int, failures: int) -> int:
        """Counts an attempt at a turn; returns how many came before it.

        The attempt after the last failure succeeds, and the next one counts from 0 again.

        Args:
            failures: how many attempts the scenario lets fail.
        """
        if not failures:
            return 0
        key = (scenario.name, position)
        tried = self._attempts.pop(key, 0)
        if tried < failures:
            self._attempts[key] = tried + 1
        return tried

    def note_played(self, scenario: Scenario, index: int) -> None:
        """Records that a turn was played."""
        self.played.setdefault(scenario.name, set()).add(index)

    def keep_answer(self, id: str, exchange: Exchange) -> None:
        """Keeps an answer for look-up by its id, as long as its exchange is in the journal."""
        exchange.answer_id = id
        self._answers[id] = exchange

    def answer(self, id: str) -> Exchange | None:
        """The latest exchange whose answer has this id; None where it is not kept."""
        return self._answers.get(id)

    def drop_answer(self, id: str) -> bool:
        """Deletes an answer but not its exchange in the journal; returns whether it was kept."""
        return self._answers.pop(id, None) is not None

    def unplayed(self, scenarios: Mapping[str, Scenario]) -> Iterator[tuple[str, int]]:
        """The name and the index of each turn that was not played, of scenarios that were begun."""
        for name, turns in tuple(self.played.items()):
            if name in scenarios:
                for index in range(len(scenarios[name].turns)):
                    if index not in turns:
                        yield name, index


class Sessions:
    """All sessions of a server, made on first use, bounded in number and in bytes.

    The least recently used session is dropped first.
    """

    def __init__(self, *, max_sessions: int = 1000, max_bytes: int = 256 * 1024 * 1024) -> None:
        self._max_sessions = max_sessions
        self._max_bytes = max_bytes
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._size = 0

    def __iter__(self) -> Iterator[Session]:
        return iter(self._sessions.values())

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, name: str) -> Session:
        """The session of that name, made if need be."""
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = Session(name)
            if len(self._sessions) > self._max_sessions:
                self._drop_oldest()
        else:
            self._sessions.move_to_end(name)
        return session

    def find(self, name: str) -> Session | None:
        """The session of that name; None where there is none. This does not count as a use."""
        return self._sessions.get(name)

    def record(self, session: Session, exchange: Exchange) -> None:
        """Adds an exchange to a session's journal; the bounds of all sessions hold afterwards."""
        before = session.size
        session.record(exchange)
        if self._sessions.get(session.name) is session:
            self._size += session.size - before
        while self._size > self._max_bytes and len(self._sessions) > 1:
            self._drop_oldest()

    def delete(self, name: str) -> bool:
        """Deletes a session; returns whether there was one."""
        session = self._sessions.pop(name, None)
        if session is not None:
            self._size -= session.size
        return session is not None

    def _drop_oldest(self) -> None:
        _, session = self._sessions.popitem(last=False)
        self._size -= session.size
