"""The entry of a journal: a request as it was received, what was played, and what was sent.

Each part is made by the place that knows it, and none is changed from outside. No clock is read
here.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from mockllm.core.errors import RequestError
from mockllm.core.http import NO_TARGET, Target, TimedBytes
from mockllm.core.jsontext import parse_object
from mockllm.core.record import record
from mockllm.core.request import Message, OfferedTool, Request
from mockllm.play.agents.agent_requests import read_request
from mockllm.play.mcp.rpc import Operation
from mockllm.play.replay.sessions.shortened_bodies import MAX_BODY, shortened_body
from mockllm.wire.protocols import PROTOCOLS

ExchangeOutcome = Literal[
    "played",
    "unmatched",
    "invalid",
    "error",
    "forwarded",
    "unknown route",
    "failed",
    "auxiliary",
]

Cause = Literal["", "scenario", "request", "server", "quota", "capacity", "state store", "service"]

_NAMES = {"sent.bytes": "bytes_sent", "sent.shown_times": "times"}

_FACTS = {
    _NAMES.get(path, path.rpartition(".")[2]): attrgetter(path)
    for path in (
        "received.method",
        "received.path",
        "played.api",
        "session",
        "number",
        "received.at",
        "played.model",
        "played.scenario",
        "played.turn",
        "played.position",
        "played.attempt",
        "played.form",
        "played.stream",
        "outcome",
        "status",
        "problems",
        "sent.bytes",
        "sent.client_gone",
        "sent.stopped",
        "sent.interrupted",
        "sent.duration",
        "sent.ended",
        "sent.shown_times",
        "played.quirks",
        "sent.fault",
        "sent.struck",
        "sent.struck_after",
        "retry_after",
        "received.connection",
        "played.recorded",
        "played.repeated",
        "played.changes",
    )
}
"""The fields of an entry in JSON, besides its headers and its body, and where it has them."""


class Received(NamedTuple):
    """A request, as a journal shows it. Each request makes one: a frozen dataclass takes four times
    as long.

    Args:
        path: with its query, without the prefix of a session; secrets are masked.
        headers: credentials are masked.
        body: as received.
        at: when it arrived, in seconds since 1970.
        clock: the same moment, in seconds of a monotonic clock: for the order of exchanges, not for
            the time of day.
        connection: the client's port, by which its open connections can be told apart; 0 where it
            is not known.
        target: of a request for an answer, as its path and query give it; None for others.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""
    at: float = 0.0
    clock: float = 0.0
    connection: int = 0
    target: Target | None = None


@record
class Played:
    """Which answer a request gets, and why.

    Args:
        outcome: `played`; `unmatched` (no scenario answers); `invalid` (refused by the rules of
            the API or the turn's `request` conditions); `error` (an HTTP error that `cause` has);
            `forwarded` (the real service answers); `unknown route` (no API and no scenario has
            it); `failed` (mockllm could not answer, because of a mistake of its own); `auxiliary`
            (an agent asks it beside the conversation, and mockllm answers by itself).
        cause: of an error or a fault: the scenario has it for this try, the request asks for it
            (`x-mockllm-fault`), or the server has it (`--fault`, or its session); the request is
            beyond a quota or has no slot, or the state store or the real service is away.
        turn: the index of the turn that answered; `position` as in
            `mockllm.play.matching.select.Selection`.
        attempt: the number of the attempt at the turn, from 1.
        form: which form of the turn answered (`TurnSpec.forms`): 0 is the turn itself, the others
            are entries of its `when` and `one_of`.
        quirks: of the stream, besides those of the scenario: the server's and the request's.
        recorded: whether the recording of the turn was played (`exact`) or why not, as in
            `mockllm.play.replay.compilation.tape_player.Why`; "" for a turn without a recording.
        repeated: whether every recording of this very request had been played in the session
            before, so that the last one was played again.
        changes: how the request differs from the one that its recording was made from, as
            `mockllm.play.matching.request_changes` has it.
        retry_after: how long the answer says to wait before the next try, in seconds; None where
            it does not say it.
        missed: why a requested fault cannot strike; "" where it can.
        answer_id: by which the answer can be looked up later; None where it cannot.
        begins: whether it begins a job, whose id is `answer_id`: the answer is fetched later.
        settles: the ids of jobs of which the client has all that it will get: their answers, or
            that it cancelled or deleted them.
        mistake: of the client, on a WebSocket: a name in `violations.yaml` of the judge, whose
            sentence has the `problems`; "" for none.
        counted: whether a state store that was away may have counted the request, although it was
            refused for that: its next try may get the answer after the one that it should get.
        auxiliary: what an auxiliary request is for: the name of the agent, and a kind of
            `mockllm/play/agents/auxiliary.yaml`.
        conversation: of an agent whose headers name it, as `Agent.conversation_of` has it; "" for
            others.
        mcp: of a request to an MCP server; None of all others.
    """

    outcome: ExchangeOutcome = "invalid"
    status: int = 0
    cause: Cause = field(default="", kw_only=True)
    problems: tuple[str, ...] = ()
    api: str | None = None
    model: str | None = None
    stream: bool = False
    scenario: str | None = None
    turn: int | None = None
    position: int | None = None
    attempt: int = 1
    form: int = 0
    quirks: tuple[str, ...] = ()
    recorded: str = ""
    repeated: bool = False
    changes: tuple[str, ...] = ()
    retry_after: float | None = None
    missed: str = ""
    answer_id: str | None = None
    begins: bool = False
    settles: tuple[str, ...] = ()
    mistake: str = ""
    counted: bool = False
    conversation: str = ""
    auxiliary: str = ""
    mcp: Operation | None = None


