"""Sessions: the journal of each, its attempt counters and the turns that were played.

There is no other state: each request alone determines which turn answers. No clock is read here;
exchanges carry their times.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mockllm.play.replay.sessions.dropped_entries import Dropped
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.scenario.model import Scenario

_FAILURES = frozenset({"unmatched", "invalid", "unknown route", "failed"})
"""The outcomes of requests that nothing answered. People look for these, so they stay longer."""

_MOST_NAMES = 65_536
"""How many names of evicted sessions are remembered."""


@dataclass(slots=True)
class Session:
    """The state of one session; no other session sees it.

    Args:
        max_exchanges, max_bytes: bounds of the journal; the oldest entries are dropped first.
        max_dropped: how many bytes of the dropped entries are kept for the verdict.
        max_failures, max_failure_bytes: bounds of `failures`.
        failures: the latest entries that the journal dropped of requests that nothing answered,
            for people: the verdict does not read them.
        played: the indices of the turns that were played, by the name of the scenario.
        conversations: the latest token of each conversation that requests name by an id.
        gaps: why nothing is known of some requests, where the state is shared by processes.
        evicted: whether the server dropped an earlier session of this name, which was not over:
            nothing is known of its requests.
    """

    name: str
    max_exchanges: int = 1000
    max_bytes: int = 16 * 1024 * 1024
    max_dropped: int = 32 * 1024 * 1024
    max_failures: int = 100
    max_failure_bytes: int = 1024 * 1024
    journal: deque[Exchange] = field(default_factory=deque)
    failures: deque[Exchange] = field(default_factory=deque)
    size: int = 0
    failure_size: int = 0
    count: int = 0
    played: dict[str, set[int]] = field(default_factory=dict)
    conversations: dict[str, str] = field(default_factory=dict)
    evicted: bool = False
    gaps: tuple[str, ...] = ()
    _begun_at: dict[str, int] = field(default_factory=dict)
    _attempts: dict[tuple[str, int], int] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)
    _answers: dict[str, Exchange] = field(default_factory=dict)
    _dropped: Dropped = field(init=False)

    def __post_init__(self) -> None:
        self._dropped = Dropped(self.max_dropped)

    def record(self, exchange: Exchange) -> None:
        """Adds an exchange to the journal; the session's bounds hold afterwards. As long as it is
        there, its answer can be looked up by its id."""
        self.count += 1
        journal, id = self.journal, exchange.played.answer_id
        journal.append(exchange)
        self.size += exchange.enter(self.name, self.count)
        if id is not None:
            self._answers[id] = exchange
        while len(journal) > self.max_exchanges or (
            self.size > self.max_bytes and len(journal) > 1
        ):
            self._drop()

    @property
    def memory(self) -> int:
        """An estimate of the memory of all entries, in bytes."""
        return self.size + self.failure_size + self._dropped.size

    @property
    def entries(self) -> tuple[Exchange, ...]:
        """The entries that people may read: the failures that outlived the journal, then the
        journal."""
        return (*self.failures, *self.journal)

    @property
    def dropped(self) -> int:
        """The number of entries that have left the journal, and are not among the failures."""
        return self.count - len(self.journal) - len(self.failures)

    @property
    def forgotten(self) -> int:
        """The number of dropped entries that no verdict can cover."""
        return self._dropped.forgotten

    def exchanges(self) -> Iterator[Exchange]:
        """The entries that a verdict covers: the dropped ones without headers, then the journal."""
        yield from self._dropped.exchanges()
        yield from tuple(self.journal)

    def outcomes(self) -> Counter[str]:
        """The number of requests with each outcome, from the first on."""
        return self._dropped.outcomes() + Counter(entry.outcome for entry in self.journal)

    def shed(self) -> bool:
        """Gives up the oldest entry of the journal, else the oldest failure, else the oldest
        dropped one; returns whether there was one. The last entry of a journal stays."""
        if len(self.journal) > 1:
            self._drop()
            return True
        if self.failures:
            self._drop_failure()
            return True
        return self._dropped.forget()

    def _keep_failure(self, exchange: Exchange) -> None:
        kept = exchange.copy()
        kept.charged = exchange.charged
        self.failures.append(kept)
        self.failure_size += kept.charged
        while len(self.failures) > self.max_failures or self.failure_size > self.max_failure_bytes:
            self._drop_failure()

    def _drop_failure(self) -> None:
        self.failure_size -= self.failures.popleft().charged

    def _drop(self) -> None:
        exchange = self.journal.popleft()
        self.size -= exchange.charged
        id = exchange.played.answer_id
        if id and self._answers.get(id) is exchange:
            del self._answers[id]
        if exchange.outcome in _FAILURES and not exchange.in_use:
            self._keep_failure(exchange)
        self._dropped.add(exchange)

    def attempt(self, scenario: Scenario, position: int, period: int = 0) -> int:
        """Counts an attempt at a turn; returns how many came before it.

        Args:
            period: after so many attempts the count begins with 0 again; 0: it never does.
        """
        key = (scenario.name, position)
        tried = self._attempts.get(key, 0)
        self._attempts[key] = 0 if tried + 1 == period else tried + 1
        return tried

    def note_played(self, scenario: str, index: int) -> None:
        """Notes that a turn of a scenario, by its name, was played."""
        played = self.played.get(scenario)
        if played is None:
            self.played[scenario], self._begun_at[scenario] = {index}, index
        else:
            played.add(index)

    def next_unplayed(self, turns: Iterable[tuple[Scenario, int]]) -> tuple[Scenario, int] | None:
        """The first of some turns, each a scenario and an index, that was not played yet."""
        return next(
            ((turn, index) for turn, index in turns if index not in self.played.get(turn.name, ())),
            None,
        )

    def broken_turn(self, scenario: str, body: bytes) -> int | None:
        """The turn of a scenario that the latest request with this body got, where the answer did
        not arrive whole: the client tries again. None where it did, and for a new body."""
        for exchange in reversed(self.journal):
            if exchange.scenario == scenario and exchange.body == body:
                return None if exchange.arrived else exchange.played.turn
        return None

    def repeats(self, scenario: Scenario, index: int) -> bool:
        """Whether a turn was played before the request that plays it now."""
        return index in self.played.get(scenario.name, ())

    @property
    def requests_before(self) -> int:
        """The number of requests that were recorded before the one that is answered now."""
        return self.count

    def add_to(self, key: str, by: int = 1) -> int:
        """Adds to the counter of some name, which begins with 0; what it was before.

        Args:
            by: 0 only reads it.
        """
        before = self._counts[key]  # of a Counter, which keeps no key that is only read
        if by:
            self._counts[key] = before + by
        return before

    def conversation(self, id: str) -> str | None:
        """The latest token of a conversation; None where there is none."""
        return self.conversations.get(id)

    def keep_conversation(self, id: str, token: str) -> None:
        """Notes the token of the latest answer of a conversation."""
        self.conversations[id] = token

    def forget_earlier(self, outcomes: Mapping[str, int]) -> None:
        """Notes requests of which only the outcome is known, before others are recorded."""
        self._dropped.add_forgotten(outcomes)
        self.count += sum(outcomes.values())

    def answer(self, id: str, *, latest: bool = False) -> Exchange | None:
        """The latest exchange whose answer has this id; None where it is not kept.

        Args:
            latest: whether an earlier one would be wrong. Only `SharedSession` needs it: another
                process may hold a later one, as of a response in the background.
        """
        return self._answers.get(id)

    def expect(self, ids: Iterable[str], counters: Iterable[str]) -> None:
        """Says which answers and counters will be looked up: a session whose state is elsewhere
        asks for all of them at once."""

    def drop_answer(self, id: str) -> bool:
        """Deletes an answer but not its exchange in the journal; returns whether it was kept."""
        return self._answers.pop(id, None) is not None

    def unplayed_turns(self, scenarios: Mapping[str, Scenario]) -> Iterator[tuple[str, int]]:
        """The name and the index of each turn that was not played, of scenarios that were begun.

        The turns that the first request of a scenario had in its history are left out: the client
        had them from elsewhere. Of a scenario with `go_to` nothing is known: its conversations need
        not pass all turns.
        """
        for name, turns in tuple(self.played.items()):
            scenario = scenarios.get(name)
            if scenario is not None and not scenario.jumps:
                for index in range(self._begun_at[name], len(scenario.turns)):
                    if index not in turns:
                        yield name, index


class Sessions:
    """All sessions of a server, made on first use, bounded in number and in bytes.

    Beyond the number, the least recently used session is evicted. Beyond the bytes, the largest
    session gives up its oldest entries, so that one that sends much does not cost others theirs.
    """

    def __init__(self, *, max_sessions: int = 1000, max_bytes: int = 256 * 1024 * 1024) -> None:
        self._max_sessions = max_sessions
        self._max_bytes = max_bytes
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._evicted: OrderedDict[str, None] = OrderedDict()
        self._size = 0
        self.dropped = 0
        """How many entries have left journals because there was no room for them."""
        self.on_evicted: Callable[[str], None] = lambda _: None
        """Called with the name of each session that is evicted."""

    def __iter__(self) -> Iterator[Session]:
        return iter(self._sessions.values())

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def evicted(self) -> tuple[str, ...]:
        """The names of the sessions that were evicted and have not come back, the oldest first;
        at most 65,536."""
        return tuple(self._evicted)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all sessions."""
        return tuple(self._sessions)

    def get(self, name: str) -> Session:
        """The session of that name, made if need be."""
        session = self._sessions.get(name)
        if session is None:
            evicted = name in self._evicted
            self._evicted.pop(name, None)
            session = self._sessions[name] = Session(name, evicted=evicted)
            if len(self._sessions) > self._max_sessions:
                self._evict_oldest()
        else:
            self._sessions.move_to_end(name)
        return session

    def find(self, name: str) -> Session | None:
        """The session of that name; None where there is none. This does not count as a use.

        Of a session that was evicted only the name is left.
        """
        if name in self._evicted:
            return Session(name, evicted=True)
        return self._sessions.get(name)

    def record(self, session: Session, exchange: Exchange) -> None:
        """Adds an exchange to a session's journal; the bounds of all sessions hold afterwards."""
        before, dropped = session.memory, session.dropped
        session.record(exchange)
        self.dropped += session.dropped - dropped
        if self._sessions.get(session.name) is session:
            self._size += session.memory - before
        while self._size > self._max_bytes and self._shed():
            pass

    def delete(self, name: str) -> bool:
        """Deletes a session; returns whether there was one."""
        known = name in self._evicted
        self._evicted.pop(name, None)
        session = self._sessions.pop(name, None)
        if session is not None:
            self._size -= session.memory
        return known or session is not None

    def _shed(self) -> bool:
        """Frees some memory; returns whether there was any to free."""
        largest = max(self._sessions.values(), key=lambda session: session.memory)
        before = largest.memory
        left = largest.dropped
        if largest.shed():
            self.dropped += largest.dropped - left
            self._size -= before - largest.memory
        elif len(self._sessions) > 1:
            self._evict_oldest()
        else:
            return False
        return True

    def _evict_oldest(self) -> None:
        name, session = self._sessions.popitem(last=False)
        self.dropped += len(session.entries)
        self._size -= session.memory
        self._evicted[name] = None
        if len(self._evicted) > _MOST_NAMES:
            self._evicted.popitem(last=False)
        self.on_evicted(name)
