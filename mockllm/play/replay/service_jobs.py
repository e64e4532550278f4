"""The jobs of a session, as the job routes of a service see them: see
`mockllm.wire.protocols.jobs`.

What a request made is that request, in the journal of the session. The requests of a batch are
answered by the scenarios anew whenever that is looked up, in a session of their own: so each is the
first try of its turn, and every process and every look-up have the same answers.

The objects of a table (`ObjectKind`) are read in the same way: the request that made one, and those
that changed it, whose number the session counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, reduce
from itertools import chain
from operator import or_
from typing import Any, Protocol

from mockllm.core.errors import RequestError
from mockllm.core.http import Target, TimedBytes
from mockllm.core.jsontext import json_bytes
from mockllm.core.record import record
from mockllm.core.seeded import derive
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.call import Answered, ApiCall, refuse
from mockllm.play.replay.compilation.http_answer import CORS, HttpAnswer, bytes_answer
from mockllm.play.replay.filling import played_turn
from mockllm.play.replay.jobs import JobProgress, counters_of, delete_job, deletions_of, is_deleted
from mockllm.play.replay.lookups import Lookups, find_fallback
from mockllm.play.replay.sessions.exchange import Exchange, Played, not_kept_whole
from mockllm.play.replay.sessions.session import Session
from mockllm.play.replay.sessions.shortened_bodies import MAX_BODY
from mockllm.scenario.route_model import JobSpec, Pending
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Operation, WireProtocol, dumps
from mockllm.wire.protocols.jobs import (
    JobCall,
    JobReply,
    KeptRequest,
    ObjectKind,
    ObjectRoute,
    WorkItem,
    WorkOutcome,
)
from mockllm.wire.protocols.records import Fields, JobState, Json
from mockllm.wire.protocols.route_matching import detect, parse_query, path_target, route_pattern
from mockllm.wire.protocols.values import json_value

USUAL = Pending(polls=1)
"""How long a batch is pending whose turns say nothing of it."""


_MAKING: frozenset[Operation] = frozenset({"create_file", "create_batch"})
"""The operations whose requests are kept: they are what the requests made."""


class RequestPlayer(Protocol):
    """The player of the requests of a batch: a `mockllm.play.replay.player.Player`."""

    served: ScenarioIndex
    speed: float
    fallback: bool
    lookups: Lookups

    def play_without_plan(self, call: ApiCall) -> Answered: ...

    def play_route(self, request: RouteRequest, session: Session) -> Answered | None: ...


def answer_job(call: ApiCall, operation: Operation, player: RequestPlayer) -> Answered:
    """The answer to an operation of `WireProtocol.jobs`.

    Raises:
        RequestError: it is refused.
    """
    jobs = SessionJobs(call, player)
    sent = JobCall(jobs, call.target, call.headers, call.body, call.base)
    if operation in _MAKING:
        _check_size(call.body)
    reply = call.protocol.jobs[operation](sent)
    played = Played(
        "played",
        200,
        api=call.protocol.name,
        answer_id=reply.id or None,
        begins=operation == "create_batch",
        settles=tuple(jobs.settled),
    )
    return Answered(_http_answer(reply), played)


def _check_size(body: bytes) -> None:
    if len(body) > MAX_BODY:
        raise RequestError(
            f"The request has {len(body)} bytes, and mockllm keeps {MAX_BODY} bytes of one. "
            "Send a smaller file or batch.",
            status=413,
        )


def _http_answer(reply: JobReply) -> HttpAnswer:
    body = reply.body
    data = body if isinstance(body, bytes) else json_bytes(dumps(body))
    headers = {"content-type": reply.content_type, **CORS, **reply.headers}
    parts = [TimedBytes(0, data)] if data else []
    return bytes_answer(reply.status, headers.items(), parts, streamed=False)


class SessionJobs:
    """The jobs that the requests of a session made (`mockllm.wire.protocols.jobs.Jobs`)."""

    def __init__(self, call: ApiCall, player: RequestPlayer) -> None:
        self._call, self._session, self._player = call, call.session, player
        self.settled: list[str] = []
        """The ids of the jobs of which the client has all that it will get."""

    def _key(self, kind: str) -> str:
        return f"{kind} of {self._call.protocol.name}"

    def new(self, kind: str) -> str:
        key = self._key(kind)
        return _token(key, self._session.add_to(key))

    def tokens(self, kind: str) -> Sequence[str]:
        key = self._key(kind)
        return [_token(key, number) for number in reversed(range(self._session.add_to(key, 0)))]

    def expect(self, ids: Sequence[str]) -> None:
        self._session.expect(ids, map(deletions_of, ids))
        created = ((id, self._session.answer(id)) for id in ids)
        counters = (counters_of(id, made) for id, made in created if made is not None)
        self._session.expect((), chain.from_iterable(counters))

    def find(self, id: str, *, even_deleted: bool = False) -> KeptRequest | None:
        if not even_deleted and self.is_deleted(id):
            return None
        exchange = self._session.answer(id)
        if exchange is None:
            return None
        return KeptRequest(exchange.path.partition("?")[0], exchange.headers, exchange.body)

    def settle(self, id: str) -> None:
        self.settled.append(id)

    def delete(self, id: str) -> None:
        self.settle(id)
        delete_job(self._session, id)

    def is_deleted(self, id: str) -> bool:
        return is_deleted(self._session, id)

    def work(self, id: str, items: Sequence[WorkItem]) -> SessionWork:
        created = self._session.answer(id)
        assert created is not None
        return SessionWork(self._call, self._player, id, created, items, self.settle)

    # Objects of tables

    def new_id(self, kind: ObjectKind) -> str:
        """The id of a new object."""
        return kind.prefix + self.new(kind.name)

    def objects(self, kind: ObjectKind) -> Iterator[Json]:
        """All objects of a kind that the session has, the latest first."""
        if kind.is_answer is None and kind.named is None:
            ids = [kind.prefix + token for token in self.tokens(kind.name)]
        else:
            ids = list(dict.fromkeys(kept_answers(self._session, kind.name)))
        if kind.named is not None:
            self._session.expect((), map(_makes_of, ids))
        keys = [self.key_of(kind, id) for id in ids]
        self.expect(keys)
        counters = list(map(_changes_of, keys))
        self._session.expect((), counters)
        numbers = [(key, self._session.add_to(key, 0)) for key in counters]
        self._session.expect([f"{key} {n}" for key, count in numbers for n in range(count)], ())
        yield from filter(None, (self.find_object(kind, id) for id in ids))

    def key_of(self, kind: ObjectKind, id: str) -> str:
        """The key by which the session has an object: its id; where clients name objects, and may
        make them again, with how often that was."""
        return id if kind.named is None else f"{id} {self._session.add_to(_makes_of(id), 0)}"

    def find_object(self, kind: ObjectKind, id: str) -> Json | None:
        """An object as it is now: as it was made, with all changes since."""
        key = self.key_of(kind, id)
        if not id.startswith(kind.prefix) or self.is_deleted(key):
            return None
        made = self._session.answer(key)
        if made is None:
            return None
        found = _route_of(made, kind)
        if kind.is_answer is None and (found is None or found[0].does != "make"):
            return None
        state = kind.make(self._call_of(made, id, 0, found))
        if state is None:
            return None
        changes = _changes_of(key)
        ids = [f"{changes} {number}" for number in range(self._session.add_to(changes, 0))]
        self._session.expect(ids, ())
        for number, changed in enumerate(map(self._session.answer, ids), 1):
            if changed is not None:  # one that is counted and not there is being answered
                found = _route_of(changed, kind)
                assert found is not None
                assert found[0].change is not None
                state = found[0].change(state, self._call_of(changed, id, number, found))
        return state

    def models(self) -> Sequence[str]:
        return self.models_by_fate()[0]

    def models_by_fate(self) -> tuple[Sequence[str], Sequence[str]]:
        """The names of the models that there are, and of those that clients deleted."""
        keys = {name: name for name in self._player.served.models()[0]}
        for kind in self._call.protocol.objects:
            if kind.is_model:
                names = [*keys, *kept_answers(self._session, kind.name)]
                self._session.expect((), map(_makes_of, names))
                keys = {name: self.key_of(kind, name) for name in names}
        self._session.expect((), map(deletions_of, keys.values()))
        gone = [name for name, key in keys.items() if self.is_deleted(key)]
        return [name for name in keys if name not in gone], gone

    def play(self, body: Json, target: Target) -> WorkOutcome:
        call = self._call._replace(target=target, body=json_bytes(dumps(body)))
        answer = self._player.play_without_plan(call).answer
        return WorkOutcome(answer.status, json_value(b"".join(answer.data)))

    def answers(self, id: str) -> Iterator[tuple[float, Fields, Fields]]:
        lookups = self._player.lookups
        for answer_id in dict.fromkeys(kept_answers(self._session, id)):
            recalled = lookups.recall(self._call, answer_id)
            if recalled is not None and recalled.request.conversation == id:
                body = lookups.body_of(recalled, self._call, answer_id)
                yield recalled.exchange.received.at, body, recalled.request.body

    def _call_of(
        self, exchange: Exchange, id: str, number: int, found: tuple[ObjectRoute, Target] | None
    ) -> JobCall:
        """The request of an exchange that made or changed an object, by its route."""
        if exchange.body_size is not None and (found is None or not found[0].takes_any_size):
            raise not_kept_whole(id, exchange)
        query = parse_query(exchange.path.partition("?")[2])
        target = Target(query=query) if found is None else found[1]
        made: Fields = {}
        if exchange.scenario is not None:
            lookups = self._player.lookups
            recalled = lookups.recall(self._call, id)
            made = {} if recalled is None else lookups.body_of(recalled, self._call, id)
        headers, body, at = exchange.headers, exchange.body, exchange.received.at
        size = exchange.body_size or len(body)
        return JobCall(
            self, target, headers, body, self._call.base, id, number, at, True, size, made
        )


def _token(key: str, number: int) -> str:
    return derive(key, number)


def _changes_of(id: str) -> str:
    """The name of the counter of the changes of an object."""
    return f"changes of {id}"


def _makes_of(id: str) -> str:
    """The name of the counter of how often an object was made that clients name."""
    return f"makes of {id}"


_MOST_ANSWERS = 1000
"""The most answers that are noted of one thing; a journal has no more entries."""


def keep_answer(session: Session, of: str, id: str) -> None:
    """Notes the id of an answer among those of something, such as a conversation."""
    number = session.add_to(f"answers of {of}") % _MOST_ANSWERS
    session.keep_conversation(f"answers of {of} {number}", id)


def kept_answers(session: Session, of: str) -> Iterator[str]:
    """The ids of the answers that were noted, the latest first."""
    count = session.add_to(f"answers of {of}", 0)
    for number in reversed(range(max(0, count - _MOST_ANSWERS), count)):
        id = session.conversation(f"answers of {of} {number % _MOST_ANSWERS}")
        if id is not None:
            yield id


@record
class ObjectEndpoint:
    """A route of objects, as the path of a request has it."""

    protocol: WireProtocol
    kind: ObjectKind
    route: ObjectRoute
    target: Target

    def answer(self, call: ApiCall, player: RequestPlayer) -> Answered:
        """The answer to a request of this place.

        Raises:
            RequestError: it is refused.
        """
        jobs, kind, route = SessionJobs(call, player), self.kind, self.route
        target = replace(self.target, query=call.target.query)
        sent = JobCall(jobs, target, call.headers, call.body, call.base, at=call.received_at)
        sent = replace(sent, size=len(call.body))
        state: Any = None
        answer_id = None
        if not route.takes_any_size and route.does != "call":
            _check_size(call.body)
        if route.does == "list":
            state = list(jobs.objects(kind))
        elif route.does == "make":
            kind.make(sent)  # before anything is counted
            named = "" if kind.named is None else kind.named(sent)
            sent = replace(sent, id=kind.prefix + named if named else jobs.new_id(kind))
            answer_id, state = sent.id, kind.make(sent)
            if kind.named is not None:
                keep_answer(call.session, kind.name, sent.id)
                answer_id = f"{sent.id} {call.session.add_to(_makes_of(sent.id)) + 1}"
        elif route.does != "call":
            id = target.segments.get("id") or kind.id_in_body(sent)
            sent = replace(sent, id=id if id.startswith(kind.prefix) else kind.prefix + id)
            state = jobs.find_object(kind, sent.id)
            if state is None and not (kind.is_model and id in jobs.models()):
                raise kind.not_found(id)
        if route.change is not None:
            changes = _changes_of(jobs.key_of(kind, sent.id))
            number = call.session.add_to(changes, 0)
            route.change(state, replace(sent, number=number + 1))  # before it is counted
            number = call.session.add_to(changes)
            answer_id, sent = f"{changes} {number}", replace(sent, number=number + 1)
            state = route.change(state, sent)
        if route.does == "delete":
            jobs.delete(jobs.key_of(kind, sent.id))
        answer = route.answer(state, sent)
        reply = answer if isinstance(answer, JobReply) else JobReply(answer)
        played = Played("played", 200, api=self.protocol.name, answer_id=answer_id)
        return Answered(_http_answer(reply), played)


def find_place(method: str, path: str, owner: str | None = None) -> ObjectEndpoint | None:
    """The route of objects for a path; None where there is none.

    Args:
        path: without the query; only its end counts.
        owner: the API whose client sends the request; None where nothing says so.
    """
    for protocol in PROTOCOLS.values():
        for kind in protocol.objects:
            if owner in (None, protocol.name):
                found = _matching(kind, method, path)
                if found is not None and (owner or not kind.is_marked or found[0].is_own):
                    return ObjectEndpoint(protocol, kind, *found)
    return None


@lru_cache(maxsize=256)
def _end(path: str) -> re.Pattern[str]:
    return re.compile(route_pattern(path).pattern + r"\Z")


def _matching(kind: ObjectKind, method: str, path: str) -> tuple[ObjectRoute, Target] | None:
    path = path.rstrip("/")
    for route in kind.routes:
        if route.method == method:
            match = _end(route.path).search(path)
            if match is not None:
                return route, path_target(match)
    return None


def _route_of(exchange: Exchange, kind: ObjectKind) -> tuple[ObjectRoute, Target] | None:
    """The route and the target of an exchange that made or changed an object."""
    return _matching(kind, exchange.received.method, exchange.path.partition("?")[0])


class SessionWork:
    """The requests of one batch (`mockllm.wire.protocols.jobs.Work`)."""

    def __init__(
        self,
        call: ApiCall,
        player: RequestPlayer,
        id: str,
        created: Exchange,
        items: Sequence[WorkItem],
        settle: Callable[[str], None],
    ) -> None:
        self._call, self._player, self._id, self._settle = call, player, id, settle
        self._created, self._items = created, items

    @cached_property
    def _answers(self) -> Sequence[tuple[WorkOutcome, JobSpec | None]]:
        session = Session(self._call.session.name)
        return [self._answer(item, session) for item in self._items]

    @property
    def outcomes(self) -> Sequence[WorkOutcome]:
        return [outcome for outcome, _ in self._answers]

    @property
    def _progress(self) -> JobProgress:
        written = [job.pending for _, job in self._answers if job is not None]
        pending = reduce(or_, written) if written else USUAL
        session, created, now = self._call.session, self._created, self._call.received_at
        return JobProgress(session, self._id, created, pending, now, self._player.speed)

    def state(self, *, polled: bool = False) -> JobState:
        return self._progress.state(polled=polled)

    def cancel(self) -> JobState:
        state = self._progress.cancel()
        if state == "cancelled":
            self._settle(self._id)
        return state

    def _answer(self, item: WorkItem, session: Session) -> tuple[WorkOutcome, JobSpec | None]:
        body = json_bytes(dumps(item.body))
        protocol, answered = self._play(item.path, body, session)
        played, answer = answered.played, answered.answer
        if played.scenario is not None and played.turn is not None:
            self._call.session.note_played(played.scenario, played.turn)
        value = json_value(b"".join(answer.data))
        if value is None or answer.fault is not None or answer.ending != "complete":
            error = RequestError("The answer to this request broke off.", status=500)
            return WorkOutcome(500, protocol.error_body(error)), None
        job = self._job(protocol, played)
        return WorkOutcome(answer.status, value, expired=job is not None and job.expires), job

    def _job(self, protocol: WireProtocol, played: Played) -> JobSpec | None:
        scenario = self._player.served.by_name.get(played.scenario or "")
        if scenario is None or scenario.route is not None:
            return None
        turn = played_turn(scenario, played)
        return None if turn is None else turn.job

    def _play(self, path: str, body: bytes, session: Session) -> tuple[WireProtocol, Answered]:
        """The answer to a request that is posted to a path, and whose form its errors have."""
        headers = {**self._created.headers, "content-type": "application/json"}
        route = RouteRequest("POST", path, "", headers, body)
        found = detect("POST", path, body)
        if found.protocol is not None:
            call = ApiCall(found.protocol, found.target, headers, body, session, path)
            return found.protocol, self._player.play_without_plan(call)
        protocol = self._call.protocol
        answered = self._player.play_route(route, session)
        if answered is not None:
            return protocol, answered
        fallback = find_fallback("POST", path) if self._player.fallback else None
        try:
            if fallback is None:
                message = f"No scenario answers POST {path}."
                raise RequestError(message, status=404, code="no_scenario")
            answer = fallback.answer(route)
        except RequestError as error:
            return protocol, refuse(protocol, error)
        return protocol, Answered(answer, Played("played", answer.status))
