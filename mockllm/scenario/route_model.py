"""Routes that call no model, WebSockets and jobs, as they are written. Only data may live here."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from mockllm.core.record import record


@record
class RouteAnswer:
    """`answer:` of a turn: the answer of a route that calls no model.

    Args:
        headers: names in lower case.
        kind: how `value` holds the body: a JSON value, a text, base64 text, or the name of a file
            beside the YAML; "" is no body.
        path: of the file; None for a scenario that was not loaded from a file.
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    kind: Literal["", "json", "text", "base64", "file"] = ""
    value: Any = None
    path: str | None = field(default=None, compare=False)


@record
class RouteSpec:
    """A route that calls no model, `POST /v1/embeddings`.

    Args:
        path: `{name}` stands for one segment, `*` for any text.
        host: the only host that it answers for, with its port where that is not the usual one, in
            lower case; "" for any. A client with a base URL of mockllm does not say which host it
            means: to it every route answers.
    """

    method: str
    path: str
    host: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.host}{self.path}"


@record
class CloseSpec:
    """The end of a WebSocket.

    Args:
        code: 0: there is none.
        how: without a close frame, by FIN or RST; "": with one.
    """

    code: int = 1000
    reason: str = ""
    how: Literal["", "eof", "reset"] = ""


MessageValue = Any
"""A JSON object or array, a text, base64 text, or a `CloseSpec`."""


@record
class MessageSpec:
    """A message on a WebSocket, or its end.

    Args:
        value: in a text of JSON, or in place of base64, `<4800 bytes>` or
            `<48000 bytes in 10 messages>` stands for bytes.
    """

    kind: Literal["json", "text", "base64", "close"]
    value: MessageValue


@record
class Pending:
    """The time for which a job is pending: for so many polls, and for so long, in microseconds."""

    polls: int = 0
    duration: int = 0

    def __or__(self, other: Pending) -> Pending:
        """The time until both of two jobs are done."""
        return Pending(max(self.polls, other.polls), max(self.duration, other.duration))


@record
class JobRoute:
    """A further route of a job, with its answer."""

    route: RouteSpec
    answer: RouteAnswer


@record
class JobSpec:
    """`job:` of a turn, whose work is done later while the client polls.

    The turn of a conversation has `pending` and `expires`: its `reply` is what the job comes to. A
    turn of a route has the other keys; in them and in its `answer`, `{id}` stands for the id of the
    job.

    Args:
        expires: whether a request of a batch expires when it would be done.
        wait: what polls get while it is pending; None: what its creation got.
        then: what polls get afterwards.
        result: answers when the job is done, and not before.
        cancel: ends a pending job; polls get its answer from then on.
        list: its answer has the jobs at `{jobs}`, each as a poll would get it.
    """

    pending: Pending
    expires: bool = False
    poll: RouteSpec | None = None
    wait: RouteAnswer | None = None
    then: RouteAnswer | None = None
    result: JobRoute | None = None
    cancel: JobRoute | None = None
    delete: JobRoute | None = None
    list: JobRoute | None = None