_NO_HEADERS: Mapping[str, str] = {}

NOTHING = Played()
"""Of a request of which nothing is known."""


class Times(NamedTuple):
    """Times of a timed answer, in seconds after its start.

    Args:
        ttft: until the first event with content; None for an answer that is no stream.
        itl: the mean between two events with content; None where there are no two.
    """

    duration: float
    ttft: float | None = None
    itl: float | None = None


class GateWait(NamedTuple):
    """The wait of an answer at a gate.

    Args:
        gate: its name.
        at: when the answer came there, in seconds after the request's arrival.
        waited: in seconds; None: it waits.
        ended: `released`, `expired` (nobody opened the gate within its limit) or `left` (the
            client went away, or the server stopped); "" while it waits.
    """

    gate: str
    at: float
    waited: float | None = None
    ended: Literal["", "released", "expired", "left"] = ""

    @property
    def problem(self) -> str:
        """The sentence about a gate that nobody opened."""
        return (
            f"nobody opened the gate {self.gate!r} in {self.waited or 0:.3g} s, so the answer went "
            f"on; call mockllm_session.release({self.gate!r}) (POST "
            f"/_mockllm/gates/{self.gate}/release), or give the gate a longer 'limit'"
        )


@dataclass(slots=True)
class Sent:
    """The sending of an answer: its bytes so far, and its end. Whoever writes reports it here.

    Args:
        clock: when the request arrived, in seconds of `time.perf_counter`; so are all `now`.
        marks: after each write of an answer that takes time: the bytes of the body that were
            written, and when that was, in seconds after the start of the answer. None: not noted.
        status: where it is not that of what was played.
        bytes: of the body, without HTTP chunk framing.
        ended: when the last pause of the answer was over and the rest was written, in seconds
            after the request's arrival; 0 for an answer without pauses. None until then, and
            where the client went away, or the server stopped, earlier.
        client_gone: whether the client went away before the answer was complete.
        stopped: whether the server stopped before the answer was complete.
        interrupted: whether a message of the client ended the answer, over a WebSocket.
        duration: in seconds, from the request's arrival to the answer's end.
        times: when a timed answer was due, and when it was written; None for one that is not
            timed, or has a fault, or was not sent whole.
        complete: whether the answer ends properly, rather than with a broken connection.
        failed: whether mockllm itself failed while it sent.
        fault: what breaks on the way of the answer, as it is written; "" for nothing.
        struck: when it struck, in seconds after the request's arrival; None: it did not.
        struck_after: the bytes of the body that were sent before.
        missed: why it does not strike; "" where it does.
        retry_after: where it is not that of what was played.
        problems: that came up while it was sent.
        gates: where it waited; only at the last of them it may wait now.
    """

    clock: float = 0.0
    marks: array[float] | None = None
    status: int | None = None
    bytes: int = 0
    ended: float | None = None
    client_gone: bool = False
    stopped: bool = False
    interrupted: bool = False
    duration: float = 0.0
    times: tuple[Times, Times] | None = None
    complete: bool = True
    failed: bool = False
    fault: str = ""
    struck: float | None = None
    struck_after: int | None = None
    missed: str = ""
    retry_after: float | None = None
    problems: tuple[str, ...] = ()
    gates: tuple[GateWait, ...] = ()

    def note_marks(self) -> None:
        """From now on each write leaves a mark."""
        self.marks = array("d")

    def forget_marks(self) -> None:
        """The marks are not needed any more."""
        self.marks = None

    def note_times(self, planned: Times, delivered: Times) -> None:
        """The times of a timed answer are known."""
        self.times = planned, delivered

    @property
    def shown_times(self) -> dict[str, dict[str, float | None]] | None:
        """`times` as a journal shows them, in whole microseconds."""
        if self.times is None:
            return None
        planned, delivered = (
            {name: value and round(value, 6) for name, value in Times(*times)._asdict().items()}
            for times in self.times
        )
        return {"planned": planned, "delivered": delivered}

    def at_once(self, size: int) -> None:
        """The whole answer went out in one write."""
        self.ended, self.bytes = 0.0, size

    @property
    def waits_at(self) -> str | None:
        """The gate at which the answer waits; None: at none."""
        last = GateWait(*self.gates[-1]) if self.gates else None
        return last.gate if last is not None and last.waited is None else None

    def wait_at(self, gate: str, now: float) -> None:
        """The answer has come to a gate."""
        self.gates += (GateWait(gate, now - self.clock),)

    def go_on(self, now: float, ended: Literal["released", "expired", "left"]) -> None:
        """The wait at the last gate is over."""
        gate, at, *_ = self.gates[-1]
        wait = GateWait(gate, at, now - self.clock - at, ended)
        self.gates = (*self.gates[:-1], wait)
        if ended == "expired":
            self.problems += (wait.problem,)

    def end_at_once(self) -> None:
        """The answer has no pauses."""
        self.ended = 0.0

    def wrote(self, size: int, now: float) -> None:
        """So many bytes of the body went out in one write."""
        self.bytes += size
        if self.marks is not None:
            self.marks.extend((self.bytes, now - self.clock))

    def end_pauses(self, now: float) -> None:
        """The last pause is over, and the rest was written."""
        self.ended = now - self.clock

    def leave(self) -> None:
        """The client is gone."""
        self.client_gone = True

    def interrupt(self) -> None:
        """A message of the client ends the answer."""
        self.interrupted = True

    def break_off(self) -> None:
        """The answer ends with a broken connection."""
        self.complete = False

    def break_with(self, fault: str, status: int | None, retry_after: float | None = None) -> None:
        """The answer is sent with a fault."""
        self.fault, self.status, self.retry_after = fault, status, retry_after
        self.ended = None

    def miss(self, reason: str) -> None:
        """The fault does not strike."""
        self.missed = reason

    def strike(self, now: float) -> None:
        """The fault strikes, if it has not yet."""
        self.complete = False
        if self.struck is None:
            self.struck, self.struck_after = now - self.clock, self.bytes

    def pass_on(self, status: int) -> None:
        """The answer of a service is passed on."""
        self.status = status

    def report(self, problem: str) -> None:
        """The answer is not what it should be; it breaks off."""
        self.problems += (problem,)
        self.complete = False

    def fail(self, problem: str, status: int) -> None:
        """A mistake in mockllm itself ends the answer."""
        self.failed, self.status = True, status
        self.report(problem)

    def finish(self, now: float, *, stopping: bool = False) -> None:
        """The answer is over."""
        self.duration = now - self.clock
        if stopping and self.client_gone:
            self.client_gone, self.stopped = False, True


