"""Journal entries as bytes, for processes that share a journal, and the session that they make.

A process packs many entries at once: the names of the fields, bodies and headers stand there once.
It packs an entry once more when its answer is over; the later one counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from mockllm.core.target import Target
from mockllm.replay.sessions.exchange import Exchange
from mockllm.replay.sessions.session import Session

__all__ = ["ENDED_EARLY", "Stored", "pack", "restore", "unpack"]

ENDED_EARLY = "The server process that sent this answer ended before the answer did."
"""The problem of an entry whose process is gone."""

_APART = frozenset(
    (
        "session",
        "number",
        "charged",
        "dropped",
        "headers",
        "body",
        "target",
        "at",
        "left",
        "passed",
    )
)
_FIELDS = tuple(one.name for one in fields(Exchange) if one.name not in _APART)
_values = attrgetter(*_FIELDS)
_dumps = json.JSONEncoder(separators=(",", ":")).encode

_Key = tuple[str, int]


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


def pack(exchanges: Sequence[tuple[int, Exchange]], process: str = "", ahead: float = 0.0) -> bytes:
    """Entries of one session, as JSON in ASCII without a line break.

    Args:
        exchanges: each with its number in this process.
        process: the name of the process that writes them.
        ahead: by how many seconds the clock of all processes is ahead of this one's.
    """
    bodies: dict[bytes, int] = {}
    heads: dict[tuple[tuple[str, str], ...], int] = {}
    entries = []
    for number, one in exchanges:
        body = bodies.setdefault(one.body, len(bodies))
        head = heads.setdefault(tuple(one.headers.items()), len(heads))
        target = one.target
        where = (
            None if target is None else (dict(target.segments), target.method, dict(target.query))
        )
        entries.append((number, one.at + ahead, head, body, where, *_values(one)))
    return _dumps(
        {
            "by": process,
            "fields": _FIELDS,
            "headers": list(heads),
            "bodies": [body.decode("utf-8", "surrogateescape") for body in bodies],
            "entries": entries,
        }
    ).encode("ascii")


def unpack(packed: bytes) -> Iterator[tuple[_Key, Exchange]]:
    """The exchanges, each with the process that wrote it and its number there."""
    value = json.loads(packed)
    process, names = value["by"], value["fields"]
    bodies = [body.encode("utf-8", "surrogateescape") for body in value["bodies"]]
    for number, at, head, body, where, *rest in value["entries"]:
        values: dict[str, Any] = dict(zip(names, rest, strict=True))
        for name in ("problems", "quirks"):
            values[name] = tuple(values[name])
        yield (
            (process, number),
            Exchange(
                headers=dict(map(tuple, value["headers"][head])),
                body=bodies[body],
                at=at,
                target=None if where is None else Target(*where),
                **values,
            ),
        )


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
    latest: dict[_Key, Exchange] = {}
    for packed in stored.entries:
        latest.update(unpack(packed))
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
