"""A case over HTTP: its session, its message, and what a client requested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mockllm.checking.cases.case import Case
from mockllm.conformance.case_names import name_of
from mockllm.conformance.messages import Answer, tools_json
from mockllm.matching.conditions import check_partial
from mockllm.protocols import PROTOCOLS
from mockllm.replay.body import parse_object
from mockllm.server.control.routes import base_urls
from mockllm.server.thread import ServerThread

if TYPE_CHECKING:
    from mockllm.replay.sessions.session import Exchange

__all__ = ["ServedCase", "case_message", "requests_usage", "with_requests"]

_DEADLINE = 0.9
"""The part of the limit after which a client is to give up by itself, and report that."""


class ServedCase:
    """A case in a session of its own."""

    def __init__(
        self, thread: ServerThread, case: Case, numbers: Iterator[int], limit: float
    ) -> None:
        self._thread, self._case, self._numbers, self._limit = thread, case, numbers, limit
        self._session = ""
        self.urls: Mapping[str, str] = {}

    @property
    def url(self) -> str:
        """The base URL."""
        return self.urls[self._case.api]

    def open(self) -> dict[str, Any]:
        """The message of the case; each time in a new session, since one plays a case once."""
        if self._session:
            self.close()
        self._session = f"case-{next(self._numbers)}"
        server, scenario = self._thread.server, self._case.scenario
        self._thread.ask(server.assign, self._session, (scenario,), named=scenario.name)
        self.urls = base_urls(PROTOCOLS, f"{self._thread.url}/s/{self._session}")
        return case_message(self._case, self.urls, self._limit)

    def close(self) -> list[Exchange]:
        """Ends the session; returns what was requested in it."""
        return self._thread.ask(self._end)

    def _end(self) -> list[Exchange]:
        server = self._thread.server
        found = server.sessions.find(self._session)
        exchanges = [] if found is None else list(found.journal)
        server.forget(self._session)
        return exchanges


def case_message(case: Case, urls: Mapping[str, str], limit: float) -> dict[str, Any]:
    """The message of a case for a client that gets base URLs, without its id.

    Args:
        urls: by the name of the API.
        limit: seconds until the client is stopped.
    """
    return {
        "case": name_of(case),
        "api": case.api,
        "base_url": urls[case.api],
        "model": case.model,
        "prompt": case.prompt,
        "tools": tools_json(case.tools),
        "deadline": round(limit * _DEADLINE, 3),
    }


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
        unplayed = next((one for one in exchanges if one.outcome != "played"), None)
        if unplayed is None:
            return answer
        reason = f"{unplayed.method} {unplayed.path} was not answered from the case"
        reason = "; ".join([reason, *map(str, unplayed.problems)])
        if len(exchanges) > 1:
            count = f"the client sent {len(exchanges)} requests for one case"
            reason = f"{count}, and {reason}. Switch off its retries, and its further requests"
    return Answer(answer.outcome, answer.absent, answer.raised, invalid=reason)