_rest_of = attrgetter(
    *(
        slot.name
        for slot in fields(Sent)
        if slot.name not in ("clock", "marks", "bytes", "duration")
    )
)
_WHOLE = _rest_of(Sent(ended=0.0))


@dataclass(slots=True)
class PassedAnswer:
    """The answer of a service, as it passed.

    Args:
        chunks: of the body, as received; beyond `most` bytes they are counted in `left_out`.
    """

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    chunks: list[TimedBytes] = field(default_factory=list)
    size: int = 0
    left_out: int = 0
    most: int = 4 * 1024 * 1024

    def add(self, chunk: TimedBytes) -> None:
        """Keeps a chunk."""
        if self.size + len(chunk.data) > self.most:
            self.left_out += len(chunk.data)
            return
        self.size += len(chunk.data)
        self.chunks.append(chunk)


@dataclass(slots=True, eq=False, repr=False)
class Exchange:
    """One request to the server and its outcome: an entry of the journal.

    It has the request as received, and how the answer ended, but not the bytes of the answer.
    Recorders and importers have the bytes of both: `mockllm.play.tapes.captured.Captured`.

    Args:
        session: the name of its session; `number` counts from 1 within it.
        in_use: whether the server still works with it, and needs its whole body.
        body_size: the full size of a body that was shortened, in bytes; None for one that is kept
            as received.
        passed: what a service answered; None where nothing was forwarded, or it is not kept.
    """

    received: Received
    played: Played = NOTHING
    sent: Sent = field(default_factory=Sent)
    _: KW_ONLY
    session: str = ""
    number: int = 0
    in_use: bool = False
    body_size: int | None = None
    passed: PassedAnswer | None = None
    charged: int = field(default=0, init=False)
    """The memory that its journal counts for it, in bytes."""
    _dropped: bool = field(default=False, init=False)

    # What tests read (docs/pytest.md): the rest is in `received`, `played` and `sent`

    @property
    def path(self) -> str:
        """As in `Received`; and so are the next ones."""
        return self.received.path

    @property
    def headers(self) -> Mapping[str, str]:
        return self.received.headers

    @property
    def body(self) -> bytes:
        return self.received.body

    @property
    def json(self) -> Any:
        """The body as JSON, as the client sent it; None where it is no object."""
        try:
            return parse_object(self.received.body)
        except RequestError:
            return None

    @property
    def request(self) -> Request | None:
        """The request for a model, the same for every API; None where that is nothing, or
        cannot be read."""
        protocol, body = PROTOCOLS.get(self.played.api or ""), self.json
        if protocol is None or body is None:
            return None
        try:
            target = self.received.target or NO_TARGET
            return read_request(protocol, body, target, self.headers)
        except RequestError:
            return None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The history of `request`; and so are the tools that it offers."""
        request = self.request
        return () if request is None else request.messages

    @property
    def tools(self) -> tuple[OfferedTool, ...]:
        request = self.request
        return () if request is None else request.tools

    @property
    def scenario(self) -> str | None:
        """As in `Played`; and so is the next one."""
        return self.played.scenario

    @property
    def turn(self) -> int | None:
        return self.played.turn

    @property
    def fault(self) -> str:
        """As in `Sent`."""
        return self.sent.fault

    @property
    def outcome(self) -> ExchangeOutcome:
        """As in `Played`; `failed` also where mockllm failed while it sent the answer."""
        return "failed" if self.sent.failed else self.played.outcome

    @property
    def status(self) -> int:
        """Of the answer; 0 where none was sent."""
        return self.played.status if self.sent.status is None else self.sent.status

    @property
    def retry_after(self) -> float | None:
        """The seconds that the answer says to wait before the next try; None where it does not
        say it."""
        own = self.sent.retry_after
        return self.played.retry_after if own is None else own

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems of the request, for people."""
        played, sent = self.played, self.sent
        missed = played.missed or sent.missed
        if not missed:
            return played.problems + sent.problems
        return (*played.problems, f"a fault did not strike: {missed}", *sent.problems)

    @property
    def expired_gates(self) -> tuple[GateWait, ...]:
        """The waits at gates that nobody opened within their limits."""
        waits = (GateWait(*wait) for wait in self.sent.gates)
        return tuple(wait for wait in waits if wait.ended == "expired")

    @property
    def arrived(self) -> bool:
        """Whether the client has got a whole answer that is no error."""
        is_good = self.outcome == "played" and self.status < 300 and not self.sent.fault
        return is_good and self.sent.complete and not self.broken_off

    @property
    def broken_off(self) -> bool:
        """Whether the answer was not sent whole: the client left or interrupted it, or the server
        stopped."""
        return self.sent.client_gone or self.sent.stopped or self.sent.interrupted

    @property
    def fault_missed(self) -> str:
        """Why a fault that it was to have did not strike; "" where none was to, or it did."""
        return self.played.missed or self.sent.missed

    # Its life

    def enter(self, session: str, number: int) -> int:
        """Enters the journal of a session; an estimate of the memory that it needs there."""
        self.session, self.number = session, number
        problems = sum(map(len, self.played.problems)) if self.played.problems else 0
        self.charged = 1024 + min(len(self.received.body), MAX_BODY) + problems
        return self.charged

    def keep_passed(self) -> None:
        """Keeps the answer of a service as it passes."""
        self.passed = PassedAnswer()

    def forward(self, played: Played, body: bytes | None = None) -> None:
        """A service answers instead: what that came to, and what of the request's body was read
        on its way."""
        self.played = played
        if body is not None:
            self.received = self.received._replace(body=body)

    def note_repeat(self, repeated: bool) -> None:
        """Notes whether its recording was played before, where its process could not know it."""
        self.played = replace(self.played, repeated=repeated)

    def settle(self) -> None:
        """Gives up what only the server needed, once the answer is over."""
        self.in_use = False
        if self._dropped:
            self._clear()
        elif len(self.received.body) > MAX_BODY:
            self.body_size = len(self.received.body)
            self.received = self.received._replace(body=shortened_body(self.received.body))

    def drop(self) -> None:
        """Gives up headers and body, since the entry has left the journal."""
        self._dropped = True
        if not self.in_use:
            self._clear()

    def _clear(self) -> None:
        method, path, _, body, at, clock, connection, target = self.received
        if len(body) > MAX_BODY:
            self.body_size = len(body)
        self.received = Received(method, path, _NO_HEADERS, b"", at, clock, connection, target)
        self.passed = self.sent.marks = None

    @property
    def is_plain(self) -> bool:
        """Whether its answer was sent whole, at once: as nearly all that have no pauses."""
        return not self.in_use and _rest_of(self.sent) == _WHOLE

    @property
    def dropped(self) -> bool:
        """Whether it has left the journal of its session."""
        return self._dropped

    def copy(self, body: bytes | None = None) -> Exchange:
        """The entry as it is now."""
        received = self.received if body is None else self.received._replace(body=body)
        return replace(self, received=received, sent=replace(self.sent), passed=None)

    def facts(self) -> dict[str, Any]:
        """Its JSON without headers and body, and without what only some have: `cause`, `open`
        (its answer is on its way), `conversation`, `auxiliary`, `mcp`, `gates` and `body_size`."""
        facts = {name: value_of(self) for name, value_of in _FACTS.items()}
        if self.played.cause:
            facts["cause"] = self.played.cause
        for name in ("conversation", "auxiliary"):
            if value := getattr(self.played, name):
                facts[name] = value
        if self.in_use:
            facts["open"] = True
        if self.played.mcp is not None:
            facts["mcp"] = Operation(*self.played.mcp)._asdict()
        if self.sent.gates:
            facts["gates"] = [GateWait(*wait)._asdict() for wait in self.sent.gates]
        return facts if self.body_size is None else facts | {"body_size": self.body_size}

    def as_json(self) -> dict[str, Any]:
        """As the control route shows it; a body that is not UTF-8 is in `body_base64`."""
        first = {"method": self.received.method, "path": self.path, "headers": self.headers}
        try:
            body = {"body": self.body.decode()}
        except UnicodeDecodeError:
            body = {"body_base64": base64.b64encode(self.body).decode()}
        return {**first, **self.facts(), **body}


def not_kept_whole(id: str, exchange: Exchange) -> RequestError:
    """The error for an answer that cannot be given again, as its request was too large."""
    return RequestError(
        f"The answer {id!r} cannot be given again: its request had {exchange.body_size} bytes, and "
        f"a session keeps {MAX_BODY} bytes of a request. Send a smaller one.",
        status=404,
        code="request_not_kept",
    )
