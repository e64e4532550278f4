"""A session whose state several server processes share, and its journal entries as bytes.

No I/O here: a session says which operation of the state store it needs, and the caller carries it
out and plays the call again. A process packs many entries at once: the names of the fields, bodies
and headers stand there once. It packs an entry once more when its answer is over; the later one
counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.record import record
from mockllm.play.replay.sessions.exchange import Exchange, Played, Received, Sent
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario

Turn = tuple[str, int]
"""A turn: the name of its scenario, and its index."""


@record
class Attempt:
    """Counts an attempt at a turn, as `Session.attempt`; the outcome is how many came before."""

    turn: Turn
    period: int


@record
class Claim:
    """Finds the first of some turns that was not played, and notes that it is; the outcome is its
    place in `turns`, None where all were played."""

    turns: tuple[Turn, ...]


@record
class Number:
    """Counts a request; the outcome is how many came before."""


@record
class Count:
    """Adds to the counter of some name, as `Session.add_to`; the outcome is what it was before."""

    key: str
    by: int


@record
class FindAnswer:
    """Finds the exchange whose answer has an id; the outcome is None where there is none.

    Args:
        latest: whether a later one with the same id may not be missed, so that all processes write
            what they have before.
    """

    id: str
    latest: bool = False


@record
class FindConversation:
    """Finds the latest token of a conversation; the outcome is None where there is none."""

    id: str


StateOperation = Attempt | Claim | Number | Count | FindAnswer | FindConversation

COUNTING = (Attempt, Claim, Count)
"""The operations after which the next request gets another answer."""

_PURPOSE: Mapping[type[StateOperation], str] = {
    Attempt: "the number of the attempt",
    Claim: "which recordings of this request were played",
    Number: "the number of the request",
    Count: "how far a job is",
    FindAnswer: "an earlier answer",
    FindConversation: "the conversation",
}


class StateNotReadError(Exception):
    """Operations of the state store must be carried out before a request can be answered.

    The caller adds their outcomes to `SharedSession.known` and plays the call again.
    """

    def __init__(self, *operations: StateOperation) -> None:
        super().__init__(*operations)
        self.operations = operations


class StateAwayError(RequestError):
    """The state store cannot be reached, and a request needs it.

    Args:
        needed: what the request needs of the store, in words or as an operation; None for a request
            that is about the store.
        maybe_done: whether the store may have carried out the operation.
    """

    def __init__(
        self, needed: StateOperation | str | None, why: str, *, maybe_done: bool = False
    ) -> None:
        if needed is None:
            purpose = "it"
        else:
            what = needed if isinstance(needed, str) else _PURPOSE[type(needed)]
            purpose = f"{what} from it"
        super().__init__(
            f"The state store cannot be reached ({why}), and this request needs {purpose}. Start "
            "the store again, or send the request again later.",
            status=503,
            code="state_store_unavailable",
        )
        self.may_count = maybe_done and isinstance(needed, COUNTING)
        """Whether the store may have counted the request."""


class SharedSession(Session):
    """One request's view of a session that other processes serve, too.

    Args:
        known: the outcomes of the operations that were carried out for this request.
        noted: the turns that this request played.
        tokens: the conversations that went on, by id, with their tokens.
        deleted: the ids of answers that are deleted.
        hold: what the state store has to know until the request stands in its journal.
    """

    __slots__ = ("deleted", "hold", "known", "noted", "tokens")

    def __init__(self, name: str) -> None:
        # One is made for each request; it has no journal and no counters of its own.
        self.name = name
        self.hold: Any = None
        self.known: dict[StateOperation, Any] = {}
        self.noted: list[Turn]
        self.tokens: dict[str, str]
        self.deleted: list[str]
        self.begin()

    @property
    def unused(self) -> list[Turn]:
        """The turns that were claimed and then not played."""
        claimed = [
            operation.turns[place]
            for operation, place in self.known.items()
            if isinstance(operation, Claim) and place is not None
        ]
        return [turn for turn in claimed if turn not in self.noted]

    @property
    def is_counted(self) -> bool:
        """Whether the store has counted this request."""
        return any(isinstance(operation, COUNTING) for operation in self.known)

    def begin(self) -> None:
        """Forgets what an earlier play of the same request noted, but not the outcomes."""
        self.noted, self.tokens, self.deleted = [], {}, []

    def _outcome(self, operation: StateOperation) -> Any:
        try:
            return self.known[operation]
        except KeyError:
            raise StateNotReadError(operation) from None

    def attempt(self, scenario: Scenario, position: int, period: int = 0) -> int:
        tried: int = self._outcome(Attempt((scenario.name, position), period))
        return tried

    def note_played(self, scenario: str, index: int) -> None:
        self.noted.append((scenario, index))

    def next_unplayed(self, turns: Iterable[tuple[Scenario, int]]) -> tuple[Scenario, int] | None:
        listed = tuple(turns)
        if not listed:
            return None
        place: int | None = self._outcome(
            Claim(tuple((scenario.name, at) for scenario, at in listed))
        )
        return None if place is None else listed[place]

    def repeats(self, scenario: Scenario, index: int) -> bool:
        """Always False: `restore` works it out from the whole journal."""
        return False

    @property
    def requests_before(self) -> int:
        number: int = self._outcome(Number())
        return number

    def add_to(self, key: str, by: int = 1) -> int:
        before: int = self._outcome(Count(_storable(key), by))
        return before

    def answer(self, id: str, *, latest: bool = False) -> Exchange | None:
        exchange: Exchange | None = self._outcome(FindAnswer(_storable(id), latest))
        return exchange

    def expect(self, ids: Iterable[str], counters: Iterable[str]) -> None:
        operations: list[StateOperation] = [FindAnswer(_storable(id)) for id in ids]
        operations += [Count(_storable(counter), 0) for counter in counters]
        missing = [operation for operation in operations if operation not in self.known]
        if missing:
            raise StateNotReadError(*missing)

    def drop_answer(self, id: str) -> bool:
        self.deleted.append(_storable(id))
        return self._outcome(FindAnswer(_storable(id))) is not None

    def conversation(self, id: str) -> str | None:
        token: str | None = self._outcome(FindConversation(_storable(id)))
        return token

    def keep_conversation(self, id: str, token: str) -> None:
        self.tokens[_storable(id)] = token


def _storable(text: str) -> str:
    """A text that a client chose, as stores can keep it: in UTF-8, which has no half of a surrogate
    pair. Other texts are other ones there, too."""
    if text.isascii() and not text.startswith("\0"):
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "\0" + text.replace("\\", r"\\").encode("utf-8", "backslashreplace").decode()
    return f"\0{text}" if text.startswith("\0") else text


ENDED_EARLY = "The server process that sent this answer ended before the answer did."
"""The problem of an entry whose process is gone."""

_PLAYED = tuple(field.name for field in fields(Played))
_SENT = tuple(field.name for field in fields(Sent) if field.name not in ("clock", "marks"))
_played, _sent = attrgetter(*_PLAYED), attrgetter(*_SENT)
_dumps = json.JSONEncoder(separators=(",", ":")).encode

_Key = tuple[str, int]


@record
class Stored:
    """The part of a session that a state store has.

    Args:
        entries: as `pack` wrote them, in the order in which they were written.
        played: the turns that were played, in the order of their first time.
        forgotten: the requests of which only the outcome is left, by outcome.
        gone: the processes that ended without a word.
        begun: when the session was made, or made anew; another one if it is not the same.
        first, last: the numbers of the oldest and the latest packed entries; 0 for none.
    """

    entries: Sequence[bytes] = ()
    played: Sequence[tuple[str, int]] = ()
    forgotten: Mapping[str, int] | None = None
    evicted: bool = False
    gaps: tuple[str, ...] = ()
    gone: Collection[str] = ()
    begun: float = 0.0
    first: int = 0
    last: int = 0


def pack(exchanges: Sequence[tuple[int, Exchange]], process: str = "", ahead: float = 0.0) -> bytes:
    """Entries of one session, as JSON in ASCII without a line break.

    Args:
        ahead: by how many seconds the clock of all processes is ahead of this one's.
    """
    bodies: dict[bytes, int] = {}
    heads: dict[tuple[tuple[str, str], ...], int] = {}
    entries = []
    for number, exchange in exchanges:
        body = bodies.setdefault(exchange.body, len(bodies))
        head = heads.setdefault(tuple(exchange.headers.items()), len(heads))
        method, path, _, _, at, _, connection, target = exchange.received
        where = (
            None if target is None else (dict(target.segments), target.method, dict(target.query))
        )
        received = (method, path, head, body, at + ahead, connection, where)
        own = (exchange.in_use, exchange.body_size)
        entries.append((number, received, own, _played(exchange.played), _sent(exchange.sent)))
    return _dumps(
        {
            "by": process,
            "played": _PLAYED,
            "sent": _SENT,
            "headers": list(heads),
            "bodies": [body.decode("utf-8", "surrogateescape") for body in bodies],
            "entries": entries,
        }
    ).encode("ascii")


def unpack(packed: bytes) -> Iterator[tuple[_Key, Exchange]]:
    """The exchanges, each with the process that wrote it and its number there."""
    value = json.loads(packed)
    bodies = [body.encode("utf-8", "surrogateescape") for body in value["bodies"]]
    heads = [dict(map(tuple, headers)) for headers in value["headers"]]
    for number, received, (in_use, body_size), played, sent in value["entries"]:
        method, path, head, body, at, connection, where = received
        target = None if where is None else Target(*where)
        exchange = Exchange(
            # One clock for all processes.
            Received(method, path, heads[head], bodies[body], at, at, connection, target),
            Played(**_tuples(zip(value["played"], played, strict=True))),
            Sent(at, **_tuples(zip(value["sent"], sent, strict=True))),
            in_use=in_use,
            body_size=body_size,
        )
        yield (value["by"], number), exchange


def _tuples(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: tuple(value) if type(value) is list else value for name, value in values}


_New = Callable[[str], Session]
_Record = Callable[[Session, Exchange], None]


def restore(
    name: str, stored: Stored, new: _New = Session, record: _Record = Session.record
) -> Session:
    """The session as one process would have it that had answered all requests.

    Its entries are in the order in which the requests arrived.
    """
    return SessionReader(name).read(stored, unpack_all(stored.entries), new, record)


def unpack_all(packed: Iterable[bytes]) -> dict[tuple[str, int], Exchange]:
    """The exchanges by the process that wrote each and its number there: of one that was written
    again, the latest."""
    return {key: exchange for each in packed for key, exchange in unpack(each)}


class SessionReader:
    """Restores a session, and goes on where it stopped when more was written.

    Attributes:
        after: the number of the latest packed entries that were read; 0 for none.
    """

    def __init__(self, name: str) -> None:
        self.name, self.after = name, 0
        self._storable = Stored()
        self._latest: dict[_Key, Exchange] = {}
        self._in_use: set[_Key] = set()
        self._turns: set[tuple[str | None, int | None, bool]] = set()
        self._last_at = 0.0
        self._session: Session | None = None

    @property
    def size(self) -> int:
        """An estimate of the memory of its session, in bytes."""
        return 0 if self._session is None else self._session.memory

    def goes_on(self, stored: Stored) -> bool:
        """Whether what was stored after `after` follows on what was read: nothing before it has
        gone."""
        before = self._storable
        is_same = (stored.begun, stored.evicted) == (before.begun, before.evicted)
        kept = (stored.first, stored.forgotten) == (before.first, before.forgotten)
        return self._session is None or (is_same and (kept or not before.last))

    def read(
        self,
        stored: Stored,
        fresh: Mapping[tuple[str, int], Exchange],
        new: _New = Session,
        record: _Record = Session.record,
    ) -> Session:
        """The session with what was stored after `after`, which `goes_on`.

        Args:
            fresh: its exchanges.
            new, record: make a session and fill it, where it is restored as a whole.
        """
        rewritten = bool(self._latest.keys() & fresh.keys())
        self._latest.update(fresh)
        self._in_use = {key for key in self._in_use | fresh.keys() if self._latest[key].in_use}
        ended = [key for key in self._in_use if key[0] in stored.gone]
        for key in ended:
            self._latest[key].sent.report(ENDED_EARLY)
            self._latest[key].settle()
        self._in_use.difference_update(ended)
        added = sorted(fresh.values(), key=_arrival)
        is_late = bool(added) and added[0].received.at < self._last_at
        session = self._session
        if session is None or rewritten or ended or is_late:
            session = self._session = new(self.name)
            session.forget_earlier(stored.forgotten or {})
            self._turns = set()
            added = sorted(self._latest.values(), key=_arrival)
        else:
            record = Session.record
        for exchange in added:
            is_reply = exchange.outcome == "played"  # an earlier try of the turn is an error
            turn = (exchange.scenario, exchange.turn, is_reply)
            if exchange.played.recorded and (is_reply or exchange.played.attempt == 1):
                exchange.note_repeat(turn in self._turns)
            self._turns.add(turn)
            record(session, exchange)
            self._last_at = exchange.received.at
        for scenario, index in stored.played:
            session.note_played(scenario, index)
        session.evicted, session.gaps = stored.evicted, stored.gaps
        self._storable, self.after = stored, max(self.after, stored.last)
        return session


def _arrival(exchange: Exchange) -> float:
    return exchange.received.at
