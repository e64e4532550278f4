"""The tools of the routes of a service that make batches and files, follow them and list them, and
the tables of the other objects that it stores (`--fallback auto`).

Only types; `mockllm.play.replay.service_jobs` has the jobs of a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol

from mockllm.core.errors import RequestError
from mockllm.core.http import NO_TARGET, Target
from mockllm.core.jsontext import parse_object
from mockllm.core.record import record
from mockllm.wire.protocols.records import Fields, JobState, Json


@record
class KeptRequest:
    """A request that made something, as it was received.

    Args:
        path: without the query.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes


@record
class WorkItem:
    """One request of a batch: its path and its body."""

    path: str
    body: Json


@record
class WorkOutcome:
    """The result of a request of a batch.

    Args:
        body: of the answer; the error in the form of the API that was called.
        expired: whether it gets no answer, as the batch took too long.
    """

    status: int
    body: Any
    expired: bool = False

    @property
    def failed(self) -> bool:
        """Whether it got no answer of a model."""
        return self.expired or self.status >= 400


class Work(Protocol):
    """The requests of one batch, as the scenarios answer them.

    A request that is refused, or whose answer breaks off, has a status from 400 up. `state` says
    how far the batch is; with `polled`, the look-up counts as a poll. `cancel` cancels it if it is
    pending, and says how far it is then.
    """

    @property
    def outcomes(self) -> Sequence[WorkOutcome]: ...

    def state(self, *, polled: bool = False) -> JobState: ...

    def cancel(self) -> JobState: ...


class Jobs(Protocol):
    """The jobs and files that the requests of one session made, by ids that the service gives.

    `new` is the token for the id of a new thing of some kind, 24 letters and digits; `tokens` are
    those of all that were made, the latest first. `expect` says which ids will be looked up: a list
    asks the store of a shared session once then, and not once for each. `find` is None for what was
    not made, or is deleted, or has left the journal of the session. `settle` says that the client
    has all that it will get of a job; so has one that deletes or cancels it.

    `find_object` is an object of a table, None where there is none; `objects` are those of a kind,
    the latest first. `answers` are the bodies of the answers of a model that were made for an
    object (`conversation` of a request), each after its time (see `JobCall.at`) and with the body
    of its request. `models` are the names of the models that are served, and of those that clients
    made; `play` is the answer of a model to a request of the same API.
    """

    def new(self, kind: str) -> str: ...

    def tokens(self, kind: str) -> Sequence[str]: ...

    def expect(self, ids: Sequence[str]) -> None: ...

    def find(self, id: str, *, even_deleted: bool = False) -> KeptRequest | None: ...

    def settle(self, id: str) -> None: ...

    def delete(self, id: str) -> None: ...

    def is_deleted(self, id: str) -> bool: ...

    def work(self, id: str, items: Sequence[WorkItem]) -> Work: ...

    def find_object(self, kind: ObjectKind, id: str) -> Json | None: ...

    def objects(self, kind: ObjectKind) -> Iterable[Json]: ...

    def models(self) -> Sequence[str]: ...

    def play(self, body: Json, target: Target) -> WorkOutcome: ...

    def answers(self, id: str) -> Iterable[tuple[float, Fields, Fields]]: ...


@record
class JobCall:
    """A request for a route of jobs, or of objects.

    Args:
        url: of this server, as the client reaches it, without the path.
        id: of the object that the request makes or is about; "" for none.
        number: of the change, from 1; 0: it makes the object. The ids of what it adds are derived
            from it.
        at: when it arrived, in seconds since 1970; only to put requests in their order.
        size: of the body as it was sent, in bytes.
        is_kept: whether it is read from the journal: it was accepted, whatever became of the things
            that it names.
        made: the answer of a model that is the object.
    """

    jobs: Jobs
    target: Target = NO_TARGET
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    url: str = ""
    id: str = ""
    number: int = 0
    at: float = 0.0
    is_kept: bool = False
    size: int = 0
    made: Fields = field(default_factory=dict)

    @property
    def fields(self) -> Json:
        """The body as a JSON object; an empty one for no body."""
        return parse_object(self.body) if self.body.strip() else {}


@record
class JobReply:
    """The answer to such a request.

    Args:
        body: a JSON value, or the bytes of a file.
        id: of what the request made; "" where it made nothing.
    """

    body: Json | bytes
    id: str = ""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


JobHandler = Callable[[JobCall], JobReply]


# Objects


def public_fields(state: Any, _: JobCall) -> Json:
    """An object as clients see it: without the fields that begin with `_`."""
    return {name: value for name, value in state.items() if not name.startswith("_")}


@record
class ObjectRoute:
    """A route of a kind of objects.

    Args:
        route: a method and the end of a path; `{id}` in it is the object, or what follows the
            prefix of its id.
        does: `make`, `show` (or change, where there is `change`), `list` or `delete`; `call`: it is
            about no object, and its answer needs those of the session, or of a model.
        answer: the answer, from the object as it is afterwards (or before it is deleted; of `list`
            all objects, the latest first) and the request.
        change: the object with what the request changes, from the object before.
        takes_any_size: whether its body may be larger than what a journal keeps. Of a large one
            only the size is known later.
        is_own: whether no other service has the path, though `ObjectKind.is_marked`.
    """

    route: str
    does: Literal["make", "show", "list", "delete", "call"] = "show"
    answer: Callable[[Any, JobCall], Json | JobReply] = public_fields
    change: Callable[[Json, JobCall], Json] | None = None
    takes_any_size: bool = False
    is_own: bool = False

    @property
    def method(self) -> str:
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.route.partition(" ")[2]


@record
class ObjectKind:
    """A kind of objects that clients make, change, list and delete, as a table of its routes.

    An object is the request that made it and those that changed it, in the journal of the session.
    So every process and every look-up have the same objects.

    Args:
        name: what the ids are derived from.
        prefix: of the ids.
        make: a new object, from the request that makes it; None where it makes none. Fields that
            begin with `_` are not shown.
        not_found: the error for an id that names no object.
        is_marked: whether only requests with a header of the API (`Address.marks`) are for it, as
            another service has the same paths.
        is_answer: whether the answer of a model to a request with this body is such an object; its
            id is that of the answer.
        named: the id that a client gives a new object, without the prefix; "" for none.
        id_in_body: the id of the object that a request is about, where its path has none.
        is_model: whether the objects are models, beside those that are served.
    """

    name: str
    prefix: str
    make: Callable[[JobCall], Json | None]
    not_found: Callable[[str], RequestError]
    routes: tuple[ObjectRoute, ...]
    is_marked: bool = False
    is_answer: Callable[[Fields], bool] | None = None
    named: Callable[[JobCall], str] | None = None
    id_in_body: Callable[[JobCall], str] = lambda _: ""
    is_model: bool = False
