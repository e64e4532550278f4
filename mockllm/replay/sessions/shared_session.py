"""A session whose state several server processes share. No I/O here: a session says which
operation of the state store it needs, and the caller carries it out and plays the call again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mockllm.core.record import record
from mockllm.errors import RequestError
from mockllm.replay.sessions.session import Exchange, Session
from mockllm.scenario.model import Scenario

Turn = tuple[str, int]
"""A turn: the name of its scenario, and its index."""


@record
class Attempt:
    """Counts an attempt at a turn, as `Session.attempt`; the outcome is how many came before."""

    turn: Turn
    failures: int


@record
class Claim:
    """Finds the first of some turns that was not played, and notes that it is; the outcome is its
    place in `turns`, None where all were played."""

    turns: tuple[Turn, ...]


@record
class Number:
    """Counts a request; the outcome is how many came before."""


@record
class FindAnswer:
    """Finds the exchange whose answer has an id; the outcome is None where there is none."""

    id: str


@record
class FindConversation:
    """Finds the latest token of a conversation; the outcome is None where there is none."""

    id: str


StateOperation = Attempt | Claim | Number | FindAnswer | FindConversation

_PURPOSE: Mapping[type[StateOperation], str] = {
    Attempt: "the number of the attempt",
    Claim: "which recordings of this request were played",
    Number: "the number of the request",
    FindAnswer: "an earlier answer",
    FindConversation: "the conversation",
}


class StateNotReadError(Exception):
    """An operation of the state store must be carried out before a request can be answered.

    The caller adds its outcome to `SharedSession.known` and plays the call again.
    """

    def __init__(self, operation: StateOperation) -> None:
        super().__init__(operation)
        self.operation = operation


class StateAwayError(RequestError):
    """The state store cannot be reached, and a request needs it.

    Args:
        needed: what the request needs of the store, in words or as an operation; None for a request
            that is about the store.
    """

    def __init__(self, needed: StateOperation | str | None, why: str) -> None:
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


class SharedSession(Session):
    """One request's view of a session that other processes serve, too.

    Args:
        known: the outcomes of the operations that were carried out for this request.
        noted: the turns that this request played.
        tokens: the conversations that went on, by id, with their tokens.
        deleted: the ids of answers that are deleted.
    """

    __slots__ = ("deleted", "known", "noted", "tokens")

    def __init__(self, name: str) -> None:
        # One is made for each request; it has no journal and no counters of its own.
        self.name = name
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

    def begin(self) -> None:
        """Forgets what an earlier play of the same request noted, but not the outcomes."""
        self.noted, self.tokens, self.deleted = [], {}, []

    def _outcome(self, operation: StateOperation) -> Any:
        try:
            return self.known[operation]
        except KeyError:
            raise StateNotReadError(operation) from None

    def attempt(self, scenario: Scenario, position: int, failures: int) -> int:
        if not failures:
            return 0
        tried: int = self._outcome(Attempt((scenario.name, position), failures))
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

    def answer(self, id: str) -> Exchange | None:
        found: Exchange | None = self._outcome(FindAnswer(id))
        return found

    def drop_answer(self, id: str) -> bool:
        self.deleted.append(id)
        return self._outcome(FindAnswer(id)) is not None

    def conversation(self, id: str) -> str | None:
        found: str | None = self._outcome(FindConversation(id))
        return found

    def keep_conversation(self, id: str, token: str) -> None:
        self.tokens[id] = token
