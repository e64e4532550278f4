"""Journal entries as bytes, for processes that share a journal, and the session that they make.

A process packs many entries at once: the names of the fields, bodies and headers stand there once.
It packs an entry once more when its answer is over; the later one counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from mockllm.core.http import Target
from mockllm.core.record import record
from mockllm.replay.sessions.exchange import Exchange, Played, Received, Sent
from mockllm.replay.sessions.session import Session

ENDED_EARLY = "The server process that sent this answer ended before the answer did."
"""The problem of an entry whose process is gone."""

_PLAYED = tuple(field.name for field in fields(Played))
_SENT = tuple(field.name for field in fields(Sent) if field.name not in ("clock", "marks"))
_played, _sent = attrgetter(*_PLAYED), attrgetter(*_SENT)
_dumps = json.JSONEncoder(separators=(",", ":")).encode

_Key = tuple[str, int]


@record
class Stored:
    """What a state store has of a session.

    Args:
        entries: as `pack` wrote them, in the order in which they were written.
        played: the turns that were played, in the order of their first time.
        forgotten: the requests of which only the outcome is left, by outcome.
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
        ahead: by how many seconds the clock of all processes is ahead of this one's.
    """
    bodies: dict[bytes, int] = {}
    heads: dict[tuple[tuple[str, str], ...], int] = {}
    entries = []
    for number, exchange in exchanges:
        body = bodies.setdefault(exchange.body, len(bodies))
        head = heads.setdefault(tuple(exchange.headers.items()), len(heads))
        target = exchange.received.target
        where = (
            None if target is None else (dict(target.segments), target.method, dict(target.query))
        )
        received = (
            exchange.received.method,
            exchange.path,
            head,
            body,
            exchange.received.at + ahead,
            exchange.received.connection,
            where,
        )
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
        # One clock for all processes.
        exchange = Exchange(
            Received(
                method,
                path,
                heads[head],
                bodies[body],
                at,
                at,
                connection,
                None if where is None else Target(*where),
            ),
            Played(**_tuples(zip(value["played"], played, strict=True))),
            Sent(at, **_tuples(zip(value["sent"], sent, strict=True))),
            in_use=in_use,
            body_size=body_size,
        )
        yield (value["by"], number), exchange


def _tuples(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: tuple(value) if type(value) is list else value for name, value in values}


def restore(
    name: str,
    stored: Stored,
    new: Callable[[str], Session] = Session,
    record: Callable[[Session, Exchange], None] = Session.record,
) -> Session:
    """The session as one process would have it that had answered all requests.

    Its entries are in the order in which the requests arrived.
    """
    session = new(name)
    session.evicted, session.gaps = stored.evicted, stored.gaps
    session.forget_earlier(stored.forgotten or {})
    latest: dict[_Key, Exchange] = {}
    for packed in stored.entries:
        latest.update(unpack(packed))
    for by, exchange in latest.items():
        if exchange.in_use and by[0] in stored.gone:
            exchange.sent.report(ENDED_EARLY)
            exchange.settle()
    turns: set[tuple[str | None, int | None]] = set()
    for exchange in sorted(latest.values(), key=lambda one: one.received.at):
        turn = (exchange.scenario, exchange.turn)
        if exchange.played.recorded and exchange.played.attempt == 1:
            exchange.note_repeat(turn in turns)
        turns.add(turn)
        record(session, exchange)
    for scenario, index in stored.played:
        session.note_played(scenario, index)
    return session
