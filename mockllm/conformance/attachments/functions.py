"""A client in this process, called with the base URL of each case with a fault."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from itertools import count
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import CRASHES, Outcome
from mockllm.conformance.attachments.http_sessions import CaseSession, PlayedCase, finished
from mockllm.conformance.attachments.messages import Answer, read_answer
from mockllm.conformance.attachments.outcome_json import InvalidMessageError, as_json
from mockllm.errors import ProbeError
from mockllm.server.thread import ServerThread

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
        return finished(case, session, done)

    def _call(self, url: str, case: Case, done: Future[Answer]) -> None:
        try:
            done.set_result(self._answer(url, case))
        except ProbeError as error:
            done.set_exception(error)

    def _answer(self, url: str, case: Case) -> Answer:
        try:
            found = self._run(url, case)
            if inspect.isawaitable(found):
                found = asyncio.run(_awaited(found))
        except Exception as error:  # noqa: BLE001 - what a client raises is its outcome
            return _raised(error)
        value = as_json(found) if isinstance(found, Outcome) else found
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


async def _awaited(found: Awaitable[Returned]) -> Returned:
    return await found


def _raised(error: Exception) -> Answer:
    """The answer of a client that raised an exception."""
    one = {"message": f"{type(error).__name__}: {error}", "type": type(error).__name__}
    if isinstance(error, CRASHES):
        return read_answer({"crash": one})
    return read_answer({"errors": [one], "tool_calls": []})
