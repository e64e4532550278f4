"""The tools of the routes of a service that make batches and files, follow them and list them.

Only types; `mockllm.play.replay.service_jobs` has the jobs of a session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from mockllm.core.http import NO_TARGET, Target
from mockllm.core.record import record
from mockllm.wire.protocols.records import JobState, Json


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
    """

    def new(self, kind: str) -> str: ...

    def tokens(self, kind: str) -> Sequence[str]: ...

    def expect(self, ids: Sequence[str]) -> None: ...

    def find(self, id: str, *, even_deleted: bool = False) -> KeptRequest | None: ...

    def settle(self, id: str) -> None: ...

    def delete(self, id: str) -> None: ...

    def is_deleted(self, id: str) -> bool: ...

    def work(self, id: str, items: Sequence[WorkItem]) -> Work: ...


@record
class JobCall:
    """A request for a route of jobs.

    Args:
        url: of this server, as the client reaches it, without the path.
    """

    jobs: Jobs
    target: Target = NO_TARGET
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    url: str = ""


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


JobHandler = Callable[[JobCall], JobReply]
