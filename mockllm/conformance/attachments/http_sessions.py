"""A case over HTTP: its session, its message, and what came of its requests."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass, field
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.conformance.attachments.messages import Answer, tools_json
from mockllm.conformance.attachments.process import no_answer
from mockllm.conformance.case_names import name_of
from mockllm.core.jsontext import parse_object
from mockllm.matching.conditions import check_partial
from mockllm.protocols import PROTOCOLS
from mockllm.replay.sessions.exchange import Exchange
from mockllm.server.control.routes import base_urls
from mockllm.server.thread import ServerThread

_DEADLINE = 0.9
"""The part of the limit after which a client is to give up by itself, and report that."""

PATIENCE = 1.0
"""Seconds that a client gets after the deadline of a case with a fault, before its connections are
broken off."""

END = 10.0
"""Seconds that a client gets after that, before it is ended."""

_GRACE = 1.0
"""Seconds that the connections of a client that has answered may take to end."""

_LOOK = 0.02

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
        self.thread.ask(
            self.thread.server.assign,
            self._name,
            (self.case.scenario,),
            named=self.case.scenario.name,
            faults=self.case.fault.texts if self.case.fault else (),
        )
        self.urls = base_urls(PROTOCOLS, f"{self.thread.url}/s/{self._name}")
        return case_message(self.case, self.urls, self.limit)

    def exchanges(self) -> list[Exchange]:
        """What was requested so far, as it is now, not as it becomes."""
        return self.thread.ask(self._exchanges)

    def _exchanges(self) -> list[Exchange]:
        session = self.thread.server.sessions.find(self._name)
        return [] if session is None else [exchange.copy() for exchange in session.journal]

    def settled(self) -> list[Exchange]:
        """What was requested, once every answer is over, or after `_GRACE` seconds."""
        until = time.monotonic() + _GRACE
        while True:
            exchanges = self.exchanges()
            if not any(exchange.in_use for exchange in exchanges) or time.monotonic() > until:
                return exchanges
            time.sleep(_LOOK)

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
        "case": name_of(case),
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
        "cancel": {"after": "first"} if case.cancel else None,
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


def finished(case: Case, session: CaseSession, job: Future[Answer]) -> PlayedCase:
    """Waits for the answer to a case, and ends its session."""
    try:
        answer = job.result(case.deadline + PATIENCE)
    except LateError:
        exchanges = tuple(session.exchanges())
        session.break_off()
        return PlayedCase(case, _late_answer(job, case), exchanges, late=True)
    else:
        return PlayedCase(case, answer, tuple(session.settled()))
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
    return Answer(answer.outcome, answer.absent, answer.raised, invalid=reason)
