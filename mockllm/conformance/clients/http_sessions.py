"""A case over HTTP: its session, its message, and what came of its requests.

`FunctionPlayer` is a client in this process, called with the base URL of each case with a fault.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import CRASHES, Outcome
from mockllm.conformance.clients.messages import (
    Answer,
    InvalidMessageError,
    as_json,
    no_answer,
    read_answer,
    tools_json,
)
from mockllm.core.errors import ProbeError
from mockllm.core.jsontext import parse_object
from mockllm.play.matching.conditions import check_partial
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.serve.server.control.control_routes import base_urls
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols import PROTOCOLS

_DEADLINE = 0.9
"""The part of the limit after which a client is to give up by itself, and report that."""

PATIENCE = 1.0
"""Seconds that a client gets after the deadline of a case with a fault, before its connections are
broken off."""

END = 10.0
"""Seconds that a client gets after that, before it is ended."""

_GRACE = 1.0
"""Seconds that the connections of a client that has answered may take to end."""

Urls = Mapping[str, str]
"""The base URL of each API, by its name."""


@dataclass(slots=True)
class CaseSession:
    """A case in a session of its own.

    Args:
        limit: seconds that a stream may take; a case with a fault has a deadline of its own.
    """

    thread: ServerThread
    case: Case
    numbers: Iterator[int]
    limit: float = 0.0
    urls: Urls = field(default_factory=dict)
    _name: str = ""

    def open(self) -> dict[str, Any]:
        """The message of the case; each time in a new session, which plays the case once."""
        if self._name:
            self.close()
        self._name = f"case-{next(self.numbers)}"
        faults = self.case.fault.texts if self.case.fault else ()
        self.thread.play(self._name, self.case.scenario, faults)
        self.urls = base_urls(f"{self.thread.url}/s/{self._name}")
        return case_message(self.case, self.urls, self.limit)

    def exchanges(self) -> tuple[Exchange, ...]:
        """The requests so far."""
        return self.thread.exchanges(self._name)

    def settled_exchanges(self) -> tuple[Exchange, ...]:
        """The requests, once every answer is over, or after `_GRACE` seconds."""
        return self.thread.settled_exchanges(self._name, _GRACE)

    def break_off(self) -> None:
        """Ends the connections on which an answer is not over; further requests get an error."""
        self.thread.ask(self._break_off)

    def _break_off(self) -> None:
        self.thread.server.break_off(self._name)
        self.thread.server.assign(self._name, ())

    def close(self) -> None:
        """Ends the session."""
        self.thread.ask(self.thread.server.forget, self._name)


def case_message(case: Case, urls: Urls, limit: float = 0.0) -> dict[str, Any]:
    """The message of a case for a client that gets base URLs, without its id."""
    message = {
        "case": case.name,
        "api": case.api,
        "base_url": urls[case.api],
        "model": case.model,
        "prompt": case.prompt,
        "tools": tools_json(case.tools),
    }
    if case.fault is None:
        return {**message, "deadline": round(limit * _DEADLINE, 3)}
    return {
        **message,
        "deadline": case.deadline,
        "tries": case.tries,
        "idle_timeout": case.idle_timeout,
        "requests": case.requests,
        "together": case.together,
        "cancel": {"after": "first", "by": case.cancel} if case.cancel else None,
    }


# What came of it


@dataclass(frozen=True, slots=True)
class PlayedCase:
    """A case with a fault that was played to a client.

    Args:
        exchanges: until the client answered and its connections were over, or until it was late.
        late: whether it had not answered some seconds after its deadline; then its connections were
            broken off, and what it did after that is not in `exchanges`.
    """

    case: Case
    answer: Answer
    exchanges: tuple[Exchange, ...]
    late: bool = False


def finish_case(case: Case, session: CaseSession, job: Future[Answer]) -> PlayedCase:
    """Waits for the answer to a case, and ends its session."""
    try:
        answer = job.result(case.deadline + PATIENCE)
    except LateError:
        exchanges = session.exchanges()
        session.break_off()
        return PlayedCase(case, _late_answer(job, case), exchanges, late=True)
    else:
        return PlayedCase(case, answer, session.settled_exchanges())
    finally:
        session.close()


def _late_answer(job: Future[Answer], case: Case) -> Answer:
    try:
        return job.result(END)
    except LateError:
        return no_answer(f"no answer within {case.deadline + PATIENCE + END:g} s")


def requests_usage(case: Case, exchanges: Sequence[Exchange]) -> bool:
    """Whether the last request was for usage, too, where the API sends it on request only."""
    wanted = PROTOCOLS[case.api].client.usage
    if not wanted or not exchanges:
        return True
    return check_partial("body", wanted, parse_object(exchanges[-1].body)) is None


def with_requests(answer: Answer, exchanges: Sequence[Exchange], url: str) -> Answer:
    """The answer, which is not valid where the client did not send what is judged."""
    if answer.invalid or answer.ended:
        return answer
    if not exchanges:
        reason = f"the client sent no request to {url}"
    else:
        unplayed = next((exchange for exchange in exchanges if exchange.outcome != "played"), None)
        if unplayed is None:
            return answer
        reason = f"{unplayed.received.method} {unplayed.path} was not answered from the case"
        reason = "; ".join([reason, *map(str, unplayed.problems)])
        if len(exchanges) > 1:
            count = f"the client sent {len(exchanges)} requests for one case"
            reason = f"{count}, and {reason}. Switch off its retries, and its further requests"
    return Answer(answer.outcome, answer.absent, invalid=reason)


Returned = Outcome | Mapping[str, Any]
"""An outcome, or a mapping in the form of the answers of runners (docs/runner-protocol.md)."""

Run = Callable[[str, Case], Returned | Awaitable[Returned]]


class FunctionPlayer:
    """Plays cases to a function, each in a thread of its own.

    Args:
        run: gets the base URL and the case, returns the outcome of the client or raises its
            exception. A coroutine is run in an event loop of its own.
    """

    def __init__(self, thread: ServerThread, run: Run) -> None:
        self._thread, self._run = thread, run
        self._numbers = count(1)

    def play(self, case: Case) -> PlayedCase:
        """Plays a case, and waits for the outcome; several threads may do so."""
        session = CaseSession(self._thread, case, self._numbers)
        done: Future[Answer] = Future()
        args = (session.open()["base_url"], case, done)
        # A daemon, so that a client that never comes back does not keep the process.
        threading.Thread(target=self._call, args=args, name="mockllm-client", daemon=True).start()
        return finish_case(case, session, done)

    def _call(self, url: str, case: Case, done: Future[Answer]) -> None:
        try:
            done.set_result(self._answer(url, case))
        except ProbeError as error:
            done.set_exception(error)

    def _answer(self, url: str, case: Case) -> Answer:
        try:
            returned = self._run(url, case)
            if inspect.isawaitable(returned):
                returned = asyncio.run(_as_coroutine(returned))
        except Exception as error:  # noqa: BLE001 - what a client raises is its outcome
            return _answer_of_exception(error)
        value = as_json(returned) if isinstance(returned, Outcome) else returned
        if not isinstance(value, Mapping):
            raise ProbeError(
                f"run() must return an Outcome or a mapping with its fields, not {value!r:.80}"
            )
        try:
            return read_answer(value)
        except InvalidMessageError as error:
            raise ProbeError(
                f"what run() returned for {case.name} is no outcome: {error}"
            ) from None


async def _as_coroutine(returned: Awaitable[Returned]) -> Returned:
    return await returned


def _answer_of_exception(error: Exception) -> Answer:
    """The answer of a client that raised an exception."""
    raised = {"message": f"{type(error).__name__}: {error}", "type": type(error).__name__}
    if isinstance(error, CRASHES):
        return read_answer({"crash": raised})
    return read_answer({"errors": [raised], "tool_calls": []})
