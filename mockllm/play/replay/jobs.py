"""The progress of a job: work that one request began, and that others poll.

A job is the exchange that created it, which the session finds by the id of the job, and counters
of the session: how often it was polled, and whether it was cancelled or deleted. So every process
that shares the state of the session gives the same answer. No clock is read here.
"""

from __future__ import annotations

from mockllm.core.http import TimedBytes
from mockllm.core.jsontext import json_bytes, parse_object
from mockllm.play.replay.compilation.http_answer import HttpAnswer, bytes_answer
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.route_model import Pending
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Background, JobState

AT_ONCE = Pending()
"""Of a job that is done at the first poll."""


def counters_of(id: str, created: Exchange) -> tuple[str, str]:
    """The names of the counters of a job's polls and cancellations."""
    key = f"{id} {created.received.at!r}"
    return f"polls of {key}", f"cancels of {key}"


class JobProgress:
    """The progress of one job.

    Args:
        id: of the job. A later job may have the same id, and begins anew.
        now: when the request arrived that wants to know it, in seconds since 1970.
        speed: of the time for which the job is pending; 0: it takes no time.
    """

    def __init__(
        self,
        session: Session,
        id: str,
        created: Exchange,
        pending: Pending,
        now: float,
        speed: float,
    ) -> None:
        self._session, self._pending = session, pending
        self._polls, self._cancels = counters_of(id, created)
        microseconds = (now - created.received.at) * 1_000_000
        self._waited = not speed or microseconds * speed >= pending.duration

    def state(self, *, polled: bool = False) -> JobState:
        """Its progress now; a poll counts afterwards."""
        polls = self._session.add_to(self._polls, int(polled))
        if self._session.add_to(self._cancels, 0):
            return "cancelled"
        return "done" if polls >= self._pending.polls and self._waited else "pending"

    def cancel(self) -> JobState:
        """Cancels it if it is pending; how far it is then."""
        if self.state() == "pending":
            self._session.add_to(self._cancels)
            return "cancelled"
        return self.state()


def deletions_of(id: str) -> str:
    """The name of the counter of the deletions of what has this id."""
    return f"deletes of {id}"


def delete_job(session: Session, id: str) -> None:
    """Deletes what a session finds by this id."""
    session.add_to(deletions_of(id))


def is_deleted(session: Session, id: str) -> bool:
    """Whether it was deleted."""
    return session.add_to(deletions_of(id), 0) > 0


def begin_background(answer: HttpAnswer, background: Background) -> HttpAnswer:
    """The answer to a request that begins an answer in the background, from that answer."""
    body = background.until_done(parse_object(answer.data[0]), "created")
    part = TimedBytes(0, json_bytes(dumps(body)))
    return bytes_answer(200, answer.headers, [part], streamed=False, id=answer.id)


def rest_of(answer: HttpAnswer, events: int) -> HttpAnswer:
    """A streamed answer without its first events, for a client that has them."""
    rest = answer.chunks[events:]
    begin = rest[0].at if rest else 0
    parts = [TimedBytes(part.at - begin, part.data) for part in rest]
    return bytes_answer(200, answer.headers, parts, streamed=True, id=answer.id)
