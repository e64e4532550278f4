"""Journal entries as bytes, for processes that share a journal, and the session that they make.

An entry is a JSON object with the fields of `Exchange` that are not their default, and `by`: the
process that wrote it and the number that it has there. A process writes an entry once more when
its answer is over; the later one counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

from mockllm.core.target import Target
from mockllm.replay.exchange import Exchange
from mockllm.replay.session import Session

__all__ = ["ENDED_EARLY", "Stored", "outcomes_of", "pack", "restore", "unpack"]

ENDED_EARLY = "The server process that sent this answer ended before the answer did."
"""The problem of an entry whose process is gone."""

_NOT_KEPT = frozenset(("session", "number", "charged", "dropped"))
_DEFAULTS: Mapping[str, Any] = {
    one.name: one.default
    for one in fields(Exchange)
    if one.name not in _NOT_KEPT and one.default is not MISSING
}
_dumps = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Stored:
    """What a state store has of a session.

    Args:
        entries: as `pack` wrote them, in the order in which they were written.
        played: the turns that were played, in the order of their first time.
        forgotten: the requests of which only the outcome is left, by outcome.
        evicted: as in `Session`.
        gaps: as in `Session`.
        gone: the processes that ended without a word.
    """

    entries: Sequence[bytes] = ()
    played: Sequence[tuple[str, int]] = ()
    forgotten: Mapping[str, int] | None = None
    evicted: bool = False
    gaps: tuple[str, ...] = ()
    gone: Collection[str] = ()


def pack(exchange: Exchange, process: str, number: int, ahead: float = 0.0) -> bytes:
    """An entry, in ASCII without a line break.

    Args:
        process: the name of the process that writes it.
        number: of the exchange in this process.
        ahead: by how many seconds the clock of all processes is ahead of this one's.
    """
    entry: dict[str, Any] = {"by": [process, number]}
    for name in ("method", "path", "headers"):
        entry[name] = getattr(exchange, name)
    for name, default in _DEFAULTS.items():
        value = getattr(exchange, name)
        if value != default:
            entry[name] = value
    entry["body"] = exchange.body.decode("utf-8", "surrogateescape")
    entry["at"] = exchange.at + ahead
    target = exchange.target
    if target is not None:
        entry["target"] = [dict(target.segments), target.method, dict(target.query)]
    return _dumps(entry).encode("ascii")


def unpack(entry: bytes) -> tuple[Exchange, tuple[str, int]]:
    """The exchange of an entry, and by which process it was written, under which number."""
    values = json.loads(entry)
    process, number = values.pop("by")
    values["body"] = values["body"].encode("utf-8", "surrogateescape")
    for name in ("problems", "quirks"):
        if name in values:
            values[name] = tuple(values[name])
    if "target" in values:
        values["target"] = Target(*values["target"])
    return Exchange(**values), (process, number)


def restore(
    name: str,
    stored: Stored,
    new: Callable[[str], Session] = Session,
    record: Callable[[Session, Exchange], None] = Session.record,
) -> Session:
    """The session as one process would have it that had answered all requests.

    Its entries are in the order in which the requests arrived.

    Args:
        new: makes a session of a name.
        record: adds an exchange to it.
    """
    session = new(name)
    session.evicted, session.gaps = stored.evicted, stored.gaps
    session.forget_earlier(stored.forgotten or {})
    latest: dict[tuple[str, int], Exchange] = {}
    for entry in stored.entries:
        exchange, by = unpack(entry)
        latest[by] = exchange
    for by, exchange in latest.items():
        if exchange.in_use and by[0] in stored.gone:
            exchange.in_use, exchange.complete = False, False
            exchange.problems += (ENDED_EARLY,)
    turns: set[tuple[str | None, int | None]] = set()
    for exchange in sorted(latest.values(), key=lambda one: one.at):
        turn = (exchange.scenario, exchange.turn)
        if exchange.recorded and exchange.attempt == 1:
            exchange.repeated = turn in turns
        turns.add(turn)
        exchange.clock = exchange.at  # of one clock for all processes
        record(session, exchange)
        if exchange.answer_id is not None:
            session.keep_answer(exchange.answer_id, exchange)
    for scenario, index in stored.played:
        session.note_played_turn(scenario, index)
    return session


def outcomes_of(entries: Iterable[bytes]) -> dict[str, int]:
    """How many entries of answers that are over have each outcome."""
    counts: dict[str, int] = {}
    for entry in entries:
        values = json.loads(entry)
        if values.get("in_use"):
            continue
        outcome = values.get("outcome", _DEFAULTS["outcome"])
        counts[outcome] = counts.get(outcome, 0) + 1
    return counts
